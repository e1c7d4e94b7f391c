//! One instruction of the person's at the prompt, and what Ctrl-C means while it runs: interrupt it, insist, stop waiting.

use super::keys::Keys;
use super::session::{Aside, Session};
use crate::failures::LONGER;
use everforge::{Error, Fallible, Kind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot::Receiver;
use tokio::time::{sleep, timeout};

const HINT_AFTER: Duration = Duration::from_millis(800); // most code ends sooner, and needs no word about it
const HINT: &str = "interrupted, and it still runs; Ctrl-C again kills it, with the machine's variables";
const INSISTED: &str = "it is being killed; Ctrl-C again stops waiting for that";
const AWAY: &str = "it is interrupted as soon as the server is there again; Ctrl-C again stops waiting for it";
const REFUSED: &str = "Ctrl-C again stops waiting for it";

pub async fn run(session: &Arc<Session>, keys: &Keys, code: &str, timeout_seconds: Option<f64>) -> Fallible<()> {
    let key = new_key()?;
    let mut running = Running { session, is_pressed: false, told: Arc::default(), hint: None };
    let (number, ended) = {
        let mut submitting = std::pin::pin!(session.submit(code, timeout_seconds, &key));
        loop {
            tokio::select! {
                found = &mut submitting => break found?,
                () = keys.pressed() => if std::mem::replace(&mut running.is_pressed, true) {
                    session.interrupt_when_accepted(&key);
                    session.screen.say("no longer waited for: what was typed may not have been heard");
                    return Ok(());
                },
            }
        }
    };
    if running.is_pressed {
        running.interrupt(number);
    }
    let mut ending = std::pin::pin!(session.end(ended));
    loop {
        tokio::select! {
            found = &mut ending => {
                if found?.get("end").is_some_and(|end| end == "timed_out") {
                    session.screen.say(LONGER);
                }
                return Ok(());
            }
            () = keys.pressed() => if running.is_left(number) {
                session.screen.say(&format!("no longer waited for: instruction {number} goes on"));
                return Ok(());
            },
        }
    }
}

/// Under which what is submitted is known, before it has a number.
fn new_key() -> Fallible<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(Kind::ClientError, format!("this computer has no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

struct Running<'a> {
    session: &'a Arc<Session>,
    is_pressed: bool,
    told: Told,
    hint: Option<Aside>,
}

/// What the next Ctrl-C means, once that has been said.
type Told = Arc<Mutex<Option<&'static str>>>;

impl Running<'_> {
    /// What a key means is said before: keys that are pressed faster than that mean nothing more.
    fn is_left(&mut self, number: i64) -> bool {
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let was_pressed = std::mem::replace(&mut self.is_pressed, true);
        match told {
            None if was_pressed => false,
            Some(said) if said != HINT => true,
            _ => {
                self.interrupt(number);
                false
            }
        }
    }

    /// The first is Python's own interrupt. The second insists.
    fn interrupt(&mut self, number: i64) {
        self.hint = None;
        let before = self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        let next = if before == Some(HINT) { INSISTED } else { HINT };
        self.hint = Some(Aside::begin(tell(self.session.clone(), self.told.clone(), self.session.interrupt(number), next)));
    }
}

/// What comes next, to whoever still waits.
async fn tell(session: Arc<Session>, told: Told, mut sent: Receiver<bool>, hint: &'static str) {
    let say = |text: &'static str| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        session.screen.say(text);
    };
    let is_heard = if let Ok(heard) = timeout(HINT_AFTER, &mut sent).await {
        heard
    } else {
        say(AWAY);
        sent.await
    };
    sleep(HINT_AFTER).await;
    say(if is_heard == Ok(true) { hint } else { REFUSED });
}
