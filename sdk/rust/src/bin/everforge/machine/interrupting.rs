//! Ctrl-C while an instruction runs.

use crate::failures::{Done, EXIT_INTERRUPTED, Failure};
use crate::interruption::presses;
use crate::output::say;
use everforge::{Fallible, Instruction};

const INTERRUPTING: &str = "everforge: interrupting; Ctrl-C again leaves at once";

/// The first Ctrl-C interrupts the instruction, also when it is just being given, and its end is still waited for; the second leaves.
pub async fn interrupting<T, F>(machine: &str, give: impl IntoFuture<Output = Fallible<Instruction>>, wait: impl FnOnce(Instruction) -> F) -> Done<T>
where
    F: Future<Output = Done<T>>,
{
    let (mut presses, mut is_pressed) = (presses(), false);
    let mut giving = std::pin::pin!(give.into_future());
    let given = loop {
        tokio::select! {
            given = &mut giving => break given?,
            () = presses.next() => {
                if std::mem::replace(&mut is_pressed, true) {
                    return Err(Failure::Left(EXIT_INTERRUPTED));
                }
                say(INTERRUPTING);
            }
        }
    };
    if is_pressed {
        tokio::spawn(interrupt(given.clone()));
    }
    let mut waiting = std::pin::pin!(wait(given.clone()));
    loop {
        tokio::select! {
            found = &mut waiting => return found,
            () = presses.next() => {
                if std::mem::replace(&mut is_pressed, true) {
                    let kills = format!("`everforge machine interrupt {machine}` kills it, with the machine's variables");
                    say(&format!("everforge: instruction {} of {machine} goes on: {kills}", given.number()));
                    return Err(Failure::Left(EXIT_INTERRUPTED));
                }
                say(INTERRUPTING);
                tokio::spawn(interrupt(given.clone()));
            }
        }
    }
}

async fn interrupt(instruction: Instruction) {
    if let Err(error) = instruction.interrupt().await {
        say(&format!("everforge: it could not be interrupted: {}", error.message));
    }
}
