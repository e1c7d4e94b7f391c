//! What an instruction wrote and how it ended, gathered from entries of the tape.

use crate::entry::Entry;
use crate::error::{Error, Fallible, Kind};
use crate::generated::api::{EndKind, Retry, Stream};
use crate::generated::sentences::sentences;
use crate::sentences::say;
use base64::Engine;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::ops::Deref;

/// That a result keeps of each stream: a program that prints for days must not fill its client's memory.
const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// That a result keeps of what was shown: figures are large, and come one by one.
const DISPLAYS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The same thing in several formats, by short name or MIME type.
pub type Bundle = Map<String, Value>;

/// A line of output: a string that knows which stream it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Without the newline.
    pub text: String,
    /// Where the code wrote it.
    pub stream: Stream,
    /// The newline has not come: the line may go on.
    pub partial: bool,
    /// None for what a thread wrote between instructions.
    pub instruction: Option<i64>,
    /// On the tape.
    pub position: i64,
}

impl Line {
    /// The newline, or nothing while the line may go on.
    pub fn end(&self) -> &'static str {
        if self.partial { "" } else { "\n" }
    }
}

impl Deref for Line {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl PartialEq<str> for Line {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Line {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// Something shown: a figure, a table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Display {
    /// The thing itself.
    pub data: Bundle,
    /// What is said about it.
    pub metadata: Map<String, Value>,
}

impl Display {
    /// The picture, where it is one.
    pub fn png(&self) -> Option<Vec<u8>> {
        let found = self.data.get("png").or_else(|| self.data.get("image/png"))?.as_str()?;
        let letters: String = found.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
        base64::engine::general_purpose::STANDARD.decode(letters).ok()
    }
}

fn bundles<S: Serializer>(displays: &[Display], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(displays.iter().map(|display| &display.data))
}

/// The one end of an instruction, and what it wrote on the way. The code's own exception is `error`: it is no [`Error`] of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Result {
    /// Its number.
    pub instruction: i64,
    /// How it ended.
    pub end: EndKind,
    /// How long it ran.
    pub runtime_ms: i64,
    /// `repr()` of the last expression.
    pub value: Option<String>,
    /// The same in other formats.
    pub data: Option<Bundle>,
    /// One line: type and message.
    pub error: Option<String>,
    /// As Python prints it.
    pub traceback: Option<String>,
    /// What survived, what was dropped.
    pub note: Option<String>,
    /// Whether it helps to run it again.
    pub retry: Retry,
    /// What was shown, in order.
    #[serde(serialize_with = "bundles")]
    pub displays: Vec<Display>,
    /// All that it printed.
    pub stdout: String,
    /// All that it wrote to stderr.
    pub stderr: String,
    /// It wrote or showed more than a result keeps.
    pub truncated: bool,
}

impl Result {
    /// Did it end with a value?
    pub fn ok(&self) -> bool {
        self.end == EndKind::Value
    }

    /// What a terminal would show: the output, then the value or the traceback.
    pub fn text(&self) -> String {
        let last = if self.ok() { self.value.clone().unwrap_or_default() } else { self.failure() };
        [self.stdout.as_str(), &self.stderr, &last]
            .map(|part| part.trim_end_matches('\n'))
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn failure(&self) -> String {
        let found = failure_text(&self.end, self.error.as_deref(), self.traceback.as_deref());
        if found.is_empty() { self.end.to_string() } else { found }
    }

    /// Itself when it is a value; else `InstructionFailed`, which has it.
    pub fn raise_for_error(self) -> Fallible<Self> {
        if self.ok() {
            return Ok(self);
        }
        let why = [&self.error, &self.note].into_iter().flatten().find(|text| !text.is_empty()).map_or("no more is known", String::as_str);
        let mut error =
            Error::new(Kind::InstructionFailed, say(sentences::ENDED_BADLY, &[("number", &self.instruction), ("end", &self.end), ("why", &why)]));
        error.result = Some(self);
        Err(error)
    }
}

/// Of an end that is no value: the traceback, and behind it what a traceback cannot know: that the time was over. Empty when nothing is known.
pub fn failure_text(end: &EndKind, error: Option<&str>, traceback: Option<&str>) -> String {
    let traceback = traceback.filter(|text| !text.is_empty());
    let error = error.filter(|text| *end == EndKind::TimedOut || (traceback.is_none() && !text.is_empty()));
    [traceback, error].into_iter().flatten().map(|part| part.trim_end_matches('\n')).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Code in the machine has called a function of this program and waits for its answer.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) number: i64,
    pub(crate) function: String,
    pub(crate) args: Vec<Value>,
    pub(crate) kwargs: Map<String, Value>,
}

#[derive(Debug)]
pub(crate) enum Happening {
    Line(Line),
    Display(Display),
    Call(Call),
}

#[derive(Debug, Default)]
struct Text {
    written: String,
    truncated: bool,
}

impl Text {
    fn add(&mut self, line: &Line) {
        if self.truncated || self.written.len() + line.len() >= OUTPUT_BYTES_MAX {
            self.truncated = true; // what follows is not to look as if it came right after
            return;
        }
        self.written.push_str(line);
        self.written.push_str(line.end());
    }
}

/// Follows one instruction through the tape: gives what happens, and has the result at its end.
#[derive(Debug)]
pub(crate) struct Gathering {
    instruction: i64,
    stdout: Text,
    stderr: Text,
    displays: Vec<Display>,
    displays_bytes: usize,
}

/// What an entry means for whoever follows an instruction.
#[derive(Debug)]
pub(crate) enum Taken {
    Happenings(Vec<Happening>),
    End(Box<Result>),
}

impl Gathering {
    pub(crate) fn new(instruction: i64) -> Self {
        Self { instruction, stdout: Text::default(), stderr: Text::default(), displays: Vec::new(), displays_bytes: 0 }
    }

    pub(crate) fn take(&mut self, entry: &Entry) -> Taken {
        if entry.instruction() != Some(self.instruction) {
            return Taken::Happenings(Vec::new());
        }
        let happening = match entry.kind() {
            "output" => return Taken::Happenings(self.lines(entry)),
            "ended" => return Taken::End(Box::new(self.end(entry))),
            "displayed" => {
                let display = Display { data: entry.object("data"), metadata: entry.object("metadata") };
                self.displays_bytes = self.displays_bytes.saturating_add(entry.size_bytes());
                if self.displays_bytes <= DISPLAYS_BYTES_MAX {
                    self.displays.push(display.clone());
                }
                Happening::Display(display)
            }
            "called" => Happening::Call(Call {
                number: entry.integer("call").unwrap_or(-1),
                function: entry.text("function").unwrap_or_default(),
                args: entry.get("args").and_then(Value::as_array).cloned().unwrap_or_default(),
                kwargs: entry.object("kwargs"),
            }),
            _ => return Taken::Happenings(Vec::new()),
        };
        Taken::Happenings(vec![happening])
    }

    fn lines(&mut self, entry: &Entry) -> Vec<Happening> {
        entry
            .lines()
            .map(|line| {
                let text = if line.stream == Stream::Stderr { &mut self.stderr } else { &mut self.stdout };
                text.add(&line);
                Happening::Line(line)
            })
            .collect()
    }

    fn end(&mut self, entry: &Entry) -> Result {
        Result {
            instruction: self.instruction,
            end: EndKind::from(entry.text("end").unwrap_or_default()),
            runtime_ms: entry.integer("runtime_ms").unwrap_or(0),
            value: entry.text("value"),
            data: entry.get("data").and_then(Value::as_object).cloned(),
            error: entry.text("error"),
            traceback: entry.text("traceback"),
            note: entry.text("note"),
            retry: entry.text("retry").map(Retry::from).unwrap_or_default(),
            displays: std::mem::take(&mut self.displays),
            truncated: self.stdout.truncated || self.stderr.truncated || self.displays_bytes > DISPLAYS_BYTES_MAX,
            stdout: std::mem::take(&mut self.stdout.written),
            stderr: std::mem::take(&mut self.stderr.written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(value: &Value) -> Entry {
        Entry::checked(value.as_object().unwrap().clone()).unwrap().unwrap()
    }

    fn ended(end: &str, error: Option<&str>) -> Result {
        let mut gathering = Gathering::new(0);
        let end = json!({"type": "ended", "position": 9, "cursor": 9, "instruction": 0, "end": end, "runtime_ms": 1, "error": error});
        gathering.take(&entry(
            &json!({"type": "output", "position": 1, "cursor": 2, "instruction": 0, "stream": "stdout", "lines": ["a", "b"], "partial": true}),
        ));
        gathering.take(&entry(&json!({"type": "output", "position": 3, "cursor": 3, "instruction": 1, "stream": "stdout", "lines": ["another's"]})));
        match gathering.take(&entry(&end)) {
            Taken::End(result) => *result,
            Taken::Happenings(_) => panic!("it has ended"),
        }
    }

    #[test]
    fn a_result_has_what_its_own_instruction_wrote_and_no_newline_behind_a_partial_line() {
        assert_eq!(ended("value", None).stdout, "a\nb");
    }

    #[test]
    fn an_end_that_is_no_value_is_an_error_only_when_it_is_asked_for() {
        let result = ended("error", Some("ValueError: no"));
        assert!(!result.ok());
        assert_eq!(result.text(), "a\nb\nValueError: no");
        let error = result.clone().raise_for_error().unwrap_err();
        assert_eq!((error.code.as_str(), error.message.as_str()), ("InstructionFailed", "instruction 0 ended error: ValueError: no"));
        assert_eq!(error.result.as_ref(), Some(&result));
    }

    #[test]
    fn an_end_from_the_future_keeps_its_word() {
        assert_eq!(ended("evaporated", None).text(), "a\nb\nevaporated");
    }

    #[test]
    fn what_follows_on_a_line_that_was_left_out_is_left_out_too() {
        let mut text = Text::default();
        let line = |size: usize| Line { text: "x".repeat(size), stream: Stream::Stdout, partial: false, instruction: None, position: 0 };
        text.add(&line(10));
        text.add(&line(OUTPUT_BYTES_MAX));
        text.add(&line(1));
        assert!(text.truncated && text.written.len() == 11);
    }

    #[test]
    fn a_picture_is_found_under_either_name_and_nonsense_is_none() {
        let display = |name: &str, text: &str| Display { data: json!({name: text}).as_object().unwrap().clone(), metadata: Map::new() };
        assert_eq!(display("png", "aGk=\n").png().unwrap(), b"hi");
        assert_eq!(display("image/png", "aGk=").png().unwrap(), b"hi");
        assert_eq!(display("png", "!").png(), None);
    }
}
