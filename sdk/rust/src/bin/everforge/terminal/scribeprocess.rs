//! The process that prints and remembers: lines come on its stdin, answers go to its stderr. It has the file locked.

use super::cursorfile::CursorFile;
use super::system;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::Path;
use tokio::runtime;

const WORD: &str = "--print-and-remember"; // nobody types it
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024; // of one piece; far more than an entry of a tape has
const EIO: i32 = 5;
pub const DONE: [u8; 1] = *b"+";

/// What it says first.
#[derive(Serialize, Deserialize)]
pub struct Hello {
    pub cursor: Option<i64>,
    pub open: bool,
    pub error: Option<String>,
}

/// A piece of output, where to go on behind it, and whether it leaves a line unfinished.
pub struct Written {
    pub cursor: i64,
    pub open: bool,
    pub text: String,
}

/// The words that start it.
pub fn command(path: &Path, identity: &str) -> [OsString; 4] {
    [WORD.into(), path.into(), identity.into(), std::process::id().to_string().into()]
}

/// How many there are, and each with its place, whether it leaves its line unfinished, and its length.
pub fn batch(lines: &[Written]) -> Vec<u8> {
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    let mut made = size(lines.len()).to_vec();
    for line in lines {
        made.extend_from_slice(&line.cursor.to_le_bytes());
        made.push(u8::from(line.open));
        made.extend_from_slice(&size(line.text.len()));
        made.extend_from_slice(line.text.as_bytes());
    }
    made
}

/// Is this process meant to be it? Then it has been, and this is its exit code: 0, or the number of the error that ended it.
pub fn asked() -> Option<i32> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match &words[..] {
        [word, path, identity, parent] if word == WORD => Some(print_and_remember(Path::new(path), identity, parent)),
        _ => None,
    }
}

fn print_and_remember(path: &Path, identity: &OsStr, parent: &OsStr) -> i32 {
    system::leave_session();
    let _deaf = Deaf::to_signals();
    let opened = CursorFile::open(path, &identity.to_string_lossy());
    let hello = match &opened {
        Ok(file) => Hello { cursor: file.cursor(), open: file.is_open(), error: None },
        Err(why) => Hello { cursor: None, open: false, error: Some(why.clone()) },
    };
    let said = serde_json::to_string(&hello).unwrap_or_default();
    if writeln!(io::stderr(), "{said}").is_err() {
        return 0;
    }
    let Ok(mut file) = opened else { return 0 };
    match write_all(&mut io::stdin().lock(), &mut file, &parent.to_string_lossy()) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(EIO),
    }
}

/// Until nobody gives any more. Cut in the middle of a batch: nothing of the rest is printed, nor remembered.
fn write_all(source: &mut impl Read, file: &mut CursorFile, parent: &str) -> io::Result<()> {
    while let Some(count) = number(source) {
        for _ in 0..count {
            let Some((cursor, open, text)) = line(source) else { return Ok(()) };
            if system::parent().is_some_and(|now| now.to_string() != parent) {
                return Ok(()); // whoever gave it has gone: the next one goes on behind what was remembered
            }
            let mut out = io::stdout().lock();
            out.write_all(&text)?;
            out.flush()?;
            file.remember(cursor, open)?;
        }
        if io::stderr().write_all(&DONE).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn number(source: &mut impl Read) -> Option<usize> {
    let mut bytes = [0; 4];
    source.read_exact(&mut bytes).ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

fn line(source: &mut impl Read) -> Option<(i64, bool, Vec<u8>)> {
    let (mut cursor, mut open) = ([0; 8], [0; 1]);
    source.read_exact(&mut cursor).ok()?;
    source.read_exact(&mut open).ok()?;
    let length = number(source).filter(|length| *length <= LINE_BYTES_MAX)?;
    let mut text = vec![0; length];
    source.read_exact(&mut text).ok()?;
    Some((i64::from_le_bytes(cursor), open != [0], text))
}

/// Signals that end other processes are heard by nobody while this lives.
struct Deaf {
    _runtime: Option<runtime::Runtime>,
}

impl Deaf {
    #[cfg(unix)]
    fn to_signals() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = runtime::Builder::new_current_thread().enable_all().build().ok();
        if let Some(runtime) = &runtime {
            let _inside = runtime.enter();
            for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
                let _ = signal(kind); // once it is asked for, it does nothing else for the rest of the process
            }
        }
        Self { _runtime: runtime }
    }

    #[cfg(not(unix))]
    fn to_signals() -> Self {
        Self { _runtime: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let lines = [Written { cursor: 7, open: false, text: "é\n".to_owned() }, Written { cursor: -1, open: true, text: String::new() }];
        let made = batch(&lines);
        let mut source = &made[..];
        assert_eq!(number(&mut source), Some(2));
        assert_eq!(line(&mut source), Some((7, false, "é\n".as_bytes().to_vec())));
        assert_eq!(line(&mut source), Some((-1, true, Vec::new())));
        assert_eq!(number(&mut source), None);
    }

    #[test]
    fn half_a_batch_is_none() {
        let made = batch(&[Written { cursor: 7, open: false, text: "text".to_owned() }]);
        let mut source = &made[4..made.len() - 1];
        assert_eq!(line(&mut source), None);
    }
}
