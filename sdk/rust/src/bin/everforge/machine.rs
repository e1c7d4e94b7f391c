//! `everforge machine ...`: machines, and what can be done with them.

pub mod back;
pub mod delete;
pub mod exec;
pub mod files;
pub mod fork;
pub mod interrupt;
pub mod interrupting;
pub mod list;
pub mod logs;
pub mod new;
mod picturefiles;
pub mod show;
pub mod sleep;
pub mod snapshot;
pub mod tag;
mod watching;
