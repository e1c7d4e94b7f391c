//! One prompt's talk with one machine: what it submits, what it hears, through every cut.

use super::is_away;
use super::screen::Screen;
use everforge::{Entry, Error, Fallible, Kind, Listener, Machine, Repl};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

const AGAIN: Duration = Duration::from_secs(3); // between tries, once the SDK has given up
const QUIET: Duration = Duration::from_millis(800); // nobody wants to read of a wake that is over before that
const WAKING: &str = "waking the machine...";

/// What others do on the machine is heard, too, and shown on demand. Background output belongs to everybody.
pub struct Session {
    pub machine: Machine,
    pub screen: Arc<Screen>,
    repl: Repl,
    shows_others: bool,
    state: Mutex<State>,
    is_heard: AtomicBool, // something of what is waited for
    failed: watch::Sender<Option<Error>>,
}

#[derive(Default)]
struct State {
    submitted: HashMap<String, oneshot::Sender<Entry>>, // their ends, by key until their acceptance is seen
    ours: HashMap<i64, oneshot::Sender<Entry>>,         // and then by number
    unwanted: HashSet<String>,                          // keys of those that are to be interrupted as soon as they have a number
    tasks: JoinSet<()>,
}

impl Session {
    pub fn begin(machine: Machine, repl: Repl, screen: Arc<Screen>, shows_others: bool) -> Arc<Self> {
        let listener = repl.listen();
        let (failed, _) = watch::channel(None);
        let session = Arc::new(Self { machine, screen, repl, shows_others, state: Mutex::default(), is_heard: AtomicBool::new(false), failed });
        session.state().tasks.spawn(listen(session.clone(), listener));
        session
    }

    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut self.state().tasks);
        tasks.shutdown().await;
        self.repl.close().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- hearing ---------------------------------------------------------------------------------------------------------------------------

    fn take(self: &Arc<Self>, entry: Entry) {
        let number = entry.instruction();
        if let ("accepted", Some(number)) = (entry.kind(), number) {
            if self.accept(&entry, number) {
                return;
            }
        }
        let is_ours = number.is_some_and(|number| self.state().ours.contains_key(&number));
        let is_background = number.is_none() && matches!(entry.kind(), "output" | "displayed");
        if matches!(entry.kind(), "moved" | "lost") {
            self.moved(&entry);
        } else if is_ours || self.shows_others || is_background {
            self.screen.show(&entry);
        }
        if let (true, Some(number)) = (is_ours, number) {
            self.is_heard.store(true, Ordering::Relaxed);
            if entry.kind() == "ended" {
                if let Some(waiting) = self.state().ours.remove(&number) {
                    let _ = waiting.send(entry); // whoever waited may have left
                }
            }
        }
    }

    /// Is it one that was submitted here?
    fn accept(self: &Arc<Self>, entry: &Entry, number: i64) -> bool {
        let mut state = self.state();
        let Some((key, waiting)) = entry.get("key").and_then(|key| state.submitted.remove_entry(key.as_str()?)) else { return false };
        state.ours.insert(number, waiting);
        let is_unwanted = state.unwanted.remove(&key);
        drop(state);
        if is_unwanted {
            drop(self.interrupt(number));
        }
        true
    }

    fn moved(&self, entry: &Entry) {
        let is = |field: &str, words: &[&str]| entry.get(field).and_then(|value| value.as_str()).is_some_and(|word| words.contains(&word));
        if entry.kind() == "lost" || is("event", &["rollback_started", "reset_started"]) {
            self.screen.show(entry);
        } else if is("residence", &["awake"]) {
            self.screen.stop_waiting();
        }
    }

    /// Is there no use in going on?
    pub fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }

    /// Waits for that.
    pub async fn failure(&self) -> Error {
        let mut failed = self.failed.subscribe();
        match failed.wait_for(Option::is_some).await.map(|found| found.clone()) {
            Ok(Some(error)) => error,
            _ => std::future::pending().await,
        }
    }

    // --- running ---------------------------------------------------------------------------------------------------------------------------

    /// Its number, and where its end will come. Whoever stops waiting has not stopped it: the instruction goes on, and is shown.
    pub async fn submit(&self, code: &str, timeout_seconds: Option<f64>, key: &str) -> Fallible<(i64, oneshot::Receiver<Entry>)> {
        let (sender, ended) = oneshot::channel();
        self.state().submitted.insert(key.to_owned(), sender);
        self.is_heard.store(false, Ordering::Relaxed);
        let mut submit = self.repl.submit(code).key(key);
        if let Some(seconds) = timeout_seconds {
            submit = submit.timeout_seconds(seconds);
        }
        tokio::select! {
            number = submit => Ok((number?, ended)),
            error = self.failure() => Err(error),
        }
    }

    /// What is waited for is told, when it is the machine's sleep.
    pub async fn end(&self, ended: oneshot::Receiver<Entry>) -> Fallible<Entry> {
        let found = tokio::select! {
            Ok(entry) = ended => Ok(entry),
            error = self.failure() => Err(error),
            never = self.tell_if_waking() => never,
        };
        self.screen.stop_waiting();
        found
    }

    async fn tell_if_waking<T>(&self) -> T {
        sleep(QUIET).await;
        if !self.is_heard.load(Ordering::Relaxed) {
            if let Ok(info) = self.machine.info().await {
                // Of an error whoever waits hears anyway.
                if let (Some(what), false) = (wait_of(info.state.as_str()), self.is_heard.load(Ordering::Relaxed)) {
                    self.screen.wait_for(what);
                }
            }
        }
        std::future::pending().await
    }

    // --- interrupting ----------------------------------------------------------------------------------------------------------------------

    pub fn interrupt_when_accepted(&self, key: &str) {
        self.state().unwanted.insert(key.to_owned());
    }

    /// In its own time: while the server is away it is waited for. Was it heard? Once more for the same instruction insists.
    pub fn interrupt(self: &Arc<Self>, number: i64) -> oneshot::Receiver<bool> {
        let (sender, heard) = oneshot::channel();
        let session = self.clone();
        self.state().tasks.spawn(async move {
            let _ = sender.send(session.send_interrupt(number).await); // whoever asked may have left
        });
        heard
    }

    async fn send_interrupt(&self, number: i64) -> bool {
        loop {
            let sent = match self.machine.instruction(number) {
                Ok(instruction) => instruction.interrupt().await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(_) => return true,
                Err(error) if error.is_a(Kind::Unreachable) => sleep(AGAIN).await, // nobody has heard it
                Err(error) if error.is_a(Kind::Uncertain) => return true,          // not again: for one who has heard it, that would be to insist
                Err(error) => {
                    self.screen.say(&format!("not interrupted: {}", error.message));
                    return false;
                }
            }
        }
    }
}

async fn listen(session: Arc<Session>, mut listener: Listener) {
    loop {
        match listener.next().await {
            Ok(entry) => session.take(entry),
            Err(error) if is_away(&error) => sleep(AGAIN).await, // it may take its time; whoever is tired of waiting leaves
            Err(error) => return drop(session.failed.send_replace(Some(error))),
        }
    }
}

/// What a machine in this state makes one wait for.
fn wait_of(state: &str) -> Option<&'static str> {
    match state {
        "creating" => Some("the machine is being made..."),
        "hibernating" | "asleep" | "waking" => Some(WAKING),
        _ => None,
    }
}

/// A task that nobody waits for when it is no longer wanted.
pub struct Aside(JoinHandle<()>);

impl Aside {
    pub fn begin(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.abort();
    }
}
