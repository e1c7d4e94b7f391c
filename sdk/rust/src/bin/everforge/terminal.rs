//! What machines say, on a person's terminal: escapes let through with care, colours, pictures, the prompt.

mod blocks;
pub mod bundles;
mod colours;
mod commands;
mod completion;
mod cursorfile;
mod drawing;
mod editing;
mod escapes;
pub mod follower;
mod history;
pub mod interactive;
mod keyboard;
mod keys;
mod keystrokes;
mod pictures;
pub mod piped;
mod prompt;
mod reading;
mod recall;
mod running;
mod screen;
mod scribe;
pub mod scribeprocess;
mod session;
mod shape;
mod system;
mod transcript;

use everforge::{Error, Kind};

/// Is it only that the server is not there, or may not have heard?
fn is_away(error: &Error) -> bool {
    error.is_a(Kind::Unreachable) || error.is_a(Kind::Uncertain)
}
