//! From a server's JSON to the types of the wire. Lenient on purpose: what a younger server adds is let pass, what is missing is an error.

use crate::error::{Fallible, protocol};
use crate::generated::Shape;
use crate::generated::sentences::sentences;
use crate::sentences::say;
use serde::Deserialize;
use serde_json::{Map, Value};

const DEPTH_MAX: usize = 500; // of lists in lists: what is deeper would take the whole stack

pub(crate) fn decode<T: Shape>(body: &[u8]) -> Fallible<T> {
    read(parse(body)?)
}

/// A JSON object.
pub(crate) fn parse(body: &[u8]) -> Fallible<Map<String, Value>> {
    let found = value(body).or_else(|error| whole(body).map_or(Err(error), |text| value(text.as_bytes())));
    match found {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(protocol(sentences::ANSWER_NOT_OBJECT)),
        Err(_) => Err(protocol(sentences::ANSWER_NOT_JSON)),
    }
}

/// As deep as a machine may have made it; the library's own limit is for values of which nothing is known.
fn value(body: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    if depth(body) <= DEPTH_MAX {
        reader.disable_recursion_limit();
    }
    let found = Value::deserialize(&mut reader)?;
    reader.end().map(|()| found)
}

/// How many lists and objects stand open at once.
fn depth(body: &[u8]) -> usize {
    let (mut open, mut most, mut is_text, mut is_escaped) = (0usize, 0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' if !is_text => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

pub(crate) fn read<T: Shape>(fields: Map<String, Value>) -> Fallible<T> {
    let missing: Vec<&str> = T::NEEDED.iter().copied().filter(|name| !fields.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(lacks(&missing.join(", ")));
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| {
        let why = error.to_string();
        match why.strip_prefix("missing field `").and_then(|rest| rest.split_once('`')) {
            Some((name, _)) => lacks(name),
            None => protocol(say(sentences::ANSWER_BAD, &[("why", &why)])),
        }
    })
}

fn lacks(names: &str) -> crate::Error {
    protocol(say(sentences::ANSWER_LACKS, &[("names", &names)]))
}

/// The text with every half of a surrogate pair replaced, which JSON can spell and UTF-8 cannot. None where there is none: then it is no JSON at all.
fn whole(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let mut made = String::with_capacity(text.len());
    let (mut rest, mut is_changed) = (text, false);
    while let Some(at) = rest.find('\\') {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                made.push_str("\\ufffd");
                rest = &rest[6..];
                is_changed = true;
                continue;
            }
            _ => rest.chars().take(2).map(char::len_utf8).sum(), // an escape, whose second letter may be a backslash itself
        };
        made.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    made.push_str(rest);
    is_changed.then_some(made)
}

/// Of `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::api::{Accepted, Whoami};

    #[test]
    fn what_a_younger_server_adds_is_let_pass_and_what_is_missing_is_named() {
        assert_eq!(decode::<Whoami>(br#"{"account": "ann", "mood": [1]}"#).unwrap().account, "ann");
        let error = decode::<Accepted>(br#"{"machine": "m"}"#).unwrap_err();
        assert_eq!(error.message, "the server's answer lacks instruction_seq, interrupted: it may be of another version");
    }

    #[test]
    fn what_is_no_object_of_json_is_a_protocol_error() {
        assert_eq!(parse(b"[1]").unwrap_err().message, "the server's answer is not a JSON object");
        for bad in [&b"<html>"[..], b"", b"{\"a\": \"\\u12\"}", b"{\"a\": \"\\ud8zz\"}", b"{\"a\": \"\\ud800"] {
            assert_eq!(parse(bad).unwrap_err().message, "the server's answer is not JSON");
        }
    }

    #[test]
    fn what_is_very_deep_is_read_and_what_would_take_the_whole_stack_is_not() {
        let nested = |depth: usize| format!(r#"{{"a": {}"]\"["{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let found = parse(nested(DEPTH_MAX - 1).as_bytes()).unwrap();
        assert_eq!(Value::Object(found.clone()).to_string().len(), 2 * DEPTH_MAX + 10);
        assert_eq!(read::<Whoami>(found).unwrap_err().message, "the server's answer lacks account: it may be of another version");
        for deeper in [DEPTH_MAX, 1_000_000] {
            assert_eq!(parse(nested(deeper).as_bytes()).unwrap_err().message, "the server's answer is not JSON");
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_does_not_hide_the_rest() {
        let found = parse(br#"{"a": "\ud800x\\ud800\udc00", "b": "\ud83d\udc0d"}"#).unwrap();
        assert_eq!((&found["a"], &found["b"]), (&"\u{fffd}x\\ud800\u{fffd}".into(), &"🐍".into()));
    }
}
