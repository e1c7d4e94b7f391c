//! `everforge egress ...`: what machines may reach, and what they have tried to.

pub mod log;
pub mod policy;
