//! Pictures that an instruction shows, written to numbered files.

use crate::failures::{Done, Failure};
use crate::output::say;
use crate::terminal::bundles::{JPEG, PNG, SVG, text_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use everforge::Bundle;
use std::fs;
use std::path::PathBuf;

const ENDINGS: [(&str, &str); 3] = [(PNG, "png"), (JPEG, "jpg"), (SVG, "svg")];

pub struct PictureFiles {
    folder: PathBuf,
    stem: String,
    pub saved: Vec<String>,
}

impl PictureFiles {
    pub fn new(folder: PathBuf, stem: String) -> Self {
        Self { folder, stem, saved: Vec::new() }
    }

    /// In the first format that there is of it.
    pub fn save(&mut self, bundle: &Bundle) -> Done {
        let Some((ending, content)) = ENDINGS.iter().find_map(|(mime, ending)| Some((ending, content(mime, text_of(bundle, mime)?)?))) else {
            return Ok(());
        };
        let path = self.folder.join(format!("{}-{}.{ending}", self.stem, self.saved.len() + 1));
        fs::write(&path, content).map_err(|error| Failure::local(path.display(), &error))?;
        say(&format!("everforge: wrote {}", path.display()));
        self.saved.push(path.display().to_string());
        Ok(())
    }
}

/// None: it is not a picture, whatever it says.
fn content(mime: &str, text: &str) -> Option<Vec<u8>> {
    if mime == SVG {
        return Some(text.as_bytes().to_vec());
    }
    STANDARD.decode(text).ok().filter(|content| !content.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_format_that_is_one_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = PictureFiles::new(folder.path().to_owned(), "m-0".to_owned());
        for bundle in [json!({"image/png": "!", "image/svg+xml": "<svg/>"}), json!({"text/plain": "none"}), json!({"image/jpeg": "aGk="})] {
            files.save(bundle.as_object().unwrap()).unwrap();
        }
        assert_eq!(files.saved, ["m-0-1.svg", "m-0-2.jpg"].map(|name| folder.path().join(name).display().to_string()));
        assert_eq!(fs::read(&files.saved[1]).unwrap(), b"hi");
        let mut nowhere = PictureFiles::new(folder.path().join("missing"), "m".to_owned());
        assert!(nowhere.save(json!({"image/svg+xml": "<svg/>"}).as_object().unwrap()).is_err());
    }
}
