//! `everforge machine show`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::tables::{fields, print_fields, print_json, size};
use crate::usage::Given;

pub async fn show(given: Given) -> Done {
    let found = machine_named(&given.required("name"), |machine| async move { Ok(machine.info().await?) }).await?;
    if given.json() {
        print_json(&found);
        return Ok(());
    }
    let mut shown = fields(&found);
    for (name, bytes) in [("memory_bytes", found.memory_bytes), ("disk_bytes", found.disk_bytes)] {
        shown.insert(name.to_owned(), format!("{bytes} ({})", size(bytes)).into());
    }
    print_fields(shown.into_iter().filter(|(name, _)| !name.starts_with("has_pending")));
    Ok(())
}
