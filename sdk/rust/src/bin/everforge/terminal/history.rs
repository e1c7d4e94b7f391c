//! What was typed at prompts, one file for each server: JSON strings, one a line, for nobody else to read. The Python command line has the same file.

use super::system;
use crate::python;
use everforge::config::state_folder;
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const ENTRIES_MAX: usize = 5_000;
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const ENTRY_BYTES_MAX: usize = 64 * 1024; // what is longer was pasted, and lies elsewhere
const NAME_CHARACTERS_MAX: usize = 60;

pub fn history_path(base_url: &str) -> PathBuf {
    let place = base_url.rsplit("://").next().unwrap_or_default().to_lowercase();
    let words = place.split(|letter: char| !matches!(letter, 'a'..='z' | '0'..='9' | '.'));
    let mut name = String::new();
    for (i, word) in words.enumerate() {
        if i > 0 && !name.ends_with('-') {
            name.push('-');
        }
        name.push_str(word);
    }
    name.truncate(NAME_CHARACTERS_MAX);
    let hash = Sha256::digest(base_url.as_bytes());
    state_folder().join("history").join(format!("{name}-{:02x}{:02x}{:02x}{:02x}.jsonl", hash[0], hash[1], hash[2], hash[3]))
}

/// Where it cannot be kept, it is there for as long as the prompt is.
pub struct History {
    path: PathBuf,
    entries: Vec<String>,
}

impl History {
    pub fn new(path: PathBuf) -> Self {
        let entries = read(&path, ENTRIES_MAX).unwrap_or_default();
        Self { path, entries }
    }

    /// The oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    pub fn add(&mut self, text: &str) {
        if self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        let line = python::json_line(&text) + "\n";
        if line.len() <= ENTRY_BYTES_MAX {
            let _ = self.append(&line); // a full disk is no reason not to work on
        }
    }

    fn append(&self, line: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            system::make_private_folder(folder)?;
        }
        let mut file = system::private(OpenOptions::new().append(true).create(true)).open(&self.path)?;
        system::lock(&file)?;
        system::keep_private(&file)?;
        file.write_all(line.as_bytes())
    }
}

fn read(path: &Path, entries_max: usize) -> io::Result<Vec<String>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(Vec::new()); // to open a pipe would be to wait for somebody
    }
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    system::lock(&file)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(FILE_BYTES_MAX)))?;
    let mut content = Vec::new();
    Read::by_ref(&mut file).take(FILE_BYTES_MAX).read_to_end(&mut content)?;
    // What is none is half a line, or somebody else's.
    let mut found: Vec<String> = content.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if found.len() > entries_max || size > FILE_BYTES_MAX {
        found.drain(..found.len().saturating_sub(entries_max / 2));
        rewrite(&mut file, &found)?;
    }
    Ok(found)
}

fn rewrite(file: &mut File, entries: &[String]) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    let lines: String = entries.iter().map(|entry| python::json_line(entry) + "\n").collect();
    file.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_where_the_python_command_line_has_it() {
        let path = history_path("http://127.0.0.1:8000/a//B");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, "127.0.0.1-8000-a-b-b7520be1.jsonl");
    }

    #[test]
    fn it_is_private_bounded_and_survives_a_damaged_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("history.jsonl");
        let mut history = History::new(path.clone());
        for i in 0..12 {
            history.add(&format!("line {i}\nmore é"));
        }
        history.add("line 11\nmore é"); // the same again
        history.add(&"x".repeat(ENTRY_BYTES_MAX));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 12);
        assert!(fs::read_to_string(&path).unwrap().starts_with("\"line 0\\nmore \\u00e9\"\n"));
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777, 0o600);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\"half").unwrap();
        let found = read(&path, 10).unwrap();
        assert_eq!(found, [7, 8, 9, 10, 11].map(|i| format!("line {i}\nmore é")));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
        assert!(History::new(folder.path().to_owned()).entries().is_empty()); // not a file
    }
}
