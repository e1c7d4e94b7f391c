//! Questions to the person at the terminal; elsewhere lines of stdin, or a refusal that says which option to give.

use crate::failures::{Done, EXIT_INTERRUPTED, Failure};
use crate::output::{flush, say, say_part, stderr_on_terminal, stdin_on_terminal};
use crate::stdin::first_line;
use crate::usage::Given;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io;

/// Asked again while nothing is answered.
pub async fn ask(given: &Given, question: &str, option: &str) -> Done<String> {
    if !(stdin_on_terminal() && stderr_on_terminal()) {
        return Err(given.bad(option, "it is needed, and there is no terminal to ask at"));
    }
    loop {
        let found = typed(&format!("{question}: ")).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
}

/// Without echo; or the first line of stdin, when that is not a terminal.
pub async fn ask_secret(given: &Given, question: &str, option: &str) -> Done<String> {
    let found = if stdin_on_terminal() { ask_hidden(question).await? } else { first_line().await? };
    match found.trim() {
        "" => Err(given.bad(option, "none was given")),
        found => Ok(found.to_owned()),
    }
}

/// Whatever it is, without echo, as it was typed.
pub async fn ask_hidden(question: &str) -> Done<String> {
    flush();
    let quiet = Quiet::begin();
    say_part(&format!("{question}: "));
    let found = first_line().await;
    drop(quiet);
    say(""); // Enter was not shown, either
    Ok(line(&found?)?.to_owned())
}

/// Anything but a yes leaves.
pub async fn confirm(question: &str) -> Done {
    loop {
        match typed(&format!("{question} [y/N]: ")).await?.to_lowercase().as_str() {
            "y" | "yes" => return Ok(()),
            "" | "n" | "no" => return Err(Failure::Left(EXIT_INTERRUPTED)),
            _ => say("Error: invalid input"),
        }
    }
}

async fn typed(question: &str) -> Done<String> {
    flush();
    say_part(question);
    Ok(line(&first_line().await?)?.trim().to_owned())
}

/// Without its end; the end of all input is a no to whatever was asked.
fn line(found: &str) -> Done<&str> {
    if found.is_empty() {
        return Err(Failure::Left(EXIT_INTERRUPTED));
    }
    Ok(found.trim_end_matches(['\r', '\n']))
}

/// While it lives, the terminal does not show what is typed. It ends also when the command is left.
struct Quiet(Option<Termios>);

impl Quiet {
    fn begin() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut modes) = before.clone() {
            modes.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &modes); // what was typed ahead is no answer
        }
        Self(before)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
