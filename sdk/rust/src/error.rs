//! The one error of this crate: a kind of the tree that all languages share, and a sentence that says what to do.

use crate::generated::api::Retry;
use crate::results;
use serde_json::{Map, Value};
use std::fmt;
use std::ops::{Deref, DerefMut};

pub use crate::generated::errors::Kind;

/// What every call gives.
pub type Fallible<T> = std::result::Result<T, Error>;

/// What went wrong around an instruction or a request. The exception of the code itself is no error but a [`crate::Result`].
///
/// Its fields are those of [`Fields`].
///
/// ```
/// use everforge::{Error, Kind};
///
/// let error = Error::new(Kind::MachineNotFound, "there is no machine 'guide'");
/// assert!(error.is_a(Kind::Refused)); // a kind is also every kind above it
/// assert_eq!((error.code.as_str(), error.http_status), ("MachineNotFound", 404));
/// ```
#[derive(Debug, Clone)]
pub struct Error(Box<Fields>);

/// What an [`Error`] has to say.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fields {
    /// What sort of thing it is: `error.is_a(Kind::Refused)`.
    pub kind: Kind,
    /// Its name on the wire, also where this client is too young to know it.
    pub code: String,
    /// What happened, to what, and what to do.
    pub message: String,
    /// More, for programs.
    pub details: Map<String, Value>,
    /// Whether it helps to ask again.
    pub retry: Retry,
    /// What a server answers with.
    pub http_status: u16,
    /// Of the request, as it is in the server's log.
    pub request_id: Option<String>,
    /// When the server wants to be asked again.
    pub retry_after_seconds: f64,
    /// Of `InstructionFailed`: the whole of it.
    pub result: Option<results::Result>,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(Fields {
            kind,
            code: kind.code().to_owned(),
            message: message.into(),
            details: Map::new(),
            retry: Retry::from(kind.retry()),
            http_status: kind.http_status(),
            request_id: None,
            retry_after_seconds: 0.0,
            result: None,
        }))
    }

    /// Is it this kind, or one below it?
    pub fn is_a(&self, kind: Kind) -> bool {
        self.kind.is_a(kind)
    }

    /// With one more detail.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

impl Deref for Error {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::InvalidInput, message)
}

pub(crate) fn protocol(message: impl Into<String>) -> Error {
    Error::new(Kind::ProtocolError, message)
}

/// Something of this computer that could not be read or written: `details` has its `path` and the `reason`.
pub(crate) fn local(path: &std::path::Path, error: &std::io::Error) -> Error {
    let reason = reason_of(error);
    let path = path.display().to_string();
    Error::new(Kind::ClientError, format!("{path}: {reason}")).with("path", path).with("reason", reason)
}

/// Without the number that Rust puts behind it.
pub(crate) fn reason_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
