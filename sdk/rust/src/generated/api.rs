// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.
//! Bodies of requests and answers over HTTP.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EndKind {
    Value,
    Error,
    Interrupted,
    TimedOut,
    Lost,
    Cancelled,
    Unknown(String),
}

impl EndKind {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["value", "error", "interrupted", "timed_out", "lost", "cancelled"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Value => "value",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for EndKind {
    fn from(word: String) -> Self {
        match word.as_str() {
            "value" => Self::Value,
            "error" => Self::Error,
            "interrupted" => Self::Interrupted,
            "timed_out" => Self::TimedOut,
            "lost" => Self::Lost,
            "cancelled" => Self::Cancelled,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for EndKind {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<EndKind> for String {
    fn from(value: EndKind) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for EndKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Stream {
    Stdout,
    Stderr,
    Unknown(String),
}

impl Stream {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["stdout", "stderr"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for Stream {
    fn from(word: String) -> Self {
        match word.as_str() {
            "stdout" => Self::Stdout,
            "stderr" => Self::Stderr,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for Stream {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<Stream> for String {
    fn from(value: Stream) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Retry {
    #[default]
    Never,
    Later,
    Now,
    Unknown(String),
}

impl Retry {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["never", "later", "now"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Never => "never",
            Self::Later => "later",
            Self::Now => "now",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for Retry {
    fn from(word: String) -> Self {
        match word.as_str() {
            "never" => Self::Never,
            "later" => Self::Later,
            "now" => Self::Now,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for Retry {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<Retry> for String {
    fn from(value: Retry) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for Retry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Egress {
    None,
    List,
    Packages,
    Public,
    Unknown(String),
}

impl Egress {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["none", "list", "packages", "public"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::List => "list",
            Self::Packages => "packages",
            Self::Public => "public",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for Egress {
    fn from(word: String) -> Self {
        match word.as_str() {
            "none" => Self::None,
            "list" => Self::List,
            "packages" => Self::Packages,
            "public" => Self::Public,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for Egress {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<Egress> for String {
    fn from(value: Egress) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum FileKind {
    File,
    Folder,
    Link,
    Other,
    Unknown(String),
}

impl FileKind {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["file", "folder", "link", "other"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::Other => "other",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for FileKind {
    fn from(word: String) -> Self {
        match word.as_str() {
            "file" => Self::File,
            "folder" => Self::Folder,
            "link" => Self::Link,
            "other" => Self::Other,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for FileKind {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<FileKind> for String {
    fn from(value: FileKind) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ArchiveFormat {
    Tar,
    TarGz,
    Zip,
    Unknown(String),
}

impl ArchiveFormat {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["tar", "tar.gz", "zip"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tar => "tar",
            Self::TarGz => "tar.gz",
            Self::Zip => "zip",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for ArchiveFormat {
    fn from(word: String) -> Self {
        match word.as_str() {
            "tar" => Self::Tar,
            "tar.gz" => Self::TarGz,
            "zip" => Self::Zip,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for ArchiveFormat {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<ArchiveFormat> for String {
    fn from(value: ArchiveFormat) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for ArchiveFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Scope {
    Read,
    Exec,
    Manage,
    Unknown(String),
}

impl Scope {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["read", "exec", "manage"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Read => "read",
            Self::Exec => "exec",
            Self::Manage => "manage",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for Scope {
    fn from(word: String) -> Self {
        match word.as_str() {
            "read" => Self::Read,
            "exec" => Self::Exec,
            "manage" => Self::Manage,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for Scope {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<Scope> for String {
    fn from(value: Scope) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum InstructionState {
    Queued,
    Running,
    Waiting,
    Ended,
    Unknown(String),
}

impl InstructionState {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["queued", "running", "waiting", "ended"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for InstructionState {
    fn from(word: String) -> Self {
        match word.as_str() {
            "queued" => Self::Queued,
            "running" => Self::Running,
            "waiting" => Self::Waiting,
            "ended" => Self::Ended,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for InstructionState {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<InstructionState> for String {
    fn from(value: InstructionState) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for InstructionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum State {
    Creating,
    Ready,
    Busy,
    Hibernating,
    Asleep,
    Waking,
    Broken,
    Deleted,
    Unknown(String),
}

impl State {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["creating", "ready", "busy", "hibernating", "asleep", "waking", "broken", "deleted"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::Hibernating => "hibernating",
            Self::Asleep => "asleep",
            Self::Waking => "waking",
            Self::Broken => "broken",
            Self::Deleted => "deleted",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for State {
    fn from(word: String) -> Self {
        match word.as_str() {
            "creating" => Self::Creating,
            "ready" => Self::Ready,
            "busy" => Self::Busy,
            "hibernating" => Self::Hibernating,
            "asleep" => Self::Asleep,
            "waking" => Self::Waking,
            "broken" => Self::Broken,
            "deleted" => Self::Deleted,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for State {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<State> for String {
    fn from(value: State) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum When {
    Idle,
    Each,
    Unknown(String),
}

impl When {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["idle", "each"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Idle => "idle",
            Self::Each => "each",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for When {
    fn from(word: String) -> Self {
        match word.as_str() {
            "idle" => Self::Idle,
            "each" => Self::Each,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for When {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<When> for String {
    fn from(value: When) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a younger server says is `Unknown`, with its word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Place {
    Body,
    Url,
    Unknown(String),
}

impl Place {
    /// The words that the wire has for it.
    pub const WORDS: &'static [&'static str] = &["body", "url"];

    /// As it is on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Body => "body",
            Self::Url => "url",
            Self::Unknown(word) => word,
        }
    }
}

impl From<String> for Place {
    fn from(word: String) -> Self {
        match word.as_str() {
            "body" => Self::Body,
            "url" => Self::Url,
            _ => Self::Unknown(word),
        }
    }
}

impl From<&str> for Place {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl From<Place> for String {
    fn from(value: Place) -> Self {
        value.as_str().to_owned()
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// RFC 3339, to the millisecond
    pub time: String,
    pub action: String,
    #[serde(default)]
    pub outcome: String,
    /// id; its name may be another one's later
    #[serde(default)]
    pub account: Option<String>,
    #[serde(default)]
    pub account_name: Option<String>,
    /// the id, which is no secret
    #[serde(default)]
    pub token: Option<String>,
    #[serde(default)]
    pub machine: Option<String>,
    #[serde(default)]
    pub address: Option<String>,
    /// its id, as in the server's log
    #[serde(default)]
    pub request: Option<String>,
    #[serde(default)]
    pub detail: IndexMap<String, Value>,
    /// from 1, without gaps
    pub number: i64,
    /// the hash of the entry before
    pub previous: String,
    pub hash: String,
}

impl super::Shape for AuditEntry {
    const NEEDED: &'static [&'static str] = &["time", "action", "number", "previous", "hash"];
}

/// Where the chain ends: what was written last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditHead {
    pub number: i64,
    pub hash: String,
}

impl super::Shape for AuditHead {
    const NEEDED: &'static [&'static str] = &["number", "hash"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    pub deleted: bool,
}

impl super::Shape for Deleted {
    const NEEDED: &'static [&'static str] = &["deleted"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EgressPolicy {
    pub egress: Egress,
    pub egress_allow: Vec<String>,
}

impl super::Shape for EgressPolicy {
    const NEEDED: &'static [&'static str] = &["egress", "egress_allow"];
}

/// Nothing at all: the server's own default again.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct EgressDefault {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_allow: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct EgressChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// rules to add, and
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// to take away
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EgressAttempt {
    /// give it as `before` for older ones
    pub number: i64,
    pub time: String,
    pub host: String,
    pub port: i64,
    /// http, tls, tcp
    pub speech: String,
    pub method: String,
    pub path: String,
    pub verdict: String,
    pub why: String,
    pub allowed_by: String,
    pub address: String,
    pub sent_bytes: i64,
    pub received_bytes: i64,
    /// names of those that were put in
    pub secrets: Vec<String>,
    pub ended_at: Option<String>,
}

impl super::Shape for EgressAttempt {
    const NEEDED: &'static [&'static str] = &["number", "time", "host", "port", "speech", "method", "path", "verdict", "why", "allowed_by", "address", "sent_bytes", "received_bytes", "secrets", "ended_at"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EgressLog {
    /// newest first
    pub attempts: Vec<EgressAttempt>,
    pub next: Option<i64>,
}

impl super::Shape for EgressLog {
    const NEEDED: &'static [&'static str] = &["attempts", "next"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    pub path: String,
    pub kind: FileKind,
    pub size_bytes: i64,
    pub modified_at: String,
    pub mode: i64,
    /// of a link
    pub target: Option<String>,
}

impl super::Shape for File {
    const NEEDED: &'static [&'static str] = &["name", "path", "kind", "size_bytes", "modified_at", "mode", "target"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileList {
    pub path: String,
    pub files: Vec<File>,
    pub next: Option<String>,
}

impl super::Shape for FileList {
    const NEEDED: &'static [&'static str] = &["path", "files", "next"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileWritten {
    pub path: String,
    pub size_bytes: i64,
}

impl super::Shape for FileWritten {
    const NEEDED: &'static [&'static str] = &["path", "size_bytes"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unpacked {
    pub path: String,
    pub files: i64,
    pub size_bytes: i64,
}

impl super::Shape for Unpacked {
    const NEEDED: &'static [&'static str] = &["path", "files", "size_bytes"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Whoami {
    pub account: String,
}

impl super::Shape for Whoami {
    const NEEDED: &'static [&'static str] = &["account"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenInUse {
    pub id: String,
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    /// it is for machines that have all of them; {}: for the whole account
    pub tags: IndexMap<String, String>,
}

impl super::Shape for TokenInUse {
    const NEEDED: &'static [&'static str] = &["id", "name", "scopes", "tags"];
}

/// What an account may have at most; 0: no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    pub machines: i64,
    pub awake: i64,
    pub memory_mb: i64,
    pub disk_mb: i64,
    pub requests_per_second: f64,
    pub egress_bytes_per_day: i64,
}

impl super::Shape for Quota {
    const NEEDED: &'static [&'static str] = &["machines", "awake", "memory_mb", "disk_mb", "requests_per_second", "egress_bytes_per_day"];
}

/// What is left out stays; 0: no limit, -1: as the server's settings say.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct QuotaChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awake: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_mb: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_bytes_per_day: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub account: String,
    pub email: Option<String>,
    pub owner: bool,
    pub created_at: String,
    #[serde(default)]
    pub token: Option<TokenInUse>,
    #[serde(default)]
    pub quota: Option<Quota>,
}

impl super::Shape for Account {
    const NEEDED: &'static [&'static str] = &["account", "email", "owner", "created_at"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccountList {
    pub accounts: Vec<Account>,
}

impl super::Shape for AccountList {
    const NEEDED: &'static [&'static str] = &["accounts"];
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewAccount {
    pub account_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct AccountCreated {
    pub account: String,
    /// shown once
    pub token: String,
}

impl std::fmt::Debug for AccountCreated {
    /// Without its token, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountCreated").field("account", &self.account).finish_non_exhaustive()
    }
}

impl super::Shape for AccountCreated {
    const NEEDED: &'static [&'static str] = &["account", "token"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NewInvitation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    pub invitation: String,
    pub expires_at: String,
}

impl std::fmt::Debug for Invitation {
    /// Without its invitation, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invitation").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl super::Shape for Invitation {
    const NEEDED: &'static [&'static str] = &["invitation", "expires_at"];
}

#[derive(Clone, PartialEq, Serialize)]
pub struct SignUp {
    pub email: String,
    pub account_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
}

impl std::fmt::Debug for SignUp {
    /// Without its invitation, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignUp").field("email", &self.email).field("account_name", &self.account_name).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedUp {
    pub account: String,
    /// shown once; None when it was mailed
    pub token: Option<String>,
    pub mailed: bool,
}

impl std::fmt::Debug for SignedUp {
    /// Without its token, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedUp").field("account", &self.account).field("mailed", &self.mailed).finish_non_exhaustive()
    }
}

impl super::Shape for SignedUp {
    const NEEDED: &'static [&'static str] = &["account", "token", "mailed"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NewToken {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// only for machines that have all of them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<IndexMap<String, String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    pub id: String,
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    pub tags: IndexMap<String, String>,
    pub created_at: String,
    pub last_used_at: Option<String>,
    pub expires_at: Option<String>,
}

impl super::Shape for Token {
    const NEEDED: &'static [&'static str] = &["id", "name", "scopes", "tags", "created_at", "last_used_at", "expires_at"];
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenCreated {
    pub id: String,
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    pub tags: IndexMap<String, String>,
    pub created_at: String,
    pub last_used_at: Option<String>,
    pub expires_at: Option<String>,
    /// shown once
    pub token: String,
}

impl std::fmt::Debug for TokenCreated {
    /// Without its token, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenCreated").field("id", &self.id).field("name", &self.name).field("scopes", &self.scopes).field("tags", &self.tags).field("created_at", &self.created_at).field("last_used_at", &self.last_used_at).field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl super::Shape for TokenCreated {
    const NEEDED: &'static [&'static str] = &["id", "name", "scopes", "tags", "created_at", "last_used_at", "expires_at", "token"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenList {
    pub tokens: Vec<Token>,
}

impl super::Shape for TokenList {
    const NEEDED: &'static [&'static str] = &["tokens"];
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct LogInLink {
    /// good for one log-in
    pub url: String,
    pub expires_at: String,
}

impl std::fmt::Debug for LogInLink {
    /// Without its url, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogInLink").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl super::Shape for LogInLink {
    const NEEDED: &'static [&'static str] = &["url", "expires_at"];
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedIn {
    pub account: String,
    /// shown once
    pub token: String,
    /// of the server
    pub url: String,
}

impl std::fmt::Debug for LoggedIn {
    /// Without its token, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedIn").field("account", &self.account).field("url", &self.url).finish_non_exhaustive()
    }
}

impl super::Shape for LoggedIn {
    const NEEDED: &'static [&'static str] = &["account", "token", "url"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub machines: i64,
    pub awake: i64,
    pub asleep: i64,
    pub broken: i64,
    pub instructions: i64,
    pub runtime_ms: i64,
    pub disk_bytes: i64,
    #[serde(default)]
    pub egress_bytes: i64,
    /// of all machines together
    #[serde(default)]
    pub awake_seconds: f64,
    #[serde(default)]
    pub quota: Option<Quota>,
}

impl super::Shape for Usage {
    const NEEDED: &'static [&'static str] = &["machines", "awake", "asleep", "broken", "instructions", "runtime_ms", "disk_bytes"];
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstructionText {
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<IndexMap<String, String>>,
    /// of the client's program, that the code may call
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exec {
    pub instruction: InstructionText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub instruction_seq: i64,
    pub interrupted: bool,
    pub machine: String,
}

impl super::Shape for Accepted {
    const NEEDED: &'static [&'static str] = &["instruction_seq", "interrupted", "machine"];
}

/// Of `value` and `error` one is absent: `value` is there, and may be null, when `end` is "value".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Result {
    pub runtime_ms: i64,
    pub end: EndKind,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub data: Option<IndexMap<String, Value>>,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub traceback: Option<String>,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default)]
    pub retry: Option<Retry>,
    #[serde(default)]
    pub displays: Option<Vec<IndexMap<String, Value>>>,
}

impl super::Shape for Result {
    const NEEDED: &'static [&'static str] = &["runtime_ms", "end"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstructionResult {
    pub instruction_id: i64,
    pub instruction_seq: i64,
    pub result: Result,
}

impl super::Shape for InstructionResult {
    const NEEDED: &'static [&'static str] = &["instruction_id", "instruction_seq", "result"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    pub instruction_seq: i64,
    pub code: String,
    pub timeout_seconds: f64,
    pub state: InstructionState,
    pub accepted_at: String,
    /// of its acceptance
    pub position: i64,
    pub result: Option<Result>,
}

impl super::Shape for Instruction {
    const NEEDED: &'static [&'static str] = &["instruction_seq", "code", "timeout_seconds", "state", "accepted_at", "position", "result"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstructionList {
    pub instructions: Vec<Instruction>,
    pub next: Option<i64>,
}

impl super::Shape for InstructionList {
    const NEEDED: &'static [&'static str] = &["instructions", "next"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Interrupt {
    /// those that wait, too
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<bool>,
    /// this one alone, running or waiting
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interrupted {
    pub interrupted: bool,
}

impl super::Shape for Interrupted {
    const NEEDED: &'static [&'static str] = &["interrupted"];
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Complete {
    pub code: String,
    /// characters before it; None: at the end
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completed {
    pub matches: Vec<String>,
    /// what they take the place of
    pub start: i64,
    pub end: i64,
    /// an instruction runs: nobody was asked
    pub busy: bool,
}

impl super::Shape for Completed {
    const NEEDED: &'static [&'static str] = &["matches", "start", "end", "busy"];
}

/// What a host function returned, or the message of what it raised.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub answered: bool,
}

impl super::Shape for Answered {
    const NEEDED: &'static [&'static str] = &["answered"];
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SnapshotRef {
    pub machine: String,
    /// id or name
    pub snapshot: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NewMachine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<IndexMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_mb: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<IndexMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_allow: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<IndexMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_snapshot: Option<SnapshotRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineCreated {
    pub machine_name: String,
}

impl super::Shape for MachineCreated {
    const NEEDED: &'static [&'static str] = &["machine_name"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedMachine {
    pub name: String,
    pub state: State,
    pub created_at: String,
    pub last_used_at: String,
    pub expires_at: Option<String>,
    pub tags: IndexMap<String, String>,
    pub metadata: IndexMap<String, Value>,
    pub memory_mb: i64,
    pub cpus: f64,
    pub disk_mb: i64,
    pub processes: i64,
    pub engine: String,
    pub image: String,
    pub idle_seconds: f64,
    pub history: String,
    pub durability: String,
    /// what it may reach, and
    pub egress: Egress,
    /// beyond that
    pub egress_allow: Vec<String>,
    pub next_instruction: i64,
    pub pending_instructions: i64,
    pub error: Option<String>,
    pub running: bool,
    pub has_pending_instruction: bool,
    pub has_pending_instructions: bool,
}

impl super::Shape for ListedMachine {
    const NEEDED: &'static [&'static str] = &["name", "state", "created_at", "last_used_at", "expires_at", "tags", "metadata", "memory_mb", "cpus", "disk_mb", "processes", "engine", "image", "idle_seconds", "history", "durability", "egress", "egress_allow", "next_instruction", "pending_instructions", "error", "running", "has_pending_instruction", "has_pending_instructions"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub name: String,
    pub state: State,
    pub created_at: String,
    pub last_used_at: String,
    pub expires_at: Option<String>,
    pub tags: IndexMap<String, String>,
    pub metadata: IndexMap<String, Value>,
    pub memory_mb: i64,
    pub cpus: f64,
    pub disk_mb: i64,
    pub processes: i64,
    pub engine: String,
    pub image: String,
    pub idle_seconds: f64,
    pub history: String,
    pub durability: String,
    /// what it may reach, and
    pub egress: Egress,
    /// beyond that
    pub egress_allow: Vec<String>,
    pub next_instruction: i64,
    pub pending_instructions: i64,
    pub error: Option<String>,
    pub running: bool,
    pub has_pending_instruction: bool,
    pub has_pending_instructions: bool,
    /// the tape's last
    pub position: i64,
    /// of the host, now
    pub memory_bytes: i64,
    /// its snapshots
    pub disk_bytes: i64,
    /// the name of the machine that it was forked from, while that is there
    pub forked_from: Option<String>,
}

impl super::Shape for Machine {
    const NEEDED: &'static [&'static str] = &["name", "state", "created_at", "last_used_at", "expires_at", "tags", "metadata", "memory_mb", "cpus", "disk_mb", "processes", "engine", "image", "idle_seconds", "history", "durability", "egress", "egress_allow", "next_instruction", "pending_instructions", "error", "running", "has_pending_instruction", "has_pending_instructions", "position", "memory_bytes", "disk_bytes", "forked_from"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ListMachines {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<IndexMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineList {
    pub machines: Vec<ListedMachine>,
    /// give it as `after` for the next page
    pub next: Option<String>,
}

impl super::Shape for MachineList {
    const NEEDED: &'static [&'static str] = &["machines", "next"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MachineChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<IndexMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<IndexMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// in place of the rules that there are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_allow: Option<Vec<String>>,
    /// "never" clears it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Fork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    pub machine_name: String,
    pub machine_names: Vec<String>,
}

impl super::Shape for Forked {
    const NEEDED: &'static [&'static str] = &["machine_name", "machine_names"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Reset {
    /// a machine that is awake is not saved first, and `undo` is null
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WasReset {
    /// the snapshot that brings back what was before
    pub undo: Option<String>,
}

impl super::Shape for WasReset {
    const NEEDED: &'static [&'static str] = &["undo"];
}

#[derive(Clone, PartialEq, Serialize)]
pub struct NewSecret {
    pub value: String,
    pub hosts: Vec<String>,
    /// put in by itself, {} where the value goes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// beside headers
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<Place>>,
}

impl std::fmt::Debug for NewSecret {
    /// Without its value, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSecret").field("hosts", &self.hosts).field("header", &self.header).field("places", &self.places).finish_non_exhaustive()
    }
}

/// Everything of it but its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    pub name: String,
    pub placeholder: String,
    pub hosts: Vec<String>,
    pub header: Option<String>,
    pub places: Vec<String>,
    pub created_at: String,
    pub changed_at: String,
}

impl super::Shape for Secret {
    const NEEDED: &'static [&'static str] = &["name", "placeholder", "hosts", "header", "places", "created_at", "changed_at"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecretList {
    pub secrets: Vec<Secret>,
}

impl super::Shape for SecretList {
    const NEEDED: &'static [&'static str] = &["secrets"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub status: String,
    pub version: String,
}

impl super::Shape for Health {
    const NEEDED: &'static [&'static str] = &["status", "version"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    pub code: String,
    pub message: String,
    pub retry: Retry,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub details: IndexMap<String, Value>,
}

impl super::Shape for Error {
    const NEEDED: &'static [&'static str] = &["code", "message", "retry"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NewSnapshot {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: String,
    pub name: Option<String>,
    pub position: i64,
    /// the last one whose effects it holds
    pub instruction: Option<i64>,
    pub created_at: String,
    pub reason: String,
    pub size_bytes: i64,
}

impl super::Shape for Snapshot {
    const NEEDED: &'static [&'static str] = &["id", "name", "position", "instruction", "created_at", "reason", "size_bytes"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotList {
    pub snapshots: Vec<Snapshot>,
}

impl super::Shape for SnapshotList {
    const NEEDED: &'static [&'static str] = &["snapshots"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rollback {
    /// a snapshot's id or name; or an instruction: the state after it; None: the newest snapshot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// a machine that is awake is not saved first, and `undo` is null
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolledBack {
    pub snapshot: Snapshot,
    pub undo: Option<String>,
}

impl super::Shape for RolledBack {
    const NEEDED: &'static [&'static str] = &["snapshot", "undo"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tape {
    pub entries: Vec<IndexMap<String, Value>>,
    /// give it as `after` to go on
    pub position: i64,
    pub more: bool,
}

impl super::Shape for Tape {
    const NEEDED: &'static [&'static str] = &["entries", "position", "more"];
}

#[derive(Clone, PartialEq, Serialize)]
pub struct NewWebhook {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl std::fmt::Debug for NewWebhook {
    /// Without its secret, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewWebhook").field("url", &self.url).field("events", &self.events).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: String,
    pub url: String,
    pub events: Vec<String>,
    pub created_at: String,
}

impl super::Shape for Webhook {
    const NEEDED: &'static [&'static str] = &["id", "url", "events", "created_at"];
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookCreated {
    pub id: String,
    pub url: String,
    pub events: Vec<String>,
    pub created_at: String,
    /// shown once
    pub secret: String,
}

impl std::fmt::Debug for WebhookCreated {
    /// Without its secret, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookCreated").field("id", &self.id).field("url", &self.url).field("events", &self.events).field("created_at", &self.created_at).finish_non_exhaustive()
    }
}

impl super::Shape for WebhookCreated {
    const NEEDED: &'static [&'static str] = &["id", "url", "events", "created_at", "secret"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
}

impl super::Shape for WebhookList {
    const NEEDED: &'static [&'static str] = &["webhooks"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookTested {
    pub delivered: bool,
}

impl super::Shape for WebhookTested {
    const NEEDED: &'static [&'static str] = &["delivered"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub id: String,
    pub webhook: String,
    pub event: String,
    /// as it was signed
    pub body: String,
    pub created_at: String,
    pub attempts: i64,
    /// why the last try failed
    pub error: Option<String>,
}

impl super::Shape for Delivery {
    const NEEDED: &'static [&'static str] = &["id", "webhook", "event", "body", "created_at", "attempts", "error"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryList {
    pub deliveries: Vec<Delivery>,
    /// older ones that there was no room for, since the server's start
    #[serde(default)]
    pub let_go: i64,
}

impl super::Shape for DeliveryList {
    const NEEDED: &'static [&'static str] = &["deliveries"];
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RetryDead {
    /// all of them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retried {
    pub deliveries: i64,
}

impl super::Shape for Retried {
    const NEEDED: &'static [&'static str] = &["deliveries"];
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditPage {
    /// oldest first
    pub entries: Vec<AuditEntry>,
    /// to be given as `after` for those that follow
    pub next: Option<i64>,
    /// where the whole log ends; for the owner, who alone sees all of it
    #[serde(default)]
    pub head: Option<AuditHead>,
}

impl super::Shape for AuditPage {
    const NEEDED: &'static [&'static str] = &["entries", "next"];
}
