//! `everforge machine files put`.

use crate::connection::machine_named;
use crate::failures::{Done, Failure};
use crate::output::print_line;
use crate::progress::transfer;
use crate::stdin::{copy_to, is_closed};
use crate::tables::{print_json, size};
use crate::usage::Given;
use everforge::Machine;
use everforge::api::{FileWritten, Unpacked};
use serde::Serialize;
use std::io;
use std::path::{Component, Path, PathBuf};
use tempfile::NamedTempFile;

pub async fn put(given: Given) -> Done {
    let (name, from) = (given.required("name"), given.path("local").unwrap_or_default());
    let target = target_of(&given, &from)?;
    let (given, from, target) = (&given, &from, &target);
    let done = machine_named(&name, |machine| async move { sent(given, &machine, from, target).await }).await?;
    if given.json() {
        print_json(&done);
    } else {
        let (Sent::File(FileWritten { path, size_bytes }) | Sent::Folder(Unpacked { path, size_bytes, .. })) = done;
        print_line(&format!("{path}: {}", size(size_bytes)));
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(untagged)]
enum Sent {
    File(FileWritten),
    Folder(Unpacked),
}

async fn sent(given: &Given, machine: &Machine, from: &Path, target: &str) -> Done<Sent> {
    let (files, shown) = (machine.files(), from.to_string_lossy());
    if from.as_os_str() == "-" {
        if is_closed() {
            return Err(given.bad("LOCAL", "stdin is closed"));
        }
        let kept = piped().await.map_err(|error| Failure::local("-", &error))?;
        return Ok(Sent::File(files.upload(kept.path(), target).progress(transfer("-")).await?));
    }
    if from.is_dir() {
        return Ok(Sent::Folder(files.upload_folder(from, target).progress(transfer(&shown)).await?));
    }
    Ok(Sent::File(files.upload(from, target).progress(transfer(&shown)).await?))
}

/// What comes on stdin goes to disk first: it is sent again when the connection is cut.
async fn piped() -> io::Result<NamedTempFile> {
    let file = tempfile::Builder::new().prefix("everforge-").tempfile()?;
    copy_to(file.reopen()?).await?;
    Ok(file)
}

fn target_of(given: &Given, from: &Path) -> Done<String> {
    let path = given.text("path");
    if from.as_os_str() == "-" {
        let named = path.filter(|path| !path.ends_with('/'));
        return named.ok_or_else(|| given.bad("PATH", "stdin has no name of its own: say which file it becomes"));
    }
    let own = name_of(from).map_err(|error| Failure::local(from.display(), &error))?;
    Ok(match path {
        None => own,
        Some(path) if path.ends_with('/') => path + &own,
        Some(path) => path,
    })
}

/// Of `.` and `..`, too, and without following links.
fn name_of(path: &Path) -> io::Result<String> {
    let mut found = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            other => found.push(other),
        }
    }
    Ok(found.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_keeps_its_name() {
        for (path, name) in [("a/b.txt", "b.txt"), ("/x/y/", "y"), ("/x/y/..", "x"), ("/x/.", "x"), ("/", "")] {
            assert_eq!(name_of(Path::new(path)).unwrap(), name);
        }
    }
}
