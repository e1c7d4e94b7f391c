//! Standard output, whose trouble ends the program: a reader who has gone is nobody's mistake, and gets no word about it. And stderr, to whoever listens.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub const EXIT_NOT_WRITTEN: i32 = 1;
pub const EXIT_READER_GONE: i32 = 141; // as of a program that SIGPIPE ends
const BUFFERED_BYTES: usize = 64 * 1024;

static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

pub fn on_terminal() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| io::stdout().is_terminal())
}

pub fn stdin_on_terminal() -> bool {
    io::stdin().is_terminal()
}

pub fn stderr_on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Are colours wanted on stdout?
pub fn coloured() -> bool {
    on_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

pub fn print(text: &str) {
    print_bytes(text.as_bytes());
}

pub fn print_line(text: &str) {
    let mut line = text.as_bytes().to_vec();
    line.push(b'\n');
    print_bytes(&line);
}

/// Kept until there is enough of it, or on a terminal until a line ends.
pub fn print_bytes(data: &[u8]) {
    let mut buffer = buffer();
    buffer.extend_from_slice(data);
    if buffer.len() >= BUFFERED_BYTES || (on_terminal() && data.contains(&b'\n')) {
        write_out(&mut buffer);
    }
}

/// What was printed is there when this returns; else the program has ended.
pub fn flush() {
    write_out(&mut buffer());
}

fn buffer() -> MutexGuard<'static, Vec<u8>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_out(buffer: &mut Vec<u8>) {
    let mut out = io::stdout().lock();
    let done = out.write_all(buffer).and_then(|()| out.flush());
    buffer.clear();
    if let Err(error) = done {
        std::process::exit(trouble(&error));
    }
}

/// The exit code that goes with it; what is to be said of it is said.
pub fn trouble(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return EXIT_READER_GONE;
    }
    say(&format!("everforge: the answer could not be written: {}", reason(error)));
    EXIT_NOT_WRITTEN
}

/// What the operating system says, as a part of a sentence.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or(&text).to_lowercase()
}

/// On stderr, a line.
pub fn say(text: &str) {
    say_part(&format!("{text}\n"));
}

pub fn say_part(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes()); // nobody may listen any more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words_without_numbers() {
        assert_eq!(reason(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(reason(&io::Error::other("Something Else")), "something else");
    }

    #[test]
    fn a_reader_who_has_gone_is_told_from_a_full_disk() {
        assert_eq!(trouble(&io::Error::from_raw_os_error(32)), EXIT_READER_GONE);
        assert_eq!(trouble(&io::Error::from_raw_os_error(28)), EXIT_NOT_WRITTEN);
    }
}
