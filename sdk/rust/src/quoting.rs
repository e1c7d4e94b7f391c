//! How Python writes text that came from outside: with nothing in it that a terminal would obey, or show in another order than it is written in.

use crate::generated::sentences::QUOTED_MAX;

/// What somebody gave, as a sentence shows it: in quotes, and short.
#[must_use]
pub fn quoted(text: &str) -> String {
    let shown = repr(text);
    if shown.chars().nth(QUOTED_MAX).is_none() {
        return shown;
    }
    shown.chars().take(QUOTED_MAX - 3).chain("...".chars()).collect()
}

/// The same letters, but those that are not printable by their numbers.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if is_printable(letter) { letter.to_string() } else { escaped(letter) }).collect()
}

/// `repr()` of a string.
#[must_use]
pub fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut found = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => found.push_str("\\\\"),
            '\n' => found.push_str("\\n"),
            '\r' => found.push_str("\\r"),
            '\t' => found.push_str("\\t"),
            _ if letter == quote => found.extend(['\\', letter]),
            _ if is_printable(letter) => found.push(letter),
            _ => found.push_str(&escaped(letter)),
        }
    }
    found.push(quote);
    found
}

/// A letter that is not printable, by its number.
#[must_use]
pub fn escaped(letter: char) -> String {
    match letter as u32 {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// Neither a control, nor a format, surrogate, private or unassigned letter, nor a space other than the plain one.
///
/// The standard library has this table, for what it escapes of a string; of a string, since its first letter is judged by more.
#[must_use]
pub fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return !letter.is_ascii_control();
    }
    let text: String = ['a', letter].iter().collect();
    let shown = text.escape_debug().nth(1);
    shown == Some(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_repr_quotes_them() {
        assert_eq!(repr("it's"), "\"it's\"");
        assert_eq!(repr("a'b\"c\\"), "'a\\'b\"c\\\\'");
        assert_eq!(repr("\u{1b}\u{a0}\u{200b}é\u{e000}\u{10ffff}"), "'\\x1b\\xa0\\u200bé\\ue000\\U0010ffff'");
    }

    #[test]
    fn letters_that_combine_are_printable() {
        assert!(is_printable('\u{301}'));
        assert!(is_printable('界'));
        assert!(!is_printable('\u{202e}'));
        assert_eq!(printable("é\n\u{202e}"), "é\\x0a\\u202e");
    }

    #[test]
    fn long_text_is_shortened_by_characters_and_not_bytes() {
        assert_eq!(quoted(&"é".repeat(78)), format!("'{}'", "é".repeat(78)));
        assert_eq!(quoted(&"é".repeat(79)), format!("'{}...", "é".repeat(76)));
    }
}
