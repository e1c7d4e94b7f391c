//! `everforge ...`. Exit codes: 0 done; 1 a no as the answer, code that raised, or an answer that could not be written; 2 wrong usage; 3 refused or
//! failed with a sentence on stderr; 4 the server is not reachable; 130 interrupted; 141 whoever read the answer has gone.
#![allow(missing_docs, unreachable_pub)] // nobody uses a program's items but the program

mod account;
mod asking;
mod audit;
mod connection;
mod egress;
mod failures;
mod grammar;
mod handlers;
mod interruption;
mod login;
mod machine;
mod names;
mod near;
mod numbers;
mod optional;
mod output;
mod progress;
mod python;
mod repl;
mod run;
mod secret;
mod signup;
mod stdin;
mod tables;
mod terminal;
mod token;
mod usage;
mod used;
mod way;
mod webhook;
mod whoami;

use std::ffi::OsString;

fn main() {
    if let Some(code) = terminal::scribeprocess::asked() {
        std::process::exit(code);
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Without waiting for what may still read a terminal, or write to whoever does not read.
    std::process::exit(run::run(&words));
}
