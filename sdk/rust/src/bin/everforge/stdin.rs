//! Standard input: all of it, its first line, or line by line. Read in a thread of its own, that nobody waits for when the command is left.

use crate::failures::{Done, Failure};
use std::fs::File;
use std::io::{self, BufRead, Read};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::spawn_blocking;

const LINE_BYTES_MAX: u64 = 4096; // of what is asked for
const LINES_AHEAD: usize = 64; // that are read before somebody wants them

/// By whoever started us. Rust then opens /dev/null in its place, and that for writing, too: who means to give nothing opens it for reading.
pub fn is_closed() -> bool {
    let stdin = rustix::stdio::stdin();
    let can_write = rustix::fs::fcntl_getfl(stdin).is_ok_and(|flags| flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDWR);
    can_write && matches!((rustix::fs::fstat(stdin), rustix::fs::stat("/dev/null")), (Ok(found), Ok(null)) if found.st_rdev == null.st_rdev)
}

/// At most `most` bytes and one more, by which it shows that there were more.
pub async fn read_all(most: usize) -> Done<Vec<u8>> {
    let found = aside(move || {
        let mut found = Vec::new();
        io::stdin().lock().take(most as u64 + 1).read_to_end(&mut found)?;
        Ok(found)
    });
    found.await.map_err(|error| failed(&error))
}

pub async fn first_line() -> Done<String> {
    let found = aside(|| {
        let mut found = Vec::new();
        io::stdin().lock().take(LINE_BYTES_MAX).read_until(b'\n', &mut found)?;
        Ok(found)
    });
    Ok(String::from_utf8_lossy(&found.await.map_err(|error| failed(&error))?).into_owned())
}

/// With their newlines, as they come. Those who stop listening stop it.
pub fn lines() -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel(LINES_AHEAD);
    std::thread::spawn(move || {
        loop {
            let mut line = Vec::new();
            let read = io::stdin().lock().read_until(b'\n', &mut line);
            let is_over = !matches!(read, Ok(1..));
            if matches!(read, Ok(0)) || sender.blocking_send(read.map(|_| line)).is_err() || is_over {
                return;
            }
        }
    });
    receiver
}

/// Into a file, to its end.
pub async fn copy_to(mut file: File) -> io::Result<()> {
    aside(move || io::copy(&mut io::stdin().lock(), &mut file).map(|_| ())).await
}

async fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}

fn failed(error: &io::Error) -> Failure {
    Failure::local("stdin", error)
}
