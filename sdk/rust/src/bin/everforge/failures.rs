//! What went wrong, told once: a sentence on stderr that says what to do, or JSON for programs, and the exit code that goes with it.

use crate::grammar::grammar;
use crate::output::{reason, say};
use crate::python;
use everforge::Kind;
use everforge::quoting::printable;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Display;
use std::io;

pub const EXIT_RAISED: i32 = 1; // the machine's code did
pub const EXIT_USAGE: i32 = 2;
pub const EXIT_REFUSED: i32 = 3;
pub const EXIT_UNREACHABLE: i32 = 4;
pub const EXIT_INTERRUPTED: i32 = 130;

pub const LONGER: &str = "give it longer with --instruction-timeout-seconds"; // what was timed out

#[derive(Debug)]
pub enum Failure {
    /// The command line was wrong.
    Usage(String),
    /// A file of this computer, not of a machine.
    Local(String),
    /// A server said so, or there is none.
    Refused(everforge::Error),
    /// All is said: this is the exit code.
    Left(i32),
}

pub type Done<T = ()> = Result<T, Failure>;

impl From<everforge::Error> for Failure {
    fn from(error: everforge::Error) -> Self {
        let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
        match (error.kind, detail("path"), detail("reason")) {
            (Kind::ClientError, Some(path), Some(reason)) => Self::Local(format!("{path}: {}", reason.to_lowercase())),
            _ => Self::Refused(error),
        }
    }
}

impl Failure {
    /// Whose help is to be read is said, too.
    pub fn usage(message: &str, command: &str) -> Self {
        let sentence = format!("{}: see `{command} --help`", message.trim_end_matches('.'));
        let mut letters = sentence.chars();
        Self::Usage(letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect())
    }

    /// What the operating system says about a file of this computer becomes a sentence that names it.
    pub fn local(path: impl Display, error: &io::Error) -> Self {
        Self::Local(format!("{path}: {}", reason(error)))
    }

    pub fn message(&self) -> String {
        match self {
            Self::Usage(sentence) | Self::Local(sentence) => sentence.clone(),
            Self::Refused(error) => error.message.clone(),
            Self::Left(code) => format!("exit code {code}"),
        }
    }

    fn body(&self) -> Value {
        let code = match self {
            Self::Refused(error) => {
                let retry = error.retry.as_str();
                return json!({"code": error.code, "message": error.message, "retry": retry, "id": error.request_id, "details": error.details});
            }
            Self::Usage(_) => "WrongUsage",
            _ => "LocalTrouble",
        };
        json!({"code": code, "message": self.message(), "retry": "never", "id": null, "details": {}})
    }

    fn exit_code(&self) -> i32 {
        match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Refused(error) if grammar().unreached.contains(&error.code) => EXIT_UNREACHABLE,
            Self::Local(_) | Self::Refused(_) => EXIT_REFUSED,
            Self::Left(code) => *code,
        }
    }

    /// The exit code.
    pub fn tell(&self, as_json: bool) -> i32 {
        if !matches!(self, Self::Left(_)) {
            say(&if as_json { python::json_line(&self.body()) } else { format!("everforge: {}", obeyed_by_none(&self.message())) });
        }
        self.exit_code()
    }
}

/// Lines that a terminal shows and does not obey, whatever was typed, or a server said.
fn obeyed_by_none(message: &str) -> String {
    message.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Are programs to read it? Asked of the words themselves: these may be what is wrong.
pub fn for_programs(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_told_with_whose_help_to_read() {
        let failure = Failure::usage("Missing argument 'NAME'.", "everforge machine show");
        assert_eq!(failure.message(), "missing argument 'NAME': see `everforge machine show --help`");
        assert_eq!(failure.exit_code(), EXIT_USAGE);
        assert_eq!(failure.body()["code"], "WrongUsage");
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_line_by_line() {
        assert_eq!(obeyed_by_none("a\u{1b}[31m\n\u{202e}é"), "a\\x1b[31m\n\\u202eé");
    }

    #[test]
    fn trouble_with_a_file_names_it() {
        let failure = Failure::local("here.txt", &io::Error::from_raw_os_error(13));
        assert_eq!(failure.message(), "here.txt: permission denied");
        assert_eq!(failure.exit_code(), EXIT_REFUSED);
    }

    #[test]
    fn json_is_for_programs_up_to_two_dashes() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(for_programs(&words("machine show --json a")));
        assert!(!for_programs(&words("machine exec a -- --json")));
    }
}
