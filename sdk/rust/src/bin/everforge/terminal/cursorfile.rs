//! Where a reader of a tape remembers what it has printed. The Python command line has the same file.
//!
//! Eight bytes of magic, the number, and which machine it belongs to. The number is twice the cursor, plus one while a line is unfinished: one store,
//! so that the two cannot come apart.

use super::system;
use crate::output::reason;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"EFcursor";
const SIZE_BYTES: usize = 512;
const NUMBER_AT: usize = 8;
const IDENTITY_AT: usize = 16;
const NEW: i64 = -2;
const LOCK_WAIT: Duration = Duration::from_secs(15); // for one that was killed to finish what it had begun to write
const LOCK_PAUSE: Duration = Duration::from_millis(20);

pub struct CursorFile {
    file: File,
    number: i64,
}

impl CursorFile {
    /// Locked for as long as it lives. What is wrong with it, in a sentence.
    pub fn open(path: &Path, identity: &str) -> Result<Self, String> {
        let shown = path.display();
        let file = system::open_at_once(path).map_err(|error| format!("{shown} cannot be written: {}", reason(&error)))?;
        if !locked(&file) {
            return Err(format!("{shown} is in use by another process: give each one a file of its own"));
        }
        let mut opened = Self { file, number: NEW };
        let new = fresh(identity);
        let found = opened.read(&new).map_err(|error| format!("{shown} cannot be used as a cursor file: {}", reason(&error)))?;
        if found.len() != SIZE_BYTES || !found.starts_with(MAGIC) {
            return Err(format!("{shown} is something else than a cursor file: take another name"));
        }
        if found[IDENTITY_AT..] != new[IDENTITY_AT..] {
            let whose = String::from_utf8_lossy(&found[IDENTITY_AT..]).trim_end_matches('\0').to_owned();
            return Err(format!("{shown} remembers the place in another machine ({whose}): take another file, or delete it"));
        }
        opened.number = found[NUMBER_AT..IDENTITY_AT].try_into().map_or(NEW, i64::from_le_bytes);
        Ok(opened)
    }

    fn read(&mut self, new: &[u8]) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        Read::by_ref(&mut self.file).take(SIZE_BYTES as u64 + 1).read_to_end(&mut found)?;
        if found.is_empty() {
            self.file.write_all(new)?;
            self.file.sync_all()?;
            new.clone_into(&mut found);
        }
        Ok(found)
    }

    /// None in a new file.
    pub fn cursor(&self) -> Option<i64> {
        (self.number != NEW).then_some(self.number >> 1)
    }

    pub fn is_open(&self) -> bool {
        self.number & 1 == 1
    }

    pub fn remember(&mut self, cursor: i64, open: bool) -> io::Result<()> {
        self.number = cursor * 2 + i64::from(open);
        self.file.seek(SeekFrom::Start(NUMBER_AT as u64))?;
        self.file.write_all(&self.number.to_le_bytes())
    }
}

fn locked(file: &File) -> bool {
    let deadline = Instant::now() + LOCK_WAIT;
    while !system::try_lock(file) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    true
}

fn fresh(identity: &str) -> Vec<u8> {
    let mut made = MAGIC.to_vec();
    made.extend_from_slice(&NEW.to_le_bytes());
    made.extend_from_slice(identity.as_bytes());
    made.resize(SIZE_BYTES, 0);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_remembers_where_it_was_and_whether_a_line_is_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursor");
        let mut file = CursorFile::open(&path, "one, created today").unwrap();
        assert_eq!((file.cursor(), file.is_open()), (None, false));
        file.remember(41, true).unwrap();
        drop(file);
        let file = CursorFile::open(&path, "one, created today").unwrap();
        assert_eq!((file.cursor(), file.is_open()), (Some(41), true));
        drop(file);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..35], b"EFcursor\x53\0\0\0\0\0\0\0one, created today\0");
        let error = CursorFile::open(&path, "two").err().unwrap();
        assert!(error.ends_with("remembers the place in another machine (one, created today): take another file, or delete it"), "{error}");
    }

    #[test]
    fn what_is_none_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        std::fs::write(&path, "mine").unwrap();
        let error = CursorFile::open(&path, "one").err().unwrap();
        assert!(error.ends_with("is something else than a cursor file: take another name"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        let error = CursorFile::open(folder.path(), "one").err().unwrap();
        assert!(error.ends_with("cannot be written: is a directory"), "{error}");
    }
}
