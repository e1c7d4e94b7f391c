//! What a person at the prompt sees: output above the prompt or after it, one thing under the other, and a word about what is waited for.

use super::colours::{Kind, paint, paint_traceback};
use super::drawing::draw;
use super::escapes::Escapes;
use super::follower::cut_end;
use super::pictures::{Pictures, Way, picture_of, way};
use super::system::columns;
use super::transcript::{Lines, Piece, pieces};
use crate::output::{coloured, flush, print};
use crate::progress::{CLEAR_LINE, FRAMES};
use everforge::Entry;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

const FRAME: Duration = Duration::from_millis(100);
const HELD_BYTES_MAX: usize = 64 * 1024; // of an unfinished line while the prompt is there
const PASTES_ON: &str = "\x1b[?2004h";
const PASTES_OFF: &str = "\x1b[?2004l";

/// Shared by all who have something to say.
pub struct Screen(Mutex<Inner>);

struct Inner {
    lines: Lines,
    escapes: Escapes,
    is_coloured: bool,
    pictures: Pictures,
    write: Box<dyn FnMut(&str) + Send>,
    prompt: Option<Typing>,
    held: String, // for above the prompt, as soon as its line is whole
    spins: u64,   // how often something was waited for
    is_spinning: bool,
}

/// The prompt, while it is there.
#[derive(Default)]
struct Typing {
    text: String,
    cursor: usize,
    row: usize, // of the cursor, below the prompt's first
}

impl Screen {
    pub fn new(machine: &str) -> Arc<Self> {
        let way = way(|name| std::env::var(name).ok());
        let write = |text: &str| {
            print(text);
            flush();
        };
        Self::with(machine, way, coloured(), Box::new(write))
    }

    fn with(machine: &str, way: Way, is_coloured: bool, write: Box<dyn FnMut(&str) + Send>) -> Arc<Self> {
        let (lines, escapes, pictures) = (Lines::default(), Escapes::default(), Pictures::new(machine, way));
        Arc::new(Self(Mutex::new(Inner {
            lines,
            escapes,
            is_coloured,
            pictures,
            write,
            prompt: None,
            held: String::new(),
            spins: 0,
            is_spinning: false,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens in the machine.
    pub fn show(&self, entry: &Entry) {
        self.inner().show(entry);
    }

    /// Something of our own.
    pub fn say(&self, text: &str) {
        self.tell(Kind::Note, text);
    }

    pub fn tell(&self, kind: Kind, text: &str) {
        let mut inner = self.inner();
        let text = inner.text(&Piece::new(0, kind, text));
        inner.put(&text);
    }

    // --- what is waited for ----------------------------------------------------------------------------------------------------------------

    /// A moving line that is gone as soon as there is something to see.
    pub fn wait_for(self: &Arc<Self>, what: &'static str) {
        let mut inner = self.inner();
        inner.stop_waiting();
        if inner.prompt.is_some() {
            return;
        }
        inner.close_line();
        inner.is_spinning = true;
        inner.spins += 1;
        tokio::spawn(spin(self.clone(), inner.spins, what));
    }

    pub fn stop_waiting(&self) {
        self.inner().stop_waiting();
    }

    // --- the prompt ------------------------------------------------------------------------------------------------------------------------

    pub fn begin_prompt(&self) {
        let mut inner = self.inner();
        inner.stop_waiting();
        inner.close_line();
        inner.prompt = Some(Typing::default());
        (inner.write)(PASTES_ON);
        inner.draw();
    }

    /// What stands there now, and where its cursor is.
    pub fn draw_prompt(&self, text: &str, cursor: usize) {
        let mut inner = self.inner();
        if let Some(prompt) = &mut inner.prompt {
            (prompt.text, prompt.cursor) = (text.to_owned(), cursor);
            inner.draw();
        }
    }

    /// Whatever is written goes above the prompt: whole lines.
    pub fn print_above(&self, text: &str) {
        self.inner().above(text);
    }

    /// A screen with nothing but the prompt.
    pub fn clear(&self) {
        let mut inner = self.inner();
        (inner.write)("\x1b[H\x1b[2J");
        if let Some(prompt) = &mut inner.prompt {
            prompt.row = 0;
        }
        inner.draw();
    }

    /// With something behind what was typed.
    pub fn end_prompt(&self, mark: &str) {
        let mut inner = self.inner();
        let Some(prompt) = &mut inner.prompt else { return };
        prompt.cursor = prompt.text.len();
        inner.draw();
        inner.prompt = None;
        let rest = std::mem::take(&mut inner.held);
        (inner.write)(&format!("{mark}\n{PASTES_OFF}{rest}"));
    }
}

impl Inner {
    /// In one go: while somebody types, the prompt is drawn anew behind it.
    fn show(&mut self, entry: &Entry) {
        let can_have = matches!(entry.kind(), "displayed" | "ended");
        let picture = if can_have { picture_of(entry.get("data").and_then(Value::as_object)) } else { None };
        let mut text = String::new();
        if let Some(picture) = &picture {
            text.push_str(if std::mem::take(&mut self.lines.open) { "\n" } else { "" });
            text.push_str(&self.pictures.shown(picture, entry.position()));
        }
        if picture.is_none() || entry.kind() == "ended" {
            text.extend(pieces(entry).iter().map(|piece| self.text(piece)));
        }
        self.put(&text);
    }

    /// With what goes before and behind it.
    fn text(&mut self, piece: &Piece) -> String {
        let Some(kind) = piece.kind else { return String::new() };
        let (before, after) = self.lines.around(piece);
        let passed = self.escapes.pass_on(&format!("{}{after}", piece.text));
        let text = cut_end(&passed, after);
        let painted = match kind {
            _ if !self.is_coloured => text.to_owned(),
            Kind::Error => paint_traceback(text),
            _ => paint(kind, text),
        };
        format!("{before}{painted}{after}")
    }

    fn put(&mut self, text: &str) {
        if !text.is_empty() {
            self.stop_waiting();
            self.write(text);
        }
    }

    fn stop_waiting(&mut self) {
        if std::mem::take(&mut self.is_spinning) {
            (self.write)(CLEAR_LINE);
        }
    }

    fn close_line(&mut self) {
        if std::mem::take(&mut self.lines.open) {
            self.write("\n");
        }
    }

    fn write(&mut self, text: &str) {
        if self.prompt.is_none() {
            (self.write)(text);
            return;
        }
        self.held.push_str(text);
        if self.held.len() > HELD_BYTES_MAX && !self.held.contains('\n') {
            self.held.push('\n');
        }
        if let Some(end) = self.held.rfind('\n') {
            let rest = self.held.split_off(end + 1);
            let whole = std::mem::replace(&mut self.held, rest);
            self.above(&whole);
        }
    }

    fn above(&mut self, text: &str) {
        let erased = self.erased();
        (self.write)(&format!("{erased}{text}"));
        if let Some(prompt) = &mut self.prompt {
            prompt.row = 0;
        }
        self.draw();
    }

    /// What takes the prompt away, and leaves the cursor where it began.
    fn erased(&self) -> String {
        let row = self.prompt.as_ref().map_or(0, |prompt| prompt.row);
        let up = if row > 0 { format!("\x1b[{row}A") } else { String::new() };
        format!("{up}\r\x1b[J")
    }

    fn draw(&mut self) {
        let erased = self.erased();
        let Some(prompt) = &mut self.prompt else { return };
        let drawn = draw(&prompt.text, prompt.cursor, columns());
        let up = if drawn.below > 0 { format!("\x1b[{}A", drawn.below) } else { String::new() };
        let right = if drawn.column > 0 { format!("\x1b[{}C", drawn.column) } else { String::new() };
        prompt.row = drawn.row;
        (self.write)(&format!("{erased}{}{up}\r{right}", drawn.text));
    }
}

async fn spin(screen: Arc<Screen>, turn: u64, what: &'static str) {
    for frame in FRAMES.iter().cycle() {
        {
            let mut inner = screen.inner();
            if !inner.is_spinning || inner.spins != turn {
                return;
            }
            (inner.write)(&format!("{CLEAR_LINE}{frame} {what}"));
        }
        sleep(FRAME).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen() -> (Arc<Screen>, Arc<Mutex<String>>) {
        let seen = Arc::new(Mutex::new(String::new()));
        let written = seen.clone();
        let write = move |text: &str| written.lock().unwrap().push_str(text);
        (Screen::with("m", Way::None, false, Box::new(write)), seen)
    }

    fn taken(seen: &Mutex<String>) -> String {
        std::mem::take(&mut *seen.lock().unwrap())
    }

    fn partial(screen: &Screen, text: &str) {
        let mut inner = screen.inner();
        let text = inner.text(&Piece { partial: true, ..Piece::new(0, Kind::Stdout, text) });
        inner.put(&text);
    }

    #[test]
    fn what_comes_while_somebody_types_goes_above_the_prompt_line_by_line() {
        let (screen, seen) = screen();
        screen.begin_prompt();
        screen.draw_prompt("x = (1,\n2", 9);
        taken(&seen);
        partial(&screen, "half a ");
        assert_eq!(taken(&seen), "");
        screen.tell(Kind::Stdout, "line");
        assert_eq!(taken(&seen), "\x1b[1A\r\x1b[Jhalf a line\n\r\x1b[J>>> x = (1,\n... 2\r\x1b[5C");
        partial(&screen, "rest");
        screen.end_prompt("^C");
        assert!(taken(&seen).ends_with("... 2\r\x1b[5C^C\n\x1b[?2004lrest"));
    }

    #[test]
    fn an_unfinished_line_is_finished_before_the_prompt() {
        let (screen, seen) = screen();
        partial(&screen, "\r10%");
        screen.begin_prompt();
        assert_eq!(taken(&seen), "\r10%\n\x1b[?2004h\r\x1b[J>>> \r\x1b[4C");
    }

    #[test]
    fn no_line_without_an_end_is_held_for_ever() {
        let (screen, seen) = screen();
        screen.begin_prompt();
        taken(&seen);
        partial(&screen, &"x".repeat(HELD_BYTES_MAX + 1));
        assert!(taken(&seen).contains("xxx\n"));
        assert!(screen.inner().held.is_empty());
    }

    #[tokio::test]
    async fn what_is_waited_for_is_told_until_there_is_something_to_see() {
        let (screen, seen) = screen();
        screen.wait_for("waking...");
        tokio::task::yield_now().await;
        screen.say("done");
        tokio::task::yield_now().await;
        assert_eq!(taken(&seen), "\r\x1b[K⠋ waking...\r\x1b[Kdone\n");
    }
}
