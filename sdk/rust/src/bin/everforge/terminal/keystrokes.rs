//! Keys, read from the bytes that a terminal sends for them. No I/O.

const PASTE_END: &[u8] = b"\x1b[201~";
const PASTE_BYTES_MAX: usize = 16 * 1024 * 1024; // no server takes more in one request
const SEQUENCE_BYTES_MAX: usize = 64; // of one key; what is longer is none

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Text(String),
    Pasted(String),
    Enter,
    /// Alt-Enter: as it is.
    Run,
    Tab,
    Backspace,
    Delete,
    DeleteWord,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    /// By its letter.
    Ctrl(char),
    /// The terminal has gone.
    Gone,
}

/// What stands at the beginning of some bytes, by its length; None: more must come before that can be said.
type Found = Option<(Option<Key>, usize)>;

#[derive(Default)]
pub struct Keystrokes {
    rest: Vec<u8>,
    pasted: Option<Vec<u8>>,
}

impl Keystrokes {
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.rest.extend_from_slice(bytes);
        let mut keys = Vec::new();
        loop {
            if self.pasted.is_some() {
                match self.end_of_paste() {
                    Some(key) => keys.push(key),
                    None => return keys,
                }
            }
            let Some((key, length)) = first_key(&self.rest) else { return keys };
            let is_paste = self.rest.starts_with(b"\x1b[200~");
            self.rest.drain(..length);
            keys.extend(key);
            if is_paste {
                self.pasted = Some(Vec::new());
            }
        }
    }

    /// Does something stand there whose end may come yet?
    pub fn is_waiting(&self) -> bool {
        self.pasted.is_none() && !self.rest.is_empty()
    }

    /// It does not come.
    pub fn give_up(&mut self) {
        self.rest.clear();
    }

    fn end_of_paste(&mut self) -> Option<Key> {
        let pasted = self.pasted.as_mut()?;
        let end = self.rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        let safe = end.unwrap_or_else(|| self.rest.len().saturating_sub(PASTE_END.len() - 1)); // the rest may be the beginning of its end
        let room = PASTE_BYTES_MAX - pasted.len();
        pasted.extend(self.rest.drain(..safe).take(room));
        end?;
        self.rest.drain(..PASTE_END.len());
        let text = String::from_utf8_lossy(&self.pasted.take()?).replace("\r\n", "\n").replace('\r', "\n");
        Some(Key::Pasted(text.replace(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t'), "")))
    }
}

fn first_key(bytes: &[u8]) -> Found {
    let key = match *bytes.first()? {
        0x1b => return escaped(bytes),
        b'\r' | b'\n' => Some(Key::Enter),
        b'\t' => Some(Key::Tab),
        0x08 | 0x7f => Some(Key::Backspace),
        byte @ 0x01..=0x1a => Some(Key::Ctrl(char::from(byte - 1 + b'a'))),
        0x00 | 0x1c..=0x1f => None,
        _ => return text(bytes),
    };
    Some((key, 1))
}

/// Letters up to the next key that is none.
fn text(bytes: &[u8]) -> Found {
    let length = bytes.iter().position(|byte| *byte < 0x20 || *byte == 0x7f).unwrap_or(bytes.len());
    let (valid, wrong) = match std::str::from_utf8(&bytes[..length]) {
        Ok(_) => (length, 0),
        Err(error) => (error.valid_up_to(), error.error_len().unwrap_or(if length < bytes.len() { length - error.valid_up_to() } else { 0 })),
    };
    match std::str::from_utf8(&bytes[..valid]) {
        Ok("") | Err(_) if wrong > 0 => Some((None, wrong)),
        Ok("") | Err(_) => None, // half a letter
        Ok(letters) => Some((Some(Key::Text(letters.to_owned())), valid)),
    }
}

fn escaped(bytes: &[u8]) -> Found {
    let key = match *bytes.get(1)? {
        b'[' => return control_sequence(bytes),
        b'O' => return Some((cursor_key(*bytes.get(2)?), 3)),
        b'\r' | b'\n' => Some(Key::Run),
        b'b' => Some(Key::WordLeft),
        b'f' => Some(Key::WordRight),
        0x08 | 0x7f => Some(Key::DeleteWord),
        0x20..=0x7e => None,
        _ => return Some((None, 1)),
    };
    Some((key, 2))
}

fn control_sequence(bytes: &[u8]) -> Found {
    let length = bytes.iter().skip(2).position(|byte| !matches!(byte, 0x20..=0x3f)).map(|at| at + 2);
    let Some(end) = length else { return if bytes.len() > SEQUENCE_BYTES_MAX { Some((None, 2)) } else { None } };
    let key = match (&bytes[2..end], bytes[end]) {
        (b"", last) => cursor_key(last),
        (b"3", b'~') => Some(Key::Delete),
        (b"1" | b"7", b'~') => Some(Key::Home),
        (b"4" | b"8", b'~') => Some(Key::End),
        (b"1;3" | b"1;5", b'D') => Some(Key::WordLeft),
        (b"1;3" | b"1;5", b'C') => Some(Key::WordRight),
        _ => None,
    };
    Some((key, end + 1))
}

fn cursor_key(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Keystrokes::default().take(bytes)
    }

    fn typed(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn keys_that_come_together_are_told_apart() {
        assert_eq!(keys(b"hang()\r\x03"), [typed("hang()"), Key::Enter, Key::Ctrl('c')]);
        assert_eq!(
            keys("é界\x7f\t\x1b[A\x1bOB\x1b[1;5C\x1b\r".as_bytes()),
            [typed("é界"), Key::Backspace, Key::Tab, Key::Up, Key::Down, Key::WordRight, Key::Run]
        );
        assert_eq!(
            keys(b"\x1b[3~\x1b[1~\x1b[F\x1bb\x1bf\x1b\x7f"),
            [Key::Delete, Key::Home, Key::End, Key::WordLeft, Key::WordRight, Key::DeleteWord]
        );
    }

    #[test]
    fn what_comes_in_parts_is_put_together() {
        let mut strokes = Keystrokes::default();
        assert_eq!(strokes.take(b"\x1b["), []);
        assert!(strokes.is_waiting());
        assert_eq!(strokes.take(b"Aa\xc3"), [Key::Up, typed("a")]);
        assert_eq!(strokes.take(b"\xa9"), [typed("é")]);
        assert!(!strokes.is_waiting());
        assert_eq!(strokes.take(b"\x1b"), []);
        strokes.give_up();
        assert_eq!(strokes.take(b"[A"), [typed("[A")]);
    }

    #[test]
    fn what_is_no_key_is_left_out() {
        assert_eq!(keys(b"a\x1b[12;40Rb\x1b[?1;2c\x1bz\x00\xff\xfec"), [typed("a"), typed("b"), typed("c")]);
        assert_eq!(keys(b"\xc3\rx"), [Key::Enter, typed("x")]);
    }

    #[test]
    fn what_is_pasted_is_text_whatever_it_looks_like() {
        let mut strokes = Keystrokes::default();
        assert_eq!(strokes.take(b"\x1b[200~a\r\n\tb\x03\x1b[31mc\x1b[2"), []);
        assert!(!strokes.is_waiting());
        assert_eq!(strokes.take(b"01~\r"), [Key::Pasted("a\n\tb[31mc".to_owned()), Key::Enter]);
    }
}
