//! Python's logical lines: over brackets, long strings and backslashes, without what is in strings and remarks. No I/O.

const TAB: usize = 8;

#[derive(Debug, Default)]
pub struct Reading {
    /// A string of three quotes, a bracket or a line with a backslash at its end is still open.
    pub unclosed: bool,
    /// It cannot become right any more: a string without an end, a bracket that closes nothing.
    pub wrong: bool,
    pub lines: Vec<Line>,
}

#[derive(Debug, Default)]
pub struct Line {
    pub indent: usize,
    /// Without remarks, and without what is in its strings.
    pub text: String,
}

impl Line {
    /// With one of these words?
    pub fn begins_with(&self, words: &[&str]) -> bool {
        begins_with(&self.text, words)
    }
}

pub fn begins_with(text: &str, words: &[&str]) -> bool {
    let rest = text.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
    words.contains(&&text[..text.len() - rest.len()])
}

pub fn read(code: &str) -> Reading {
    let mut reader = Reader { rest: code.chars().collect(), at: 0, found: Reading::default(), brackets: Vec::new(), text: String::new(), indent: 0 };
    reader.read();
    reader.found
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    found: Reading,
    brackets: Vec<char>,
    text: String, // of the line that is being read
    indent: usize,
}

impl Reader {
    fn read(&mut self) {
        self.measure();
        while let Some(letter) = self.next() {
            match letter {
                '#' => self.skip_line(),
                '\'' | '"' => self.string(letter),
                '(' | '[' | '{' => self.open(letter),
                ')' | ']' | '}' => self.close(letter),
                '\\' if self.peek() == Some('\n') => self.join(),
                '\\' if self.peek().is_none() => self.found.unclosed = true,
                '\\' => self.found.wrong = true,
                '\n' if self.brackets.is_empty() => self.end_line(),
                other => self.text.push(other),
            }
            if self.found.wrong || self.found.unclosed {
                break;
            }
        }
        self.end_line();
        self.found.unclosed |= !self.found.wrong && !self.brackets.is_empty();
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|letter| letter != '\n') {
            self.at += 1;
        }
    }

    fn join(&mut self) {
        self.at += 1;
        self.text.push(' ');
        self.found.unclosed = self.peek().is_none(); // the line that it is joined with has not come
    }

    fn open(&mut self, letter: char) {
        self.brackets.push(match letter {
            '(' => ')',
            '[' => ']',
            _ => '}',
        });
        self.text.push(letter);
    }

    fn close(&mut self, letter: char) {
        self.found.wrong = self.brackets.pop() != Some(letter);
        self.text.push(letter);
    }

    /// Behind its first quote. Braces of f-strings are not looked into: a quote in them is the same as elsewhere, but for the newest Pythons.
    fn string(&mut self, quote: char) {
        let long = self.rest[self.at..].starts_with(&[quote, quote]);
        if long {
            self.at += 2;
        }
        self.text.push('"');
        while let Some(letter) = self.next() {
            match letter {
                '\\' if self.next().is_none() => break,
                '\n' if !long => {
                    self.found.wrong = true;
                    return;
                }
                _ if letter == quote && !long => return self.text.push('"'),
                _ if letter == quote && self.rest[self.at..].starts_with(&[quote, quote]) => {
                    self.at += 2;
                    return self.text.push('"');
                }
                _ => {}
            }
        }
        // The text ended before the string did. One of single quotes goes on behind a backslash alone.
        let goes_on = long || self.rest.last() == Some(&'\\') || (self.rest.ends_with(&['\\', '\n']));
        (self.found.unclosed, self.found.wrong) = (goes_on, !goes_on);
    }

    fn end_line(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if !text.is_empty() {
            self.found.lines.push(Line { indent: self.indent, text: text.to_owned() });
        }
        self.measure();
    }

    /// Of the line that begins here.
    fn measure(&mut self) {
        self.indent = 0;
        while let Some(letter) = self.peek() {
            self.indent = match letter {
                ' ' => self.indent + 1,
                '\t' => self.indent + TAB - self.indent % TAB,
                '\x0c' => 0,
                _ => return,
            };
            self.at += 1;
        }
    }
}
