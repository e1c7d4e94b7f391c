//! Which commands there are, read from what is generated of the Python command line: paths, options, help texts.

use clap::builder::OsStringValueParser;
use clap::{Arg, ArgAction, Command};
use serde::Deserialize;
use serde_json::Number;
use std::sync::OnceLock;

const TEXT: &str = include_str!("../../generated/commands.json");
pub const EXTRA: &str = "_extra"; // whatever is there too much
pub const HELP: &str = "_help";

#[derive(Deserialize)]
pub struct Grammar {
    pub unreached: Vec<String>, // codes of errors that say that nobody answered
    pub server_only: ServerOnly,
    pub commands: Vec<CommandText>,
}

/// Commands that work on the server's own computer, and what is said to those who look for them here.
#[derive(Deserialize)]
pub struct ServerOnly {
    pub commands: Vec<String>,
    pub sentence: String,
}

#[derive(Deserialize)]
pub struct CommandText {
    pub path: Vec<String>,
    pub group: bool,
    pub runs_alone: bool,
    pub parameters: Vec<Parameter>,
    pub help: String,
}

#[derive(Deserialize)]
pub struct Parameter {
    pub name: String,
    pub argument: bool,
    pub flags: Vec<String>,
    pub kind: Kind,
    pub several: bool,
    pub required: bool,
    pub metavar: String, // of an argument, what sentences call it
    pub min: Option<Number>,
    pub max: Option<Number>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Flag,
    Text,
    Int,
    Float,
}

pub fn grammar() -> &'static Grammar {
    static READ: OnceLock<Grammar> = OnceLock::new();
    READ.get_or_init(|| serde_json::from_str(TEXT).expect("commands.json is generated, and tested to be as it must"))
}

impl Grammar {
    /// The commands of a group.
    pub fn below(&'static self, path: &'static [String]) -> impl Iterator<Item = &'static CommandText> {
        self.commands.iter().filter(move |command| command.path.len() == path.len() + 1 && command.path.starts_with(path))
    }

    /// The tree for clap, which sorts words into options and arguments. What they must be is judged here, so that it is said in the same words.
    pub fn tree(&'static self) -> Command {
        self.branch(&self.commands[0])
    }

    fn branch(&'static self, found: &'static CommandText) -> Command {
        let name = found.path.last().map_or("everforge", String::as_str);
        let mut command = Command::new(name)
            .disable_help_flag(true)
            .disable_help_subcommand(true)
            .disable_version_flag(true)
            .args_override_self(true)
            .arg(help(found.group))
            .args(found.parameters.iter().map(Parameter::arg));
        if found.group {
            command = command.allow_external_subcommands(true); // one that is none is answered with the near ones
            command = command.subcommands(self.below(&found.path).map(|below| self.branch(below)));
        } else if !found.parameters.iter().any(|one| one.argument && one.several) {
            command = command.arg(several(Arg::new(EXTRA)));
        }
        command
    }
}

/// In a group it ends the reading at once, as what follows belongs to commands below; in a command all of it must be readable first.
fn help(in_group: bool) -> Arg {
    let action = if in_group { ArgAction::Help } else { ArgAction::SetTrue };
    Arg::new(HELP).short('h').long("help").action(action)
}

fn several(arg: Arg) -> Arg {
    arg.action(ArgAction::Append).num_args(0..).value_parser(OsStringValueParser::new())
}

impl Parameter {
    fn arg(&'static self) -> Arg {
        let mut arg = Arg::new(self.name.as_str());
        for flag in &self.flags {
            arg = match flag.strip_prefix("--") {
                Some(long) => arg.long(long),
                None => arg.short(flag.chars().nth(1)),
            };
        }
        match (self.argument, self.kind, self.several) {
            (true, _, true) => several(arg),
            (true, _, false) => arg.action(ArgAction::Set).value_parser(OsStringValueParser::new()),
            (false, Kind::Flag, _) => arg.action(ArgAction::SetTrue),
            (false, _, several) => {
                let action = if several { ArgAction::Append } else { ArgAction::Set };
                arg.action(action).num_args(1).allow_hyphen_values(true).value_parser(OsStringValueParser::new())
            }
        }
    }

    pub fn long(&self) -> &str {
        self.flags.iter().find(|flag| flag.starts_with("--")).map_or("", String::as_str)
    }
}

impl CommandText {
    /// As one types it.
    pub fn words(&self) -> String {
        let mut words = vec!["everforge"];
        words.extend(self.path.iter().map(String::as_str));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_takes_the_whole_tree() {
        grammar().tree().debug_assert();
    }

    #[test]
    fn every_command_has_its_help_under_its_own_name() {
        for command in &grammar().commands {
            assert!(command.help.starts_with(&format!("Usage: {} [OPTIONS]", command.words())), "{}", command.words());
        }
    }
}
