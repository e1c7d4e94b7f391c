//! An entry of a machine's tape, as it came: what a younger server adds is kept.

use crate::error::{Fallible, protocol};
use crate::generated::api::Stream;
use crate::generated::entries;
use crate::generated::sentences::sentences;
use crate::results::Line;
use crate::sentences::say;
use serde::Serialize;
use serde_json::{Map, Value};

const SHOWN_CHARACTERS_MAX: usize = 200;

/// Something that happened in a machine: a line was written, an instruction ended, the machine fell asleep.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Entry(Map<String, Value>);

#[derive(Clone, Copy)]
enum Sort {
    Integer,
    Text,
    List,
    Object,
}

impl Sort {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Integer => value.is_i64(),
            Self::Text => value.is_string(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// What must be there to be worked with, beside its place; None for a type that this client is too young for.
fn needed(kind: &str) -> Option<&'static [(&'static str, Sort)]> {
    Some(match kind {
        "accepted" => &[("instruction", Sort::Integer)],
        "output" => &[("stream", Sort::Text), ("lines", Sort::List)],
        "displayed" => &[("data", Sort::Object)],
        "ended" => &[("instruction", Sort::Integer), ("end", Sort::Text), ("runtime_ms", Sort::Integer)],
        "called" => &[("instruction", Sort::Integer), ("call", Sort::Integer), ("function", Sort::Text)],
        "answered" => &[("instruction", Sort::Integer), ("call", Sort::Integer)],
        "moved" | "lost" => &[],
        _ => return None,
    })
}

impl Entry {
    /// None for a type that this client is too young for.
    pub(crate) fn checked(fields: Map<String, Value>) -> Fallible<Option<Self>> {
        let Some(needed) = fields.get("type").and_then(Value::as_str).and_then(needed) else { return Ok(None) };
        let place = [("position", Sort::Integer), ("cursor", Sort::Integer)];
        if place.iter().chain(needed).all(|(name, sort)| fields.get(*name).is_some_and(|value| sort.fits(value))) {
            return Ok(Some(Self(fields)));
        }
        let shown: String = Value::Object(fields).to_string().chars().take(SHOWN_CHARACTERS_MAX).collect();
        Err(protocol(say(sentences::ENTRY_BAD, &[("entry", &shown)])))
    }

    /// accepted, output, displayed, ended, called, answered, moved or lost.
    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Of its first line, or of itself.
    pub fn position(&self) -> i64 {
        self.integer("position").unwrap_or(-1)
    }

    /// Give it as `after` to go on behind this entry.
    pub fn cursor(&self) -> i64 {
        self.integer("cursor").unwrap_or(-1)
    }

    /// To which it belongs, where it belongs to one.
    pub fn instruction(&self) -> Option<i64> {
        self.integer("instruction")
    }

    /// A field as it is on the wire.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All of them.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// All of them.
    pub fn into_fields(self) -> Map<String, Value> {
        self.0
    }

    /// The same with types. None when it lacks something that only a younger or older server would leave out.
    pub fn typed(&self) -> Option<entries::Entry> {
        entries::Entry::read(Value::Object(self.0.clone())).ok().flatten()
    }

    /// Of an output; of anything else there are none.
    pub fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        let texts = self.0.get("lines").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_partial = self.0.get("partial").and_then(Value::as_bool).unwrap_or(false);
        let stream = if self.0.get("stream").and_then(Value::as_str) == Some("stderr") { Stream::Stderr } else { Stream::Stdout };
        let (position, instruction) = (self.position(), self.instruction());
        texts.iter().zip(0i64..).map(move |(text, i)| Line {
            text: text.as_str().unwrap_or_default().to_owned(),
            stream: stream.clone(),
            partial: is_partial && usize::try_from(i).is_ok_and(|i| i + 1 == texts.len()),
            instruction,
            position: position.saturating_add(i),
        })
    }

    /// What of it lies behind a cursor: all, a part of its lines, or nothing.
    pub(crate) fn behind(mut self, cursor: i64) -> Option<Self> {
        if self.cursor() <= cursor {
            return None;
        }
        let skip = cursor.saturating_sub(self.position()).saturating_add(1);
        if skip <= 0 || self.kind() != "output" {
            return Some(self);
        }
        let seq = self.integer("seq").unwrap_or(0).saturating_add(skip);
        if let Some(Value::Array(lines)) = self.0.get_mut("lines") {
            lines.drain(..usize::try_from(skip).unwrap_or(0).min(lines.len()));
        }
        self.0.insert("position".to_owned(), cursor.saturating_add(1).into());
        self.0.insert("seq".to_owned(), seq.into());
        Some(self)
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(crate) fn object(&self, name: &str) -> Map<String, Value> {
        self.0.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// About what it takes in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.0.values().map(size).sum()
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => 32 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 32 + fields.iter().map(|(name, one)| 32 + name.len() + size(one)).sum::<usize>(),
        _ => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(value: &Value) -> Fallible<Option<Entry>> {
        Entry::checked(value.as_object().unwrap().clone())
    }

    fn output() -> Entry {
        let found = json!({"type": "output", "position": 5, "cursor": 7, "instruction": 0, "stream": "stdout", "seq": 2, "lines": ["a", "b", "c"], "partial": true});
        entry(&found).unwrap().unwrap()
    }

    #[test]
    fn of_an_entry_that_comes_again_only_what_is_new_is_left() {
        let texts = |cursor| output().behind(cursor).map(|entry| entry.lines().map(|line| (line.position, line.text)).collect::<Vec<_>>());
        assert_eq!(texts(4).unwrap().len(), 3);
        assert_eq!(texts(5).unwrap(), [(6, "b".to_owned()), (7, "c".to_owned())]);
        assert_eq!(texts(7), None);
        assert_eq!(output().behind(5).unwrap().get("seq"), Some(&json!(3)));
    }

    #[test]
    fn only_the_last_line_of_an_output_can_be_partial() {
        assert_eq!(output().lines().map(|line| line.partial).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn a_type_from_the_future_is_let_pass_and_one_that_lacks_something_is_not() {
        assert_eq!(entry(&json!({"type": "dreamt", "position": 1, "cursor": 1})).unwrap(), None);
        let error = entry(&json!({"type": "output", "position": 1, "cursor": 1, "stream": "stdout"})).unwrap_err();
        assert!(error.message.starts_with("an entry of the tape is not as it should be: {"), "{error}");
    }
}
