//! Values as Python writes them: what both command lines print is the same, letter by letter.

pub use everforge::quoting::{is_printable, repr as quoted};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use std::io::{self, Write};

/// JSON for programs: indented by one, everything that is not ASCII escaped.
pub fn json(value: &impl Serialize) -> String {
    written(value, Spelling { indent: true, ascii: true, depth: 0, filled: Vec::new() })
}

/// The same on one line.
pub fn json_line(value: &impl Serialize) -> String {
    written(value, Spelling { indent: false, ascii: true, depth: 0, filled: Vec::new() })
}

/// On one line, letters as they are.
pub fn json_letters(value: &impl Serialize) -> String {
    written(value, Spelling { indent: false, ascii: false, depth: 0, filled: Vec::new() })
}

fn written(value: &impl Serialize, spelling: Spelling) -> String {
    let mut found = Vec::new();
    // What is written here are fields of answers: they always can be.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut found, spelling));
    String::from_utf8_lossy(&found).into_owned()
}

struct Spelling {
    indent: bool,
    ascii: bool,
    depth: usize,
    filled: Vec<bool>, // has the object or list that is open something in it?
}

impl Spelling {
    fn open(&mut self) {
        self.depth += 1;
        self.filled.push(false);
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.filled.pop().unwrap_or(false) {
            self.line(writer)?;
        }
        Ok(())
    }

    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        if !self.indent {
            return Ok(());
        }
        writer.write_all(b"\n")?;
        writer.write_all(&b" ".repeat(self.depth))
    }

    fn item<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if let Some(filled) = self.filled.last_mut() {
            *filled = true;
        }
        if !first {
            writer.write_all(if self.indent { b"," } else { b", " })?;
        }
        self.line(writer)
    }
}

impl Formatter for Spelling {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open();
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer)?;
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open();
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer)?;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if !self.ascii || fragment.is_ascii() {
            return writer.write_all(fragment.as_bytes());
        }
        for letter in fragment.chars() {
            if letter.is_ascii() {
                writer.write_all(&[letter as u8])?;
                continue;
            }
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"/"),
            CharEscape::Backspace => writer.write_all(b"\\b"),
            CharEscape::FormFeed => writer.write_all(b"\\f"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => writer.write_all(b"\\r"),
            CharEscape::Tab => writer.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04x}"),
        }
    }
}

/// `repr()` of a float: the shortest digits that mean it, with an exponent from 1e16 on and below 1e-4.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, number) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{number:0>2}");
    }
    let text = format!("{value}");
    if text.contains('.') { text } else { text + ".0" }
}

/// `str()` of a value of JSON.
pub fn str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// `repr()` of a value of JSON.
pub fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) if number.is_f64() => float(number.as_f64().unwrap_or(f64::NAN)),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let shown: Vec<String> = fields.iter().map(|(name, one)| format!("{}: {}", quoted(name), repr(one))).collect();
            format!("{{{}}}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_indented_and_escaped_as_python_does() {
        let value = json!({"a": [1, 2.5], "b": {}, "c": [], "d": "é😀\u{1}\n\"", "e": null, "f": [{}]});
        let expected = "{\n \"a\": [\n  1,\n  2.5\n ],\n \"b\": {},\n \"c\": [],\n \"d\": \"\\u00e9\\ud83d\\ude00\\u0001\\n\\\"\",\n \"e\": null,\n \"f\": [\n  {}\n ]\n}";
        assert_eq!(json(&value), expected);
        assert_eq!(json_line(&json!({"a": [1, true], "b": "x"})), r#"{"a": [1, true], "b": "x"}"#);
    }

    #[test]
    fn floats_have_the_digits_and_exponents_of_python() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.5, "0.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-0.0, "-0.0"),
            (f64::INFINITY, "inf"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn values_are_shown_as_repr_shows_them() {
        assert_eq!(repr(&json!(["a", 1, null, true, {"b": 2.0}])), "['a', 1, None, True, {'b': 2.0}]");
    }
}
