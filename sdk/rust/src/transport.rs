//! HTTP by reqwest: the one place that knows it, and where its errors become ours.

use crate::error::{Error, Fallible, Kind, invalid, protocol};
use crate::failures::{BODY_BYTES_MAX, Broken, VERSION_HEADER, cause_of};
use crate::generated::sentences::{causes, sentences};
use crate::pauses::{Deadline, duration};
use crate::sentences::say;
use bytes::Bytes;
use futures::{Stream, stream};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, redirect};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

const CONNECT_SECONDS: u64 = 10;
const PART_BYTES: usize = 256 * 1024; // of a large body: that each is taken is a sign of life
const KEPT_CONNECTIONS_MAX: usize = 20;
const KEPT_SECONDS: u64 = 5; // for the next request: servers close idle connections, and a request must not meet one that is just being closed

/// A file on its way: chunks, and a clock that each of them sets anew.
pub(crate) type Upload = std::pin::Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

pub(crate) enum Content {
    Nothing,
    Whole(Bytes),
    Parts { size: u64, stream: Upload, heard: Arc<Activity> },
}

/// When something last went over a connection.
#[derive(Debug)]
pub(crate) struct Activity(std::sync::Mutex<Instant>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(std::sync::Mutex::new(Instant::now())))
    }

    pub(crate) fn note(&self) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
    }

    /// Returns when there was none for so long.
    async fn silence(&self, silence: Duration) {
        loop {
            let until = *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) + silence;
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Status and headers are here; the body comes as it comes.
#[derive(Debug)]
pub(crate) struct Answer {
    response: reqwest::Response,
    silence: Duration,
    deadline: Deadline,
    closing: watch::Receiver<bool>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn is_success(&self) -> bool {
        self.response.status().is_success()
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        self.response.headers().clone()
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.response.headers().contains_key(VERSION_HEADER)
    }

    pub(crate) fn length_bytes(&self) -> Option<u64> {
        self.response.headers().get("content-length")?.to_str().ok()?.parse().ok()
    }

    /// The connection itself, after a handshake.
    pub(crate) async fn upgraded(self) -> Result<reqwest::Upgraded, Broken> {
        self.response.upgrade().await.map_err(translated)
    }

    /// Whatever has not come by then is cut off.
    pub(crate) fn end_at(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    /// The next; None when there are no more. Whoever stops waiting for it loses nothing.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        let chunk = timeout_at(self.deadline.within_duration(self.silence), self.response.chunk());
        tokio::select! {
            found = chunk => match found {
                Ok(found) => found.map_err(translated),
                Err(_) => Err(Broken::Cut("its time is over".to_owned())),
            },
            _ = self.closing.wait_for(|is_closed| *is_closed) => Err(Broken::Bad(closed())),
        }
    }

    pub(crate) async fn read(&mut self, bytes_max: usize) -> Result<Vec<u8>, Broken> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > bytes_max {
                return Err(Broken::Bad(protocol(say(sentences::ANSWER_TOO_LONG, &[("bytes", &bytes_max)]))));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The body of one that is no success. A stranger's may be as broken as it likes: that it is one is known already.
    pub(crate) async fn refusal(&mut self) -> Result<Vec<u8>, Broken> {
        match self.read(BODY_BYTES_MAX).await {
            Err(Broken::Cut(_)) if !self.is_ours() => Ok(Vec::new()),
            found => found,
        }
    }
}

/// Connections are kept for the next request.
#[derive(Debug)]
pub(crate) struct Transport {
    client: reqwest::Client,
    closing: watch::Sender<bool>,
}

fn closed() -> Error {
    Error::new(Kind::ClientError, sentences::CLOSED)
}

impl Transport {
    pub(crate) fn new(base_url: &str, headers: HeaderMap) -> Fallible<Self> {
        let tls = tls_config(base_url.starts_with("https"))?;
        let client = reqwest::Client::builder()
            .default_headers(headers)
            .redirect(redirect::Policy::none()) // a token is for one server
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS))
            .pool_max_idle_per_host(KEPT_CONNECTIONS_MAX)
            .pool_idle_timeout(Duration::from_secs(KEPT_SECONDS))
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| Error::new(Kind::ClientError, format!("no connections can be made here: {error}")))?;
        Ok(Self { client, closing: watch::Sender::new(false) })
    }

    /// Whoever waits for something is told.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(crate) fn check_open(&self) -> Fallible<()> {
        if *self.closing.borrow() { Err(closed()) } else { Ok(()) }
    }

    /// Returns when it is closed, with what to say of it.
    pub(crate) async fn closed(&self) -> Error {
        let _ = self.closing.subscribe().wait_for(|is_closed| *is_closed).await;
        closed()
    }

    /// `silence_seconds` is how long the other side may say and take nothing.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &str,
        headers: &[(&'static str, String)],
        content: Content,
        silence_seconds: f64,
        deadline: Deadline,
    ) -> Result<Answer, Broken> {
        let silence = duration(silence_seconds);
        let mut request = self.client.request(method.clone(), url);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let heard = match content {
            Content::Nothing => Activity::new(),
            Content::Whole(body) if body.len() <= PART_BYTES => {
                request = request.body(body);
                Activity::new()
            }
            Content::Whole(body) => {
                let heard = Activity::new();
                request = request.header("content-length", body.len()).body(reqwest::Body::wrap_stream(parts(body, heard.clone())));
                heard
            }
            Content::Parts { size, stream, heard } => {
                heard.note();
                request = request.header("content-length", size).body(reqwest::Body::wrap_stream(stream));
                heard
            }
        };
        let over = async {
            match deadline.at() {
                Some(at) => tokio::select! { () = sleep_until(at) => {}, () = heard.silence(silence) => {} },
                None => heard.silence(silence).await,
            }
        };
        tokio::select! {
            found = request.send() => match found {
                Ok(response) => Ok(Answer { response, silence, deadline, closing: self.closing.subscribe() }),
                Err(error) => Err(translated(error)),
            },
            () = over => Err(Broken::Cut("its time is over".to_owned())),
            error = self.closed() => Err(Broken::Bad(error)),
        }
    }
}

fn parts(body: Bytes, heard: Arc<Activity>) -> impl Stream<Item = std::io::Result<Bytes>> {
    stream::unfold(body, move |mut rest| {
        heard.note();
        let part = rest.split_to(rest.len().min(PART_BYTES));
        std::future::ready(if part.is_empty() { None } else { Some((Ok(part), rest)) })
    })
}

/// Reading the certificates that this computer trusts takes a while; whoever does not need them trusts none.
fn tls_config(is_needed: bool) -> Fallible<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if is_needed {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::new(Kind::ClientError, format!("no TLS can be had here: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Without the address, which may be a link that logs in.
fn translated(error: reqwest::Error) -> Broken {
    let error = error.without_url();
    if error.is_builder() {
        return Broken::Bad(invalid(say(sentences::CANNOT_ASK, &[("why", &error)])));
    }
    if error.is_connect() {
        return Broken::Unreached { why: chain(&error), cause: if error.is_timeout() { causes::SLOW } else { cause_of(&error) } };
    }
    Broken::Cut(chain(&error))
}

/// All that the error and those behind it say.
fn chain(error: &dyn std::error::Error) -> String {
    let behind = std::iter::successors(error.source(), |error| error.source()).take(10);
    behind.fold(error.to_string(), |text, error| format!("{text}: {error}"))
}

pub(crate) fn header_value(text: &str) -> Fallible<HeaderValue> {
    HeaderValue::from_str(text).map_err(|_| invalid(sentences::BAD_TOKEN))
}
