//! `everforge machine files ...`: files of a machine.

pub mod delete;
pub mod get;
pub mod list;
pub mod put;
