//! Copies of a machine, and points that it can go back to.

use crate::door::{Ask, Door, new_key};
use crate::error::{Fallible, protocol};
use crate::generated::api;
use crate::generated::sentences::sentences;
use crate::machine::Machine;
use crate::options::{awaited, lists, setters};
use crate::sentences::say;
use serde_json::Value;
use std::sync::Arc;

async fn forked(door: Arc<Door>, path: &str, request: &api::Fork) -> Fallible<Vec<Machine>> {
    let made: api::Forked = door.post(&format!("{path}/fork"), Ask::post(request)?.key(new_key()?).slowly()).await?;
    made.machine_names.iter().map(|name| Machine::new(door.clone(), name)).collect()
}

/// A request with an address and a body.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident: $body:ident) => {
        $(#[$doc])*
        #[must_use = "nothing is done before .await"]
        pub struct $name {
            door: Arc<Door>,
            path: String,
            request: api::$body,
        }

        impl $name {
            pub(crate) fn new(door: Arc<Door>, path: &str) -> Self {
                Self { door, path: path.to_owned(), request: api::$body::default() }
            }
        }
    };
}

request! {
    /// A copy of a machine, to be made with `.await`.
    Fork: Fork
}

impl Fork {
    /// Of the copy.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request.names = Some(vec![name.into()]);
        self
    }

    async fn send(self) -> Fallible<Machine> {
        let lacking = || protocol(say(sentences::ANSWER_LACKS, &[("names", &"machine_names")]));
        forked(self.door, &self.path, &self.request).await?.into_iter().next().ok_or_else(lacking)
    }
}

awaited!(Fork => Machine);

request! {
    /// Copies of a machine, to be made with `.await`.
    Forks: Fork
}

impl Forks {
    setters! {
        /// How many.
        count: i64 => request.count;
    }
    lists! {
        /// Of the copies.
        names: String => request.names;
    }

    async fn send(self) -> Fallible<Vec<Machine>> {
        forked(self.door, &self.path, &self.request).await
    }
}

awaited!(Forks => Vec<Machine>);

request! {
    /// A point to go back to, to be made with `.await`.
    TakeSnapshot: NewSnapshot
}

impl TakeSnapshot {
    setters! {
        /// For as long as it has one it is kept.
        name: String => request.name;
    }

    async fn send(self) -> Fallible<api::Snapshot> {
        self.door.post(&format!("{}/snapshots", self.path), Ask::post(&self.request)?.slowly()).await
    }
}

awaited!(TakeSnapshot => api::Snapshot);

request! {
    /// A fresh beginning, to be made with `.await`: gives the snapshot that brings back what was before.
    Reset: Reset
}

impl Reset {
    /// A machine that is awake is not saved first: what is there now is gone. It is the way back of one that cannot be saved.
    pub fn discard(mut self, discard: bool) -> Self {
        self.request.discard = discard.then_some(true);
        self
    }

    async fn send(self) -> Fallible<Option<String>> {
        Ok(self.door.post::<api::WasReset>(&format!("{}/reset", self.path), Ask::post(&self.request)?.slowly()).await?.undo)
    }
}

awaited!(Reset => Option<String>);

/// What a machine can go back to: a snapshot by id or name, or the state right after an instruction by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// By id or name.
    Snapshot(String),
    /// By its number.
    Instruction(i64),
}

impl From<&str> for Point {
    fn from(snapshot: &str) -> Self {
        Self::Snapshot(snapshot.to_owned())
    }
}

impl From<String> for Point {
    fn from(snapshot: String) -> Self {
        Self::Snapshot(snapshot)
    }
}

impl From<i64> for Point {
    fn from(instruction: i64) -> Self {
        Self::Instruction(instruction)
    }
}

impl From<Point> for Value {
    fn from(point: Point) -> Self {
        match point {
            Point::Snapshot(snapshot) => snapshot.into(),
            Point::Instruction(number) => number.into(),
        }
    }
}

request! {
    /// The way back, to be gone with `.await`.
    Rollback: Rollback
}

impl Rollback {
    /// The newest snapshot, when none is given.
    pub fn to(mut self, point: impl Into<Point>) -> Self {
        self.request.to = Some(point.into().into());
        self
    }

    /// A machine that is awake is not saved first: what is there now is gone.
    pub fn discard(mut self, discard: bool) -> Self {
        self.request.discard = discard.then_some(true);
        self
    }

    async fn send(self) -> Fallible<api::RolledBack> {
        self.door.post(&format!("{}/rollback", self.path), Ask::post(&self.request)?.slowly()).await
    }
}

awaited!(Rollback => api::RolledBack);
