//! What a program gives, looked at before it goes anywhere.

use crate::error::{Fallible, invalid};
use crate::generated::sentences::sentences;
use crate::quoting::quoted;
use crate::sentences::say;
use std::fmt::Write;

const NAME_LENGTH_MAX: usize = 63; // a DNS label: a name may become a host name
const VARIABLE_LENGTH_MAX: usize = 64;
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// How long the caller has.
pub(crate) fn wait_seconds(name: &str, value: Option<f64>) -> Fallible<()> {
    match value {
        Some(seconds) if !(seconds.is_finite() && seconds >= 0.0) => {
            Err(invalid(say(sentences::BAD_WAIT, &[("name", &name), ("text", &number_text(seconds))])))
        }
        _ => Ok(()),
    }
}

/// How long code may run.
pub(crate) fn timeout_seconds(value: Option<f64>) -> Fallible<()> {
    match value {
        Some(seconds) if !(seconds.is_finite() && seconds > 0.0) => Err(invalid(say(sentences::BAD_TIMEOUT, &[("text", &number_text(seconds))]))),
        _ => Ok(()),
    }
}

/// Of a number that becomes JSON, which knows neither infinity nor what is no number.
pub(crate) fn finite(name: &str, value: Option<f64>) -> Fallible<()> {
    match value {
        Some(number) if !number.is_finite() => Err(invalid(say(sentences::NOT_A_NUMBER, &[("name", &name), ("text", &number_text(number))]))),
        _ => Ok(()),
    }
}

fn number_text(number: f64) -> String {
    match number {
        _ if number.is_nan() => "nan".to_owned(),
        _ if number == 0.0 => "0".to_owned(),
        _ => number.to_string(),
    }
}

/// Of an instruction.
pub(crate) fn instruction_number(number: i64) -> Fallible<i64> {
    if number < 0 { Err(invalid(say(sentences::BAD_NUMBER, &[("text", &number)]))) } else { Ok(number) }
}

/// It becomes part of an address: nothing else may.
pub(crate) fn machine_name(name: &str) -> Fallible<String> {
    let letters = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    let ends = name.starts_with('-') || name.ends_with('-');
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !letters || ends || matches!(name, "new" | "list") {
        return Err(invalid(say(sentences::BAD_MACHINE_NAME, &[("text", &quoted(name))])));
    }
    Ok(name.to_owned())
}

pub(crate) fn secret_name(name: &str) -> Fallible<&str> {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || name.len() > VARIABLE_LENGTH_MAX || !letters || name.as_bytes()[0].is_ascii_digit() {
        return Err(invalid(say(sentences::BAD_SECRET_NAME, &[("text", &quoted(name))])));
    }
    Ok(name)
}

/// A name that Python takes for a function.
pub(crate) fn function_name(name: &str) -> Fallible<()> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|letter| letter.is_alphabetic() || letter == '_');
    if !first || !letters.all(|letter| letter.is_alphanumeric() || letter == '_') || KEYWORDS.contains(&name) {
        return Err(invalid(say(sentences::BAD_FUNCTION_NAME, &[("text", &quoted(name))])));
    }
    Ok(())
}

// --- parts of addresses ----------------------------------------------------------------------------------------------------------------------

/// One part of a path, whatever is in it.
pub(crate) fn segment(text: &str) -> Fallible<String> {
    if text.is_empty() || text == "." || text == ".." {
        return Err(invalid(say(sentences::BAD_NAME, &[("text", &quoted(text))])));
    }
    Ok(escaped(text))
}

/// Its first dots are escaped, too: whoever stands on the way would take `..` for a step up.
fn escaped(text: &str) -> String {
    let rest = text.trim_start_matches('.');
    format!("{}{}", "%2E".repeat(text.len() - rest.len()), percent(rest))
}

/// Everything but letters, digits and `_.-~`.
pub(crate) fn percent(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut made, byte| {
        if byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) {
            made.push(char::from(byte));
        } else {
            let _ = write!(made, "%{byte:02X}");
        }
        made
    })
}

/// Of a file or a folder, part by part.
pub(crate) fn file_path(path: &str) -> Fallible<String> {
    if path.is_empty() || path.contains('\0') {
        return Err(invalid(say(sentences::BAD_FILE_PATH, &[("text", &quoted(path))])));
    }
    Ok(path.split('/').map(escaped).collect::<Vec<_>>().join("/"))
}

/// As `file_path`, for what cannot be undone: a path that says plainly what it means.
pub(crate) fn path_to_delete(path: &str) -> Fallible<String> {
    let escaped = file_path(path)?;
    if path.split('/').any(|part| part == "." || part == "..") {
        return Err(invalid(say(sentences::DOTS_NOT_DELETED, &[("text", &quoted(path))])));
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_their_place_in_an_address_are_refused_or_escaped() {
        for bad in ["", "new", "list", "-a", "a-", "A", "a/b", "..", "a b", &"a".repeat(64)] {
            assert!(machine_name(bad).is_err(), "{bad}");
        }
        assert_eq!(segment("../x y").unwrap(), "%2E%2E%2Fx%20y");
        assert_eq!(file_path("a/../é").unwrap(), "a/%2E%2E/%C3%A9");
        assert!(path_to_delete("a/../b").unwrap_err().message.contains("'a/../b' is not deleted"));
        assert!(segment("..").is_err());
    }

    #[test]
    fn numbers_that_are_none_are_refused_with_what_they_are() {
        assert_eq!(timeout_seconds(Some(0.0)).unwrap_err().message, "timeout_seconds is 0: give a number of seconds above 0, or leave it out");
        assert!(wait_seconds("wait_seconds", Some(f64::NAN)).unwrap_err().message.starts_with("wait_seconds is nan:"));
        assert!(finite("cpus", Some(f64::INFINITY)).unwrap_err().message.ends_with("not inf"));
        assert!(wait_seconds("retry_seconds", Some(0.0)).is_ok());
    }

    #[test]
    fn function_names_are_those_that_python_takes() {
        for good in ["ask", "_a1", "frage_nach_größe"] {
            assert!(function_name(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "a-b", "class", "a b"] {
            assert!(function_name(bad).is_err(), "{bad}");
        }
    }
}
