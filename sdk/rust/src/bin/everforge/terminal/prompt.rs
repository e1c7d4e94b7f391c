//! The prompt: Python over several lines, history, completion from the live machine.

use super::blocks::{INDENT, ends, indentation};
use super::completion::{Completion, complete, in_columns};
use super::editing::Editing;
use super::history::History;
use super::keyboard::Keyboard;
use super::keystrokes::Key;
use super::recall::Recall;
use super::screen::Screen;
use super::system::columns;
use everforge::Machine;
use futures::future::BoxFuture;
use std::sync::Arc;

/// What came of a prompt.
pub enum Typed {
    Text(String),
    /// With Ctrl-C.
    ThrownAway,
    Left,
}

pub struct Prompt {
    pub keyboard: Keyboard,
    screen: Arc<Screen>,
    history: History,
    machine: Machine,
    editing: Editing,
    recall: Recall,
    completing: Option<BoxFuture<'static, Completion>>,
}

impl Prompt {
    pub fn new(keyboard: Keyboard, screen: Arc<Screen>, history: History, machine: Machine) -> Self {
        Self { keyboard, screen, history, machine, editing: Editing::default(), recall: Recall::default(), completing: None }
    }

    /// Whoever stops waiting for it must end it.
    pub async fn read(&mut self) -> Typed {
        self.editing.set("");
        self.recall.forget();
        self.completing = None;
        self.screen.begin_prompt();
        self.keyboard.begin();
        loop {
            tokio::select! {
                key = self.keyboard.next() => {
                    self.completing = None; // typed on meanwhile
                    if let Some(typed) = self.take(key) {
                        return typed;
                    }
                }
                found = completed(&mut self.completing) => {
                    self.completing = None;
                    self.offer(&found);
                }
            }
            self.screen.draw_prompt(self.editing.text(), self.editing.cursor());
        }
    }

    /// With something behind what was typed.
    pub fn end(&self, mark: &str) {
        self.screen.end_prompt(mark);
        self.keyboard.end();
    }

    // --- keys ------------------------------------------------------------------------------------------------------------------------------

    fn take(&mut self, key: Key) -> Option<Typed> {
        if !matches!(key, Key::Up | Key::Down | Key::Ctrl('p' | 'n')) {
            self.recall.forget();
        }
        match key {
            Key::Enter => return self.enter(),
            Key::Run => return Some(self.entered()),
            Key::Ctrl('c') => return Some(self.over("^C", Typed::ThrownAway)),
            Key::Gone => return Some(self.over("", Typed::Left)),
            Key::Ctrl('d') if self.editing.text().is_empty() => return Some(self.over("", Typed::Left)),
            Key::Tab => self.tab(),
            Key::Up | Key::Ctrl('p') => self.up(),
            Key::Down | Key::Ctrl('n') => self.down(),
            Key::Ctrl('l') => self.screen.clear(),
            Key::Text(text) | Key::Pasted(text) => self.editing.insert(&text),
            other => edit(&mut self.editing, &other),
        }
        None
    }

    fn over(&self, mark: &str, typed: Typed) -> Typed {
        self.screen.draw_prompt(self.editing.text(), self.editing.cursor());
        self.end(mark);
        typed
    }

    /// What is whole is run; what is not goes on.
    fn enter(&mut self) -> Option<Typed> {
        let text = self.editing.text();
        if self.editing.on_last_line() && (text.trim().is_empty() || ends(text)) {
            return Some(self.entered());
        }
        let line = format!("\n{}", indentation(self.editing.line_before()));
        self.editing.insert(&line);
        None
    }

    fn entered(&mut self) -> Typed {
        let text = self.editing.text().to_owned();
        if !text.trim().is_empty() {
            self.history.add(&text);
        }
        self.over("", Typed::Text(text))
    }

    fn up(&mut self) {
        if !self.editing.on_first_line() {
            self.editing.up();
        } else if let Some(found) = self.recall.older(self.history.entries(), self.editing.text(), self.editing.before()) {
            self.editing.set(found);
        }
    }

    fn down(&mut self) {
        if !self.editing.on_last_line() {
            self.editing.down();
        } else if let Some(found) = self.recall.newer(self.history.entries(), self.editing.text()) {
            self.editing.set(found);
        }
    }

    fn tab(&mut self) {
        let line = self.editing.line_before();
        if line.trim().is_empty() {
            let spaces = " ".repeat(INDENT - line.chars().count() % INDENT);
            self.editing.insert(&spaces);
        } else {
            self.completing = Some(Box::pin(complete(self.machine.clone(), self.editing.text().to_owned(), self.editing.cursor())));
        }
    }

    fn offer(&mut self, found: &Completion) {
        if let Some(text) = &found.insert {
            self.editing.replace(found.start, text);
        }
        if !found.choices.is_empty() {
            self.screen.draw_prompt(self.editing.text(), self.editing.cursor());
            self.screen.print_above(&in_columns(&found.choices, columns()));
        }
    }
}

impl Drop for Prompt {
    /// Also when the command is left in the middle of it.
    fn drop(&mut self) {
        self.screen.end_prompt("");
    }
}

async fn completed(completing: &mut Option<BoxFuture<'static, Completion>>) -> Completion {
    match completing {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Keys that only move, or take something away.
fn edit(editing: &mut Editing, key: &Key) {
    match key {
        Key::Left | Key::Ctrl('b') => editing.left(),
        Key::Right | Key::Ctrl('f') => editing.right(),
        Key::Home | Key::Ctrl('a') => editing.line_start(),
        Key::End | Key::Ctrl('e') => editing.line_end(),
        Key::WordLeft => editing.word_left(),
        Key::WordRight => editing.word_right(),
        Key::Backspace => editing.backspace(),
        Key::Delete | Key::Ctrl('d') => editing.delete(),
        Key::DeleteWord | Key::Ctrl('w') => editing.delete_word(),
        Key::Ctrl('u') => editing.delete_to_line_start(),
        Key::Ctrl('k') => editing.delete_to_line_end(),
        _ => {}
    }
}
