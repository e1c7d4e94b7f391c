//! `everforge machine exec`.

use super::watching::{Watched, watch};
use crate::connection::machine_named;
use crate::failures::{Done, Failure};
use crate::output::print_line;
use crate::python::float;
use crate::stdin::{is_closed, read_all};
use crate::tables::print_json;
use crate::usage::Given;
use everforge::generated::sentences::sentences;
use everforge::sentences::say;
use everforge::{Error, Kind};
use serde_json::json;
use std::fs;
use std::path::{Component, PathBuf};

const CODE_BYTES_MAX: usize = 16 * 1024 * 1024; // from stdin; no server takes more in one request

pub async fn exec(given: Given) -> Done {
    let name = given.required("name");
    let code = match given.required("code") {
        word if word == "-" => from_stdin(&given).await?,
        code => code,
    };
    let pictures = folder(&given)?;
    machine_named(&name.clone(), |machine| async move {
        let mut exec = machine.exec(code).interrupt(given.flag("interrupt")).envs(given.pairs("env", "--env")?.unwrap_or_default());
        if let Some(seconds) = given.float("timeout_seconds") {
            exec = exec.timeout_seconds(timeout(seconds)?);
        }
        if !given.flag("detach") {
            return watch(&name, exec, Watched { pictures, json: given.json() }).await;
        }
        let number = exec.await?.number();
        if given.json() {
            print_json(&json!({"machine_name": name, "instruction": number}));
        } else {
            print_line(&number.to_string());
        }
        Ok(())
    })
    .await
}

/// Judged here already, since it is said as it is written in Python.
fn timeout(seconds: f64) -> Done<f64> {
    if seconds.is_finite() && seconds > 0.0 {
        return Ok(seconds);
    }
    Err(Error::new(Kind::InvalidInput, say(sentences::BAD_TIMEOUT, &[("text", &float(seconds))])).into())
}

async fn from_stdin(given: &Given) -> Done<String> {
    if is_closed() {
        return Err(given.bad("CODE", "stdin is closed"));
    }
    let found = read_all(CODE_BYTES_MAX).await?;
    if found.len() > CODE_BYTES_MAX {
        return Err(given.bad("CODE", &format!("stdin has more than {CODE_BYTES_MAX} bytes")));
    }
    String::from_utf8(found).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let why = why_wrong(&error.as_bytes()[at..], error.utf8_error().error_len());
        given.bad("CODE", &format!("stdin is not UTF-8 text ({why} at byte {at})"))
    })
}

/// In the words of Python's decoder.
fn why_wrong(bytes: &[u8], length: Option<usize>) -> &'static str {
    match (bytes.first(), length) {
        (_, None) => "unexpected end of data",
        (Some(0xc2..=0xf4), _) => "invalid continuation byte",
        _ => "invalid start byte",
    }
}

/// Made before the code runs: afterwards would be too late to find that it cannot be.
fn folder(given: &Given) -> Done<Option<PathBuf>> {
    let Some(path) = given.path("pictures") else { return Ok(None) };
    fs::create_dir_all(&path).map_err(|error| Failure::local(path.display(), &error))?;
    Ok(Some(path.components().filter(|part| *part != Component::CurDir).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_in_the_words_of_python() {
        for (bytes, why) in [
            (&b"\xff"[..], "invalid start byte"),
            (b"\x80", "invalid start byte"),
            (b"\xc3(", "invalid continuation byte"),
            (b"\xed\xa0\x80", "invalid continuation byte"),
            (b"\xe2\x82", "unexpected end of data"),
        ] {
            let error = std::str::from_utf8(bytes).unwrap_err();
            assert_eq!(why_wrong(&bytes[error.valid_up_to()..], error.error_len()), why, "{bytes:?}");
        }
    }
}
