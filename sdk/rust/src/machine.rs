//! A machine, as a program holds it: a name and a door. Making one of these objects asks nobody anything.

use crate::door::{Ask, Door, nothing};
use crate::egress::Egress;
use crate::entry::Entry;
use crate::error::Fallible;
use crate::files::Files;
use crate::generated::api;
use crate::inputs::{finite, machine_name, segment};
use crate::instruction::Instruction;
use crate::options::{awaited, paged, pairs, setters, streamed};
use crate::pauses::Deadline;
use crate::points::{Fork, Forks, Reset, Rollback, TakeSnapshot};
use crate::repl::OpenRepl;
use crate::submission::{Exec, Order, Run, RunLines, Target};
use crate::tape::{START, TapeReader, pages};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use reqwest::Method;
use serde_json::{Map, Value};
use std::sync::Arc;

const INSTRUCTIONS_A_PAGE: i64 = 100;

/// Dropping it closes nothing: the machine goes on, and sleeps when it is idle. [`Machine::delete`] ends it.
///
/// ```no_run
/// # async fn example(machine: everforge::Machine) -> everforge::Fallible<()> {
/// let result = machine.run("import os; os.environ['WHO']").env("WHO", "world").timeout_seconds(5).on_stdout(|line| println!("{line}")).await?;
/// let copy = machine.fork().name("guide-copy").await?; // memory, files, all of it
/// machine.rollback().to(result.instruction).await?; // to the state right after an instruction
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Machine {
    name: String,
    door: Arc<Door>,
    path: String,
}

impl Machine {
    pub(crate) fn new(door: Arc<Door>, name: &str) -> Fallible<Self> {
        let name = machine_name(name)?;
        Ok(Self { path: format!("/machine/{name}"), name, door })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its files.
    pub fn files(&self) -> Files {
        Files::new(self.door.clone(), self.path.clone())
    }

    /// Its way out.
    pub fn egress(&self) -> Egress {
        Egress::new(self.door.clone(), &self.path)
    }

    fn order(&self, code: impl Into<String>) -> Order {
        Order::new(Target { door: self.door.clone(), machine: self.name.clone(), channel: None }, code)
    }

    // --- instructions ----------------------------------------------------------------------------------------------------------------------

    /// Runs code and waits for its end. An exception of the code is `error` in the result; only what goes wrong around it is an [`crate::Error`].
    pub fn run<'a>(&self, code: impl Into<String>) -> Run<'a> {
        Run::new(self.order(code))
    }

    /// Hands code over and returns as soon as it is accepted. Calls of its functions are answered while its result or its lines are waited for.
    pub fn exec(&self, code: impl Into<String>) -> Exec {
        Exec::new(self.order(code))
    }

    /// Runs code and gives its lines as they come; `InstructionFailed` at the end if it does not end well.
    pub fn stream(&self, code: impl Into<String>) -> RunLines {
        RunLines::new(self.order(code))
    }

    /// One that was accepted earlier, by this program or another.
    pub fn instruction(&self, number: i64) -> Fallible<Instruction> {
        Instruction::new(self.door.clone(), &self.name, number)
    }

    /// From the first, or behind one; a stream that pages by itself.
    pub fn instructions(&self) -> Instructions {
        Instructions { door: self.door.clone(), path: format!("{}/exec", self.path), after: None, running: None }
    }

    /// One connection for many instructions: quickest for small ones, and hears what other clients do.
    pub fn repl(&self) -> OpenRepl {
        OpenRepl::new(self.door.clone(), &self.name)
    }

    /// What happened in it, each entry once: a stream. With `follow` it goes on for as long as the machine is there.
    pub fn tape(&self) -> Tape {
        let path = format!("{}/tape", self.path);
        Tape { door: self.door.clone(), path, after: START, follow: false, wait_seconds: None, running: None }
    }

    /// What runs now; with `pending` what waits, too. Was there anything?
    pub fn interrupt(&self) -> Interrupt {
        Interrupt { door: self.door.clone(), path: format!("{}/interrupt", self.path), request: api::Interrupt::default() }
    }

    /// What could stand at the cursor (the end, when none is given), as the live machine sees it.
    pub fn complete(&self, code: impl Into<String>) -> Complete {
        let request = api::Complete { code: code.into(), cursor: None };
        Complete { door: self.door.clone(), path: format!("{}/complete", self.path), request }
    }

    // --- the machine itself ------------------------------------------------------------------------------------------------------------------

    /// What the server knows of it.
    pub async fn info(&self) -> Fallible<api::Machine> {
        self.door.get(&self.path, &[]).await
    }

    /// What is given is changed.
    pub fn update(&self) -> Update {
        Update { door: self.door.clone(), path: self.path.clone(), request: api::MachineChange::default() }
    }

    /// At once and for ever, whatever it is doing.
    pub async fn delete(&self) -> Fallible<()> {
        self.door.delete(&self.path, &[]).await
    }

    /// Answers when it is asleep.
    pub async fn hibernate(&self) -> Fallible<api::Machine> {
        self.door.post(&format!("{}/hibernate", self.path), Ask::post(&nothing())?.again().slowly()).await
    }

    /// Not needed before an instruction: that wakes it by itself.
    pub async fn wake(&self) -> Fallible<api::Machine> {
        self.door.post(&format!("{}/wake", self.path), Ask::post(&nothing())?.again().slowly()).await
    }

    /// A fresh interpreter and fresh files. Gives the snapshot that brings back what was before, where there was something.
    pub fn reset(&self) -> Reset {
        Reset::new(self.door.clone(), &self.path)
    }

    // --- copies and points to go back to -------------------------------------------------------------------------------------------------------

    /// A copy of the living machine, memory and files, that goes its own way from now on.
    pub fn fork(&self) -> Fork {
        Fork::new(self.door.clone(), &self.path)
    }

    /// Several at once, for the price of one save.
    pub fn forks(&self) -> Forks {
        Forks::new(self.door.clone(), &self.path)
    }

    /// A point to go back to or to fork from; kept for as long as it has a name.
    pub fn snapshot(&self) -> TakeSnapshot {
        TakeSnapshot::new(self.door.clone(), &self.path)
    }

    /// All of them.
    pub async fn snapshots(&self) -> Fallible<Vec<api::Snapshot>> {
        Ok(self.door.get::<api::SnapshotList>(&format!("{}/snapshots", self.path), &[]).await?.snapshots)
    }

    /// By id or name.
    pub async fn delete_snapshot(&self, snapshot: &str) -> Fallible<()> {
        self.door.delete(&format!("{}/snapshots/{}", self.path, segment(snapshot)?), &[]).await
    }

    /// To a snapshot by id or name, to the state right after an instruction by its number, or to the newest snapshot. `undo` undoes it.
    pub fn rollback(&self) -> Rollback {
        Rollback::new(self.door.clone(), &self.path)
    }
}

/// Instructions of a machine: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct Instructions {
    door: Arc<Door>,
    path: String,
    after: Option<i64>,
    running: Option<BoxStream<'static, Fallible<api::Instruction>>>,
}

impl Instructions {
    setters! {
        /// Behind this one.
        after: i64 => after;
    }

    fn start(&mut self) -> BoxStream<'static, Fallible<api::Instruction>> {
        let (door, path) = (self.door.clone(), self.path.clone());
        paged(self.after, move |after| {
            let (door, path) = (door.clone(), path.clone());
            Box::pin(async move {
                let query = [("after", after.map(|after| after.to_string())), ("limit", Some(INSTRUCTIONS_A_PAGE.to_string()))];
                let page: api::InstructionList = door.get(&path, &query).await?;
                Ok((page.instructions, page.next.map(Some)))
            })
        })
    }
}

streamed!(Instructions => api::Instruction);

/// Entries of a machine's tape: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct Tape {
    door: Arc<Door>,
    path: String,
    after: i64,
    follow: bool,
    wait_seconds: Option<f64>,
    running: Option<BoxStream<'static, Fallible<Entry>>>,
}

impl Tape {
    setters! {
        /// How long the caller has, while it is followed; then it is `StillRunning`.
        wait_seconds: f64 => wait_seconds;
    }

    /// Behind this position.
    pub fn after(mut self, position: impl Into<i64>) -> Self {
        self.after = position.into();
        self
    }

    /// Goes on with what happens from now on, through every cut, for as long as the machine is there.
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    fn start(&mut self) -> BoxStream<'static, Fallible<Entry>> {
        let (door, path, after) = (self.door.clone(), self.path.clone(), self.after);
        let (follow, wait_seconds) = (self.follow, self.wait_seconds);
        let begun = async move {
            let deadline = Deadline::new(wait_seconds)?;
            Ok(if follow {
                TapeReader::new(door, path, after, deadline, None).into_stream()
            } else {
                pages(door, path, after, None, Deadline::NEVER)
            })
        };
        futures::stream::once(begun).try_flatten().boxed()
    }
}

streamed!(Tape => Entry);

/// An interrupt, to be sent with `.await`.
#[must_use = "nothing is sent before .await"]
pub struct Interrupt {
    door: Arc<Door>,
    path: String,
    request: api::Interrupt,
}

impl Interrupt {
    /// What waits, too.
    pub fn pending(mut self, pending: bool) -> Self {
        self.request.pending = pending.then_some(true);
        self
    }

    async fn send(self) -> Fallible<bool> {
        Ok(self.door.post::<api::Interrupted>(&self.path, Ask::post(&self.request)?).await?.interrupted)
    }
}

awaited!(Interrupt => bool);

/// A question for completions, to be sent with `.await`.
#[must_use = "nothing is sent before .await"]
pub struct Complete {
    door: Arc<Door>,
    path: String,
    request: api::Complete,
}

impl Complete {
    setters! {
        /// Characters before it.
        cursor: i64 => request.cursor;
    }

    async fn send(self) -> Fallible<api::Completed> {
        self.door.post(&self.path, Ask::post(&self.request)?.again()).await
    }
}

awaited!(Complete => api::Completed);

/// A change of a machine, to be made with `.await`.
#[must_use = "nothing is changed before .await"]
pub struct Update {
    door: Arc<Door>,
    path: String,
    request: api::MachineChange,
}

impl Update {
    pairs! {
        /// In place of all tags that it has.
        tag, tags => request.tags;
    }
    setters! {
        /// How long it may be idle before it sleeps.
        idle_seconds: f64 => request.idle_seconds;
        /// When points to go back to are kept.
        history: api::When => request.history;
        /// When what was done is safe from a power cut.
        durability: api::When => request.durability;
        /// "never" clears it.
        expires_at: String => request.expires_at;
    }

    /// In place of all that there is.
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.request.metadata = Some(metadata.into_iter().collect());
        self
    }

    async fn send(self) -> Fallible<api::Machine> {
        finite("idle_seconds", self.request.idle_seconds)?;
        self.door.post(&self.path, Ask::post(&self.request)?.method(Method::PATCH).again()).await
    }
}

awaited!(Update => api::Machine);
