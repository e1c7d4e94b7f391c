//! The chain that the entries of the audit log make: each one's hash covers the one before. Whoever has the entries can check them, and need not
//! take the server's word.

use crate::generated::api::AuditHead;
use crate::spelling::canonical;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::{self, Write};

/// The action of an entry that stands for older ones which were let go.
pub(crate) const PRUNED: &str = "audit.prune";
const HASHES_MAX: usize = 100_000; // that a check keeps in mind: more than are let go under one anchor

/// What the first entry has for the hash before it.
fn genesis() -> String {
    "0".repeat(64)
}

/// `number` is the first entry that is not as it was written, or is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainBroken {
    /// Of the entry.
    pub number: i64,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for ChainBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {}", self.number, self.reason)
    }
}

impl std::error::Error for ChainBroken {}

impl ChainBroken {
    /// Also for those who read entries elsewhere, and find there what cannot be.
    pub fn new(number: i64, reason: impl Into<String>) -> Self {
        Self { number, reason: reason.into() }
    }
}

fn broken(number: i64, reason: impl Into<String>) -> ChainBroken {
    ChainBroken::new(number, reason)
}

type Checked = std::result::Result<(), ChainBroken>;

/// SHA-256 of its canonical JSON, without the hash itself and what is null, so that a later version may have more fields.
#[must_use]
pub fn hash_of(entry: &impl Serialize) -> String {
    hash_of_fields(fields_of(entry))
}

fn fields_of(entry: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(entry) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn hash_of_fields(mut fields: Map<String, Value>) -> String {
    fields.retain(|name, value| name != "hash" && !value.is_null());
    hex(canonical(&Value::Object(fields)).as_bytes())
}

/// An entry, or whatever else stands in the place of one.
struct Found {
    number: i64,
    previous: String,
    fields: Map<String, Value>,
}

/// `place` is where it stands, `whose` the words for that.
fn found(entry: &impl Serialize, place: i64, whose: &str) -> std::result::Result<Found, ChainBroken> {
    let fields = fields_of(entry);
    match (fields.get("number").and_then(Value::as_i64), fields.get("previous").and_then(Value::as_str)) {
        (Some(number), Some(previous)) => Ok(Found { number, previous: previous.to_owned(), fields }),
        _ => Err(broken(place, format!("what stands {whose} is no entry"))),
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Takes entries one by one, in the order they come, and finds the first that does not fit.
#[derive(Debug)]
pub struct Chain {
    /// How many were taken.
    pub count: i64,
    /// The last of them.
    pub head: AuditHead,
    kept: Option<AuditHead>,
    let_go: i64,                  // the last entry that one which is there says was let go
    hashes: HashMap<i64, String>, // of entries that a prune under way may name
    is_anchored: bool,
}

impl Chain {
    /// `kept` is the end of the log at some time before, from where nobody who can write the log could change it.
    pub fn new(kept: Option<AuditHead>) -> std::result::Result<Self, ChainBroken> {
        let head = AuditHead { number: 0, hash: genesis() };
        let mut chain = Self { count: 0, head, kept, let_go: 0, hashes: HashMap::new(), is_anchored: true };
        chain.compare()?; // kept of a log that had no entry yet
        Ok(chain)
    }

    /// The next one: an `AuditEntry`, or an object of JSON, which may be of a later version and have more fields.
    pub fn add(&mut self, entry: &impl Serialize) -> Checked {
        let entry = found(entry, self.head.number.saturating_add(1), "in its place")?;
        if self.count == 0 {
            self.begin(entry.number, &entry.previous);
        }
        let wanted = self.head.number.saturating_add(1);
        if entry.number != wanted {
            return Err(broken(wanted, format!("it is missing, or out of its place: {} stands there", entry.number)));
        }
        let detail = entry.pruned();
        self.head = entry.sound(&self.head)?;
        self.count += 1;
        self.compare()?;
        if !self.is_anchored {
            if self.hashes.len() < HASHES_MAX {
                self.hashes.insert(self.head.number, self.head.hash.clone());
            }
            if let Some(detail) = &detail {
                self.look_for_anchor(detail);
            }
        }
        Ok(())
    }

    fn compare(&mut self) -> Checked {
        match self.kept.take_if(|kept| kept.number == self.head.number) {
            Some(kept) if kept != self.head => Err(broken(kept.number, "it is not the one that was kept: the log was written anew")),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, number: i64, previous: &str) {
        if number != 1 {
            // Else what is before it must be nothing.
            self.head = AuditHead { number: number.saturating_sub(1), hash: previous.to_owned() };
            self.hashes.insert(number.saturating_sub(1), previous.to_owned());
            self.is_anchored = false;
        }
    }

    /// A log that does not begin with 1 must say itself why, and name the hash that its first entry follows.
    fn look_for_anchor(&mut self, pruned: &Map<String, Value>) {
        self.let_go = pruned.get("through").and_then(Value::as_i64).unwrap_or(0);
        let hash = pruned.get("hash").and_then(Value::as_str);
        if hash.is_some() && self.hashes.get(&self.let_go).map(String::as_str) == hash {
            self.is_anchored = true;
            self.hashes.clear();
        }
    }

    /// There are no more. `head` is where the log says that it ends.
    pub fn end(&self, head: Option<&AuditHead>) -> Checked {
        let next = self.head.number.saturating_add(1);
        if !self.is_anchored {
            return Err(broken(self.let_go.saturating_add(1), "it is missing, and no entry says that it was let go"));
        }
        match head {
            Some(head) if head.number > self.head.number => {
                return Err(broken(next, format!("it is missing: the log says that it ends with entry {}", head.number)));
            }
            Some(head) if *head != self.head => return Err(broken(next, "there may have been one: where the log ends was changed, or taken away")),
            _ => {}
        }
        self.kept.as_ref().map_or(Ok(()), |kept| Err(gone(kept)))
    }
}

impl Found {
    /// Its number and hash, when it is what it says that it is, and follows `before`.
    fn sound(self, before: &AuditHead) -> std::result::Result<AuditHead, ChainBroken> {
        if self.number == before.number + 1 && self.previous != before.hash {
            return Err(broken(self.number, "it does not follow the entry before it"));
        }
        let said = self.fields.get("hash").cloned();
        let hash = hash_of_fields(self.fields);
        if said.as_ref().and_then(Value::as_str) != Some(&hash) {
            return Err(broken(self.number, "it was changed: its hash is not that of what it says"));
        }
        Ok(AuditHead { number: self.number, hash })
    }

    /// What it says of older ones that were let go, where it does.
    fn pruned(&self) -> Option<Map<String, Value>> {
        let is_pruned = self.fields.get("action").and_then(Value::as_str) == Some(PRUNED);
        self.fields.get("detail").filter(|_| is_pruned).and_then(Value::as_object).cloned()
    }
}

fn gone(kept: &AuditHead) -> ChainBroken {
    broken(kept.number, "it was kept, and is not in the log any more: cut off, or let go since")
}

/// Of the hashes so far, beginning with that of an empty [`Part`], and one more: what is left out of an export shows, though numbers have gaps.
#[must_use]
pub fn digest_with(digest: &str, hash: &str) -> String {
    hex(format!("{digest}{hash}").as_bytes())
}

/// What one account sees of the log: its own entries, out of a chain whose other links it is not shown.
///
/// They tell that each is as its hash says, that they stand in their order, and that two which are neighbours follow each other. Whether one is
/// missing they do not tell: where it stood, another's may have.
#[derive(Debug)]
pub struct Part {
    /// How many were taken.
    pub count: i64,
    /// The last of them.
    pub head: AuditHead,
    /// Of all hashes.
    pub digest: String,
    kept: Option<AuditHead>,
}

impl Part {
    /// `kept` is the last of them at some time before, from where nobody who can write the log could change it.
    #[must_use]
    pub fn new(kept: Option<AuditHead>) -> Self {
        let kept = kept.filter(|kept| kept.number != 0); // with 0 there was none yet
        Self { count: 0, head: AuditHead { number: 0, hash: genesis() }, digest: genesis(), kept }
    }

    /// The next one: an `AuditEntry`, or an object of JSON, which may be of a later version and have more fields.
    pub fn add(&mut self, entry: &impl Serialize) -> Checked {
        let entry = found(entry, self.head.number.saturating_add(1), "where it may have been")?;
        if entry.number <= self.head.number {
            return Err(broken(entry.number, format!("it is out of its place: it stands after entry {}", self.head.number)));
        }
        let head = entry.sound(&self.head)?;
        self.compare(&head)?;
        self.digest = digest_with(&self.digest, &head.hash);
        self.head = head;
        self.count += 1;
        Ok(())
    }

    fn compare(&mut self, head: &AuditHead) -> Checked {
        match self.kept.take_if(|kept| kept.number <= head.number) {
            Some(kept) if kept.number < head.number => Err(gone(&kept)),
            Some(kept) if kept != *head => Err(broken(head.number, "it is not the one that was kept: the log was written anew")),
            _ => Ok(()),
        }
    }

    /// There are no more.
    pub fn end(&self) -> Checked {
        self.kept.as_ref().map_or(Ok(()), |kept| Err(gone(kept)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::api::AuditEntry;
    use indexmap::IndexMap;

    fn log(count: i64) -> Vec<AuditEntry> {
        let mut previous = genesis();
        (1..=count)
            .map(|number| {
                let detail = IndexMap::from([("n".to_owned(), Value::from(number))]);
                let mut entry: AuditEntry = serde_json::from_value(serde_json::json!({
                    "time": "t", "action": "x", "outcome": "ok", "number": number, "previous": previous, "hash": "", "detail": detail,
                }))
                .unwrap();
                entry.hash = hash_of(&entry);
                previous.clone_from(&entry.hash);
                entry
            })
            .collect()
    }

    fn verify(entries: &[AuditEntry], kept: Option<AuditHead>, head: Option<&AuditHead>) -> Checked {
        let mut chain = Chain::new(kept)?;
        entries.iter().try_for_each(|entry| chain.add(entry))?;
        chain.end(head)
    }

    fn head(entry: &AuditEntry) -> AuditHead {
        AuditHead { number: entry.number, hash: entry.hash.clone() }
    }

    #[test]
    fn a_sound_log_is_sound_and_one_that_was_changed_names_the_first_bad_entry() {
        let sound = log(3);
        assert_eq!(verify(&sound, Some(head(&sound[1])), Some(&head(&sound[2]))), Ok(()));
        let mut changed = log(3);
        changed[1].action = "y".to_owned();
        assert_eq!(verify(&changed, None, None).unwrap_err().to_string(), "entry 2: it was changed: its hash is not that of what it says");
        assert_eq!(verify(&[sound[0].clone(), sound[2].clone()], None, None).unwrap_err().number, 2);
        assert_eq!(verify(&sound[..2], None, Some(&head(&sound[2]))).unwrap_err().number, 3);
        let other = AuditHead { number: 2, hash: genesis() };
        assert!(verify(&sound, Some(other), None).unwrap_err().reason.contains("written anew"));
    }

    #[test]
    fn a_log_that_does_not_begin_with_1_must_say_why() {
        let sound = log(3);
        assert_eq!(verify(&sound[1..], None, None).unwrap_err().reason, "it is missing, and no entry says that it was let go");
        let mut pruned = sound[2].clone();
        pruned.action = PRUNED.to_owned();
        pruned.detail = IndexMap::from([("through".to_owned(), 1.into()), ("hash".to_owned(), sound[0].hash.clone().into())]);
        pruned.hash = hash_of(&pruned);
        assert_eq!(verify(&[sound[1].clone(), pruned], None, None), Ok(()));
    }

    #[test]
    fn a_part_of_the_log_may_have_gaps_but_not_what_was_kept_missing() {
        let sound = log(4);
        let check = |entries: &[&AuditEntry], kept: &AuditEntry| {
            let mut part = Part::new(Some(head(kept)));
            entries.iter().try_for_each(|entry| part.add(entry))?;
            part.end()
        };
        assert_eq!(check(&[&sound[0], &sound[2]], &sound[2]), Ok(()));
        assert_eq!(check(&[&sound[0], &sound[3]], &sound[2]).unwrap_err().number, 3);
        assert_eq!(check(&[&sound[2], &sound[0]], &sound[2]).unwrap_err().number, 1);
    }

    #[test]
    fn what_a_later_version_wrote_is_covered_and_what_is_no_entry_is_told() {
        let mut later = fields_of(&log(1)[0]);
        later.insert("place".to_owned(), "elsewhere".into());
        later.insert("hash".to_owned(), hash_of(&later).into());
        let mut chain = Chain::new(None).unwrap();
        assert_eq!(chain.add(&later), Ok(()));
        assert_eq!(chain.add(&serde_json::json!({"nonsense": true})).unwrap_err().to_string(), "entry 2: what stands in its place is no entry");
    }
}
