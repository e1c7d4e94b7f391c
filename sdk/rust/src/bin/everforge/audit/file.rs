//! The audit log in a file, a line of JSON for each entry. Its last line says that this is the end: a file without it was cut.
//!
//! The whole log, which the owner of the server has, ends with {"head": {"number", "hash"}}. What one account sees of it begins with
//! {"part": {"account"}} and ends with {"end": {"entries", "digest"}}: numbers have gaps there, and by the digest it shows when one is missing.

use crate::failures::Failure;
use crate::python::json_line;
use everforge::api::AuditHead;
use everforge::{Chain, ChainBroken, Everforge, Part, Unverified, digest_with};
use futures::TryStreamExt;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

const LINE_BYTES_MAX: u64 = 1024 * 1024;
const CUT: &str = "the file ends without saying that this is the end of the log";

/// What can go wrong with such a file.
pub enum Trouble {
    Broken(ChainBroken),
    Disk(io::Error),
    Other(Failure),
}

impl Trouble {
    /// As it is told of this file; a log that is not sound is no trouble of whoever writes one.
    pub fn told(self, path: impl Display) -> Failure {
        match self {
            Self::Broken(found) => Failure::Local(found.to_string()),
            Self::Disk(error) => Failure::local(path, &error),
            Self::Other(failure) => failure,
        }
    }
}

impl From<ChainBroken> for Trouble {
    fn from(found: ChainBroken) -> Self {
        Self::Broken(found)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<everforge::Error> for Trouble {
    fn from(error: everforge::Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<Unverified> for Trouble {
    fn from(why: Unverified) -> Self {
        match why {
            Unverified::Broken(found) => Self::Broken(found),
            Unverified::Failed(error) => error.into(),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

type Tried<T> = Result<T, Trouble>;

// --- writing it ----------------------------------------------------------------------------------------------------------------------

/// As much of the log as the token sees; how many entries. Begun again where old ones were let go meanwhile: then some may lack.
pub async fn write(server: &Everforge, output: &mut File, is_whole: bool) -> Tried<i64> {
    if !is_whole {
        return write_part(server, output).await;
    }
    loop {
        let first = server.audit().first().await?;
        let count = write_whole(server, output).await?;
        if !server.audit().let_go_since(first).await? {
            return Ok(count);
        }
        output.rewind()?;
        output.set_len(0)?;
    }
}

async fn write_whole(server: &Everforge, output: &mut File) -> Tried<i64> {
    let mut output = BufWriter::new(output);
    let head = server.audit().head().await?.unwrap_or(AuditHead { number: 0, hash: String::new() });
    let (mut count, mut entries) = (0, server.audit().entries());
    while let Some(entry) = entries.try_next().await? {
        if entry.number > head.number {
            break; // what was written since is not part of it
        }
        put(&mut output, &entry)?;
        count += 1;
    }
    put(&mut output, &json!({"head": head}))?;
    output.flush()?;
    Ok(count)
}

async fn write_part(server: &Everforge, output: &mut File) -> Tried<i64> {
    let mut output = BufWriter::new(output);
    put(&mut output, &json!({"part": {"account": server.whoami().await?}}))?;
    let (mut count, mut digest, mut entries) = (0, Part::new(None).digest, server.audit().entries());
    while let Some(entry) = entries.try_next().await? {
        put(&mut output, &entry)?;
        digest = digest_with(&digest, &entry.hash);
        count += 1;
    }
    put(&mut output, &json!({"end": {"entries": count, "digest": digest}}))?;
    output.flush()?;
    Ok(count)
}

fn put(output: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    writeln!(output, "{}", json_line(line))
}

// --- checking it ---------------------------------------------------------------------------------------------------------------------

/// What was found sound.
pub enum Sound {
    Whole(Chain),
    Part(Part),
}

type Line = Map<String, Value>;

/// Trouble also where it is the part of an account, and that will not do.
pub fn checked(path: &Path, kept: Option<AuditHead>, part_will_do: bool) -> Tried<Sound> {
    let mut lines = Lines(BufReader::new(File::open(path)?));
    let first = lines.next()?;
    if !first.as_ref().is_some_and(|line| line.get("part").is_some_and(Value::is_object)) {
        return Ok(Sound::Whole(checked_whole(first, &mut lines, kept)?));
    }
    if !part_will_do {
        let path = path.display();
        let why = format!("{path} has the entries of one account and not the whole log: check with --part what can be told from them");
        return Err(Trouble::Other(Failure::Local(why)));
    }
    Ok(Sound::Part(checked_part(&mut lines, kept)?))
}

fn checked_whole(first: Option<Line>, lines: &mut Lines, kept: Option<AuditHead>) -> Tried<Chain> {
    let mut chain = Chain::new(kept)?;
    let mut next = first;
    while let Some(line) = next {
        if let Some(head) = line.get("head").and_then(Value::as_object) {
            let number = head.get("number").and_then(Value::as_i64).unwrap_or(0);
            let hash = head.get("hash").and_then(Value::as_str).unwrap_or_default().to_owned();
            nothing_follows(lines, &chain.head)?;
            chain.end(Some(&AuditHead { number, hash }))?;
            return Ok(chain);
        }
        chain.add(&line)?;
        next = lines.next()?;
    }
    Err(ChainBroken::new(chain.head.number + 1, CUT).into())
}

fn checked_part(lines: &mut Lines, kept: Option<AuditHead>) -> Tried<Part> {
    let mut part = Part::new(kept);
    while let Some(line) = lines.next()? {
        if let Some(end) = line.get("end").filter(|end| end.is_object()) {
            if *end != json!({"entries": part.count, "digest": part.digest}) {
                let entries = crate::python::str(&end["entries"]);
                let why = format!("there may have been one: these are not the {entries} entries that were exported");
                return Err(ChainBroken::new(part.head.number + 1, why).into());
            }
            nothing_follows(lines, &part.head)?;
            part.end()?;
            return Ok(part);
        }
        part.add(&line)?;
    }
    Err(ChainBroken::new(part.head.number + 1, CUT).into())
}

fn nothing_follows(lines: &mut Lines, head: &AuditHead) -> Tried<()> {
    match lines.next()? {
        Some(_) => Err(ChainBroken::new(head.number + 1, "something follows the end of the log").into()),
        None => Ok(()),
    }
}

/// Of a file that may be anything.
struct Lines(BufReader<File>);

impl Lines {
    /// None: there are no more. What is no entry is something that none would be taken for.
    fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        if (&mut self.0).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let found = serde_json::from_slice::<Line>(&line).ok().filter(|line| !line.is_empty());
        Ok(Some(found.unwrap_or_else(|| Map::from_iter([("nonsense".to_owned(), Value::Bool(true))]))))
    }
}
