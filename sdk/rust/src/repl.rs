//! One connection to one machine, for many instructions one after another.

use crate::channel::Channel;
use crate::decoding::read;
use crate::door::Door;
use crate::entry::Entry;
use crate::error::{Fallible, Kind};
use crate::generated::api;
use crate::listener::Listener;
use crate::options::{awaited, setters, streamed};
use crate::pauses::Deadline;
use crate::submission::{Exec, Order, Run, RunLines, Submit, Target};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A connection to be opened with `.await`.
#[must_use = "nothing is opened before .await"]
pub struct OpenRepl {
    door: Arc<Door>,
    machine: String,
    after: Option<i64>,
}

impl OpenRepl {
    pub(crate) fn new(door: Arc<Door>, machine: &str) -> Self {
        Self { door, machine: machine.to_owned(), after: None }
    }

    setters! {
        /// Hears what happened behind this position, and then what happens; without it from now on.
        after: i64 => after;
    }

    async fn send(self) -> Fallible<Repl> {
        let channel = Channel::new(self.door.clone(), &self.machine, self.after);
        channel.open().await?;
        Ok(Repl { door: self.door, machine: self.machine, channel })
    }
}

awaited!(OpenRepl => Repl);

/// Finds its way back after a cut or a restart of the server: no line comes twice, none is lost. Dropping it ends the connection, and nothing else.
///
/// ```no_run
/// # async fn example(machine: everforge::Machine) -> everforge::Fallible<()> {
/// let repl = machine.repl().await?;
/// repl.run("total = 0").await?;
/// for i in 0..10 {
///     repl.run(format!("total += {i}")).await?;
/// }
/// assert_eq!(repl.run("total").await?.value.as_deref(), Some("45"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Repl {
    door: Arc<Door>,
    machine: String,
    channel: Arc<Channel>,
}

impl fmt::Debug for Repl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<repl of {} at {}>", self.machine, self.door.base_url)
    }
}

impl Repl {
    /// Of its machine.
    pub fn machine_name(&self) -> &str {
        &self.machine
    }

    /// Of the last entry seen: `machine.repl().after(position)` goes on behind it, in another program, too.
    pub fn position(&self) -> Option<i64> {
        self.channel.cursor()
    }

    /// The connection, with a good-bye; the machine goes on.
    pub async fn close(&self) {
        self.channel.close().await;
    }

    fn order(&self, code: impl Into<String>) -> Order {
        Order::new(Target { door: self.door.clone(), machine: self.machine.clone(), channel: Some(self.channel.clone()) }, code)
    }

    /// As [`crate::Machine::run`], over this connection.
    pub fn run<'a>(&self, code: impl Into<String>) -> Run<'a> {
        Run::new(self.order(code))
    }

    /// As [`crate::Machine::exec`], over this connection. Its result and its lines are on the tape as well, when this is closed.
    pub fn exec(&self, code: impl Into<String>) -> Exec {
        Exec::new(self.order(code))
    }

    /// As [`crate::Machine::stream`], over this connection.
    pub fn stream(&self, code: impl Into<String>) -> RunLines {
        RunLines::new(self.order(code))
    }

    /// Hands code over and gives its number, for whoever reads [`Self::entries`].
    pub fn submit(&self, code: impl Into<String>) -> Submit {
        Submit::new(self.order(code))
    }

    /// What runs now, whoever gave it; with `pending` what waits, too; or one instruction by its number. Was there anything?
    pub fn interrupt(&self) -> ReplInterrupt {
        ReplInterrupt { channel: self.channel.clone(), request: api::Interrupt::default() }
    }

    /// What could stand at the cursor (the end, when none is given), as the live machine sees it.
    pub fn complete(&self, code: impl Into<String>) -> ReplComplete {
        ReplComplete { channel: self.channel.clone(), request: api::Complete { code: code.into(), cursor: None } }
    }

    /// Is the server there?
    pub async fn ping(&self) -> Fallible<()> {
        self.channel.ask("ping", Map::new(), true).await.map(|_| ())
    }

    /// As [`Self::entries`], from this very moment on, and for whoever wants to go on after an error.
    pub fn listen(&self) -> Listener {
        self.channel.listen(Box::new(|_| true), Deadline::NEVER)
    }

    /// Everything on the tape from here on, of all clients: a stream that ends when the machine is deleted.
    pub fn entries(&self) -> Entries {
        Entries { listener: Some(self.listen()), wait_seconds: None, running: None }
    }
}

/// An interrupt over a connection, to be sent with `.await`.
#[must_use = "nothing is sent before .await"]
pub struct ReplInterrupt {
    channel: Arc<Channel>,
    request: api::Interrupt,
}

impl ReplInterrupt {
    setters! {
        /// This one alone, running or waiting.
        instruction: i64 => request.instruction;
    }

    /// What waits, too.
    pub fn pending(mut self, pending: bool) -> Self {
        self.request.pending = pending.then_some(true);
        self
    }

    async fn send(self) -> Fallible<bool> {
        let reply = self.channel.ask("interrupt", fields(&self.request), false).await?;
        Ok(reply.get("interrupted").and_then(Value::as_bool).unwrap_or(false))
    }
}

awaited!(ReplInterrupt => bool);

/// A question for completions over a connection, to be sent with `.await`.
#[must_use = "nothing is sent before .await"]
pub struct ReplComplete {
    channel: Arc<Channel>,
    request: api::Complete,
}

impl ReplComplete {
    setters! {
        /// Characters before it.
        cursor: i64 => request.cursor;
    }

    async fn send(self) -> Fallible<api::Completed> {
        read(self.channel.ask("complete", fields(&self.request), true).await?)
    }
}

awaited!(ReplComplete => api::Completed);

fn fields<T: serde::Serialize>(request: &T) -> Map<String, Value> {
    match serde_json::to_value(request) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Entries as they come over a connection: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct Entries {
    listener: Option<Listener>,
    wait_seconds: Option<f64>,
    running: Option<BoxStream<'static, Fallible<Entry>>>,
}

impl Entries {
    setters! {
        /// How long the caller has; then it is `StillRunning`.
        wait_seconds: f64 => wait_seconds;
    }

    fn start(&mut self) -> BoxStream<'static, Fallible<Entry>> {
        let (listener, wait_seconds) = (self.listener.take(), self.wait_seconds);
        let begun = async move {
            let deadline = Deadline::new(wait_seconds)?;
            Ok(try_unfold(listener, move |listener| next(listener, deadline)))
        };
        futures::stream::once(begun).try_flatten().boxed()
    }
}

streamed!(Entries => Entry);

async fn next(listener: Option<Listener>, deadline: Deadline) -> Fallible<Option<(Entry, Option<Listener>)>> {
    let Some(mut listener) = listener else { return Ok(None) };
    listener.set_deadline(deadline);
    match listener.next().await {
        Ok(entry) => Ok(Some((entry, Some(listener)))),
        Err(error) if error.is_a(Kind::MachineNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}
