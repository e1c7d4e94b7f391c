//! Ctrl-C, and a kill: what they mean at the moment. Where nobody says otherwise the command ends, and what it holds is put away.

use crate::failures::{EXIT_INTERRUPTED, Failure};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const EXIT_KILLED: i32 = 143; // as of a program that SIGTERM ends

static LISTENERS: Mutex<Vec<UnboundedSender<()>>> = Mutex::new(Vec::new());

/// While this lives, Ctrl-C is told here and ends nothing. The newest of them is told.
pub struct Presses {
    heard: UnboundedReceiver<()>,
    own: UnboundedSender<()>,
}

pub fn presses() -> Presses {
    let (own, heard) = unbounded_channel();
    listeners().push(own.clone());
    Presses { heard, own }
}

impl Presses {
    /// The next time that it is pressed.
    pub async fn next(&mut self) {
        self.heard.recv().await; // it holds a sender itself: there is no end to it
    }
}

impl Drop for Presses {
    fn drop(&mut self) {
        listeners().retain(|one| !one.same_channel(&self.own));
    }
}

fn listeners() -> MutexGuard<'static, Vec<UnboundedSender<()>>> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until somebody has had enough.
pub async fn until_left() -> Failure {
    let mut killed = std::pin::pin!(until_killed());
    loop {
        tokio::select! {
            () = pressed() => match listeners().last() {
                Some(listener) => drop(listener.send(())),
                None => return Failure::Left(EXIT_INTERRUPTED),
            },
            () = &mut killed => return Failure::Left(EXIT_KILLED),
        }
    }
}

/// Where that cannot be heard, the system's own way of ending the program stays.
async fn pressed() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn until_killed() {
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    }
}
