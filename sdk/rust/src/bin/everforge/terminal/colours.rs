//! The few colours that there are.

const RESET: &str = "\x1b[0m";

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Code,
    Stdout,
    Stderr,
    Value,
    Error,
    Note,
}

impl Kind {
    fn colour(self) -> &'static str {
        match self {
            Self::Stderr | Self::Error => "\x1b[31m",
            Self::Note => "\x1b[2m",
            Self::Code => "\x1b[36m",
            Self::Value | Self::Stdout => "",
        }
    }
}

/// Whatever colours the text itself has, they end with it.
pub fn paint(kind: Kind, text: &str) -> String {
    let colour = kind.colour();
    if text.is_empty() || (colour.is_empty() && !text.contains('\x1b')) { text.to_owned() } else { format!("{colour}{text}{RESET}") }
}

/// Where in one colour, what in another.
pub fn paint_traceback(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let tells = |line: &&str| !line.starts_with(char::is_whitespace) && !line.is_empty() && !line.starts_with('[');
    let last = lines.iter().rposition(tells).unwrap_or(0);
    let kind = |i: usize, line: &str| match line {
        _ if line.starts_with("  File ") => Kind::Code,
        _ if i >= last => Kind::Error,
        _ => Kind::Value,
    };
    lines.iter().enumerate().map(|(i, line)| paint(kind(i, line), line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_the_text_itself_end_with_it() {
        assert_eq!(paint(Kind::Stdout, "plain"), "plain");
        assert_eq!(paint(Kind::Stdout, "\x1b[1mbold"), "\x1b[1mbold\x1b[0m");
        assert_eq!(paint(Kind::Note, ""), "");
    }

    #[test]
    fn of_a_traceback_the_places_and_the_reason_stand_out() {
        let painted = paint_traceback("Traceback:\n  File \"x\", line 1\n    code\nValueError: no\n[a note]");
        assert_eq!(painted, "Traceback:\n\x1b[36m  File \"x\", line 1\x1b[0m\n    code\n\x1b[31mValueError: no\x1b[0m\n\x1b[31m[a note]\x1b[0m");
    }
}
