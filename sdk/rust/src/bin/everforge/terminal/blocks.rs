//! Where a piece of Python ends: what Enter at the prompt asks, and what cuts a stream of lines into instructions. No I/O.
//!
//! There is no Python here to ask. What is open is found by reading strings, brackets and the ends of lines; whether it is right, the machine says.

use super::reading::{begins_with, read};
use super::shape::{Shape, shape};

pub const INDENT: usize = 4;
const GO_ON: [&str; 5] = ["elif", "else", "except", "finally", "case"];
const LEAVE: [&str; 5] = ["return", "raise", "break", "continue", "pass"];
const COMPOUND: [&str; 8] = ["def", "class", "for", "while", "if", "with", "try", "async"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Incomplete,
    /// It could be run, and could go on, as a loop whose body may have more lines.
    Open,
    Complete,
}

pub fn state(code: &str) -> State {
    if code.starts_with("%%") {
        return State::Open; // a cell of IPython's: whatever stands in it
    }
    if code.starts_with(['%', '!', '?']) || code.trim_end().ends_with('?') {
        return State::Complete;
    }
    let found = read(code);
    let shape = if found.wrong { Shape::Wrong } else { shape(&found.lines) };
    match found.lines.iter().rfind(|line| line.indent == 0) {
        _ if found.unclosed || (shape == Shape::Unfinished) => State::Incomplete,
        _ if shape == Shape::Wrong => state_of_wrong(code),
        Some(line) if is_compound(&line.text) => State::Open,
        _ => State::Complete,
    }
}

/// Wrong, or of a younger Python than we know: the machine's own says which. A block that was begun may be finished before.
fn state_of_wrong(code: &str) -> State {
    let last = code.split('\n').rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    match last {
        _ if last.trim_end().ends_with([':', '\\']) => State::Incomplete,
        _ if last.starts_with(char::is_whitespace) => State::Open,
        _ => State::Complete,
    }
}

/// Of the last line that is not indented: does it begin a block, or is it a part of one?
fn is_compound(line: &str) -> bool {
    line.starts_with('@')
        || (line.contains(':') && (begins_with(line, &COMPOUND) || begins_with(line, &GO_ON[..4])))
        || (line.ends_with(':') && begins_with(line, &["match"]))
}

/// Does Enter at the end of this run it? A block ends with an empty line.
pub fn ends(code: &str) -> bool {
    match state(code) {
        State::Complete => true,
        State::Incomplete => false,
        State::Open => {
            let last = code.rsplit('\n').next().unwrap_or_default();
            last.trim().is_empty() || (!code.contains('\n') && !code.starts_with("%%"))
        }
    }
}

/// Of the line behind this one.
pub fn indentation(line: &str) -> String {
    let depth = line.len() - line.trim_start_matches(' ').len();
    let words = line.split('#').next().unwrap_or_default().trim();
    let depth = if words.ends_with(':') {
        depth + INDENT
    } else if begins_with(words, &LEAVE) {
        depth.saturating_sub(INDENT)
    } else {
        depth
    };
    " ".repeat(depth)
}

/// Cuts lines into instructions, each as soon as it cannot go on any more.
#[derive(Default)]
pub struct Blocks {
    code: String,
}

impl Blocks {
    /// A line with its end. What of it is to be run now: one block, or two.
    pub fn take(&mut self, line: &str) -> Vec<String> {
        let mut found = Vec::new();
        let fresh = !line.trim().is_empty() && !line.starts_with('#') && !goes_on(line);
        if fresh && says_something(&self.code) && !self.code.starts_with("%%") && state(&self.code) == State::Open {
            found.push(std::mem::take(&mut self.code));
        }
        if !self.code.is_empty() || !line.trim().is_empty() {
            self.code.push_str(line);
        }
        if says_something(&self.code) && state(&self.code) == State::Complete {
            found.push(std::mem::take(&mut self.code));
        }
        found
    }

    /// Nothing more comes.
    pub fn rest(self) -> Option<String> {
        Some(self.code).filter(|code| says_something(code))
    }
}

fn goes_on(line: &str) -> bool {
    line.starts_with([' ', '\t', ')', ']', '}']) || begins_with(line, &GO_ON)
}

fn says_something(code: &str) -> bool {
    code.split('\n').any(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_goes_on() {
        for code in ["for i in range(3):", "x = (1,", "'''text", "a = 1 + \\", "try:\n    pass", "@decorated", "def f(\n    a,", "f'''{x}"] {
            assert_eq!(state(code), State::Incomplete, "{code}");
        }
    }

    #[test]
    fn a_block_may_have_more_lines() {
        for code in [
            "for i in range(3):\n    print(i)",
            "if a: b",
            "def f(): pass",
            "class A:\n    x = 1\n",
            "try:\n  a\nexcept E:\n  b",
            "%%time\nx",
            "with a: pass",
            "match x:\n  case 1: pass",
        ] {
            assert_eq!(state(code), State::Open, "{code}");
        }
    }

    #[test]
    fn the_rest_is_complete() {
        for code in [
            "1 + 1",
            "",
            "# a remark",
            "x = {1: 2}",
            "print('a:')",
            "%help",
            "!ls",
            "len?",
            "'never ended",
            ")",
            "match = 3",
            "a[1:",
            "lambda: 3",
            "x: int = 3",
        ] {
            let expected = if code == "a[1:" { State::Incomplete } else { State::Complete };
            assert_eq!(state(code), expected, "{code}");
        }
    }

    #[test]
    fn enter_runs_what_is_whole_and_a_block_with_an_empty_line() {
        assert!(ends("1 + 1"));
        assert!(ends("if a: b"));
        assert!(!ends("for i in x:\n    print(i)"));
        assert!(ends("for i in x:\n    print(i)\n"));
        assert!(!ends("x = (1,\n"));
    }

    #[test]
    fn it_means_the_same_in_all_languages() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../contract/blocks.json")).unwrap();
        let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
        for vector in vectors.as_array().unwrap() {
            let code = vector["text"].as_str().unwrap();
            assert_eq!(ends(code), vector["complete"].as_bool().unwrap(), "{code:?}");
        }
    }

    #[test]
    fn the_next_line_is_indented_as_the_code_wants_it() {
        assert_eq!(indentation("for i in x:  # each"), "    ");
        assert_eq!(indentation("    return 1"), "");
        assert_eq!(indentation("    x = 1"), "    ");
        assert_eq!(indentation("returned = 1"), "");
    }

    #[test]
    fn lines_are_cut_into_instructions() {
        let mut blocks = Blocks::default();
        let mut found: Vec<String> = Vec::new();
        for line in [
            "# first\n",
            "x = 1\n",
            "\n",
            "for i in x:\n",
            "    a\n",
            "\n",
            "    b\n",
            "else:\n",
            "    c\n",
            "y = (\n",
            "  2\n",
            ")\n",
            "if z:\n",
            "    w\n",
        ] {
            found.extend(blocks.take(line));
        }
        found.extend(blocks.rest());
        assert_eq!(found, ["# first\nx = 1\n", "for i in x:\n    a\n\n    b\nelse:\n    c\n", "y = (\n  2\n)\n", "if z:\n    w\n"]);
    }
}
