//! Prints and remembers, so that nothing can fall between the two.
//!
//! Between a write and the note that it was done there is always a moment, and whoever reads the line may kill its writer right then. So the two are
//! done by a small process of their own: whoever kills this one does not kill that, which ends the line that it has in hand and then itself.

use super::scribeprocess::{DONE, Hello, Written, batch, command};
use crate::failures::{Done, Failure};
use crate::output::trouble;
use everforge::{Error, Kind};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

const EIO: i32 = 5;
const END_WAIT: Duration = Duration::from_secs(10); // for the last lines to be taken by whoever reads them

pub struct Scribe {
    child: Child,
    lines: Option<ChildStdin>,
    answers: BufReader<ChildStderr>,
    /// Where the file says to go on; None in a new one.
    pub cursor: Option<i64>,
    /// It says that a line is unfinished.
    pub open: bool,
}

impl Scribe {
    /// The file is locked while the other process lives.
    pub async fn start(path: &Path, identity: &str) -> Done<Self> {
        let this = || -> io::Result<Child> {
            let words = command(path, identity);
            Command::new(std::env::current_exe()?).args(words).stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(Stdio::piped()).spawn()
        };
        let mut child = this().map_err(|error| Failure::local("everforge", &error))?;
        let (Some(lines), Some(answers)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(Failure::Local("everforge: it could not be started once more".to_owned()));
        };
        let mut scribe = Self { child, lines: Some(lines), answers: BufReader::new(answers), cursor: None, open: false };
        scribe.hear_hello(path).await?;
        Ok(scribe)
    }

    async fn hear_hello(&mut self, path: &Path) -> Done {
        let mut line = String::new();
        let _ = self.answers.read_line(&mut line).await; // what did not come is no hello
        match serde_json::from_str::<Hello>(&line) {
            Ok(Hello { error: None, cursor, open }) => {
                (self.cursor, self.open) = (cursor, open);
                Ok(())
            }
            Ok(Hello { error: Some(why), .. }) => Err(Error::new(Kind::InvalidInput, why).into()),
            Err(_) => Err(Error::new(Kind::InvalidInput, format!("{} cannot be used as a cursor file", path.display())).into()),
        }
    }

    /// Returns when they are written and remembered.
    pub async fn write(&mut self, lines: &[Written]) -> Done {
        let Some(pipe) = &mut self.lines else { return Err(Failure::Left(EIO)) };
        let given = pipe.write_all(&batch(lines)).await.is_ok() && pipe.flush().await.is_ok();
        let mut answer = [0];
        if given && self.answers.read_exact(&mut answer).await.is_ok() && answer == DONE {
            return Ok(());
        }
        let ended = self.child.wait().await.ok().and_then(|status| status.code()).filter(|code| *code > 0);
        Err(Failure::Left(trouble(&io::Error::from_raw_os_error(ended.unwrap_or(EIO)))))
    }

    pub async fn close(mut self) {
        self.lines = None;
        let _ = timeout(END_WAIT, self.child.wait()).await; // it ends by itself
    }
}
