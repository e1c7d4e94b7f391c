//! `everforge machine files list`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::tables::{moment, print_json, print_rows};
use crate::usage::Given;
use everforge::api::{File, FileKind};
use futures::TryStreamExt;
use serde_json::{Value, json};

const HEADING: [&str; 4] = ["MODE", "SIZE", "MODIFIED", "NAME"];
const SPECIAL: [(i64, char, char); 3] = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')]; // and how it is shown with and without x

pub async fn list(given: Given) -> Done {
    let (name, path) = (given.required("name"), given.required("path"));
    let listing = machine_named(&name, |machine| async move { Ok(machine.files().list(&path).try_collect::<Vec<_>>().await?) });
    let found = listing.await?;
    if given.json() {
        print_json(&found);
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

fn row(file: &File) -> Vec<Value> {
    let kind = match file.kind {
        FileKind::Folder => 'd',
        FileKind::Link => 'l',
        FileKind::File => '-',
        FileKind::Other | FileKind::Unknown(_) => '?',
    };
    let name = file.target.as_ref().map_or_else(|| file.name.clone(), |target| format!("{} -> {target}", file.name));
    vec![json!(format!("{kind}{}", permissions(file.mode))), json!(file.size_bytes), moment(Some(&file.modified_at)), json!(name)]
}

/// As `ls -l` shows them.
fn permissions(mode: i64) -> String {
    let mut shown = String::new();
    for (place, (bit, with_x, without_x)) in SPECIAL.into_iter().enumerate() {
        let three = mode >> (6 - 3 * place);
        shown.push(if three & 4 != 0 { 'r' } else { '-' });
        shown.push(if three & 2 != 0 { 'w' } else { '-' });
        shown.push(match (three & 1 != 0, mode & bit != 0) {
            (true, true) => with_x,
            (false, true) => without_x,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_shown_as_ls_shows_them() {
        for (mode, shown) in
            [(0o644, "rw-r--r--"), (0o755, "rwxr-xr-x"), (0o4755, "rwsr-xr-x"), (0o2644, "rw-r-Sr--"), (0o1777, "rwxrwxrwt"), (0o1000, "--------T")]
        {
            assert_eq!(permissions(mode), shown);
        }
    }
}
