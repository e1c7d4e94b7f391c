//! An instruction that a machine has accepted: its lines as they come, and its result.

use crate::door::{Ask, Door};
use crate::entry::Entry;
use crate::error::{Error, Fallible, Kind};
use crate::functions::{Answered, Args, Functions, answering, call, check_wait, refused};
use crate::generated::{api, sentences::sentences};
use crate::inputs;
use crate::listener::Listener;
use crate::options::{awaited, streamed};
use crate::pauses::Deadline;
use crate::results::{Call, Display, Gathering, Happening, Line, Result, Taken};
use crate::sentences::say;
use crate::tape::{START, TapeReader, pages};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbered from 0 within its machine. Whoever drops this object loses nothing: the machine and its tape keep it.
///
/// ```no_run
/// # async fn example(machine: everforge::Machine) -> everforge::Fallible<()> {
/// let instruction = machine.exec("import time; time.sleep(3600)").timeout_seconds(7200).await?;
/// let number = instruction.number(); // enough to find it again, from any program, at any time
/// let again = machine.instruction(number)?;
/// again.interrupt().await?;
/// println!("{}", again.result().wait_seconds(30).await?.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Instruction(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    door: Arc<Door>,
    machine: String,
    path: String,
    number: i64,
    functions: Functions,
    is_fresh: AtomicBool, // accepted just now, by us: none of its calls has been answered before
    source: Mutex<Option<Listener>>,
    kept: Mutex<HashMap<i64, api::Answer>>, // answers that could not be sent, by the call's number
    result: Mutex<Option<Result>>,
}

impl Instruction {
    pub(crate) fn new(door: Arc<Door>, machine: &str, number: i64) -> Fallible<Self> {
        Self::accepted(door, machine, number, false, Functions::new(), None)
    }

    pub(crate) fn accepted(
        door: Arc<Door>,
        machine: &str,
        number: i64,
        is_fresh: bool,
        functions: Functions,
        source: Option<Listener>,
    ) -> Fallible<Self> {
        Ok(Self(Arc::new(Shared {
            door,
            path: format!("/machine/{machine}"),
            machine: machine.to_owned(),
            number: inputs::instruction_number(number)?,
            functions,
            is_fresh: AtomicBool::new(is_fresh),
            source: Mutex::new(source),
            kept: Mutex::default(),
            result: Mutex::default(),
        })))
    }

    /// Of its machine.
    pub fn machine_name(&self) -> &str {
        &self.0.machine
    }

    /// Within its machine, from 0.
    pub fn number(&self) -> i64 {
        self.0.number
    }

    /// What the server knows of it.
    pub async fn info(&self) -> Fallible<api::Instruction> {
        self.0.door.get(&format!("{}/exec/{}", self.0.path, self.0.number), &[]).await
    }

    /// This one alone, whether it runs or still waits behind others. False when it has ended already.
    ///
    /// Code may catch the first interrupt; a second one insists, and kills what still runs, with its variables.
    pub async fn interrupt(&self) -> Fallible<bool> {
        let ask = Ask::post(&api::Interrupt { instruction: Some(self.0.number), pending: None })?;
        let found: api::Interrupted = self.0.door.post(&format!("{}/interrupt", self.0.path), ask).await?;
        Ok(found.interrupted)
    }

    /// Waits for its end. The same result again when asked again.
    pub fn result<'a>(&self) -> Outcome<'a> {
        Outcome { instruction: self.clone(), watch: Watch::default(), functions: None, wait_seconds: None, deadline: None }
    }

    /// Its lines from the first on, as they come, until it ends; then [`Self::result`] has the end.
    pub fn stream(&self) -> Lines {
        Lines { instruction: self.clone(), functions: None, wait_seconds: None, running: None }
    }

    fn follow(&self, functions: Option<Functions>, deadline: Deadline) -> Follow {
        Follow {
            functions: functions.unwrap_or_else(|| self.0.functions.clone()),
            gathering: Gathering::new(self.0.number),
            shared: self.0.clone(),
            deadline,
            source: None,
            done: None,
            queue: VecDeque::new(),
            has_ended: false,
        }
    }
}

/// Whom to tell of what happens.
#[derive(Default)]
pub(crate) struct Watch<'a> {
    pub(crate) stdout: Option<Told<'a, Line>>,
    pub(crate) stderr: Option<Told<'a, Line>>,
    pub(crate) display: Option<Told<'a, Display>>,
}

pub(crate) type Told<'a, T> = Box<dyn FnMut(&T) + Send + 'a>;

impl Watch<'_> {
    fn tell(&mut self, happening: &Happening) {
        match happening {
            Happening::Line(line) => {
                let told = if line.stream == api::Stream::Stderr { &mut self.stderr } else { &mut self.stdout };
                if let Some(told) = told {
                    told(line);
                }
            }
            Happening::Display(display) => {
                if let Some(told) = &mut self.display {
                    told(display);
                }
            }
            Happening::Call(_) => {}
        }
    }
}

/// Methods of every request that waits for an end.
macro_rules! watching {
    () => {
        /// Told of every line of stdout, as it comes.
        pub fn on_stdout(mut self, told: impl FnMut(&$crate::Line) + Send + 'a) -> Self {
            self.watch.stdout = Some(Box::new(told));
            self
        }

        /// Told of every line of stderr, as it comes.
        pub fn on_stderr(mut self, told: impl FnMut(&$crate::Line) + Send + 'a) -> Self {
            self.watch.stderr = Some(Box::new(told));
            self
        }

        /// Told of whatever is shown: figures, tables.
        pub fn on_display(mut self, told: impl FnMut(&$crate::Display) + Send + 'a) -> Self {
            self.watch.display = Some(Box::new(told));
            self
        }
    };
}
pub(crate) use watching;

/// The end of an instruction, to be waited for with `.await`.
#[must_use = "nothing is waited for before .await"]
pub struct Outcome<'a> {
    instruction: Instruction,
    pub(crate) watch: Watch<'a>,
    functions: Option<Functions>,
    wait_seconds: Option<f64>,
    pub(crate) deadline: Option<Deadline>,
}

impl<'a> Outcome<'a> {
    watching!();

    /// How long the caller has; then it is `StillRunning`, and the instruction goes on.
    pub fn wait_seconds(mut self, seconds: impl Into<f64>) -> Self {
        self.wait_seconds = Some(seconds.into());
        self
    }

    /// In place of the functions that the instruction was given.
    pub fn functions(mut self, functions: Functions) -> Self {
        self.functions = Some(functions);
        self
    }

    /// A function of this program that the code may call.
    pub fn function<F, G>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Args) -> G + Send + Sync + 'static,
        G: Future<Output = Answered> + Send + 'static,
    {
        self.functions = Some(self.functions.unwrap_or_default().with(name, function));
        self
    }

    async fn send(mut self) -> Fallible<Result> {
        let shared = self.instruction.0.clone();
        if let Some(known) = held(&shared.result).clone() {
            return Ok(known);
        }
        let deadline = self.deadline.map_or_else(|| Deadline::new(self.wait_seconds), Ok)?;
        if let Some(functions) = &self.functions {
            functions.names()?;
        }
        let mut follow = self.instruction.follow(self.functions, deadline);
        while let Some(happening) = follow.next().await? {
            self.watch.tell(&happening);
        }
        let found = held(&shared.result).clone();
        found.ok_or_else(|| Error::new(Kind::StillRunning, sentences::NOTHING_CAME))
    }
}

awaited!(Outcome<'a> => Result);

/// Lines of an instruction, as they come: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct Lines {
    instruction: Instruction,
    functions: Option<Functions>,
    wait_seconds: Option<f64>,
    running: Option<BoxStream<'static, Fallible<Line>>>,
}

impl Lines {
    /// How long the caller has; then it is `StillRunning`, and the instruction goes on.
    pub fn wait_seconds(mut self, seconds: impl Into<f64>) -> Self {
        self.wait_seconds = Some(seconds.into());
        self
    }

    /// In place of the functions that the instruction was given.
    pub fn functions(mut self, functions: Functions) -> Self {
        self.functions = Some(functions);
        self
    }

    fn start(&mut self) -> BoxStream<'static, Fallible<Line>> {
        let (instruction, functions, wait_seconds) = (self.instruction.clone(), self.functions.take(), self.wait_seconds);
        let begun = async move {
            let deadline = Deadline::new(wait_seconds)?;
            if let Some(functions) = &functions {
                functions.names()?;
            }
            Ok(lines(instruction.follow(functions, deadline)))
        };
        futures::stream::once(begun).try_flatten().boxed()
    }
}

streamed!(Lines => Line);

fn lines(follow: Follow) -> BoxStream<'static, Fallible<Line>> {
    try_unfold(follow, |mut follow| async move {
        while let Some(happening) = follow.next().await? {
            if let Happening::Line(line) = happening {
                return Ok(Some((line, follow)));
            }
        }
        Ok(None)
    })
    .boxed()
}

// --- following it through the tape -----------------------------------------------------------------------------------------------------------

/// Where the entries come from: the tape over HTTP, or the WebSocket of a Repl.
enum Source {
    Tape(TapeReader),
    Listener(Listener),
}

impl Source {
    async fn next(&mut self) -> Fallible<Entry> {
        match self {
            Self::Tape(reader) => reader.next().await,
            Self::Listener(listener) => listener.next().await,
        }
    }

    async fn finish(self) {
        if let Self::Tape(mut reader) = self {
            reader.finish().await;
        }
    }
}

struct Follow {
    shared: Arc<Shared>,
    functions: Functions,
    deadline: Deadline,
    gathering: Gathering,
    source: Option<Source>,
    done: Option<HashSet<i64>>, // calls that have their answer; None before it was looked
    queue: VecDeque<Happening>,
    has_ended: bool,
}

impl Follow {
    /// A line or a display; None at the end. Calls are answered on the way.
    async fn next(&mut self) -> Fallible<Option<Happening>> {
        loop {
            // One that is being answered stays in its place meanwhile: whoever stops waiting comes back to it.
            while let Some(Happening::Call(asked)) = self.queue.front() {
                self.answer(asked).await?;
                self.queue.pop_front();
            }
            if let Some(happening) = self.queue.pop_front() {
                return Ok(Some(happening));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Fallible<()> {
        if self.done.is_none() {
            check_wait(&self.shared.door.base_url, &self.shared.machine, Some(self.shared.number))?;
            let done = self.shared.answered(&self.functions, self.deadline).await;
            self.done = Some(done.map_err(|error| self.shared.explained(error))?);
        }
        let source = self.source.get_or_insert_with(|| self.shared.open(self.deadline));
        let entry = source.next().await.map_err(|error| self.shared.explained(error))?;
        match self.gathering.take(&entry) {
            Taken::Happenings(found) => self.queue.extend(found),
            Taken::End(result) => {
                *held(&self.shared.result) = Some(*result);
                self.has_ended = true;
                if let Some(source) = self.source.take() {
                    source.finish().await;
                }
            }
        }
        Ok(())
    }

    async fn answer(&self, asked: &Call) -> Fallible<()> {
        let is_done = self.done.as_ref().is_some_and(|done| done.contains(&asked.number));
        match self.functions.get(&asked.function) {
            Some(function) if !is_done => {
                let known = held(&self.shared.kept).get(&asked.number).cloned();
                if known.is_none() {
                    let found = answering(&self.shared.door.base_url, &self.shared.machine, self.shared.number, call(asked, function)).await;
                    held(&self.shared.kept).insert(asked.number, found);
                }
                self.shared.tell_answer(asked).await
            }
            _ => Ok(()),
        }
    }
}

impl Shared {
    fn open(&self, deadline: Deadline) -> Source {
        match held(&self.source).take() {
            Some(mut listener) => {
                listener.set_deadline(deadline);
                Source::Listener(listener)
            }
            None => Source::Tape(TapeReader::new(self.door.clone(), format!("{}/tape", self.path), START, deadline, Some(self.number))),
        }
    }

    /// Of an instruction that was begun earlier: calls that have their answer. The others are still waited for.
    async fn answered(&self, functions: &Functions, deadline: Deadline) -> Fallible<HashSet<i64>> {
        let is_fresh = self.is_fresh.swap(false, Ordering::Relaxed); // a second reading sees calls that the first has answered
        if functions.is_empty() || is_fresh {
            return Ok(HashSet::new());
        }
        let entries = pages(self.door.clone(), format!("{}/tape", self.path), START, Some(self.number), deadline);
        let calls = entries.try_filter_map(|entry| async move { Ok(if entry.kind() == "answered" { entry.integer("call") } else { None }) });
        calls.try_collect().await
    }

    /// A function is called once for each call: an answer that could not be sent is kept, and sent when there is a next time.
    async fn tell_answer(&self, asked: &Call) -> Fallible<()> {
        let known = held(&self.kept).get(&asked.number).cloned().unwrap_or_default();
        match self.post_answer(asked.number, &known).await {
            Err(error) if error.is_a(Kind::Refused) && !error.is_a(Kind::Unauthenticated) && !error.is_a(Kind::Forbidden) => {
                let instead = refused(&asked.function, &error.message);
                held(&self.kept).insert(asked.number, instead.clone());
                self.post_answer(asked.number, &instead).await?;
            }
            found => found?, // to no token, or to none that may, no other answer would be of use either
        }
        held(&self.kept).remove(&asked.number);
        Ok(())
    }

    async fn post_answer(&self, call: i64, answer: &api::Answer) -> Fallible<()> {
        let path = format!("{}/exec/{}/calls/{call}", self.path, self.number);
        // It is answered once, whoever answers first: asking again is safe.
        match self.door.post::<api::Answered>(&path, Ask::post(answer)?.again()).await {
            // Answered already: by another client, by our own cut request, or it is no longer waited for.
            Err(error) if error.is_a(Kind::WrongState) => Ok(()),
            // The instruction has ended meanwhile.
            Err(error) if error.is_a(Kind::Refused) && error.http_status == 404 => Ok(()),
            found => found.map(|_| ()),
        }
    }

    fn explained(&self, error: Error) -> Error {
        let words: [(&str, &dyn std::fmt::Display); 2] = [("number", &self.number), ("machine", &self.machine)];
        if error.is_a(Kind::StillRunning) {
            return Error::new(Kind::StillRunning, say(sentences::NOT_ENDED, &words));
        }
        if error.is_a(Kind::MachineNotFound) {
            return Error::new(Kind::MachineNotFound, say(sentences::DELETED_BEFORE_END, &words));
        }
        error
    }
}

/// What is behind a lock that is never held while anything is waited for.
fn held<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
