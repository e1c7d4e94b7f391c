//! Reads a tape and prints it: once, or for as long as there is a machine.

use super::colours::{Kind, paint};
use super::escapes::Escapes;
use super::scribe::Scribe;
use super::scribeprocess::Written;
use super::transcript::{Lines, Piece, pieces};
use crate::connection::{connected, suggesting};
use crate::failures::Done;
use crate::output::{coloured, flush, on_terminal, print, say};
use crate::python;
use everforge::{Entry, Everforge, Machine};
use futures::StreamExt;
use std::path::{Path, PathBuf};

const START: i64 = -1; // before the first entry

/// What of it.
#[allow(clippy::struct_excessive_bools)] // so many flags does the command have
pub struct Wanted {
    pub follow: bool,
    pub after: Option<i64>,
    pub instruction: Option<i64>,
    pub output: bool,
    pub positions: bool,
    pub json: bool,
}

pub struct Follower {
    name: String,
    wanted: Wanted,
    cursor: Option<i64>,
    lines: Lines,
    escapes: Option<Escapes>,
    is_coloured: bool,
    scribe: Option<Scribe>,
}

impl Follower {
    pub fn new(name: String, wanted: Wanted) -> Self {
        let escapes = on_terminal().then(Escapes::default);
        Self { name, cursor: wanted.after, wanted, lines: Lines::default(), escapes, is_coloured: coloured(), scribe: None }
    }

    pub async fn run(mut self, cursor_file: Option<PathBuf>) -> Done {
        let machine = connected()?.machine(&self.name)?;
        let (created, first) = suggesting(Some(&self.name), self.look(&machine)).await?;
        if let Some(path) = cursor_file {
            let identity = format!("{}, created {created}", self.name);
            self.remember(&path, &identity).await?;
        }
        self.cursor.get_or_insert(first);
        let done = self.follow().await;
        if let Some(scribe) = self.scribe {
            scribe.close().await;
        }
        done
    }

    /// When it was made, which tells it from another of its name; and behind what to begin.
    async fn look(&self, machine: &Machine) -> Done<(String, i64)> {
        let created = machine.info().await?.created_at;
        let first = match self.wanted.instruction {
            None => START,
            Some(number) => machine.instruction(number)?.info().await?.position - 1,
        };
        Ok((created, first))
    }

    async fn remember(&mut self, path: &Path, identity: &str) -> Done {
        flush();
        let scribe = Scribe::start(path, identity).await?;
        if scribe.cursor.is_some() {
            (self.cursor, self.lines.open) = (scribe.cursor, scribe.open);
        }
        self.scribe = Some(scribe);
        Ok(())
    }

    /// Until all of it was shown; or the machine was deleted.
    async fn follow(&mut self) -> Done {
        let machine = Everforge::builder().on_connection(tell).build()?.machine(&self.name)?;
        loop {
            let mut tape = machine.tape().after(self.cursor.unwrap_or(START)).follow(self.wanted.follow);
            loop {
                match tape.next().await {
                    None => return Ok(()),
                    Some(Ok(entry)) => {
                        if self.show(&entry).await? {
                            return Ok(());
                        }
                        self.cursor = Some(entry.cursor());
                    }
                    Some(Err(error)) if self.wanted.follow && super::is_away(&error) => break,
                    Some(Err(error)) => return Err(error.into()),
                }
            }
        }
    }

    /// Is this the end?
    async fn show(&mut self, entry: &Entry) -> Done<bool> {
        let only = self.wanted.instruction;
        let ours = only.is_none() || entry.instruction() == only;
        let shown: Vec<Written> = if !ours {
            vec![self.written(&Piece::hidden(entry.cursor()))]
        } else if self.wanted.json {
            vec![Written { cursor: entry.cursor(), open: false, text: python::json_line(entry) + "\n" }]
        } else {
            pieces(entry).iter().map(|piece| self.written(piece)).collect()
        };
        self.write(&shown).await?;
        Ok(ours && only.is_some() && entry.kind() == "ended")
    }

    fn written(&mut self, piece: &Piece) -> Written {
        let is_wanted = |kind: &Kind| !self.wanted.output || matches!(kind, Kind::Stdout | Kind::Stderr);
        let text = piece.kind.filter(is_wanted).map_or_else(String::new, |kind| self.text(piece, kind));
        Written { cursor: piece.cursor, open: self.lines.open, text }
    }

    fn text(&mut self, piece: &Piece, kind: Kind) -> String {
        let (before, after, text) = if self.wanted.positions {
            let mark = format!("{}{} ", piece.cursor, if piece.partial { "+" } else { "" });
            ("", "\n", format!("{mark}{}", piece.text.replace('\n', &format!("\n{mark}"))))
        } else {
            let (before, after) = self.lines.around(piece);
            (before, after, piece.text.clone())
        };
        let text = match &mut self.escapes {
            Some(escapes) => cut_end(&escapes.pass_on(&format!("{text}{after}")), after).to_owned(),
            None => text,
        };
        format!("{before}{}{after}", if self.is_coloured { paint(kind, &text) } else { text })
    }

    async fn write(&mut self, lines: &[Written]) -> Done {
        if let Some(scribe) = &mut self.scribe {
            return scribe.write(lines).await;
        }
        for line in lines {
            print(&line.text);
        }
        if self.wanted.follow {
            flush();
        }
        Ok(())
    }
}

/// Without what it ends with, where it does.
pub fn cut_end<'a>(text: &'a str, end: &str) -> &'a str {
    text.strip_suffix(end).unwrap_or(text)
}

fn tell(connected: bool) {
    say(if connected { "everforge: connected again" } else { "everforge: connection lost, reconnecting..." });
}
