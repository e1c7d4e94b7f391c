//! Text that is being typed, over several lines, and where the cursor stands in it. No I/O.

use unicode_width::UnicodeWidthChar;

const JOINER: char = '\u{200d}'; // makes one letter of those on its two sides

#[derive(Default)]
pub struct Editing {
    text: String,
    cursor: usize, // in bytes
}

impl Editing {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// With the cursor at its end.
    pub fn set(&mut self, text: impl Into<String>) {
        self.text = text.into();
        self.cursor = self.text.len();
    }

    pub fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    fn after(&self) -> &str {
        &self.text[self.cursor..]
    }

    /// Of the line that the cursor is in, up to it.
    pub fn line_before(&self) -> &str {
        self.before().rsplit('\n').next().unwrap_or_default()
    }

    fn line_after(&self) -> &str {
        self.after().split('\n').next().unwrap_or_default()
    }

    pub fn on_first_line(&self) -> bool {
        !self.before().contains('\n')
    }

    pub fn on_last_line(&self) -> bool {
        !self.after().contains('\n')
    }

    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// What stands from `start` to the cursor gives way.
    pub fn replace(&mut self, start: usize, text: &str) {
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    // --- moving ----------------------------------------------------------------------------------------------------------------------------

    pub fn left(&mut self) {
        self.cursor = self.letter_start();
    }

    pub fn right(&mut self) {
        self.cursor = self.letter_end();
    }

    pub fn line_start(&mut self) {
        self.cursor -= self.line_before().len();
    }

    pub fn line_end(&mut self) {
        self.cursor += self.line_after().len();
    }

    /// One line up or down, as many letters in as before, or as far as that line goes.
    pub fn up(&mut self) {
        let letters = self.line_before().chars().count();
        self.line_start();
        self.cursor = self.cursor.saturating_sub(1);
        self.line_start();
        self.go_in(letters);
    }

    pub fn down(&mut self) {
        let letters = self.line_before().chars().count();
        self.line_end();
        self.cursor = (self.cursor + 1).min(self.text.len());
        self.go_in(letters);
    }

    fn go_in(&mut self, letters: usize) {
        self.cursor += self.line_after().chars().take(letters).map(char::len_utf8).sum::<usize>();
    }

    pub fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub fn word_right(&mut self) {
        let rest = self.after().trim_start_matches(|letter| !is_of_word(letter)).trim_start_matches(is_of_word);
        self.cursor = self.text.len() - rest.len();
    }

    fn word_start(&self) -> usize {
        self.before().trim_end_matches(|letter| !is_of_word(letter)).trim_end_matches(is_of_word).len()
    }

    /// Of the letter before the cursor, with all that is drawn over it.
    fn letter_start(&self) -> usize {
        let mut start = self.cursor;
        while let Some(letter) = self.text[..start].chars().next_back() {
            start -= letter.len_utf8();
            let is_joined = self.text[..start].ends_with(JOINER);
            if !is_drawn_over(letter) && !is_joined {
                break;
            }
        }
        start
    }

    fn letter_end(&self) -> usize {
        let mut end = self.cursor;
        while let Some(letter) = self.text[end..].chars().next() {
            if end > self.cursor && !is_drawn_over(letter) && !self.text[..end].ends_with(JOINER) {
                break;
            }
            end += letter.len_utf8();
        }
        end
    }

    // --- deleting --------------------------------------------------------------------------------------------------------------------------

    pub fn backspace(&mut self) {
        self.replace(self.letter_start(), "");
    }

    pub fn delete(&mut self) {
        self.text.replace_range(self.cursor..self.letter_end(), "");
    }

    pub fn delete_to_line_start(&mut self) {
        self.replace(self.cursor - self.line_before().len(), "");
    }

    /// Where it stands there already, the line behind it comes up.
    pub fn delete_to_line_end(&mut self) {
        let rest = match self.line_after().len() {
            0 => usize::from(!self.after().is_empty()),
            length => length,
        };
        self.text.replace_range(self.cursor..self.cursor + rest, "");
    }

    pub fn delete_word(&mut self) {
        self.replace(self.word_start(), "");
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn is_drawn_over(letter: char) -> bool {
    letter != '\n' && letter.width() == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` is the cursor.
    fn edited(text: &str, act: impl Fn(&mut Editing)) -> String {
        let (before, after) = text.split_once('|').unwrap();
        let mut editing = Editing { text: format!("{before}{after}"), cursor: before.len() };
        act(&mut editing);
        format!("{}|{}", editing.before(), editing.after())
    }

    #[test]
    fn the_cursor_moves_by_letters_as_people_see_them() {
        assert_eq!(edited("ae\u{301}|b", Editing::left), "a|e\u{301}b");
        assert_eq!(edited("a|e\u{301}b", Editing::right), "ae\u{301}|b");
        assert_eq!(edited("👩\u{200d}🚀|", Editing::backspace), "|");
        assert_eq!(edited("|👩\u{200d}🚀x", Editing::delete), "|x");
        assert_eq!(edited("|", Editing::left), "|");
        assert_eq!(edited("|", Editing::right), "|");
    }

    #[test]
    fn lines_are_walked_up_and_down() {
        assert_eq!(edited("éa\nlonge|r", Editing::up), "éa|\nlonger");
        assert_eq!(edited("é|a\nlonger", Editing::down), "éa\nl|onger");
        assert_eq!(edited("one\ntw|o", Editing::line_start), "one\n|two");
        assert_eq!(edited("o|ne\ntwo", Editing::line_end), "one|\ntwo");
    }

    #[test]
    fn words_and_lines_are_deleted() {
        assert_eq!(edited("x = foo_bar.|", Editing::delete_word), "x = |");
        assert_eq!(edited("one two|\nthree", Editing::delete_to_line_start), "|\nthree");
        assert_eq!(edited("o|ne\ntwo", Editing::delete_to_line_end), "o|\ntwo");
        assert_eq!(edited("o|\ntwo", Editing::delete_to_line_end), "o|two");
        assert_eq!(edited("a.b|c + d", Editing::word_left), "a.|bc + d");
        assert_eq!(edited("a| + dé", Editing::word_right), "a + dé|");
    }
}
