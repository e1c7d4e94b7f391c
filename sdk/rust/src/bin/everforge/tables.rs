//! Rows for people and for scripts: aligned columns under a heading on a terminal, tab-separated plain lines elsewhere. And JSON for programs.

use crate::output::{coloured, on_terminal, print_line};
use crate::python;
use everforge::quoting::printable;
use serde::Serialize;
use serde_json::{Map, Value};

const FIELD_WIDTH: usize = 22; // of the name of a field, at least

pub fn print_rows(heading: &[&str], rows: impl IntoIterator<Item = Vec<Value>>) {
    let rows = rows.into_iter().map(|row| row.iter().map(plain).collect::<Vec<_>>());
    if !on_terminal() {
        rows.for_each(|row| print_line(&row.join("\t")));
        return;
    }
    let rows: Vec<_> = rows.collect();
    let heading: Vec<String> = heading.iter().map(|&word| word.to_owned()).collect();
    let widths = widths(&heading, &rows);
    print_line(&bold(&aligned(&heading, &widths)));
    for row in &rows {
        print_line(&aligned(row, &widths));
    }
}

pub fn print_fields<N: AsRef<str>>(fields: impl IntoIterator<Item = (N, Value)>) {
    let found: Vec<(N, Value)> = fields.into_iter().collect();
    let width = found.iter().map(|(name, _)| name.as_ref().len() + 2).fold(FIELD_WIDTH, usize::max);
    for (name, value) in found {
        let (name, shown) = (name.as_ref(), plain(&value));
        print_line(&if on_terminal() { format!("{name:width$}{shown}") } else { format!("{name}\t{shown}") });
    }
}

/// Of an answer, in the order in which it has them.
pub fn fields(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

pub fn print_json(value: &impl Serialize) {
    print_line(&python::json(value));
}

/// One line without anything that a terminal would obey, or that would show it in another order than it is written in.
pub fn plain(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::Object(fields) => fields.iter().map(|(name, one)| format!("{}={}", name_word(name), word(one))).collect::<Vec<_>>().join(" "),
        other => python::str(other),
    };
    if text.is_empty() { "-".to_owned() } else { printable(&text) }
}

/// In quotes where it would else be taken for more than one: nobody's value makes a field of its own.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains([' ', '"']) => text.clone(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => python::json_letters(value),
        other => python::str(other),
    }
}

fn name_word(name: &str) -> String {
    if name.is_empty() || name.contains([' ', '"', '=']) { python::json_letters(&name) } else { name.to_owned() }
}

pub fn bold(text: &str) -> String {
    if coloured() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// Of bytes, as people read it.
pub fn size(count: i64) -> String {
    if count < 1000 {
        return format!("{count} B");
    }
    let units = [(1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];
    let (whole, unit) = units.into_iter().find(|(whole, _)| (count as f64) < whole * 1000.0).unwrap_or(units[3]);
    format!("{:.1} {unit}", count as f64 / whole)
}

/// An RFC 3339 time, to the second.
pub fn moment(text: Option<&str>) -> Value {
    Value::from(match text {
        None => "-".to_owned(),
        Some(text) if text.chars().count() > 19 => text.chars().take(19).chain(['Z']).collect(),
        Some(text) => text.to_owned(),
    })
}

fn widths(heading: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let of = |column: usize| std::iter::once(heading).chain(rows.iter().map(Vec::as_slice)).map(|row| row[column].chars().count()).max();
    (0..heading.len()).map(|column| of(column).unwrap_or(0)).collect()
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
    padded.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(plain(&json!("a\u{1b}[2Jb\u{202e}\n")), "a\\x1b[2Jb\\u202e\\x0a");
        assert_eq!(plain(&json!("plain é")), "plain é");
    }

    #[test]
    fn values_stay_in_their_fields() {
        assert_eq!(plain(&json!({"a": "x", "b c": "y z", "d=": "", "n": 1, "l": ["q"]})), "a=x \"b c\"=\"y z\" \"d=\"=\"\" n=1 l=[\"q\"]");
        assert_eq!(plain(&json!({})), "-");
        assert_eq!(plain(&json!(null)), "-");
        assert_eq!(plain(&json!(["a"])), "['a']");
        assert_eq!(plain(&json!(true)), "True");
    }

    #[test]
    fn sizes_are_read_by_people() {
        let found: Vec<String> = [0, 999, 1000, 1_500_000, 2_000_000_000, 3_000_000_000_000, 4_000_000_000_000_000].map(size).into();
        assert_eq!(found, ["0 B", "999 B", "1.0 kB", "1.5 MB", "2.0 GB", "3.0 TB", "4000.0 TB"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let heading = ["A".to_owned(), "LONG".to_owned()];
        let rows = [vec!["é界".to_owned(), "x".to_owned()]];
        let widths = widths(&heading, &rows);
        assert_eq!(widths, [2, 4]);
        assert_eq!(aligned(&heading, &widths), "A   LONG");
        assert_eq!(aligned(&rows[0], &widths), "é界  x");
    }

    #[test]
    fn times_are_shown_to_the_second() {
        assert_eq!(moment(Some("2030-01-31T12:00:00.123456Z")), json!("2030-01-31T12:00:00Z"));
        assert_eq!(moment(None), json!("-"));
    }
}
