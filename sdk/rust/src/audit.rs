//! The audit log of the account; of the whole server for its owner, who can check that nobody was at it.

use crate::chain::{Chain, ChainBroken, PRUNED, Part};
use crate::door::Door;
use crate::error::{Error, Fallible, Kind};
use crate::generated::api::{AuditEntry, AuditHead, AuditPage};
use crate::generated::sentences::sentences;
use crate::options::{awaited, paged, setters, streamed};
use futures::stream::{BoxStream, TryStreamExt};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

const ENTRIES_A_PAGE: i64 = 500;

/// Who did what.
#[derive(Debug, Clone)]
pub struct Audit {
    door: Arc<Door>,
}

/// Why a log is not known to be sound.
#[derive(Debug)]
pub enum Unverified {
    /// It is not.
    Broken(ChainBroken),
    /// It could not be read.
    Failed(Error),
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(found) => found.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unverified {}

impl From<ChainBroken> for Unverified {
    fn from(found: ChainBroken) -> Self {
        Self::Broken(found)
    }
}

impl From<Error> for Unverified {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Audit {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self { door }
    }

    /// Oldest first; a stream that pages by itself.
    pub fn entries(&self) -> AuditEntries {
        AuditEntries { door: self.door.clone(), filter: Filter::default(), after: 0, running: None }
    }

    /// One page.
    pub fn page(&self) -> ReadPage {
        ReadPage { door: self.door.clone(), filter: Filter::default(), after: 0, limit: ENTRIES_A_PAGE, last: false }
    }

    /// The last entry's number and hash, for the owner: who keeps it elsewhere can prove later what the log was then.
    pub async fn head(&self) -> Fallible<Option<AuditHead>> {
        Ok(self.page().limit(1).last(true).await?.head)
    }

    /// The number of the oldest entry, or 0 where there is none.
    pub async fn first(&self) -> Fallible<i64> {
        Ok(self.page().limit(1).await?.entries.first().map_or(0, |entry| entry.number))
    }

    /// Is that entry, which was the first, not there any more, and does the log itself say so? Then what was read since may lack some.
    pub async fn let_go_since(&self, first: i64) -> Fallible<bool> {
        let now = self.first().await?;
        if now <= first {
            return Ok(false);
        }
        let found = self.page().action(PRUNED).limit(1).last(true).await?;
        let through = found.entries.first().and_then(|entry| entry.detail.get("through")).and_then(Value::as_i64);
        Ok(through.is_some_and(|through| through >= now - 1))
    }

    /// Every entry against the one before, here and not on the server, and against an end of the log that was `kept` elsewhere. For the owner.
    pub async fn verify(&self, kept: Option<AuditHead>) -> std::result::Result<Chain, Unverified> {
        loop {
            let first = self.first().await?;
            match self.verified(kept.clone()).await {
                Err(Unverified::Broken(found)) if !self.let_go_since(first).await? => return Err(found.into()),
                Err(Unverified::Broken(_)) => {} // read anew what is there now
                found => return found,
            }
        }
    }

    async fn verified(&self, kept: Option<AuditHead>) -> std::result::Result<Chain, Unverified> {
        let head = self.head().await?;
        let mut chain = Chain::new(kept)?;
        let Some(head) = head else {
            return Err(Error::new(Kind::Forbidden, sentences::WHOLE_LOG).into());
        };
        let mut entries = self.entries();
        while let Some(entry) = entries.try_next().await? {
            if entry.number > head.number {
                break; // what was written since is not looked at
            }
            chain.add(&entry)?;
        }
        chain.end(Some(&head))?;
        Ok(chain)
    }

    /// The entries that this token sees, as far as they tell without those between: none was changed, and none `kept` elsewhere is missing.
    pub async fn verify_part(&self, kept: Option<AuditHead>) -> std::result::Result<Part, Unverified> {
        let mut part = Part::new(kept);
        let mut entries = self.entries();
        while let Some(entry) = entries.try_next().await? {
            part.add(&entry)?;
        }
        part.end()?;
        Ok(part)
    }
}

#[derive(Debug, Clone, Default)]
struct Filter {
    since: Option<String>,
    machine: Option<String>,
    action: Option<String>,
    account: Option<String>,
}

impl Filter {
    async fn page(self, door: &Door, after: i64, limit: i64, last: bool) -> Fallible<AuditPage> {
        let query = [
            ("since", self.since),
            ("machine", self.machine),
            ("action", self.action),
            ("account", self.account),
            ("after", Some(after.to_string())),
            ("limit", Some(limit.to_string())),
            ("last", last.then(|| "true".to_owned())),
        ];
        door.get("/audit", &query).await
    }
}

macro_rules! filters {
    () => {
        setters! {
            /// From this time on.
            since: String => filter.since;
            /// Of this machine alone.
            machine: String => filter.machine;
            /// The whole of it, or its first part.
            action: String => filter.action;
            /// By name, for the server's owner.
            account: String => filter.account;
        }

        /// Behind the entry of this number.
        pub fn after(mut self, number: impl Into<i64>) -> Self {
            self.after = number.into();
            self
        }
    };
}

/// A page of the log, to be read with `.await`.
#[must_use = "nothing is read before .await"]
pub struct ReadPage {
    door: Arc<Door>,
    filter: Filter,
    after: i64,
    limit: i64,
    last: bool,
}

impl ReadPage {
    filters!();

    /// How many.
    pub fn limit(mut self, entries: impl Into<i64>) -> Self {
        self.limit = entries.into();
        self
    }

    /// The newest entries instead.
    pub fn last(mut self, last: bool) -> Self {
        self.last = last;
        self
    }

    async fn send(self) -> Fallible<AuditPage> {
        self.filter.page(&self.door, self.after, self.limit, self.last).await
    }
}

awaited!(ReadPage => AuditPage);

/// Entries of the log: a stream.
#[must_use = "a stream does nothing before it is read"]
pub struct AuditEntries {
    door: Arc<Door>,
    filter: Filter,
    after: i64,
    running: Option<BoxStream<'static, Fallible<AuditEntry>>>,
}

impl AuditEntries {
    filters!();

    fn start(&mut self) -> BoxStream<'static, Fallible<AuditEntry>> {
        let (door, filter) = (self.door.clone(), self.filter.clone());
        paged(self.after, move |after| {
            let (door, filter) = (door.clone(), filter.clone());
            Box::pin(async move {
                let page = filter.page(&door, after, ENTRIES_A_PAGE, false).await?;
                Ok((page.entries, page.next))
            })
        })
    }
}

streamed!(AuditEntries => AuditEntry);
