// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.
//! Entries of a machine's tape.

use super::api::{EndKind, Retry, Stream};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub instruction: i64,
    pub code: String,
    pub timeout_seconds: f64,
    /// the client's idempotency key
    #[serde(default)]
    pub key: Option<String>,
    /// names alone
    #[serde(default)]
    pub env: Vec<String>,
    /// of the client's program, that it may call
    #[serde(default)]
    pub functions: Vec<String>,
}

impl super::Shape for Accepted {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "instruction", "code", "timeout_seconds"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub instruction: Option<i64>,
    pub stream: Stream,
    /// number of the first line within its instruction
    pub seq: i64,
    pub lines: Vec<String>,
    /// the last line's newline has not come
    #[serde(default)]
    pub partial: bool,
    #[serde(default)]
    pub origin: Option<i64>,
}

impl super::Shape for Output {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "instruction", "stream", "seq", "lines"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Displayed {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub instruction: Option<i64>,
    pub data: IndexMap<String, Value>,
    #[serde(default)]
    pub metadata: IndexMap<String, Value>,
}

impl super::Shape for Displayed {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "instruction", "data"];
}

/// The one end of an instruction: its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub instruction: i64,
    pub end: EndKind,
    #[serde(default)]
    pub runtime_ms: i64,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub data: Option<IndexMap<String, Value>>,
    /// one line: type and message
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub traceback: Option<String>,
    /// what survived, what was dropped, that a new interpreter began
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default)]
    pub retry: Retry,
    /// how many `Displayed` belong to it; None where only the tape knows
    #[serde(default)]
    pub displays: Option<i64>,
}

impl super::Shape for Ended {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "instruction", "end"];
}

/// The code has called a function of the client's program, and waits for its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub instruction: i64,
    /// its number within the instruction
    pub call: i64,
    pub function: String,
    #[serde(default)]
    pub args: Vec<Value>,
    #[serde(default)]
    pub kwargs: IndexMap<String, Value>,
}

impl super::Shape for Called {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "instruction", "call", "function"];
}

/// The one answer to a call. One that its caller no longer waits for is answered with an error, so that nobody else does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub instruction: i64,
    pub call: i64,
}

impl super::Shape for Answered {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "instruction", "call"];
}

/// Something happened to the machine itself: the lifecycle event's name, and what a reader needs to know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub event: String,
    pub residence: String,
    #[serde(default)]
    pub detail: IndexMap<String, Value>,
}

impl super::Shape for Moved {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "event", "residence"];
}

/// Memory since a point is gone: everything executed after it has left no trace in the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    pub position: i64,
    /// give it as `after` to go on behind this entry
    pub cursor: i64,
    pub time: String,
    pub since_position: i64,
    /// executed after the point, wholly or in part, and
    pub first_instruction: Option<i64>,
    /// None when none was
    pub last_instruction: Option<i64>,
    /// where the machine is, or can be, back
    pub snapshot: Option<String>,
    pub reason: String,
}

impl super::Shape for Lost {
    const NEEDED: &'static [&'static str] = &["position", "cursor", "time", "since_position", "first_instruction", "last_instruction", "snapshot", "reason"];
}

/// An entry of a machine's tape.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Accepted(Accepted),
    Output(Output),
    Displayed(Displayed),
    Ended(Ended),
    Called(Called),
    Answered(Answered),
    Moved(Moved),
    Lost(Lost),
}

impl Entry {
    /// Of an object of the wire; None for a type that this client is too young for.
    pub fn read(value: Value) -> Result<Option<Self>, serde_json::Error> {
        match value.get("type").and_then(Value::as_str) {
            Some("accepted") => serde_json::from_value(value).map(Self::Accepted),
            Some("output") => serde_json::from_value(value).map(Self::Output),
            Some("displayed") => serde_json::from_value(value).map(Self::Displayed),
            Some("ended") => serde_json::from_value(value).map(Self::Ended),
            Some("called") => serde_json::from_value(value).map(Self::Called),
            Some("answered") => serde_json::from_value(value).map(Self::Answered),
            Some("moved") => serde_json::from_value(value).map(Self::Moved),
            Some("lost") => serde_json::from_value(value).map(Self::Lost),
            _ => return Ok(None),
        }
        .map(Some)
    }

    fn place(&self) -> (i64, i64) {
        match self {
            Self::Accepted(entry) => (entry.position, entry.cursor),
            Self::Output(entry) => (entry.position, entry.cursor),
            Self::Displayed(entry) => (entry.position, entry.cursor),
            Self::Ended(entry) => (entry.position, entry.cursor),
            Self::Called(entry) => (entry.position, entry.cursor),
            Self::Answered(entry) => (entry.position, entry.cursor),
            Self::Moved(entry) => (entry.position, entry.cursor),
            Self::Lost(entry) => (entry.position, entry.cursor),
        }
    }

    /// Of its first line, or of itself.
    pub fn position(&self) -> i64 {
        self.place().0
    }

    /// Give it as `after` to go on behind this entry.
    pub fn cursor(&self) -> i64 {
        self.place().1
    }
}
