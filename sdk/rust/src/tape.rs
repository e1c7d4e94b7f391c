//! A machine's tape: pages of what is there, and a reader that follows it through every cut.

use crate::decoding::parse;
use crate::door::{Ask, Door, SILENCE_SECONDS};
use crate::entry::Entry;
use crate::error::{Error, Fallible, Kind, protocol};
use crate::failures::Broken;
use crate::generated::sentences::sentences;
use crate::pauses::{Deadline, Patience};
use crate::sentences::say;
use crate::transport::{Answer, Content};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, try_unfold};
use reqwest::Method;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::sleep_until;

pub(crate) const START: i64 = -1; // before the first entry
pub(crate) const RECONNECT_SECONDS: f64 = 120.0; // how long a server may be gone before a reader gives up
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024; // an entry is far shorter

/// What is on the tape now.
pub(crate) fn pages(door: Arc<Door>, path: String, after: i64, instruction: Option<i64>, deadline: Deadline) -> BoxStream<'static, Fallible<Entry>> {
    let read = try_unfold(Some(after), move |after| {
        let (door, path) = (door.clone(), path.clone());
        async move {
            let Some(after) = after else { return Ok(None) };
            page(&door, &path, after, instruction, deadline).await.map(Some)
        }
    });
    read.map_ok(|entries: Vec<Entry>| iter(entries).map(Ok)).try_flatten().boxed()
}

/// One of them, and after what to go on, where there is more.
async fn page(door: &Door, path: &str, after: i64, instruction: Option<i64>, deadline: Deadline) -> Fallible<(Vec<Entry>, Option<i64>)> {
    let url = door.url(path, &[("after", Some(after.to_string())), ("instruction", instruction.map(|number| number.to_string()))]);
    let mut found = parse(&door.ask(&url, Ask::new(Method::GET, None).until(deadline)).await?)?;
    let missing: Vec<&str> = ["entries", "position", "more"].into_iter().filter(|name| !found.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(protocol(say(sentences::ANSWER_LACKS, &[("names", &missing.join(", "))])));
    }
    let Some(Value::Array(items)) = found.remove("entries") else {
        return Err(protocol(sentences::ANSWER_NO_LIST));
    };
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        let Value::Object(fields) = item else { return Err(protocol(sentences::ANSWER_NOT_OBJECT)) };
        entries.extend(Entry::checked(fields)?);
    }
    let position = found["position"].as_i64().unwrap_or(after);
    let has_more = found["more"].as_bool().unwrap_or(false) && position > after;
    Ok((entries, has_more.then_some(position)))
}

/// Every entry behind `cursor`, once and in order; goes on from the last one after a cut or a restart of the server.
///
/// With `instruction` only what belongs to it; the server ends that stream behind its end, and so the connection can be used again. Whoever stops
/// waiting in the middle loses nothing: the next call goes on.
#[derive(Debug)]
pub(crate) struct TapeReader {
    door: Arc<Door>,
    path: String,
    cursor: i64,
    instruction: Option<i64>,
    deadline: Deadline,
    patience: Patience,
    answer: Option<Answer>,
    rest: Vec<u8>, // the beginning of a line whose end has not come
    lines: VecDeque<Vec<u8>>,
}

impl TapeReader {
    pub(crate) fn new(door: Arc<Door>, path: String, after: i64, deadline: Deadline, instruction: Option<i64>) -> Self {
        let patience = Patience::new(RECONNECT_SECONDS);
        Self { door, path, cursor: after, instruction, deadline, patience, answer: None, rest: Vec::new(), lines: VecDeque::new() }
    }

    /// As a stream that ends with the machine.
    pub(crate) fn into_stream(self) -> BoxStream<'static, Fallible<Entry>> {
        try_unfold(self, |mut reader| async move {
            match reader.next().await {
                Ok(entry) => Ok(Some((entry, reader))),
                // It was deleted, and what it last had to say has been read.
                Err(error) if error.is_a(Kind::MachineNotFound) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .boxed()
    }

    /// `MachineNotFound` when the machine is gone.
    pub(crate) async fn next(&mut self) -> Fallible<Entry> {
        loop {
            while let Some(line) = self.lines.pop_front() {
                if let Some(found) = self.take(&line)? {
                    return Ok(found);
                }
            }
            if self.deadline.passed() {
                return Err(Error::new(Kind::StillRunning, sentences::NOTHING_CAME));
            }
            match self.read_on().await {
                Err(error) if self.door.may_ask_again(&error, true) => self.pause(error).await?,
                found => found?,
            }
        }
    }

    fn take(&mut self, line: &[u8]) -> Fallible<Option<Entry>> {
        if line.trim_ascii().is_empty() {
            return Ok(None); // only a sign of life
        }
        let fresh = Entry::checked(parse(line)?)?.and_then(|found| found.behind(self.cursor));
        if let Some(entry) = &fresh {
            self.cursor = entry.cursor();
        }
        Ok(fresh)
    }

    async fn read_on(&mut self) -> Fallible<()> {
        if self.answer.is_none() {
            self.answer = Some(self.open().await?);
            self.rest.clear();
        }
        let Some(answer) = &mut self.answer else { return Ok(()) };
        let cut = |broken| self.door.explained(broken, &Method::GET);
        let chunk = answer.chunk().await.map_err(cut)?.ok_or_else(|| cut(Broken::Cut("the server ended the stream".to_owned())))?;
        self.patience.renew(); // a sign of life will do
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.lines.push_back(std::mem::take(&mut self.rest));
            } else if self.rest.len() > LINE_BYTES_MAX {
                return Err(protocol(say(sentences::ENTRY_TOO_LONG, &[("bytes", &LINE_BYTES_MAX)])));
            }
        }
        Ok(())
    }

    async fn open(&self) -> Fallible<Answer> {
        let query = [
            ("after", Some(self.cursor.to_string())),
            ("follow", Some("true".to_owned())),
            ("instruction", self.instruction.map(|number| number.to_string())),
        ];
        let (url, headers) = (self.door.url(&self.path, &query), [("accept", "application/x-ndjson".to_owned())]);
        let answer = self.door.send(&Method::GET, &url, &headers, Content::Nothing, SILENCE_SECONDS, self.deadline).await?;
        self.door.tell(true);
        Ok(answer)
    }

    /// Before the next connection.
    async fn pause(&mut self, error: Error) -> Fallible<()> {
        self.answer = None;
        if self.deadline.passed() {
            return Ok(()); // which has cut it
        }
        self.door.tell(false);
        let Some(pause) = self.patience.pause(error.retry_after_seconds) else { return Err(error) };
        sleep_until(self.deadline.within_duration(pause)).await;
        Ok(())
    }

    pub(crate) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
        if let Some(answer) = &mut self.answer {
            answer.end_at(deadline);
        }
    }

    /// After the last entry of an instruction: the server ends the stream, and the connection can be used again.
    pub(crate) async fn finish(&mut self) {
        if let Some(mut answer) = self.answer.take() {
            let _ = answer.chunk().await;
        }
    }
}
