//! `everforge machine files get`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::output::{print_bytes, print_line};
use crate::progress::transfer;
use crate::tables::{print_json, size};
use crate::usage::Given;
use everforge::{Kind, Machine};
use futures::TryStreamExt;
use serde_json::json;
use std::path::{Component, Path, PathBuf};

pub async fn get(given: Given) -> Done {
    let (name, path, to) = (given.required("name"), given.required("path"), given.path("local"));
    if to.as_ref().is_some_and(|to| to.as_os_str() == "-") {
        return machine_named(&name, |machine| async move { print_file(&machine, &path).await }).await;
    }
    let target = target_of(&given, &path, to)?;
    let shown = target.to_string_lossy().into_owned();
    let (path, target) = (&path, &target);
    let got = machine_named(&name, |machine| async move { fetched(&machine, path, target).await }).await?;
    match (got, given.json()) {
        (Got::File(bytes), true) => print_json(&json!({"path": path, "local": shown, "size_bytes": bytes})),
        (Got::Folder(files), true) => print_json(&json!({"path": path, "local": shown, "files": files})),
        (Got::File(bytes), false) => print_line(&format!("{shown}: {}", size(i64::try_from(bytes).unwrap_or(i64::MAX)))),
        (Got::Folder(files), false) => print_line(&format!("{shown}: {files} files")),
    }
    Ok(())
}

async fn print_file(machine: &Machine, path: &str) -> Done {
    let mut chunks = machine.files().stream(path);
    while let Some(chunk) = chunks.try_next().await? {
        print_bytes(&chunk);
    }
    Ok(())
}

/// What came: so many bytes, or so many files.
enum Got {
    File(u64),
    Folder(usize),
}

async fn fetched(machine: &Machine, path: &str, target: &Path) -> Done<Got> {
    match machine.files().download(path, target).progress(transfer(path)).await {
        Ok(bytes) => Ok(Got::File(bytes)),
        Err(error) if error.is_a(Kind::NotAFile) => Ok(Got::Folder(machine.files().download_folder(path, target).progress(transfer(path)).await?)),
        Err(error) => Err(error.into()),
    }
}

/// Into a folder that is there, under its own name.
fn target_of(given: &Given, path: &str, to: Option<PathBuf>) -> Done<PathBuf> {
    match to {
        Some(to) if !to.is_dir() => Ok(tidy(&to)),
        to => match name_of(path) {
            "" | ".." => Err(given.bad("LOCAL", "say where to, for this one")),
            own => Ok(tidy(&to.unwrap_or_default().join(own))),
        },
    }
}

/// Without doubled slashes and dots in it, but with what leads upwards: that may lead elsewhere, over a link.
fn tidy(path: &Path) -> PathBuf {
    let tidied: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if tidied.as_os_str().is_empty() { PathBuf::from(".") } else { tidied }
}

/// The last part of a path of the machine.
fn name_of(path: &str) -> &str {
    path.split('/').rfind(|part| !part.is_empty() && *part != ".").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_it_is_over_there() {
        for (path, name) in [("data/a.csv", "a.csv"), ("data/", "data"), ("/", ""), ("a/.", "a"), ("..", ".."), (".", "")] {
            assert_eq!(name_of(path), name);
        }
    }

    #[test]
    fn paths_are_tidied_but_not_shortened() {
        for (given, made) in [("a//b/./c/", "a/b/c"), ("./a", "a"), ("a/../b", "a/../b"), ("", "."), ("/x//y", "/x/y")] {
            assert_eq!(tidy(Path::new(given)), Path::new(made));
        }
    }
}
