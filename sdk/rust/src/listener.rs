//! Somebody who wants certain entries that come over a WebSocket.

use crate::channel::{Channel, State};
use crate::entry::Entry;
use crate::error::{Error, Fallible, Kind};
use crate::generated::sentences::sentences;
use crate::pauses::Deadline;
use crate::tape::TapeReader;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

// For a listener that does not listen; it reads the rest from the tape, where it is kept.
const INBOX_ENTRIES_MAX: usize = 10_000;
const INBOX_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(crate) type Wants = Box<dyn FnMut(&Entry) -> bool + Send>;

pub(crate) struct Inbox {
    wants: Wants,
    entries: VecDeque<Entry>,
    bytes: usize,
    behind: Option<i64>, // the last entry before the inbox was full
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("entries", &self.entries.len()).field("behind", &self.behind).finish_non_exhaustive()
    }
}

impl Inbox {
    pub(crate) fn new(wants: Wants) -> Self {
        Self { wants, entries: VecDeque::new(), bytes: 0, behind: None }
    }

    pub(crate) fn offer(&mut self, entry: &Entry) {
        if self.behind.is_some() || !(self.wants)(entry) {
            return;
        }
        let size = entry.size_bytes();
        match self.entries.back() {
            Some(last) if self.entries.len() >= INBOX_ENTRIES_MAX || self.bytes + size > INBOX_BYTES_MAX => self.behind = Some(last.cursor()),
            _ => {
                self.bytes += size;
                self.entries.push_back(entry.clone());
            }
        }
    }

    fn take(&mut self) -> Option<Entry> {
        let found = self.entries.pop_front()?;
        self.bytes -= found.size_bytes();
        Some(found)
    }
}

/// Entries from the moment it was made on, each once. Whoever stops waiting for the next one loses nothing.
#[derive(Debug)]
pub struct Listener {
    channel: Arc<Channel>,
    number: u64,
    deadline: Deadline,
    reader: Option<TapeReader>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.channel.state().inboxes.remove(&self.number);
    }
}

impl Listener {
    pub(crate) fn new(channel: Arc<Channel>, number: u64, deadline: Deadline) -> Self {
        Self { channel, number, deadline, reader: None }
    }

    pub(crate) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
        if let Some(reader) = &mut self.reader {
            reader.set_deadline(deadline);
        }
    }

    /// The next one; `MachineNotFound` when the machine is gone.
    pub async fn next(&mut self) -> Fallible<Entry> {
        let number = self.number;
        if let Some(after) = self.behind() {
            return self.next_on_tape(after).await;
        }
        let is_ready = |state: &State| state.inboxes.get(&number).is_some_and(|inbox| !inbox.entries.is_empty());
        if !self.channel.until(is_ready, self.deadline).await? {
            return Err(Error::new(Kind::StillRunning, sentences::NOTHING_CAME));
        }
        let found = self.channel.state().inboxes.get_mut(&number).and_then(Inbox::take);
        found.ok_or_else(|| Error::new(Kind::StillRunning, sentences::NOTHING_CAME))
    }

    /// After what to go on from the tape, once all that there was room for has been read.
    fn behind(&self) -> Option<i64> {
        self.channel.state().inboxes.get(&self.number).filter(|inbox| inbox.entries.is_empty()).and_then(|inbox| inbox.behind)
    }

    async fn next_on_tape(&mut self, after: i64) -> Fallible<Entry> {
        let (channel, deadline) = (self.channel.clone(), self.deadline);
        let reader = self.reader.get_or_insert_with(|| channel.reader(after, deadline));
        loop {
            let entry = reader.next().await?;
            if self.channel.state().inboxes.get_mut(&self.number).is_some_and(|inbox| (inbox.wants)(&entry)) {
                return Ok(entry);
            }
        }
    }

    /// Nothing more comes; dropping it is as good.
    pub fn close(self) {}
}
