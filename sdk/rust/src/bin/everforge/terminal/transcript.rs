//! Entries of a tape as people read them: what was given, what was said, how it ended. No I/O.

use super::bundles::mime_bundle;
use super::colours::Kind;
use crate::python;
use everforge::api::{EndKind, Stream};
use everforge::results::failure_text;
use everforge::{Bundle, Entry};
use serde_json::Value;

/// Text that is written in one go. `cursor` is where to go on behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub cursor: i64,
    /// None for what is not shown.
    pub kind: Option<Kind>,
    pub text: String,
    /// Its newline has not come.
    pub partial: bool,
}

impl Piece {
    pub fn new(cursor: i64, kind: Kind, text: impl Into<String>) -> Self {
        Self { cursor, kind: Some(kind), text: text.into(), partial: false }
    }

    pub fn hidden(cursor: i64) -> Self {
        Self { cursor, kind: None, text: String::new(), partial: false }
    }
}

pub fn pieces(entry: &Entry) -> Vec<Piece> {
    let cursor = entry.cursor();
    let field = |name: &str| entry.get(name).map_or_else(|| "None".to_owned(), python::str);
    match entry.kind() {
        "output" => lines(entry),
        "accepted" => {
            let code = text(entry, "code").trim_end_matches('\n').replace('\n', "\n... ");
            vec![Piece::new(cursor, Kind::Code, format!(">>> {code}"))]
        }
        "displayed" => vec![Piece::new(cursor, Kind::Note, shown_as(entry.get("data").and_then(Value::as_object)))],
        "ended" => vec![end(entry)],
        "lost" => {
            let told = format!("[the machine is back where it was at position {}: {}]", field("since_position"), field("reason"));
            vec![Piece::new(cursor, Kind::Note, told)]
        }
        _ => vec![Piece::hidden(cursor)],
    }
}

fn lines(entry: &Entry) -> Vec<Piece> {
    let kind = |stream: &Stream| if *stream == Stream::Stderr { Kind::Stderr } else { Kind::Stdout };
    entry.lines().map(|line| Piece { partial: line.partial, ..Piece::new(line.position, kind(&line.stream), line.text) }).collect()
}

fn end(entry: &Entry) -> Piece {
    let end = EndKind::from(text(entry, "end").to_owned());
    let note = text(entry, "note");
    let remark = if note.is_empty() { String::new() } else { format!("[{note}]") };
    let (first, kind) = if end == EndKind::Value {
        let value = text(entry, "value");
        (value.to_owned(), if value.is_empty() { Kind::Note } else { Kind::Value })
    } else {
        let why = failure_text(&end, entry.get("error").and_then(Value::as_str), entry.get("traceback").and_then(Value::as_str));
        (if why.is_empty() { format!("[{end}]") } else { why }, Kind::Error)
    };
    let shown = [first, remark].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    if shown.is_empty() { Piece::hidden(entry.cursor()) } else { Piece::new(entry.cursor(), kind, shown) }
}

/// Of a field that has one.
fn text<'a>(entry: &'a Entry, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Of something displayed, where only text can be shown.
pub fn shown_as(data: Option<&Bundle>) -> String {
    let bundle = mime_bundle(data);
    match bundle.get("text/plain") {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        _ => {
            let mut kinds: Vec<&str> = bundle.keys().map(String::as_str).collect();
            kinds.sort_unstable();
            format!("[{}]", if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") })
        }
    }
}

/// Puts pieces one under the other: an unfinished line is finished before anything but output follows it.
#[derive(Default)]
pub struct Lines {
    /// The last line has no newline yet.
    pub open: bool,
}

impl Lines {
    /// What goes before the piece, and what behind it.
    pub fn around(&mut self, piece: &Piece) -> (&'static str, &'static str) {
        let Some(kind) = piece.kind else { return ("", "") };
        let before = if self.open && !matches!(kind, Kind::Stdout | Kind::Stderr) { "\n" } else { "" };
        if !piece.text.is_empty() || !piece.partial {
            self.open = piece.partial;
        }
        (before, if piece.partial { "" } else { "\n" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unfinished_line_is_finished_before_something_else_follows() {
        let mut lines = Lines::default();
        let partial = Piece { partial: true, ..Piece::new(1, Kind::Stdout, "10%") };
        assert_eq!(lines.around(&partial), ("", ""));
        assert_eq!(lines.around(&Piece::new(2, Kind::Stderr, "more")), ("", "\n"));
        assert_eq!(lines.around(&partial), ("", ""));
        assert_eq!(lines.around(&Piece::hidden(3)), ("", ""));
        assert_eq!(lines.around(&Piece::new(4, Kind::Value, "42")), ("\n", "\n"));
    }

    #[test]
    fn something_displayed_is_its_text_or_what_there_is_of_it() {
        let shown = |data: Value| shown_as(data.as_object());
        assert_eq!(shown(json!({"text": "<Figure>", "png": "x"})), "<Figure>");
        assert_eq!(shown(json!({"png": "x", "html": "y", "svg": null})), "[image/png, text/html]");
        assert_eq!(shown(json!({})), "[nothing]");
    }
}
