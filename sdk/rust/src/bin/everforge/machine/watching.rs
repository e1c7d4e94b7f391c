//! An instruction, watched until it ends: what it writes goes where it belongs, Ctrl-C goes to the machine.

use super::interrupting::interrupting;
use super::picturefiles::PictureFiles;
use crate::failures::{Done, EXIT_INTERRUPTED, EXIT_RAISED, Failure, LONGER};
use crate::output::{flush, print, say, say_part};
use crate::tables::print_json;
use crate::terminal::bundles::{mime_bundle, text_of};
use everforge::api::{EndKind, Stream};
use everforge::results::failure_text;
use everforge::{Bundle, Fallible, Instruction, Line, Result};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

pub struct Watched {
    /// The folder for them.
    pub pictures: Option<PathBuf>,
    pub json: bool,
}

pub async fn watch(machine: &str, give: impl IntoFuture<Output = Fallible<Instruction>>, Watched { pictures, json }: Watched) -> Done {
    let (result, files) = interrupting(machine, give, |instruction| async move {
        let files = pictures.map(|folder| PictureFiles::new(folder, format!("{machine}-{}", instruction.number())));
        let shown = Shared { shown: Mutex::new(Shown { files, quiet: json, ..Shown::default() }), troubled: Notify::new() };
        let watched = instruction.result().on_stdout(|line| shown.get().line(line)).on_stderr(|line| shown.get().line(line));
        let outcome = watched.on_display(|display| shown.display(&display.data));
        let result = tokio::select! {
            result = outcome.into_future() => result?,
            () = shown.troubled.notified() => return Err(shown.get().trouble.take().unwrap_or(Failure::Left(EXIT_RAISED))),
        };
        shown.get().end(&result)?;
        let files = shown.get().files.take();
        Ok((result, files))
    })
    .await?;
    if json {
        print_json(&fields(machine, &result, files.as_ref()));
    }
    match result.end {
        EndKind::Value => Ok(()),
        EndKind::Interrupted | EndKind::Cancelled => Err(Failure::Left(EXIT_INTERRUPTED)),
        _ => Err(Failure::Left(EXIT_RAISED)),
    }
}

fn fields(machine: &str, result: &Result, files: Option<&PictureFiles>) -> Map<String, Value> {
    let mut found = Map::from_iter([("machine_name".to_owned(), Value::from(machine))]);
    if let Ok(Value::Object(fields)) = serde_json::to_value(result) {
        found.extend(fields);
    }
    if let Some(files) = files {
        found.insert("pictures".to_owned(), files.saved.clone().into());
    }
    found
}

/// Told of lines and displays as they come, each by itself.
struct Shared {
    shown: Mutex<Shown>,
    troubled: Notify,
}

impl Shared {
    fn get(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A picture that cannot be written ends the command, and not only the picture.
    fn display(&self, data: &Bundle) {
        let mut shown = self.get();
        if let Err(trouble) = shown.display(data) {
            shown.trouble = Some(trouble);
            self.troubled.notify_one();
        }
    }
}

/// What a terminal, or whoever reads stdout and stderr, gets to see.
#[derive(Default)]
struct Shown {
    files: Option<PictureFiles>,
    quiet: bool,
    open_stdout: bool, // its last line has no end yet
    open_stderr: bool,
    trouble: Option<Failure>,
}

impl Shown {
    fn line(&mut self, line: &Line) {
        if self.quiet {
            return;
        }
        let text = format!("{line}{}", line.end());
        if line.stream == Stream::Stderr {
            self.open_stderr = line.partial;
            say_part(&text);
        } else {
            self.open_stdout = line.partial;
            print(&text);
            flush();
        }
    }

    fn display(&mut self, data: &Bundle) -> Done {
        let bundle = mime_bundle(Some(data));
        self.save(&bundle)?;
        if let (false, Some(text)) = (self.quiet, text_of(&bundle, "text/plain")) {
            self.answer(text);
        }
        Ok(())
    }

    fn save(&mut self, bundle: &Bundle) -> Done {
        self.files.as_mut().map_or(Ok(()), |files| files.save(bundle))
    }

    fn end(&mut self, result: &Result) -> Done {
        self.save(&mime_bundle(result.data.as_ref()))?;
        if self.quiet {
            return Ok(());
        }
        if !result.ok() {
            let why = failure_text(&result.end, result.error.as_deref(), result.traceback.as_deref());
            self.tell(&if why.is_empty() { format!("instruction {} ended: {}", result.instruction, result.end) } else { why });
        } else if let Some(value) = &result.value {
            self.answer(value);
        }
        if let Some(note) = result.note.as_deref().filter(|note| !note.is_empty()) {
            self.tell(&format!("everforge: {note}"));
        }
        if result.end == EndKind::TimedOut {
            self.tell(&format!("everforge: {LONGER}"));
        }
        Ok(())
    }

    /// On a line of its own.
    fn answer(&mut self, text: &str) {
        let before = if std::mem::take(&mut self.open_stdout) { "\n" } else { "" };
        print(&format!("{before}{}\n", text.trim_end_matches('\n')));
        flush();
    }

    fn tell(&mut self, text: &str) {
        let before = if std::mem::take(&mut self.open_stderr) { "\n" } else { "" };
        say(&format!("{before}{}", text.trim_end_matches('\n')));
    }
}
