//! `everforge audit export`.

use super::file;
use crate::connection::connected;
use crate::failures::{Done, Failure};
use crate::output::{print_bytes, print_line};
use crate::tables::print_json;
use crate::usage::Given;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read, Seek};

const CHUNK_BYTES: usize = 64 * 1024;

pub async fn export(given: Given) -> Done {
    let path = given.path("file").unwrap_or_default();
    let to_output = path.as_os_str() == "-";
    let failed = |error: io::Error| Failure::local(path.display(), &error);
    let server = connected()?;
    let is_whole = server.audit().head().await?.is_some(); // first: who is not let in leaves no empty file behind
    let output = if to_output { tempfile::tempfile() } else { File::options().read(true).write(true).create_new(true).open(&path) };
    let mut output = output.map_err(failed)?;
    let count = file::write(&server, &mut output, is_whole).await.map_err(|trouble| trouble.told(path.display()))?;
    if to_output {
        print_all(&mut output).map_err(failed)?;
    } else if given.json() {
        print_json(&json!({"entries": count, "file": path.to_string_lossy()}));
    } else {
        print_line(&format!("{count} entries in {}", path.display()));
    }
    Ok(())
}

fn print_all(output: &mut File) -> io::Result<()> {
    output.rewind()?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match output.read(&mut chunk)? {
            0 => return Ok(()),
            count => print_bytes(&chunk[..count]),
        }
    }
}
