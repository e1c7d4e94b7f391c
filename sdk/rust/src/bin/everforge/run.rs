//! One command line, from its words to its exit code.

use crate::failures::{Done, Failure, for_programs};
use crate::handlers::handle;
use crate::interruption::until_left;
use crate::output::{flush, print, print_line};
use crate::usage::{Given, Wish, read};
use everforge::quoting::quoted;
use std::ffi::OsString;
use std::time::Duration;
use tokio::runtime;
use tokio::time::timeout;

const PUT_AWAY: Duration = Duration::from_secs(2); // for what is open to close, once somebody has had enough
const WORKERS: usize = 2; // one for the command, one for what it waits for

pub fn run(words: &[OsString]) -> i32 {
    match act(words) {
        Ok(()) => {
            flush();
            0
        }
        Err(failure) => failure.tell(for_programs(words)),
    }
}

fn act(words: &[OsString]) -> Done {
    if let Some(strange) = words.iter().find(|word| word.to_str().is_none()) {
        // It is not guessed what was meant, and nothing else is sent in its place.
        return Err(Failure::usage(&format!("{} is not UTF-8", quoted(&strange.to_string_lossy())), "everforge"));
    }
    match read(words)? {
        Wish::Nothing => {}
        Wish::Help(command) => print(&command.help),
        Wish::Version => print_line(&format!("everforge {}", everforge::VERSION)),
        Wish::Run(given) => return run_command(given),
    }
    Ok(())
}

fn run_command(given: Given) -> Done {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::local("this computer", &error))?;
    let done = runtime.block_on(until_done_or_left(given));
    runtime.shutdown_background();
    done
}

/// In a task of its own: it can be left also while it waits for whoever does not read what it writes.
async fn until_done_or_left(given: Given) -> Done {
    let mut work = tokio::spawn(handle(given));
    let left = tokio::select! {
        done = &mut work => {
            flush(); // what was answered comes before what is said of its end
            return done.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
        }
        left = until_left() => left,
    };
    work.abort(); // what it holds is put away
    if timeout(PUT_AWAY, work).await.is_ok() {
        flush();
    }
    Err(left)
}
