//! Pictures: shown where the terminal can, else kept in files.

use super::bundles::{JPEG, PNG, SVG, mime_bundle, text_of};
use super::system;
use crate::output::reason;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use everforge::Bundle;
use everforge::config::state_folder;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

const PICTURE_BYTES_MAX: usize = 16 * 1024 * 1024;
const FILES_MAX: usize = 200; // the oldest go first
const CHUNK: usize = 4096; // what kitty takes at once
const KINDS: [(&str, &str, &[u8]); 3] = [(PNG, ".png", b"\x89PNG\r\n\x1a\n"), (JPEG, ".jpg", b"\xff\xd8\xff"), (SVG, ".svg", b"")];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Kitty,
    Iterm,
    None,
}

/// How this terminal shows pictures, by what it says of itself. Inside tmux or screen it is not this terminal that listens.
pub fn way(variable: impl Fn(&str) -> Option<String>) -> Way {
    let word = |name: &str| variable(name).unwrap_or_default();
    let (term, program) = (word("TERM"), word("TERM_PROGRAM"));
    if !word("TMUX").is_empty() || term.starts_with("screen") || term.starts_with("tmux") {
        Way::None
    } else if term.contains("kitty") || !word("KITTY_WINDOW_ID").is_empty() || program == "ghostty" || term.contains("ghostty") {
        Way::Kitty
    } else if ["iTerm.app", "WezTerm", "mintty"].contains(&program.as_str()) || word("LC_TERMINAL") == "iTerm2" {
        Way::Iterm
    } else {
        Way::None
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Picture {
    mime: &'static str,
    suffix: &'static str,
    content: Vec<u8>,
}

/// The first of a bundle that is what it says it is.
pub fn picture_of(data: Option<&Bundle>) -> Option<Picture> {
    let bundle = mime_bundle(data);
    KINDS.iter().find_map(|(mime, suffix, magic)| {
        let found = text_of(&bundle, mime)?;
        let content = if *mime == SVG { found.as_bytes().to_vec() } else { decoded(found)? };
        (content.starts_with(magic) && content.len() <= PICTURE_BYTES_MAX).then_some(Picture { mime, suffix, content })
    })
}

/// Whatever stands between its letters, as newlines.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let letters: String = text.chars().filter(|letter| matches!(letter, 'a'..='z' | 'A'..='Z' | '0'..='9' | '+' | '/' | '=')).collect();
    STANDARD.decode(letters).ok()
}

pub struct Pictures {
    machine: String,
    way: Way,
    folder: PathBuf,
}

impl Pictures {
    pub fn new(machine: &str, way: Way) -> Self {
        Self::in_folder(machine, way, state_folder().join("pictures"))
    }

    fn in_folder(machine: &str, way: Way, folder: PathBuf) -> Self {
        let machine = machine.chars().filter(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-')).collect();
        Self { machine, way, folder }
    }

    /// What to write to the terminal: the picture itself, or where it lies.
    pub fn shown(&self, picture: &Picture, number: i64) -> String {
        let Picture { mime, content, .. } = picture;
        match self.way {
            Way::Kitty if *mime == PNG => kitty(content),
            Way::Iterm if *mime != SVG => format!("\x1b]1337;File=inline=1;size={}:{}\x07\n", content.len(), STANDARD.encode(content)),
            _ => match self.keep(picture, number) {
                Ok(path) => format!("[picture: {}]\n", path.display()),
                Err(error) => format!("[a picture that could not be written to {}: {}]\n", self.folder.display(), reason(&error)),
            },
        }
    }

    fn keep(&self, picture: &Picture, number: i64) -> io::Result<PathBuf> {
        system::make_private_folder(&self.folder)?;
        self.make_room()?;
        let name = format!("{}-{number}{}", self.machine, picture.suffix);
        let path = self.folder.join(&name);
        let new = self.folder.join(format!(".{name}.{}", std::process::id()));
        fs::write(&new, &picture.content)?;
        fs::rename(&new, &path)?;
        Ok(path)
    }

    fn make_room(&self) -> io::Result<()> {
        let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && name.contains('.') {
                kept.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        kept.sort();
        let surplus = (kept.len() + 1).saturating_sub(FILES_MAX);
        kept.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

fn kitty(content: &[u8]) -> String {
    let text = STANDARD.encode(content);
    let chunks: Vec<&str> = text.as_bytes().chunks(CHUNK).filter_map(|chunk| std::str::from_utf8(chunk).ok()).collect();
    let parts = chunks.iter().enumerate().map(|(i, chunk)| {
        let first = if i == 0 { "a=T,f=100,q=2," } else { "" };
        format!("\x1b_G{first}m={};{chunk}\x1b\\", u8::from(i + 1 < chunks.len()))
    });
    parts.collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(data: &Value) -> Option<Picture> {
        picture_of(data.as_object())
    }

    #[test]
    fn a_terminal_says_how_it_shows_pictures() {
        let of = |known: &'static [(&str, &str)]| way(move |name| known.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned()));
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Way::Kitty);
        assert_eq!(of(&[("TERM", "xterm-kitty"), ("TMUX", "1")]), Way::None);
        assert_eq!(of(&[("TERM_PROGRAM", "iTerm.app")]), Way::Iterm);
        assert_eq!(of(&[("TERM", "xterm-256color")]), Way::None);
    }

    #[test]
    fn they_are_shown_where_the_terminal_can_and_kept_where_not() {
        let folder = tempfile::tempdir().unwrap();
        let content = STANDARD.encode(b"\x89PNG\r\n\x1a\n...");
        let picture = found(&json!({"text": "<Figure>", "png": content})).unwrap();
        assert!(Pictures::new("m", Way::Kitty).shown(&picture, 1).starts_with("\x1b_Ga=T,f=100"));
        assert!(Pictures::new("m", Way::Iterm).shown(&picture, 1).contains(&format!(":{content}\x07")));
        let kept = Pictures::in_folder("../m", Way::None, folder.path().to_owned());
        assert_eq!(kept.shown(&picture, 7), format!("[picture: {}/m-7.png]\n", folder.path().display()));
        assert!(fs::read(folder.path().join("m-7.png")).unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn what_only_says_that_it_is_a_picture_is_none() {
        assert_eq!(found(&json!({"image/png": STANDARD.encode(b"\x1b]0;not a picture")})), None);
        assert_eq!(found(&json!({"image/png": 3})), None);
    }

    #[test]
    fn the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..FILES_MAX + 5 {
            fs::write(folder.path().join(format!("old-{i}.png")), "").unwrap();
        }
        let picture = found(&json!({"svg": "<svg/>"})).unwrap();
        Pictures::in_folder("m", Way::None, folder.path().to_owned()).shown(&picture, 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), FILES_MAX);
    }
}
