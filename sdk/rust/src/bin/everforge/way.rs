//! Which command is named, as far as the words can be followed: what stands before its name belongs to the groups on the way.

use crate::grammar::{CommandText, Kind, grammar};
use std::ffi::OsString;

const HELP: [&str; 2] = ["-h", "--help"];

/// From the first word to the command.
pub struct Way {
    pub command: &'static CommandText,
    /// All of them, without the two dashes behind which a group's options end.
    pub words: Vec<OsString>,
    pub asks_help: bool,
    pub asks_version: bool,
    /// Something that looks like an option of the group, and is none.
    pub unknown: Option<String>,
    /// There are two dashes, and nothing follows.
    pub ends_open: bool,
}

impl Way {
    pub fn follow(words: &[OsString]) -> Self {
        let command = &grammar().commands[0];
        let mut way = Self { command, words: Vec::new(), asks_help: false, asks_version: false, unknown: None, ends_open: false };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let is_open = std::mem::take(&mut way.ends_open);
            if way.command.group && word == "--" && !is_open {
                way.ends_open = true;
                continue;
            }
            way.words.push(word.clone());
            if !way.step(&word.to_string_lossy(), &mut rest) {
                break;
            }
        }
        way.words.extend(rest.cloned());
        way
    }

    /// Does the way go on behind this word?
    fn step<'a>(&mut self, word: &str, rest: &mut impl Iterator<Item = &'a OsString>) -> bool {
        if !self.command.group {
            return false;
        }
        if word.starts_with('-') && word != "-" {
            return self.pass_option(word, rest);
        }
        let below = grammar().below(&self.command.path).find(|one| one.path.last().is_some_and(|last| last == word));
        match below {
            Some(below) if !self.asks_help && !self.asks_version => self.command = below,
            _ => return false,
        }
        true
    }

    fn pass_option<'a>(&mut self, word: &str, rest: &mut impl Iterator<Item = &'a OsString>) -> bool {
        if HELP.contains(&word) {
            self.asks_help = true;
            return true;
        }
        let (name, has_value) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
        let found = self.command.parameters.iter().find(|one| one.flags.iter().any(|flag| flag == name));
        match found {
            Some(option) if option.kind != Kind::Flag && !has_value => self.words.extend(rest.next().cloned()),
            Some(option) => self.asks_version |= option.name == "version" && !has_value,
            None => {
                self.unknown = Some(name.to_owned());
                return false;
            }
        }
        true
    }
}
