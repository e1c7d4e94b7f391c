//! Words of the prompt's own. All others that begin with % are those of `IPython`, and go to the machine.

use everforge::{Fallible, Machine, Point};
use futures::TryStreamExt;

pub const NAMES: [&str; 6] = ["%files", "%fork", "%help", "%machine", "%rollback", "%snapshot"];

const HELP: &str = "\
Enter runs a line; a block ends with an empty line, or Alt-Enter. Tab completes from the live machine.
Ctrl-C interrupts what runs; a second one kills what still runs, with the machine's variables; a third stops waiting.
Ctrl-D leaves; the machine stays.
%machine           what this machine is, and how it does
%fork [NAME]       a copy of it, memory and files
%snapshot [NAME]   a point to go back to
%rollback [POINT]  back to a snapshot, or to right after an instruction by its number
%files [FOLDER]    what lies in its home folder
%help              this";

/// With its one word, if it has one.
#[derive(Debug, PartialEq, Eq)]
pub struct Command<'a> {
    name: &'a str,
    word: Option<&'a str>,
}

/// None for what the machine is to run.
pub fn command_of(text: &str) -> Option<Command<'_>> {
    let mut words = text.split_whitespace();
    let command = Command { name: words.next()?, word: words.next() };
    (NAMES.contains(&command.name) && words.next().is_none()).then_some(command)
}

impl Command<'_> {
    /// What it says.
    pub async fn run(&self, machine: &Machine) -> Fallible<String> {
        match self.name {
            "%machine" => about(machine).await,
            "%fork" => fork(machine, self.word).await,
            "%snapshot" => snapshot(machine, self.word).await,
            "%rollback" => rollback(machine, self.word).await,
            "%files" => files(machine, self.word).await,
            _ => Ok(HELP.to_owned()),
        }
    }
}

async fn about(machine: &Machine) -> Fallible<String> {
    let info = machine.info().await?;
    let shown = [
        ("name", Some(info.name)),
        ("state", Some(info.state.to_string())),
        ("image", Some(info.image)),
        ("memory", Some(format!("{} of {} MB", info.memory_bytes >> 20, info.memory_mb))),
        ("instructions", Some(info.next_instruction.to_string())),
        ("position", Some(info.position.to_string())),
        ("created", Some(info.created_at)),
        ("error", info.error),
    ];
    let lines = shown.into_iter().filter_map(|(name, value)| value.map(|value| format!("{name:<13}{value}")));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

async fn fork(machine: &Machine, word: Option<&str>) -> Fallible<String> {
    let fork = machine.fork();
    let made = match word {
        Some(name) => fork.name(name).await?,
        None => fork.await?,
    };
    Ok(format!("{0}: enter it with `everforge repl {0}`", made.name()))
}

async fn snapshot(machine: &Machine, word: Option<&str>) -> Fallible<String> {
    let snapshot = machine.snapshot();
    let made = match word {
        Some(name) => snapshot.name(name).await?,
        None => snapshot.await?,
    };
    let name = named(made.name, made.id);
    Ok(format!("{name}: come back with %rollback {name}"))
}

async fn rollback(machine: &Machine, word: Option<&str>) -> Fallible<String> {
    let rollback = machine.rollback();
    let back = match word {
        Some(word) => rollback.to(point(word)).await?,
        None => rollback.await?,
    };
    let undo = back.undo.filter(|undo| !undo.is_empty()).map_or_else(String::new, |undo| format!("; %rollback {undo} undoes it"));
    Ok(format!("back at {}{undo}", named(back.snapshot.name, back.snapshot.id)))
}

fn point(word: &str) -> Point {
    match word.parse::<i64>() {
        Ok(number) if word.bytes().all(|byte| byte.is_ascii_digit()) => Point::Instruction(number),
        _ => Point::Snapshot(word.to_owned()),
    }
}

fn named(name: Option<String>, id: String) -> String {
    name.filter(|name| !name.is_empty()).unwrap_or(id)
}

async fn files(machine: &Machine, word: Option<&str>) -> Fallible<String> {
    let found: Vec<_> = machine.files().list(word.unwrap_or_default()).try_collect().await?;
    let lines = found.iter().map(|file| format!("{:>12}  {}{}", file.size_bytes, file.name, if file.kind.as_str() == "folder" { "/" } else { "" }));
    let shown = lines.collect::<Vec<_>>().join("\n");
    Ok(if shown.is_empty() { "nothing".to_owned() } else { shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_prompts_own_are_told_from_those_of_the_machine() {
        assert_eq!(command_of(" %fork  two "), Some(Command { name: "%fork", word: Some("two") }));
        assert_eq!(command_of("%help"), Some(Command { name: "%help", word: None }));
        for text in ["%time x", "%fork a b", "x = 1", "", "%forks"] {
            assert_eq!(command_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_is_an_instruction() {
        assert_eq!(point("12"), Point::Instruction(12));
        assert_eq!(point("before-12"), Point::Snapshot("before-12".to_owned()));
        assert_eq!(point("-1"), Point::Snapshot("-1".to_owned()));
    }
}
