//! Where text lands on a terminal of a given width. No I/O.

use unicode_width::UnicodeWidthStr;

pub const FIRST: &str = ">>> ";
pub const MORE: &str = "... ";

/// The prompt with what was typed at it.
#[derive(Debug, PartialEq, Eq)]
pub struct Drawn {
    /// To be written from the beginning of a row; the cursor is then at its end.
    pub text: String,
    /// Rows between the first and the one that the cursor belongs in, and its column.
    pub row: usize,
    pub column: usize,
    /// Rows below the cursor's.
    pub below: usize,
}

/// `cursor` in bytes.
pub fn draw(text: &str, cursor: usize, width: usize) -> Drawn {
    let width = width.max(1);
    let line = |(i, line): (usize, &str)| format!("{}{}", if i == 0 { FIRST } else { MORE }, visible(line));
    let shown: Vec<String> = text.split('\n').enumerate().map(line).collect();
    let before: Vec<String> = text[..cursor].split('\n').enumerate().map(line).collect();
    let rows = |lines: &[String]| lines.iter().map(|line| line.width() / width + 1).sum::<usize>(); // a full row has the cursor in the next
    let place = before.last().map_or(0, |line| line.width());
    let row = rows(&before[..before.len() - 1]) + place / width;
    let below = rows(&shown) - 1 - row;
    let filled: Vec<String> = shown.into_iter().map(|line| if line.width() % width == 0 { line + " \x08" } else { line }).collect(); // else it would wait at the edge
    Drawn { text: filled.join("\n"), row, column: place % width, below }
}

/// What was typed or pasted is shown, and not obeyed.
fn visible(line: &str) -> String {
    line.replace('\t', "    ").replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_under_one_another_with_the_cursor_where_it_belongs() {
        let drawn = draw("for i in x:\n    y", 3, 80);
        assert_eq!(drawn, Drawn { text: ">>> for i in x:\n...     y".to_owned(), row: 0, column: 7, below: 1 });
        let end = draw("a\n界", "a\n界".len(), 80);
        assert_eq!((end.row, end.column, end.below), (1, 6, 0));
    }

    #[test]
    fn over_the_edge_of_the_terminal() {
        let full = draw("123456", 6, 10);
        assert_eq!((full.text.as_str(), full.row, full.column, full.below), (">>> 123456 \x08", 1, 0, 0));
        let longer = draw("12345678\nx", 0, 10);
        assert_eq!((longer.row, longer.column, longer.below), (0, 4, 2));
    }

    #[test]
    fn what_was_typed_is_not_obeyed() {
        assert_eq!(draw("a\x1b[2J\tb", 0, 80).text, ">>> a?[2J    b");
    }
}
