//! What a server's refusal becomes here: an error of the one tree, by its code.

use crate::error::{Error, Kind};
use crate::generated::api::Retry;
use crate::generated::sentences::{causes, sentences};
use crate::sentences::say;
use serde_json::{Map, Value};
use std::error::Error as Source;
use std::io;

pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024; // of an error; ours are a few hundred
pub(crate) const VERSION_HEADER: &str = "x-everforge-version"; // every answer of a server has it
const CLIENT_VERSION: &str = env!("CARGO_PKG_VERSION");
const CHAIN_MAX: usize = 10; // of errors behind an error
const RETRY_AFTER_SECONDS_MAX: f64 = 3600.0;

/// What can happen to a connection.
#[derive(Debug)]
pub(crate) enum Broken {
    /// None could be made: whatever was to be asked has not been heard.
    Unreached { why: String, cause: &'static str },
    /// It ended in the middle: what was asked may have been done, or not.
    Cut(String),
    /// The server closed a WebSocket, and said why.
    Closed { status: u16, reason: String },
    /// A WebSocket was refused in the handshake: a whole HTTP answer.
    Refused(Error),
    /// It is of no use to try again.
    Bad(Error),
}

impl Broken {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Unreached { why, .. } | Self::Cut(why) => why.clone(),
            Self::Closed { status, reason } if reason.is_empty() => format!("closed with {status}"),
            Self::Closed { reason, .. } => reason.clone(),
            Self::Refused(error) | Self::Bad(error) => error.message.clone(),
        }
    }
}

/// Which of the wire's causes it is, by the system's own error behind a library's, wherever that stands in the chain.
pub(crate) fn cause_of(error: &(dyn Source + 'static)) -> &'static str {
    let mut next = Some(error);
    for _ in 0..CHAIN_MAX {
        let Some(found) = next else { break };
        if let Some(cause) = one_cause(found) {
            return cause;
        }
        let inner = found.downcast_ref::<io::Error>().and_then(io::Error::get_ref).map(|inner| inner as &(dyn Source + 'static));
        next = inner.or_else(|| found.source());
    }
    causes::FAILED
}

fn one_cause(error: &(dyn Source + 'static)) -> Option<&'static str> {
    if let Some(found) = error.downcast_ref::<io::Error>() {
        match found.kind() {
            io::ErrorKind::ConnectionRefused => return Some(causes::REFUSED),
            io::ErrorKind::TimedOut => return Some(causes::SLOW),
            _ => {}
        }
    }
    if matches!(error.downcast_ref::<rustls::Error>(), Some(rustls::Error::InvalidCertificate(_))) {
        return Some(causes::UNTRUSTED);
    }
    if error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout) {
        return Some(causes::SLOW);
    }
    let text = error.to_string();
    if text.starts_with("dns error") || text.starts_with("failed to lookup address") {
        return Some(causes::UNKNOWN);
    }
    (text.contains("tunnel") || text.contains("proxy")).then_some(causes::PROXY)
}

/// Of an answer that is no success. `header` finds one by its name.
pub(crate) fn error_of<'a>(status: u16, header: impl Fn(&str) -> Option<&'a str>, body: &[u8], base_url: &str) -> Error {
    let fields = serde_json::from_slice::<Map<String, Value>>(body).unwrap_or_default();
    let code = text(&fields, "code").unwrap_or_default();
    if code.is_empty() {
        return foreign_status(status, base_url);
    }
    let server = header(VERSION_HEADER);
    if matches!(code, "RouteNotFound" | "MethodNotAllowed") && server != Some(CLIENT_VERSION) {
        let words: [(&str, &dyn std::fmt::Display); 3] =
            [("url", &base_url), ("server", &server.unwrap_or("of another version")), ("client", &CLIENT_VERSION)];
        return Error::new(Kind::VersionMismatch, say(sentences::OTHER_VERSION, &words));
    }
    let mut error = error_from(&fields, status);
    if status == 401 {
        error.message = say(sentences::TOKEN_UNKNOWN, &[("url", &base_url)]);
    }
    error.request_id = text(&fields, "id").or_else(|| header("x-request-id")).map(str::to_owned);
    error.retry_after_seconds = seconds(header("retry-after"));
    error
}

/// Somebody else answers there.
pub(crate) fn foreign(base_url: &str) -> Error {
    Error::new(Kind::VersionMismatch, say(sentences::FOREIGN, &[("url", &base_url)]))
}

fn foreign_status(status: u16, base_url: &str) -> Error {
    let (kind, sentence) = match status {
        503 => (Kind::Unreachable, sentences::GATEWAY_AWAY),
        502 | 504 => (Kind::Uncertain, sentences::GATEWAY_CUT),
        _ => (Kind::VersionMismatch, sentences::FOREIGN_STATUS),
    };
    Error::new(kind, say(sentence, &[("url", &base_url), ("status", &status)]))
}

/// Of an error's body. A code that this client is too young for stays as it is, with its message.
pub(crate) fn error_from(fields: &Map<String, Value>, status: u16) -> Error {
    let code = text(fields, "code").filter(|code| !code.is_empty()).unwrap_or("Internal");
    let message = text(fields, "message").filter(|message| !message.is_empty());
    let mut error = Error::new(
        Kind::from_code(code).unwrap_or(Kind::Internal),
        message.map_or_else(|| say(sentences::ANSWERED, &[("code", &code)]), str::to_owned),
    );
    if Kind::from_code(code).is_none() {
        code.clone_into(&mut error.code);
        error.http_status = status;
        error.retry = text(fields, "retry").filter(|word| Retry::WORDS.contains(word)).map(Retry::from).unwrap_or_default();
    }
    if let Some(details) = fields.get("details").and_then(Value::as_object) {
        error.details.clone_from(details);
    }
    error
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn seconds(value: Option<&str>) -> f64 {
    let found = value.and_then(|text| text.trim().parse::<f64>().ok()).filter(|seconds| !seconds.is_nan());
    found.unwrap_or(0.0).clamp(0.0, RETRY_AFTER_SECONDS_MAX) // a date: no server of ours writes one
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://x";

    fn of(status: u16, version: &'static str, body: &str) -> Error {
        let header = move |name: &str| match name {
            VERSION_HEADER => Some(version),
            "retry-after" => Some("1e9"),
            _ => None,
        };
        error_of(status, header, body.as_bytes(), URL)
    }

    #[test]
    fn a_code_from_the_future_stays_as_it_is() {
        let error = of(409, CLIENT_VERSION, r#"{"code": "TooBlue", "message": "it is too blue", "retry": "later", "details": {"n": 1}}"#);
        assert_eq!((error.kind, error.code.as_str(), error.http_status, error.retry.as_str()), (Kind::Internal, "TooBlue", 409, "later"));
        assert_eq!((error.message.as_str(), &error.details["n"]), ("it is too blue", &1.into()));
    }

    #[test]
    fn a_route_that_is_not_there_says_which_versions_met() {
        let error = of(404, "9.9.9", r#"{"code": "RouteNotFound", "message": "no"}"#);
        assert!(error.message.contains("http://x (9.9.9) does not know this request of client 0."), "{error}");
        assert_eq!(of(404, CLIENT_VERSION, r#"{"code": "RouteNotFound", "message": "no"}"#).kind, Kind::RouteNotFound);
    }

    #[test]
    fn what_is_no_server_of_ours_is_told_apart_by_its_status() {
        let kinds = [503, 502, 504, 200, 404].map(|status| of(status, "", "<html>").kind);
        assert_eq!(kinds, [Kind::Unreachable, Kind::Uncertain, Kind::Uncertain, Kind::VersionMismatch, Kind::VersionMismatch]);
    }

    #[test]
    fn a_server_cannot_make_its_clients_wait_for_ever() {
        let error = of(429, CLIENT_VERSION, r#"{"code": "TooMany", "message": "slowly"}"#);
        assert!((error.retry_after_seconds - RETRY_AFTER_SECONDS_MAX).abs() < 1e-9);
        for bad in [None, Some("Wed, 21 Oct 2015 07:28:00 GMT"), Some("-1"), Some("nan")] {
            assert!(seconds(bad).abs() < 1e-9, "{bad:?}");
        }
    }

    #[test]
    fn a_cause_is_found_wherever_it_stands_in_the_chain() {
        let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(cause_of(&refused), causes::REFUSED);
        assert_eq!(cause_of(&io::Error::other("dns error: nothing")), causes::UNKNOWN);
        assert_eq!(cause_of(&io::Error::other("anything")), causes::FAILED);
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert_eq!(cause_of(&io::Error::other(untrusted)), causes::UNTRUSTED);
    }
}
