//! `everforge audit ...`: who did what.

pub mod export;
mod file;
pub mod show;
pub mod verify;
