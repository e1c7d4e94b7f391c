//! `everforge audit verify`.

use super::file::{self, Sound, Trouble};
use crate::connection::connected;
use crate::failures::{Done, EXIT_RAISED, Failure};
use crate::output::print_line;
use crate::tables::print_json;
use crate::usage::Given;
use everforge::api::AuditHead;
use serde_json::json;

const NUMBER_DIGITS_MAX: usize = 18;

pub async fn verify(given: Given) -> Done {
    match found(&given).await {
        Ok(sound) => {
            tell_sound(&sound, given.json());
            Ok(())
        }
        Err(Trouble::Broken(broken)) => {
            if given.json() {
                print_json(&json!({"sound": false, "number": broken.number, "reason": broken.reason}));
            } else {
                print_line(&format!("not sound: {broken}"));
            }
            Err(Failure::Left(EXIT_RAISED))
        }
        Err(trouble) => Err(trouble.told(given.path("file").unwrap_or_default().display())),
    }
}

async fn found(given: &Given) -> Result<Sound, Trouble> {
    let is_part = given.flag("part");
    if let Some(path) = given.path("file") {
        return file::checked(&path, kept(given)?, is_part);
    }
    let audit = connected()?.audit();
    let is_part = is_part && audit.head().await?.is_none();
    let kept = kept(given)?;
    Ok(if is_part { Sound::Part(audit.verify_part(kept).await?) } else { Sound::Whole(audit.verify(kept).await?) })
}

fn tell_sound(sound: &Sound, as_json: bool) {
    let (how, is_whole, count, head) = match sound {
        Sound::Whole(chain) => ("sound", true, chain.count, &chain.head),
        Sound::Part(part) => ("sound as far as one account can tell", false, part.count, &part.head),
    };
    if as_json {
        print_json(&json!({"sound": true, "whole": is_whole, "entries": count, "number": head.number, "hash": head.hash}));
    } else {
        print_line(&format!("{how}: {count} entries, the last is {}:{}", head.number, head.hash));
    }
}

fn kept(given: &Given) -> Done<Option<AuditHead>> {
    let Some(text) = given.text("kept") else { return Ok(None) };
    let (number, hash) = text.split_once(':').unwrap_or((&text, ""));
    let is_number = !number.is_empty() && number.len() <= NUMBER_DIGITS_MAX && number.bytes().all(|digit| digit.is_ascii_digit());
    match number.parse() {
        Ok(number) if is_number && !hash.is_empty() => Ok(Some(AuditHead { number, hash: hash.to_owned() })),
        _ => Err(given.bad("--kept", "give the number and the hash as they were printed, as 1234:5f3a...")),
    }
}
