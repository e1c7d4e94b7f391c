//! JSON as Python spells it when it is to be hashed: names in order, no spaces, ASCII.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const EXPONENT_MIN: i32 = -4; // Python writes numbers between these out
const EXPONENT_MAX: i32 = 16;

pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::String(found) => write_text(found, text),
        Value::Number(number) if number.is_f64() => text.push_str(&float(number.as_f64().unwrap_or(0.0))),
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            // By code points, as Python sorts: the order of UTF-8 is the same.
            let ordered: BTreeMap<&String, &Value> = fields.iter().collect();
            text.push('{');
            for (i, (name, one)) in ordered.into_iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                write_text(name, text);
                text.push(':');
                write(one, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn write_text(found: &str, text: &mut String) {
    text.push('"');
    for letter in found.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

/// `repr()` of a float: the fewest digits that mean it, with an exponent where it is very large or very small.
fn float(number: f64) -> String {
    let spelled = format!("{number:e}"); // as in -1.5e-7: the fewest digits, too
    let (digits, exponent) = spelled.split_once('e').unwrap_or((&spelled, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (EXPONENT_MIN..EXPONENT_MAX).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_spelled_as_python_does() {
        for (number, spelled) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e300, "1e+300"),
            (-2.5e21, "-2.5e+21"),
        ] {
            assert_eq!(float(number), spelled);
        }
    }

    #[test]
    fn names_are_in_order_and_letters_are_ascii() {
        let value = json!({"b": [1, true, null, "é🐍\u{7f}\n\u{1}/"], "a": {"\u{10000}": 1, "\u{ffff}": 2}});
        assert_eq!(canonical(&value), "{\"a\":{\"\\uffff\":2,\"\\ud800\\udc00\":1},\"b\":[1,true,null,\"\\u00e9\\ud83d\\udc0d\\u007f\\n\\u0001/\"]}");
    }
}
