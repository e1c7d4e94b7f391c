//! How a sentence is filled in.

use std::fmt::Display;

/// `{name}` becomes the word of that name. What a word has in it stays as it is.
#[must_use]
pub fn say(sentence: &str, words: &[(&str, &dyn Display)]) -> String {
    let mut said = String::with_capacity(sentence.len() + 64);
    let mut rest = sentence;
    while let Some((before, behind)) = rest.split_once('{') {
        said.push_str(before);
        let Some((name, after)) = behind.split_once('}') else {
            rest = behind;
            break;
        };
        if let Some((_, word)) = words.iter().find(|(known, _)| *known == name) {
            said.push_str(&word.to_string());
        }
        rest = after;
    }
    said.push_str(rest);
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_looks_like_a_place_for_one_stays_as_it_is() {
        assert_eq!(say("{a} and {b}", &[("a", &"{b}"), ("b", &1)]), "{b} and 1");
    }
}
