//! The same thing in several formats, by their MIME types.

use everforge::Bundle;
use serde_json::Value;

const MIME_TYPES: [(&str, &str); 9] = [
    ("text", "text/plain"),
    ("html", "text/html"),
    ("markdown", "text/markdown"),
    ("latex", "text/latex"),
    ("json", "application/json"),
    ("png", PNG),
    ("jpeg", JPEG),
    ("svg", SVG),
    ("javascript", "application/javascript"),
];
pub const PNG: &str = "image/png";
pub const JPEG: &str = "image/jpeg";
pub const SVG: &str = "image/svg+xml";

/// Whatever short names it came under.
pub fn mime_bundle(data: Option<&Bundle>) -> Bundle {
    let found = data.into_iter().flatten().filter(|(_, content)| !content.is_null());
    found.map(|(name, content)| (mime_type(name).to_owned(), content.clone())).collect()
}

fn mime_type(name: &str) -> &str {
    MIME_TYPES.iter().find(|(short, _)| *short == name).map_or(name, |(_, mime)| mime)
}

/// In this format, where that is text.
pub fn text_of<'a>(bundle: &'a Bundle, mime: &str) -> Option<&'a str> {
    bundle.get(mime).and_then(Value::as_str)
}
