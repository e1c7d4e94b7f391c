//! One request, asked again where that is safe, and its answer or one error of ours.

use crate::config::Access;
use crate::decoding::decode;
use crate::error::{Error, Fallible, Kind, invalid};
use crate::failures::{Broken, error_of, foreign};
use crate::generated::Shape;
use crate::generated::api::Retry;
use crate::generated::sentences::{causes, sentences};
use crate::inputs::percent;
use crate::pauses::{Deadline, Patience};
use crate::sentences::say;
use crate::transport::{Answer, Content, Transport, header_value};
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, USER_AGENT};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::sleep_until;

pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024; // of JSON; a page of a tape is far less
pub(crate) const SILENCE_SECONDS: f64 = 60.0; // how long a server may say nothing to a plain request
pub(crate) const SLOW_SECONDS: f64 = 600.0; // and to one that saves, wakes or copies a whole machine
pub(crate) const RETRY_SECONDS: f64 = 30.0;

pub(crate) type OnConnection = Arc<dyn Fn(bool) + Send + Sync>;
pub(crate) type Query<'a> = &'a [(&'a str, Option<String>)];

/// Under which a request that is asked again is known to be the same.
pub(crate) fn new_key() -> Fallible<String> {
    use fmt::Write;
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(Kind::ClientError, format!("this computer has no random numbers: {error}")))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// To one server, with one token.
pub(crate) struct Door {
    pub(crate) base_url: String,
    retry_seconds: f64,
    on_connection: Option<OnConnection>,
    is_lost: AtomicBool,
    is_met: AtomicBool, // has this server ever answered? Then it may only be restarting
    transport: Transport,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<everforge at {}>", self.base_url) // a token is nobody's to see
    }
}

/// What a request needs beside its address.
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<String>,
    /// May it be done twice, when we do not know whether it was done?
    pub(crate) again: bool,
    pub(crate) silence_seconds: f64,
    pub(crate) deadline: Deadline,
}

impl Ask {
    pub(crate) fn new(method: Method, body: Option<Bytes>) -> Self {
        let again = method == Method::GET;
        Self { method, body, key: None, again, silence_seconds: SILENCE_SECONDS, deadline: Deadline::NEVER }
    }

    pub(crate) fn post<T: Serialize + ?Sized>(body: &T) -> Fallible<Self> {
        Ok(Self::new(Method::POST, Some(encode(body)?)))
    }

    pub(crate) fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// With a key it is safe to ask again: the server then gives the same answer.
    pub(crate) fn key(self, key: String) -> Self {
        Self { key: Some(key), again: true, ..self }
    }

    pub(crate) fn again(self) -> Self {
        Self { again: true, ..self }
    }

    pub(crate) fn slowly(self) -> Self {
        Self { silence_seconds: SLOW_SECONDS, ..self }
    }

    pub(crate) fn until(self, deadline: Deadline) -> Self {
        Self { deadline, ..self }
    }
}

/// A request without fields.
pub(crate) fn nothing() -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::new()
}

impl Door {
    pub(crate) fn new(access: &Access, retry_seconds: f64, on_connection: Option<OnConnection>) -> Fallible<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, header_value(concat!("everforge-rust/", env!("CARGO_PKG_VERSION")))?);
        if !access.token.is_empty() {
            // There is none before one has signed up.
            let mut value = header_value(&format!("Bearer {}", access.token))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let transport = Transport::new(&access.base_url, headers)?;
        Ok(Self {
            base_url: access.base_url.clone(),
            retry_seconds,
            on_connection,
            is_lost: AtomicBool::new(false),
            is_met: AtomicBool::new(false),
            transport,
        })
    }

    pub(crate) fn close(&self) {
        self.transport.close();
    }

    pub(crate) fn check_open(&self) -> Fallible<()> {
        self.transport.check_open()
    }

    pub(crate) async fn closed(&self) -> Error {
        self.transport.closed().await
    }

    pub(crate) fn meet(&self) {
        self.is_met.store(true, Ordering::Relaxed);
    }

    /// Of streams that find their way back by themselves: whoever watches them is told once of a loss, and once when it is over.
    pub(crate) fn tell(&self, is_connected: bool) {
        if self.is_lost.swap(!is_connected, Ordering::Relaxed) == is_connected {
            if let Some(told) = &self.on_connection {
                told(is_connected);
            }
        }
    }

    pub(crate) fn url(&self, path: &str, query: Query<'_>) -> String {
        let pairs: Vec<String> =
            query.iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{}={}", percent(name), percent(value)))).collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        format!("{}/v1{path}{mark}{}", self.base_url, pairs.join("&"))
    }

    // --- plain questions -----------------------------------------------------------------------------------------------------------------

    pub(crate) async fn get<T: Shape>(&self, path: &str, query: Query<'_>) -> Fallible<T> {
        decode(&self.ask(&self.url(path, query), Ask::new(Method::GET, None)).await?)
    }

    pub(crate) async fn post<T: Shape>(&self, path: &str, ask: Ask) -> Fallible<T> {
        decode(&self.ask(&self.url(path, &[]), ask).await?)
    }

    /// Nothing that was deleted can be deleted twice, so that asking again is safe; only, it may then be gone already.
    pub(crate) async fn delete(&self, path: &str, query: Query<'_>) -> Fallible<()> {
        let url = self.url(path, query);
        match self.ask(&url, Ask::new(Method::DELETE, None).slowly()).await {
            Err(error) if error.is_a(Kind::Uncertain) => {}
            found => return found.map(|_| ()),
        }
        match self.ask(&url, Ask::new(Method::DELETE, None).slowly().again()).await {
            Err(error) if error.http_status == 404 => Ok(()),
            found => found.map(|_| ()),
        }
    }

    /// `StillRunning` when the deadline comes first.
    pub(crate) async fn ask(&self, url: &str, ask: Ask) -> Fallible<Vec<u8>> {
        let mut headers = Vec::new();
        if ask.body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        if let Some(key) = &ask.key {
            headers.push(("idempotency-key", key.clone()));
        }
        let mut tries = self.tries(ask.again, ask.deadline);
        loop {
            match self.attempt(url, &ask, &headers).await {
                Ok(found) => return Ok(found),
                Err(error) => tries.after(error).await?,
            }
        }
    }

    async fn attempt(&self, url: &str, ask: &Ask, headers: &[(&'static str, String)]) -> Fallible<Vec<u8>> {
        let content = ask.body.clone().map_or(Content::Nothing, Content::Whole);
        let mut answer = self.send(&ask.method, url, headers, content, ask.silence_seconds, ask.deadline).await?;
        self.finish(&mut answer, &ask.method).await
    }

    /// The whole of an answer.
    pub(crate) async fn finish(&self, answer: &mut Answer, method: &Method) -> Fallible<Vec<u8>> {
        answer.read(ANSWER_BYTES_MAX).await.map_err(|broken| self.explained(broken, method))
    }

    /// `again`: may it be done twice, when we do not know whether it was done?
    pub(crate) fn tries(&self, again: bool, deadline: Deadline) -> Tries<'_> {
        let mut patience = Patience::new(self.retry_seconds);
        patience.start();
        Tries { door: self, again, deadline, patience }
    }

    pub(crate) fn may_ask_again(&self, error: &Error, again: bool) -> bool {
        if error.is_a(Kind::Uncertain) {
            return again;
        }
        if error.is_a(Kind::Unreachable) {
            return self.is_met.load(Ordering::Relaxed); // nothing happened; and it may only be restarting
        }
        matches!(error.http_status, 429 | 503) && error.retry != Retry::Never // refused: nothing happened
    }

    // --- one try -------------------------------------------------------------------------------------------------------------------------

    /// An answer that is a success, its body yet to come.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &str,
        headers: &[(&'static str, String)],
        content: Content,
        silence_seconds: f64,
        deadline: Deadline,
    ) -> Fallible<Answer> {
        self.check_open()?;
        let explain = |broken| self.explained(broken, method);
        let mut answer = self.transport.send(method, url, headers, content, silence_seconds, deadline).await.map_err(explain)?;
        if answer.is_success() && answer.is_ours() {
            self.meet();
            return Ok(answer);
        }
        if answer.is_success() {
            return Err(foreign(&self.base_url));
        }
        let found = answer.headers();
        let body = answer.refusal().await.map_err(explain)?;
        self.meet();
        Err(error_of(answer.status(), |name| found.get(name).and_then(|value| value.to_str().ok()), &body, &self.base_url))
    }

    /// Whatever comes back.
    pub(crate) async fn send_raw(&self, method: &Method, url: &str, headers: &[(&'static str, String)], content: Content) -> Result<Answer, Broken> {
        self.check_open().map_err(Broken::Bad)?;
        self.transport.send(method, url, headers, content, SILENCE_SECONDS, Deadline::NEVER).await
    }

    pub(crate) fn explained(&self, broken: Broken, method: &Method) -> Error {
        match broken {
            Broken::Bad(error) | Broken::Refused(error) => error,
            Broken::Unreached { .. } => self.unreachable(&broken),
            Broken::Cut(_) | Broken::Closed { .. } => {
                let sentence = if *method == Method::GET { sentences::CUT } else { sentences::CUT_UNSURE };
                Error::new(Kind::Uncertain, say(sentence, &[("url", &self.base_url)])).with("cause", broken.why())
            }
        }
    }

    pub(crate) fn unreachable(&self, broken: &Broken) -> Error {
        let cause = if let Broken::Unreached { cause, .. } = broken { cause } else { causes::FAILED };
        Error::new(Kind::Unreachable, say(sentences::UNREACHABLE, &[("url", &self.base_url), ("cause", &cause)])).with("cause", broken.why())
    }
}

/// A request that may have to be tried several times.
pub(crate) struct Tries<'a> {
    door: &'a Door,
    again: bool,
    deadline: Deadline,
    patience: Patience,
}

impl Tries<'_> {
    /// Waits for the next try; the error when there is to be none.
    pub(crate) async fn after(&mut self, error: Error) -> Fallible<()> {
        let pause = if self.door.may_ask_again(&error, self.again) { self.patience.pause(error.retry_after_seconds) } else { None };
        let Some(pause) = pause else { return Err(error) };
        sleep_until(self.deadline.within_duration(pause)).await;
        if self.deadline.passed() { Err(Error::new(Kind::StillRunning, sentences::NO_ANSWER_IN_TIME)) } else { Ok(()) }
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Fallible<Bytes> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| invalid(say(sentences::NOT_JSON, &[("why", &error)])))
}
