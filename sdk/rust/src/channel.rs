//! The WebSocket of one machine: requests and their replies, entries of the tape for whoever listens, and a new connection after every cut.
//!
//! No task of its own: whoever waits for something reads, for itself and for all others that wait at that moment. Nothing is awaited between the
//! arrival of a frame and its way into all inboxes, so that whoever stops waiting takes nothing away from anybody.

use crate::decoding::parse;
use crate::door::{Door, SILENCE_SECONDS};
use crate::entry::Entry;
use crate::error::{Error, Fallible, Kind, protocol};
use crate::failures::{Broken, error_from, foreign};
use crate::generated::sentences::sentences;
use crate::listener::{Inbox, Listener, Wants};
use crate::pauses::{Deadline, Patience, duration};
use crate::sentences::say;
use crate::socket::Socket;
use crate::tape::{RECONNECT_SECONDS, TapeReader};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until, timeout_at};

const OPEN_SECONDS: f64 = 10.0;
const PING_SECONDS: f64 = 20.0; // of silence, before the other side is asked whether it lives
const PONG_SECONDS: f64 = 20.0; // that it has to say so

pub(crate) type Frame = Map<String, Value>;

/// What is known of the connection. Held for a moment only, never while anything is waited for.
#[derive(Debug)]
pub(crate) struct State {
    cursor: Option<i64>, // the last entry seen; None before the first connection: from now on
    socket: Option<Arc<Socket>>,
    connections: u64,
    patience: Patience,    // renewed by whatever is heard; that a connection could be made is not enough
    silent_until: Instant, // when it has been silent for so long that something must be done
    is_pinged: bool,
    requests: i64,
    sending: usize,                       // requests that are on their way out at this moment
    replies: HashMap<i64, Option<Frame>>, // by request; None while it is waited for
    pub(crate) inboxes: BTreeMap<u64, Inbox>,
    listeners: u64,
}

impl State {
    fn new(after: Option<i64>) -> Self {
        Self {
            cursor: after,
            socket: None,
            connections: 0,
            patience: Patience::new(RECONNECT_SECONDS),
            silent_until: Instant::now(),
            is_pinged: false,
            requests: 0,
            sending: 0,
            replies: HashMap::new(),
            inboxes: BTreeMap::new(),
            listeners: 0,
        }
    }

    /// Something was heard just now.
    fn trust(&mut self) {
        self.is_pinged = false;
        self.silent_until = Instant::now() + duration(PING_SECONDS);
    }

    fn dispatch(&mut self, text: &str) -> Fallible<()> {
        let frame = parse(text.as_bytes())?;
        let number = frame.get("request_id").and_then(Value::as_i64);
        if let Some("reply" | "error") = frame.get("type").and_then(Value::as_str) {
            if let Some(reply) = number.and_then(|number| self.replies.get_mut(&number)) {
                *reply = Some(frame);
            } else if frame["type"] == "error" && frame.get("request_id").is_none_or(Value::is_null) {
                return Err(error_in(&frame));
            }
            return Ok(());
        }
        let (Some(found), Some(cursor)) = (Entry::checked(frame)?, self.cursor) else { return Ok(()) };
        if let Some(fresh) = found.behind(cursor) {
            self.cursor = Some(fresh.cursor());
            self.inboxes.values_mut().for_each(|inbox| inbox.offer(&fresh));
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Channel {
    door: Arc<Door>,
    path: String,
    state: std::sync::Mutex<State>,
    reading: Mutex<()>,
    connecting: Mutex<()>,
    changed: Notify,
}

/// A request that is waited for. Whoever stops waiting leaves nothing behind.
struct Pending<'a>(&'a Channel, i64);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.state().replies.remove(&self.1);
    }
}

struct Sending<'a>(&'a Channel);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.state().sending -= 1;
    }
}

impl Channel {
    pub(crate) fn new(door: Arc<Door>, machine: &str, after: Option<i64>) -> Arc<Self> {
        Arc::new(Self {
            door,
            path: format!("/machine/{machine}"),
            state: std::sync::Mutex::new(State::new(after)),
            reading: Mutex::new(()),
            connecting: Mutex::new(()),
            changed: Notify::new(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cursor(&self) -> Option<i64> {
        self.state().cursor
    }

    pub(crate) fn listen(self: &Arc<Self>, wants: Wants, deadline: Deadline) -> Listener {
        let mut state = self.state();
        state.listeners += 1;
        let number = state.listeners;
        state.inboxes.insert(number, Inbox::new(wants));
        Listener::new(self.clone(), number, deadline)
    }

    pub(crate) fn reader(&self, after: i64, deadline: Deadline) -> TapeReader {
        TapeReader::new(self.door.clone(), format!("{}/tape", self.path), after, deadline, None)
    }

    // --- requests ----------------------------------------------------------------------------------------------------------------------------

    /// `again`: may it be sent twice, when the connection was cut before the reply?
    pub(crate) async fn ask(&self, what: &str, mut message: Frame, again: bool) -> Fallible<Frame> {
        let number = {
            let mut state = self.state();
            state.requests += 1;
            let number = state.requests;
            state.replies.insert(number, None);
            number
        };
        let pending = Pending(self, number);
        message.insert("type".to_owned(), what.into());
        message.insert("request_id".to_owned(), number.into());
        let text = Value::Object(message).to_string();
        loop {
            let (sent, deadline) = self.send(&text, what).await?;
            if let Some(reply) = self.reply(&pending, sent, what, deadline).await? {
                return if reply["type"] == "error" { Err(error_in(&reply)) } else { Ok(reply) };
            }
            if !again {
                return Err(Error::new(Kind::Uncertain, say(sentences::CUT_UNSURE, &[("url", &self.door.base_url)])));
            }
        }
    }

    /// None when the connection that the request went out on is gone.
    async fn reply(&self, pending: &Pending<'_>, sent: u64, what: &str, deadline: Deadline) -> Fallible<Option<Frame>> {
        let has_come = |state: &State| matches!(state.replies.get(&pending.1), Some(Some(_)));
        let is_ready = |state: &State| has_come(state) || state.connections != sent || state.socket.is_none();
        if self.until(is_ready, deadline).await? {
            return Ok(self.state().replies.get_mut(&pending.1).and_then(Option::take));
        }
        Err(self.silent(what))
    }

    /// On which connection it went out, and until when the reply may come: a server that does not take the request is as silent as one that does not
    /// answer it.
    async fn send(&self, text: &str, what: &str) -> Fallible<(u64, Deadline)> {
        loop {
            let socket = self.connected(Deadline::NEVER).await?;
            let (sent, deadline) = (self.state().connections, Deadline::after(SILENCE_SECONDS));
            self.state().sending += 1;
            let sending = Sending(self);
            let found = socket.send(text, deadline.within(SILENCE_SECONDS)).await;
            drop(sending);
            match found {
                Ok(()) => return Ok((sent, deadline)),
                Err(_) if deadline.passed() => {
                    self.drop_socket(&socket);
                    return Err(self.silent(what));
                }
                Err(broken) => self.lost(&socket, broken, Deadline::NEVER).await?,
            }
        }
    }

    fn silent(&self, what: &str) -> Error {
        Error::new(Kind::Uncertain, say(sentences::SILENT, &[("url", &self.door.base_url), ("seconds", &SILENCE_SECONDS), ("what", &what)]))
    }

    // --- reading -----------------------------------------------------------------------------------------------------------------------------

    /// Reads until it is so; false when the deadline came first.
    pub(crate) async fn until(&self, is_ready: impl Fn(&State) -> bool, deadline: Deadline) -> Fallible<bool> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // before looking: what happens in between is not missed
            if is_ready(&self.state()) {
                return Ok(true);
            }
            if deadline.passed() {
                return Ok(false);
            }
            let turn = tokio::select! {
                turn = self.reading.lock() => Some(turn),
                () = changed => None, // whoever reads tells all others at every frame
                () = sleep_until(deadline.within(PING_SECONDS)) => None,
            };
            while turn.is_some() {
                if is_ready(&self.state()) {
                    return Ok(true);
                }
                if deadline.passed() {
                    return Ok(false);
                }
                self.read(deadline).await?;
            }
        }
    }

    /// One frame, if one comes in time. Only one at a time is here.
    async fn read(&self, deadline: Deadline) -> Fallible<()> {
        let socket = self.connected(deadline).await?;
        let silent_until = self.state().silent_until;
        let until = deadline.at().map_or(silent_until, |at| at.min(silent_until));
        let received = tokio::select! {
            received = socket.receive(until) => received,
            error = self.door.closed() => {
                self.drop_socket(&socket);
                return Err(error);
            }
        };
        match received {
            Ok(Some(text)) => self.heard(&text),
            Ok(None) if Instant::now() >= silent_until => match self.doubt(&socket, deadline).await {
                Ok(()) => Ok(()),
                Err(broken) => self.lost(&socket, broken, deadline).await,
            },
            Ok(None) => Ok(()),
            Err(broken) => self.lost(&socket, broken, deadline).await,
        }
    }

    fn heard(&self, text: &str) -> Fallible<()> {
        let mut state = self.state();
        state.trust();
        state.patience.renew();
        let found = state.dispatch(text);
        drop(state);
        self.changed.notify_waiters();
        found
    }

    /// Nothing has been heard for long.
    async fn doubt(&self, socket: &Socket, deadline: Deadline) -> Result<(), Broken> {
        let (is_pinged, is_sending) = {
            let state = self.state();
            (state.is_pinged, state.sending > 0)
        };
        if is_pinged {
            return Err(Broken::Cut("it says nothing any more".to_owned()));
        }
        if !is_sending {
            // Else that asks as well as any ping, which would only wait behind it.
            socket.send(r#"{"type":"ping","request_id":0}"#, deadline.within(PONG_SECONDS)).await?;
            self.state().is_pinged = true;
        }
        self.state().silent_until = Instant::now() + duration(PONG_SECONDS);
        Ok(())
    }

    // --- connections -------------------------------------------------------------------------------------------------------------------------

    pub(crate) async fn open(&self) -> Fallible<()> {
        self.connected(Deadline::NEVER).await.map(|_| ())
    }

    /// Made by one, for all who need it meanwhile.
    async fn connected(&self, deadline: Deadline) -> Fallible<Arc<Socket>> {
        loop {
            if let Some(socket) = self.state().socket.clone() {
                return Ok(socket);
            }
            let Ok(_turn) = timeout_at(deadline.within(PING_SECONDS), self.connecting.lock()).await else {
                if deadline.passed() {
                    return Err(Error::new(Kind::StillRunning, sentences::NO_CONNECTION_IN_TIME));
                }
                continue;
            };
            if self.state().socket.is_none() {
                return self.connect_patiently(deadline).await;
            }
        }
    }

    async fn connect_patiently(&self, deadline: Deadline) -> Fallible<Arc<Socket>> {
        while !deadline.passed() {
            let error = match self.connect(deadline).await {
                Ok(socket) => {
                    self.door.meet();
                    self.door.tell(true);
                    return Ok(socket);
                }
                Err(Broken::Bad(error)) => return Err(error),
                Err(Broken::Refused(error)) => error,
                Err(broken @ Broken::Unreached { .. }) => self.door.unreachable(&broken),
                Err(broken) => Error::new(Kind::Uncertain, say(sentences::CUT, &[("url", &self.door.base_url)])).with("cause", broken.why()),
            };
            let may = self.door.may_ask_again(&error, true);
            let pause = if may { self.state().patience.pause(error.retry_after_seconds) } else { None };
            let Some(pause) = pause else { return Err(error) };
            sleep_until(deadline.within_duration(pause)).await;
        }
        Err(Error::new(Kind::StillRunning, sentences::NO_CONNECTION_IN_TIME))
    }

    async fn connect(&self, deadline: Deadline) -> Result<Arc<Socket>, Broken> {
        let cursor = self.cursor();
        let url = self.door.url(&format!("{}/connect", self.path), &[("after", cursor.map(|cursor| cursor.to_string()))]);
        let socket = Socket::open(&self.door, &url, deadline.within(OPEN_SECONDS)).await?;
        let said = socket.receive(deadline.within(PONG_SECONDS)).await?.ok_or_else(|| Broken::Cut("it says nothing".to_owned()))?;
        let first = parse(said.as_bytes()).map_err(Broken::Bad)?;
        let position = first.get("position").and_then(Value::as_i64).filter(|_| first.get("type").is_some_and(|word| word == "connected"));
        let Some(position) = position else { return Err(Broken::Bad(foreign(&self.door.base_url))) };
        let socket = Arc::new(socket);
        let mut state = self.state();
        state.cursor.get_or_insert(position);
        state.connections += 1;
        state.trust();
        state.socket = Some(socket.clone());
        Ok(socket)
    }

    async fn lost(&self, socket: &Arc<Socket>, broken: Broken, deadline: Deadline) -> Fallible<()> {
        self.drop_socket(socket);
        if let Broken::Closed { status, .. } = &broken {
            self.check_closed(*status, &broken)?;
        }
        if self.is_closed_by_us() {
            return self.door.check_open();
        }
        self.door.tell(false);
        let Some(pause) = self.state().patience.pause(0.0) else { return Err(self.door.unreachable(&broken)) };
        sleep_until(deadline.within_duration(pause)).await;
        Ok(())
    }

    fn is_closed_by_us(&self) -> bool {
        self.door.check_open().is_err()
    }

    /// Reasons after which there is no use in coming back.
    fn check_closed(&self, status: u16, closed: &Broken) -> Fallible<()> {
        let url = &self.door.base_url;
        match status {
            4001 => Err(Error::new(Kind::Unauthenticated, say(sentences::TOKEN_REVOKED, &[("url", url)]))),
            4404 => Err(Error::new(Kind::MachineNotFound, sentences::MACHINE_DELETED)),
            1008 => Err(protocol(say(sentences::CONNECTION_ENDED, &[("url", url), ("why", &closed.why())]))),
            _ => Ok(()),
        }
    }

    /// The next one who needs a connection makes one.
    fn drop_socket(&self, socket: &Arc<Socket>) {
        let mut state = self.state();
        if state.socket.as_ref().is_some_and(|current| Arc::ptr_eq(current, socket)) {
            state.socket = None;
            socket.drop_connection();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) async fn close(&self) {
        let socket = self.state().socket.take();
        if let Some(socket) = socket {
            socket.close().await;
        }
        self.changed.notify_waiters();
    }
}

fn error_in(frame: &Frame) -> Error {
    let fields = frame.get("error").and_then(Value::as_object).cloned().unwrap_or_default();
    error_from(&fields, 500)
}
