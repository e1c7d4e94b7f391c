#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)] // of the library: in programs and tests `pub` is between their own files

mod audit;
mod chain;
mod channel;
mod client;
pub mod config;
mod decoding;
mod door;
mod egress;
mod entry;
mod error;
mod failures;
mod files;
mod functions;
pub mod generated;
mod inputs;
mod instruction;
mod listener;
mod machine;
mod options;
mod packing;
mod pauses;
mod points;
pub mod quoting;
mod repl;
pub mod results;
pub mod sentences;
mod signup;
mod socket;
mod spelling;
mod submission;
mod tape;
mod tokens;
mod transport;
mod webhooks;

/// Requests that are built up before they are sent. Nobody needs their names to use them.
pub mod requests {
    pub use crate::audit::{AuditEntries, ReadPage};
    pub use crate::client::{Builder, Create, Machines};
    pub use crate::egress::{SetEgressDefault, SetSecret};
    pub use crate::files::{Bytewise, DeleteFile, DownloadFile, DownloadFolder, UploadFile, UploadFolder};
    pub use crate::instruction::{Lines, Outcome};
    pub use crate::machine::{Complete, Instructions, Interrupt, Tape, Update};
    pub use crate::points::{Fork, Forks, Reset, Rollback, TakeSnapshot};
    pub use crate::repl::{Entries, OpenRepl, ReplComplete, ReplInterrupt};
    pub use crate::signup::SignUp;
    pub use crate::submission::{Exec, Run, RunLines, Submit};
    pub use crate::tokens::{ChangeQuota, CreateAccount, CreateToken, Invite};
    pub use crate::webhooks::{AddWebhook, RetryDead};
}

pub use audit::{Audit, Unverified};
pub use chain::{Chain, ChainBroken, Part, digest_with, hash_of};
pub use client::Everforge;
pub use config::find_access;
pub use egress::{Egress, EgressDefault, Secrets};
pub use entry::Entry;
pub use error::{Error, Fallible, Fields, Kind};
pub use files::Files;
pub use functions::{Answered, Args, Functions};
pub use generated::api;
pub use instruction::Instruction;
pub use listener::Listener;
pub use machine::Machine;
pub use points::Point;
pub use repl::Repl;
pub use results::{Bundle, Display, Line, Result};
pub use signup::{log_in, sign_up};
pub use tokens::{Accounts, Tokens};
pub use webhooks::Webhooks;

/// Of this client.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
