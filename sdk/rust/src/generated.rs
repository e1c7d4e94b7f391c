//! The wire in Rust. Made from the server's own types; see the head of each file.
#![allow(missing_docs, clippy::pedantic, clippy::module_inception)]

/// What an answer must have to be worked with.
pub trait Shape: serde::de::DeserializeOwned {
    /// Names of fields.
    const NEEDED: &'static [&'static str];
}

#[rustfmt::skip]
pub mod api;
#[rustfmt::skip]
pub mod entries;
#[rustfmt::skip]
pub mod errors;
#[rustfmt::skip]
pub mod sentences;
