//! Code on its way to a machine: `run`, `exec` and `stream`, over HTTP or over the connection of a Repl.

use crate::channel::Channel;
use crate::door::{Ask, Door, new_key};
use crate::entry::Entry;
use crate::error::{Error, Fallible, Kind};
use crate::functions::{Answered, Args, Functions, check_wait};
use crate::generated::api;
use crate::generated::sentences::sentences;
use crate::inputs;
use crate::instruction::{Instruction, Watch, watching};
use crate::options::{awaited, pairs, streamed};
use crate::pauses::Deadline;
use crate::results::{Line, Result};
use crate::sentences::say;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use indexmap::IndexMap;
use std::future::Future;
use std::sync::Arc;

/// Where code goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) door: Arc<Door>,
    pub(crate) machine: String,
    pub(crate) channel: Option<Arc<Channel>>, // of a Repl
}

/// The code and what it may be given.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    target: Target,
    code: String,
    timeout_seconds: Option<f64>,
    env: Option<IndexMap<String, String>>,
    interrupt: bool,
    functions: Functions,
    key: Option<String>,
}

impl Order {
    pub(crate) fn new(target: Target, code: impl Into<String>) -> Self {
        Self { target, code: code.into(), timeout_seconds: None, env: None, interrupt: false, functions: Functions::new(), key: None }
    }

    fn request(&self) -> Fallible<api::Exec> {
        inputs::timeout_seconds(self.timeout_seconds)?;
        let instruction = api::InstructionText {
            code: self.code.clone(),
            timeout_seconds: self.timeout_seconds,
            env: self.env.clone().filter(|env| !env.is_empty()),
            functions: self.functions.names()?,
        };
        Ok(api::Exec { instruction, interrupt: self.interrupt.then_some(true) })
    }

    fn check_wait(&self) -> Fallible<()> {
        check_wait(&self.target.door.base_url, &self.target.machine, None)
    }

    async fn exec(self) -> Fallible<Instruction> {
        let request = self.request()?;
        match self.target.channel.clone() {
            Some(channel) => self.exec_on(&channel, &request).await,
            None => self.exec_over_http(&request).await,
        }
    }

    async fn exec_over_http(self, request: &api::Exec) -> Fallible<Instruction> {
        let is_fresh = self.key.is_none();
        let key = self.key.map_or_else(new_key, Ok)?;
        let Target { door, machine, .. } = self.target;
        let accepted: api::Accepted = door.post(&format!("/machine/{machine}/exec"), Ask::post(request)?.key(key)).await?;
        Instruction::accepted(door, &machine, accepted.instruction_seq, is_fresh, self.functions, None)
    }

    async fn exec_on(self, channel: &Arc<Channel>, request: &api::Exec) -> Fallible<Instruction> {
        let key = self.key.map_or_else(new_key, Ok)?;
        channel.open().await?;
        let (ours, mut number) = (key.clone(), None);
        let wants = move |entry: &Entry| {
            if entry.kind() == "accepted" && entry.get("key").is_some_and(|found| *found == ours) {
                number = entry.instruction();
            }
            number.is_some() && entry.instruction() == number
        };
        let listener = channel.listen(Box::new(wants), Deadline::NEVER);
        let number = submit(channel, request, &key).await?;
        let Target { door, machine, .. } = self.target;
        Instruction::accepted(door, &machine, number, true, self.functions, Some(listener))
    }
}

/// Over a connection: the number that it has.
async fn submit(channel: &Channel, request: &api::Exec, key: &str) -> Fallible<i64> {
    let mut message = match serde_json::to_value(request) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    message.insert("key".to_owned(), key.into());
    let reply = channel.ask("exec", message, true).await?;
    let lacking = || Error::new(Kind::ProtocolError, say(sentences::ANSWER_LACKS, &[("names", &"instruction_seq")]));
    reply.get("instruction_seq").and_then(serde_json::Value::as_i64).ok_or_else(lacking)
}

/// Methods of every request that hands over code.
macro_rules! ordering {
    () => {
        /// How long it may run; the server has a limit of its own.
        pub fn timeout_seconds(mut self, seconds: impl Into<f64>) -> Self {
            self.order.timeout_seconds = Some(seconds.into());
            self
        }

        pairs! {
            /// Environment variables for this instruction alone.
            env, envs => order.env;
        }

        /// A function of this program that the code may call by this name, as if it were there. What it gives is what the call gives; an error is
        /// raised there.
        pub fn function<F, G>(mut self, name: impl Into<String>, function: F) -> Self
        where
            F: Fn(Args) -> G + Send + Sync + 'static,
            G: Future<Output = Answered> + Send + 'static,
        {
            self.order.functions = self.order.functions.with(name, function);
            self
        }

        /// All of them, in place of those given before.
        pub fn functions(mut self, functions: Functions) -> Self {
            self.order.functions = functions;
            self
        }
    };
}

/// Code to be run, and its end to be waited for, with `.await`.
#[must_use = "nothing is run before .await"]
pub struct Run<'a> {
    order: Order,
    watch: Watch<'a>,
    wait_seconds: Option<f64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, watch: Watch::default(), wait_seconds: None }
    }

    ordering!();
    watching!();

    /// Interrupts what runs and what waits before it.
    pub fn interrupt(mut self, interrupt: bool) -> Self {
        self.order.interrupt = interrupt;
        self
    }

    /// How long the caller has; then it is `StillRunning`, and the instruction goes on.
    pub fn wait_seconds(mut self, seconds: impl Into<f64>) -> Self {
        self.wait_seconds = Some(seconds.into());
        self
    }

    async fn send(self) -> Fallible<Result> {
        self.order.check_wait()?;
        let deadline = Deadline::new(self.wait_seconds)?;
        let mut outcome = self.order.exec().await?.result();
        (outcome.watch, outcome.deadline) = (self.watch, Some(deadline));
        outcome.await
    }
}

awaited!(Run<'a> => Result);

/// Code to be handed over with `.await`, which returns as soon as it is accepted.
#[must_use = "nothing is run before .await"]
pub struct Exec {
    order: Order,
}

impl Exec {
    pub(crate) fn new(order: Order) -> Self {
        Self { order }
    }

    ordering!();

    /// Interrupts what runs and what waits before it.
    pub fn interrupt(mut self, interrupt: bool) -> Self {
        self.order.interrupt = interrupt;
        self
    }

    /// With the same key the same code is accepted once, however often it is handed over.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.order.key = Some(key.into());
        self
    }

    async fn send(self) -> Fallible<Instruction> {
        self.order.exec().await
    }
}

awaited!(Exec => Instruction);

/// Code to be handed over to whoever reads the entries of a Repl, with `.await`: there `accepted` has the key, and all that follows the number.
#[must_use = "nothing is run before .await"]
pub struct Submit {
    order: Order,
}

impl Submit {
    pub(crate) fn new(order: Order) -> Self {
        Self { order }
    }

    /// How long it may run; the server has a limit of its own.
    pub fn timeout_seconds(mut self, seconds: impl Into<f64>) -> Self {
        self.order.timeout_seconds = Some(seconds.into());
        self
    }

    /// Interrupts what runs and what waits before it.
    pub fn interrupt(mut self, interrupt: bool) -> Self {
        self.order.interrupt = interrupt;
        self
    }

    /// With the same key the same code is accepted once, however often it is handed over.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.order.key = Some(key.into());
        self
    }

    async fn send(self) -> Fallible<i64> {
        let (request, key) = (self.order.request()?, self.order.key.map_or_else(new_key, Ok)?);
        match &self.order.target.channel {
            Some(channel) => submit(channel, &request, &key).await,
            None => Err(Error::new(Kind::ClientError, sentences::CLOSED)),
        }
    }
}

awaited!(Submit => i64);

/// Code to be run, and its lines as they come: a stream, with `InstructionFailed` at its end if the code does not end well.
#[must_use = "a stream does nothing before it is read"]
pub struct RunLines {
    order: Order,
    running: Option<BoxStream<'static, Fallible<Line>>>,
}

impl RunLines {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, running: None }
    }

    ordering!();

    fn start(&mut self) -> BoxStream<'static, Fallible<Line>> {
        let order = self.order.clone();
        let begun = async move {
            order.check_wait()?;
            let instruction = order.exec().await?;
            let ended = instruction.clone();
            let end = async move { ended.result().await?.raise_for_error().map(|_| futures::stream::empty()) };
            Ok(instruction.stream().chain(futures::stream::once(end).try_flatten()))
        };
        futures::stream::once(begun).try_flatten().boxed()
    }
}

streamed!(RunLines => Line);
