//! Numbers in command lines, in every spelling that the Python command line takes.

use crate::python::float;
use std::num::IntErrorKind;

/// `5`, ` 5 `, `+5`, `1_000`, `5.0`. One that is too large for its type becomes the largest: every option has a limit below.
pub fn read_int(text: &str) -> Option<i64> {
    let text = text.trim();
    let whole = match text.split_once('.') {
        Some((whole, rest)) if rest.bytes().all(|digit| digit == b'0') && !rest.is_empty() => whole,
        Some(_) => return None,
        None => text,
    };
    match without_lines(whole)?.parse::<i64>() {
        Ok(number) => Some(number),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => Some(i64::MAX),
            IntErrorKind::NegOverflow => Some(i64::MIN),
            _ => None,
        },
    }
}

/// The same, and `1e3`, `inf`, `nan`.
pub fn read_float(text: &str) -> Option<f64> {
    without_lines(text.trim())?.parse().ok()
}

/// As Python's `g` writes it: six digits at most, none of them a zero at the end.
pub fn short(number: f64) -> String {
    let spelled = format!("{number:.5e}");
    let Some((digits, exponent)) = spelled.split_once('e').filter(|_| number.is_finite()) else { return float(number) };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() };
    match usize::try_from(5 - exponent) {
        Ok(decimals) if exponent >= -4 => trimmed(&format!("{number:.decimals$}")),
        _ => format!("{}e{}{:02}", trimmed(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

/// Single low lines stand between digits, and nowhere else.
fn without_lines(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let misplaced = |at: usize| !(at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit));
    if (0..bytes.len()).any(|at| bytes[at] == b'_' && misplaced(at)) {
        return None;
    }
    Some(text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_taken_in_many_spellings() {
        for (text, number) in [("5", 5), (" 5 ", 5), ("-1", -1), ("+7", 7), ("1_000", 1000), ("5.0", 5), ("007", 7)] {
            assert_eq!(read_int(text), Some(number), "{text}");
        }
        assert_eq!(read_int("99999999999999999999"), Some(i64::MAX));
        assert_eq!(read_int("-99999999999999999999"), Some(i64::MIN));
        for text in ["", "x", "1.5", "5.", "1__0", "_1", "1_", "0x10", "1e3"] {
            assert_eq!(read_int(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_shortly() {
        for (number, text) in [
            (-2.0, "-2"),
            (0.0, "0"),
            (2.5, "2.5"),
            (1e6, "1e+06"),
            (123_456.7, "123457"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (f64::NAN, "nan"),
            (-f64::INFINITY, "-inf"),
            (-1.000_001, "-1"),
            (999_999.9, "1e+06"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn other_numbers_too() {
        for (text, number) in [("0.5", 0.5), ("1e3", 1000.0), (".5", 0.5), ("inf", f64::INFINITY), ("1_0.5", 10.5)] {
            assert_eq!(read_float(text), Some(number), "{text}");
        }
        assert!(read_float("nan").is_some_and(f64::is_nan));
        assert_eq!(read_float("abc"), None);
    }
}
