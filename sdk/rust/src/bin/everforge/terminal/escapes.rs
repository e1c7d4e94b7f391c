//! What of a machine's output may reach a terminal. Colours and small movements may; what makes a terminal answer, set a title or fill the clipboard
//! may not: the answer would be typed at the prompt as if by its user.

const HELD_CHARACTERS_MAX: usize = 4096; // of a sequence whose end has not come; what is longer is none
const KEPT: &[u8] = b"mABCDEFGJK"; // colours, small movements, and clearing what one stands on

/// One for all that reaches a terminal, since a sequence begun in one stream could be finished in another.
#[derive(Default)]
pub struct Escapes {
    held: String,
}

/// What begins with an escape, by its length in bytes.
enum Sequence {
    Kept(usize),
    Dropped(usize),
    Unfinished,
}

impl Escapes {
    pub fn pass_on(&mut self, text: &str) -> String {
        if self.held.is_empty() && !text.contains(is_judged) {
            return text.to_owned();
        }
        let whole = std::mem::take(&mut self.held) + text;
        let mut passed = String::with_capacity(whole.len());
        let mut rest = whole.as_str();
        while let Some(at) = rest.find(is_judged) {
            passed.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = match sequence(rest) {
                Sequence::Kept(length) => {
                    passed.push_str(&rest[..length]);
                    &rest[length..]
                }
                Sequence::Dropped(length) => &rest[length..],
                Sequence::Unfinished => {
                    if rest.chars().count() <= HELD_CHARACTERS_MAX {
                        rest.clone_into(&mut self.held);
                    }
                    ""
                }
            };
        }
        passed + rest
    }
}

/// All controls but \a \b \t \n \r.
fn is_judged(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\x07'..='\n' | '\r')
}

/// Of text that begins with something that is judged.
fn sequence(text: &str) -> Sequence {
    let bytes = text.as_bytes();
    if bytes[0] != 0x1b {
        return Sequence::Dropped(text.chars().next().map_or(0, char::len_utf8));
    }
    match bytes.get(1) {
        None => Sequence::Unfinished,
        Some(b'[') => control_sequence(bytes),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string(bytes),
        Some(_) => {
            let end = after(bytes, 1, 0x20..=0x2f);
            match bytes.get(end) {
                None => Sequence::Unfinished,
                Some(0x30..=0x7e) => Sequence::Dropped(end + 1),
                Some(_) => Sequence::Dropped(1), // a lone escape
            }
        }
    }
}

/// Questions and modes; and those that are harmless.
fn control_sequence(bytes: &[u8]) -> Sequence {
    let parameters = after(bytes, 2, 0x30..=0x3f);
    let end = after(bytes, parameters, 0x20..=0x2f);
    match bytes.get(end) {
        None => Sequence::Unfinished,
        Some(last @ 0x40..=0x7e) => {
            let is_plain = end == parameters && bytes[2..end].iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
            if is_plain && KEPT.contains(last) { Sequence::Kept(end + 1) } else { Sequence::Dropped(end + 1) }
        }
        Some(_) => Sequence::Dropped(2),
    }
}

/// Titles, clipboards, programs for the terminal.
fn string(bytes: &[u8]) -> Sequence {
    let Some(end) = bytes.iter().skip(2).position(|byte| matches!(byte, b'\n' | 0x07 | 0x1b)).map(|at| at + 2) else { return Sequence::Unfinished };
    match (bytes[end], bytes.get(end + 1)) {
        (0x07, _) => Sequence::Dropped(end + 1),
        (0x1b, Some(b'\\')) => Sequence::Dropped(end + 2),
        (0x1b, None) => Sequence::Unfinished,
        _ => Sequence::Dropped(2),
    }
}

/// The first place from `start` on that is not one of these.
fn after(bytes: &[u8], start: usize, these: std::ops::RangeInclusive<u8>) -> usize {
    start + bytes[start.min(bytes.len())..].iter().take_while(|byte| these.contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str) -> String {
        Escapes::default().pass_on(text)
    }

    #[test]
    fn colours_and_small_movements_pass() {
        for text in ["plain é界\n", "\x1b[31mred\x1b[0m", "\r10%\x1b[K", "a\x08b\x07\t", "\x1b[38:5:1mx"] {
            assert_eq!(passed(text), text);
        }
    }

    #[test]
    fn what_a_terminal_would_answer_or_obey_does_not() {
        for text in [
            "\x1b[6n",
            "\x1b[?1049h",
            "\x1b[>c",
            "\x1b]0;title\x07",
            "\x1b]52;c;aGk=\x1b\\",
            "\x1bP+q544e\x1b\\",
            "\x1b(0",
            "\x1bc",
            "\x1b[2 q",
            "\x1b[?2J",
            "\u{9b}6n",
            "\x00\x0b\x7f\u{85}",
        ] {
            let rest = if text == "\u{9b}6n" { "6n" } else { "" };
            assert_eq!(passed(&format!("a{text}b")), format!("a{rest}b"), "{text:?}");
        }
    }

    #[test]
    fn a_sequence_is_judged_when_its_end_has_come() {
        let mut escapes = Escapes::default();
        assert_eq!(escapes.pass_on("a\x1b["), "a");
        assert_eq!(escapes.pass_on("6nb\x1b"), "b");
        assert_eq!(escapes.pass_on("[1mc"), "\x1b[1mc");
        assert_eq!(escapes.pass_on("\x1b]0;ti"), "");
        assert_eq!(escapes.pass_on("tle\x1b"), "");
        assert_eq!(escapes.pass_on("\\d"), "d");
    }

    #[test]
    fn what_has_no_end_in_sight_is_none() {
        let mut escapes = Escapes::default();
        assert_eq!(escapes.pass_on(&format!("\x1b]0;{}", "x".repeat(HELD_CHARACTERS_MAX))), "");
        assert_eq!(escapes.pass_on("after"), "after");
        assert_eq!(passed("\x1b]0;title\nnext"), "0;title\nnext");
        assert_eq!(passed("\x1b[\nnext"), "\nnext");
    }
}
