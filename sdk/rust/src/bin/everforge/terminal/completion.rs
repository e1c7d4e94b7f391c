//! Completion from the live machine, and of the prompt's own words.

use super::commands::NAMES;
use crate::python::is_printable;
use everforge::Machine;
use everforge::api::Completed;
use std::time::Duration;
use tokio::time::timeout;
use unicode_width::UnicodeWidthStr;

const COMPLETE_WAIT: Duration = Duration::from_secs(3); // after which a person would rather type it
const MATCHES_MAX: usize = 500;
const COLUMN_GAP: usize = 2;

#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// From where what is typed gives way, and to what.
    pub start: usize,
    pub insert: Option<String>,
    /// To be shown, where there are several.
    pub choices: Vec<String>,
}

/// What could stand at the cursor. No completion is no reason to stop typing.
pub async fn complete(machine: Machine, text: String, cursor: usize) -> Completion {
    let letters = i64::try_from(text[..cursor].chars().count()).unwrap_or(i64::MAX); // places are counted as Python does
    let asked = timeout(COMPLETE_WAIT, machine.complete(text.clone()).cursor(letters)).await;
    offered(&text, cursor, asked.ok().and_then(Result::ok).as_ref())
}

fn offered(text: &str, cursor: usize, found: Option<&Completed>) -> Completion {
    let before = &text[..cursor];
    let own: Vec<&str> = if before.contains(char::is_whitespace) {
        Vec::new()
    } else {
        NAMES.into_iter().filter(|name| name.starts_with(before) && !before.is_empty()).collect()
    };
    let theirs =
        found.into_iter().flat_map(|found| &found.matches).map(String::as_str).filter(|text| text.chars().all(is_printable)).take(MATCHES_MAX);
    let mut matches: Vec<String> = Vec::new();
    for one in own.iter().copied().chain(theirs) {
        if !matches.iter().any(|known| known == one) {
            matches.push(one.to_owned());
        }
    }
    let start = match found {
        Some(found) if own.is_empty() => text.char_indices().nth(usize::try_from(found.start).unwrap_or(0)).map_or(cursor, |(at, _)| at).min(cursor),
        Some(_) => 0,
        None => {
            if own.is_empty() {
                cursor
            } else {
                0
            }
        }
    };
    let common = common_start(&matches);
    let is_longer = common.len() > before.len() - start;
    let insert = if matches.len() == 1 || is_longer { Some(common.to_owned()) } else { None };
    Completion { start, insert: insert.filter(|_| !matches.is_empty()), choices: if matches.len() > 1 { matches } else { Vec::new() } }
}

fn common_start(words: &[String]) -> &str {
    let Some(first) = words.first() else { return "" };
    let shared =
        |word: &String| first.char_indices().zip(word.chars()).find(|((_, a), b)| a != b).map_or(first.len().min(word.len()), |((at, _), _)| at);
    &first[..words.iter().map(shared).min().unwrap_or(0)]
}

pub fn in_columns(words: &[String], width: usize) -> String {
    let column = words.iter().map(|word| word.width()).max().unwrap_or(0) + COLUMN_GAP;
    let across = (width / column).max(1);
    let padded = |word: &String| format!("{word}{}", " ".repeat(column - word.width()));
    words.chunks(across).map(|row| row.iter().map(padded).collect::<String>().trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, start: i64, matches: &[&str]) -> Completion {
        let end = i64::try_from(text.chars().count()).unwrap();
        let answer = Completed { matches: matches.iter().map(|one| (*one).to_owned()).collect(), start, end, busy: false };
        offered(text, text.len(), Some(&answer))
    }

    #[test]
    fn what_all_have_in_common_is_inserted_and_what_there_is_is_shown() {
        let several = found("é.remar", 2, &["remarkable_1", "remarkable_2", "bad\x1b[6n"]);
        assert_eq!((several.start, several.insert.as_deref()), (3, Some("remarkable_")));
        assert_eq!(several.choices, ["remarkable_1", "remarkable_2"]);
        let again = found("remarkable_", 0, &["remarkable_1", "remarkable_2"]);
        assert_eq!(again.insert, None);
        assert_eq!(found("os.getc", 3, &["getcwd"]), Completion { start: 3, insert: Some("getcwd".to_owned()), choices: Vec::new() });
    }

    #[test]
    fn a_machine_that_says_nothing_completes_nothing() {
        assert_eq!(offered("os.getc", 7, None), Completion { start: 7, insert: None, choices: Vec::new() });
        assert_eq!(found("zzz", 0, &[]), Completion { start: 0, insert: None, choices: Vec::new() });
    }

    #[test]
    fn words_of_the_prompts_own_are_completed_too() {
        assert_eq!(offered("%sna", 4, None), Completion { start: 0, insert: Some("%snapshot".to_owned()), choices: Vec::new() });
        assert_eq!(found("%f", 0, &["%file"]).choices, ["%files", "%fork", "%file"]);
        assert_eq!(offered("x = %f", 6, None).choices, Vec::<String>::new());
    }

    #[test]
    fn choices_stand_in_columns() {
        let words = ["aa", "b", "ccc"].map(str::to_owned);
        assert_eq!(in_columns(&words, 11), "aa   b\nccc\n");
        assert_eq!(in_columns(&words, 1), "aa\nb\nccc\n");
    }
}
