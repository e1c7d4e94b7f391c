//! A program at the prompt: what comes in is run, what comes out is printed, and the exit code says whether anything raised.

use super::blocks::Blocks;
use super::pictures::{Pictures, Way, picture_of};
use super::transcript::shown_as;
use crate::connection::suggesting;
use crate::failures::{Done, EXIT_INTERRUPTED, EXIT_RAISED, Failure, LONGER};
use crate::machine::interrupting::interrupting;
use crate::output::{flush, print, say, say_part};
use crate::repl::{Wanted, entered};
use crate::stdin::lines;
use everforge::api::EndKind;
use everforge::results::failure_text;
use everforge::{Display, Everforge, Machine, Repl, Result};
use std::sync::atomic::{AtomicI64, Ordering};

pub async fn feed(wanted: Wanted) -> Done {
    let tell = |connected: bool| note(if connected { "connected again" } else { "connection lost, reconnecting..." });
    let server = Everforge::builder().on_connection(tell).build()?;
    let machine = entered(&server, &wanted).await?;
    match &wanted.name {
        None => note(machine.name()),
        Some(name) => drop(suggesting(Some(name), async { Ok(machine.info().await?) }).await?),
    }
    let repl = machine.repl().await?;
    let feed =
        Feed { pictures: Pictures::new(machine.name(), Way::None), machine, shown: AtomicI64::new(0), timeout_seconds: wanted.timeout_seconds };
    let done = feed.run(&repl).await;
    repl.close().await;
    done
}

struct Feed {
    machine: Machine,
    pictures: Pictures,
    shown: AtomicI64,
    timeout_seconds: Option<f64>,
}

impl Feed {
    /// Stops at the first one that raises, as a script does.
    async fn run(&self, repl: &Repl) -> Done {
        let (mut lines, mut blocks) = (lines(), Blocks::default());
        while let Some(line) = lines.recv().await {
            let line = line.map_err(|error| Failure::local("stdin", &error))?;
            let line = String::from_utf8_lossy(&line).replace("\r\n", "\n").replace('\r', "\n"); // wherever it was written
            for code in line.split_inclusive('\n').flat_map(|line| blocks.take(line)) {
                self.give(repl, code).await?;
            }
        }
        match blocks.rest() {
            Some(code) => self.give(repl, code).await,
            None => Ok(()),
        }
    }

    /// This one alone is interrupted by Ctrl-C: others may have given the machine more.
    async fn give(&self, repl: &Repl, code: String) -> Done {
        let mut exec = repl.exec(code);
        if let Some(seconds) = self.timeout_seconds {
            exec = exec.timeout_seconds(seconds);
        }
        let result = interrupting(self.machine.name(), exec, |instruction| async move {
            let watched = instruction
                .result()
                .on_stdout(|line| out(&format!("{line}{}", line.end())))
                .on_stderr(|line| say_part(&format!("{line}{}", line.end())));
            Ok(watched.on_display(|display| self.show(display)).await?)
        });
        let result = result.await?;
        tell_end(&result);
        match result.end {
            EndKind::Value => Ok(()),
            EndKind::Interrupted => Err(Failure::Left(EXIT_INTERRUPTED)),
            _ => Err(Failure::Left(EXIT_RAISED)),
        }
    }

    fn show(&self, display: &Display) {
        match picture_of(Some(&display.data)) {
            None => out(&format!("{}\n", shown_as(Some(&display.data)))),
            Some(picture) => say_part(&self.pictures.shown(&picture, self.shown.fetch_add(1, Ordering::Relaxed) + 1)),
        }
    }
}

fn tell_end(result: &Result) {
    if !result.ok() {
        let why = failure_text(&result.end, result.error.as_deref(), result.traceback.as_deref());
        say(if why.is_empty() { result.end.as_str() } else { &why });
    } else if let Some(value) = &result.value {
        out(&format!("{value}\n"));
    }
    if let Some(remark) = result.note.as_deref().filter(|remark| !remark.is_empty()) {
        note(remark);
    }
    if result.end == EndKind::TimedOut {
        note(LONGER);
    }
}

fn out(text: &str) {
    print(text);
    flush();
}

fn note(text: &str) {
    say(&format!("everforge: {text}"));
}
