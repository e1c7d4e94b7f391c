//! A command line as it was given, or the sentence that says what is wrong with it, which is that of the Python command line.

use crate::failures::Failure;
use crate::grammar::{CommandText, EXTRA, HELP, Kind, Parameter, grammar};
use crate::near::near;
use crate::numbers::{read_float, read_int};
use crate::python::quoted;
use crate::way::Way;
use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use everforge::sentences::say;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// What a command was given.
pub struct Given {
    pub command: &'static CommandText,
    values: HashMap<&'static str, Vec<Value>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Flag,
    Text(OsString),
    Int(i64),
    Float(f64),
}

pub enum Wish {
    Nothing,
    Help(&'static CommandText),
    Version,
    Run(Given),
}

/// What the words ask for.
pub fn read(words: &[OsString]) -> Result<Wish, Failure> {
    let way = Way::follow(words);
    match (&way.unknown, way.command) {
        (Some(unknown), command) if way.asks_help => return Err(no_such_option(command, unknown)),
        (None, command) if way.asks_help => return Ok(Wish::Help(command)),
        (None, _) if way.asks_version => return Ok(Wish::Version),
        (None, command) if way.ends_open && command.path.is_empty() => return Ok(Wish::Nothing),
        (None, command) if way.ends_open && !command.runs_alone => return Err(usage(command, "Missing command")),
        _ => {}
    }
    let named = std::iter::once(OsString::from("everforge")).chain(way.words);
    let matches = grammar().tree().try_get_matches_from(named).map_err(|error| refusal(&error, way.command))?;
    wish(&grammar().commands[0], &matches)
}

/// Of this command or one below it.
fn wish(command: &'static CommandText, matches: &ArgMatches) -> Result<Wish, Failure> {
    if !command.group && matches.get_flag(HELP) {
        return Ok(Wish::Help(command));
    }
    let given = Given { command, values: values(command, matches)? };
    if let Some((name, below)) = matches.subcommand() {
        let found = grammar().below(&command.path).find(|one| one.path.last().is_some_and(|last| last == name));
        return wish(found.ok_or_else(|| no_such_command(command, name))?, below);
    }
    Ok(if command.group && (command.path.is_empty() || !command.runs_alone) { Wish::Help(command) } else { Wish::Run(given) })
}

/// What was given, judged in this order: options as they come, then arguments, then what is missing, then what is too much.
fn values(command: &'static CommandText, matches: &ArgMatches) -> Result<HashMap<&'static str, Vec<Value>>, Failure> {
    let mut order: Vec<&Parameter> = command.parameters.iter().collect();
    order.sort_by_key(|one| match (one.argument, was_given(one, matches)) {
        (false, true) => (0, matches.index_of(&one.name).unwrap_or(0)),
        (true, _) => (1, 0),
        (false, false) => (2, 0),
    });
    let mut found = HashMap::new();
    for parameter in order {
        let judged = parameter.judge(matches).map_err(|message| usage(command, &message))?;
        found.insert(parameter.name.as_str(), judged);
    }
    match matches.try_get_many::<OsString>(EXTRA).ok().flatten() {
        Some(extra) => {
            let extra: Vec<_> = extra.map(|word| word.to_string_lossy()).collect();
            Err(usage(command, &format!("Got unexpected extra argument(s) ({})", extra.join(" "))))
        }
        None => Ok(found),
    }
}

fn was_given(parameter: &Parameter, matches: &ArgMatches) -> bool {
    matches.value_source(&parameter.name) == Some(clap::parser::ValueSource::CommandLine)
}

impl Parameter {
    fn judge(&self, matches: &ArgMatches) -> Result<Vec<Value>, String> {
        if self.kind == Kind::Flag {
            return Ok(if matches.get_flag(&self.name) { vec![Value::Flag] } else { Vec::new() });
        }
        let given: Vec<&OsString> = matches.get_many(&self.name).map_or_else(Vec::new, Iterator::collect);
        if given.is_empty() && self.required {
            return Err(if self.argument { format!("Missing argument '{}'", self.metavar) } else { format!("Missing option '{}'", self.long()) });
        }
        given.into_iter().map(|word| self.convert(word).map_err(|why| format!("Invalid value for '{}': {why}", self.long()))).collect()
    }

    fn convert(&self, word: &OsString) -> Result<Value, String> {
        let text = word.to_string_lossy();
        let value = match self.kind {
            Kind::Int => read_int(&text).map(Value::Int).ok_or("Input should be a valid integer, unable to parse string as an integer")?,
            Kind::Float => read_float(&text).map(Value::Float).ok_or("Input should be a valid number, unable to parse string as a number")?,
            Kind::Text | Kind::Flag => return Ok(Value::Text(word.clone())),
        };
        let number = match value {
            Value::Int(number) => number as f64,
            Value::Float(number) => number,
            Value::Flag | Value::Text(_) => return Ok(value),
        };
        for (limit, holds, word) in [(&self.min, f64::ge as fn(&f64, &f64) -> bool, "greater"), (&self.max, f64::le, "less")] {
            if let Some(limit) = limit {
                if !holds(&number, &limit.as_f64().unwrap_or(0.0)) {
                    return Err(format!("Input should be {word} than or equal to {limit}"));
                }
            }
        }
        Ok(value)
    }
}

impl Given {
    #[cfg(test)]
    pub fn nothing(command: &'static CommandText) -> Self {
        Self { command, values: HashMap::new() }
    }

    pub fn flag(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|values| !values.is_empty())
    }

    pub fn json(&self) -> bool {
        self.flag("json")
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.texts(name).pop()
    }

    /// Of an argument without which there would be none of this.
    pub fn required(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let words = self.values.get(name).into_iter().flatten();
        words.filter_map(|value| if let Value::Text(word) = value { Some(word.to_string_lossy().into_owned()) } else { None }).collect()
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.values.get(name)?.iter().find_map(|value| if let Value::Text(word) = value { Some(word.into()) } else { None })
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.values.get(name)?.iter().find_map(|value| if let Value::Int(number) = value { Some(*number) } else { None })
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        self.values.get(name)?.iter().find_map(|value| if let Value::Float(number) = value { Some(*number) } else { None })
    }

    /// Of KEY=VALUE, in the order given, the last of each key; None when none was given.
    pub fn pairs(&self, name: &str, option: &str) -> Result<Option<Vec<(String, String)>>, Failure> {
        let mut found: Vec<(String, String)> = Vec::new();
        for word in self.texts(name) {
            let (key, value) = word
                .split_once('=')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| self.bad(option, &format!("{} is not KEY=VALUE", quoted(&word))))?;
            match found.iter_mut().find(|(known, _)| known == key) {
                Some((_, old)) => value.clone_into(old),
                None => found.push((key.to_owned(), value.to_owned())),
            }
        }
        Ok(if found.is_empty() { None } else { Some(found) })
    }

    /// That each of these words is one of the wire's.
    pub fn among(&self, choices: &[&str], option: &str, words: &[String]) -> Result<(), Failure> {
        match words.iter().find(|word| !choices.contains(&word.as_str())) {
            Some(word) => Err(self.bad(option, &format!("{} is none of {}", quoted(word), choices.join(", ")))),
            None => Ok(()),
        }
    }

    /// The same of an option or argument by its own name; None: it was not given.
    pub fn one_of(&self, choices: &[&str], option: &str, name: &str) -> Result<Option<String>, Failure> {
        self.among(choices, option, &self.texts(name))?;
        Ok(self.text(name))
    }

    /// What was given for an option or argument cannot be.
    pub fn bad(&self, hint: &str, message: &str) -> Failure {
        usage(self.command, &if hint.is_empty() { format!("Invalid value: {message}") } else { format!("Invalid value for {hint}: {message}") })
    }
}

// --- what is wrong with it ----------------------------------------------------------------------------------------------------------------

fn usage(command: &CommandText, message: &str) -> Failure {
    Failure::usage(message, &command.words())
}

fn refusal(error: &clap::Error, command: &'static CommandText) -> Failure {
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) if text.starts_with("-=") => "-=".to_owned(), // behind a flag of one letter
        Some(ContextValue::String(text)) => text.split([' ', '=']).next().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument if !named.is_empty() => no_such_option(command, &named),
        // These two are the parser's own, which does not know which command it reads.
        ErrorKind::TooManyValues => Failure::usage(&format!("Option '{named}' does not take a value"), "everforge"),
        ErrorKind::InvalidValue | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues if !named.is_empty() => {
            Failure::usage(&format!("Option '{named}' requires an argument"), "everforge")
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            usage(command, first.strip_prefix("error: ").unwrap_or(first))
        }
    }
}

fn no_such_option(command: &CommandText, named: &str) -> Failure {
    let known = command.parameters.iter().flat_map(|one| &one.flags).map(String::as_str).chain(["--help"]).filter(|flag| flag.starts_with("--"));
    let mut possible = if named.starts_with("--") { near(named, known) } else { Vec::new() };
    possible.sort_unstable();
    let suggested = if possible.is_empty() { String::new() } else { format!(" (Possible options: {})", possible.join(", ")) };
    usage(command, &format!("No such option: {named}{suggested}"))
}

fn no_such_command(group: &'static CommandText, name: &str) -> Failure {
    let elsewhere = &grammar().server_only;
    if group.path.is_empty() && elsewhere.commands.iter().any(|one| one == name) {
        return usage(group, &say(&elsewhere.sentence, &[("command", &name)]));
    }
    let known = grammar().below(&group.path).filter_map(|one| one.path.last()).map(String::as_str);
    let meant: Vec<String> = near(name, known).into_iter().map(quoted).collect();
    let suggested = if meant.is_empty() { String::new() } else { format!(". Did you mean {}?", meant.join(", ")) };
    usage(group, &format!("No such command {}{suggested}", quoted(name)))
}

#[cfg(test)]
mod tests;
