//! `everforge machine interrupt`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::output::print_line;
use crate::tables::print_json;
use crate::usage::Given;
use serde_json::json;

pub async fn interrupt(given: Given) -> Done {
    let pending = given.flag("pending");
    let done = machine_named(&given.required("name"), |machine| async move { Ok(machine.interrupt().pending(pending).await?) }).await?;
    if given.json() {
        print_json(&json!({"interrupted": done}));
    } else {
        print_line(if done { "interrupted" } else { "nothing was running" });
    }
    Ok(())
}
