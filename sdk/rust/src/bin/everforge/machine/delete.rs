//! `everforge machine delete`.

use crate::asking::confirm;
use crate::connection::machine_named;
use crate::failures::Done;
use crate::output::{flush, print_line, stderr_on_terminal, stdin_on_terminal};
use crate::progress::waiting;
use crate::tables::print_json;
use crate::usage::Given;
use serde_json::json;

pub async fn delete(given: Given) -> Done {
    let names = given.texts("names");
    if !given.flag("yes") && stdin_on_terminal() && stderr_on_terminal() {
        confirm(&format!("Delete {} for ever?", names.join(", "))).await?;
    }
    for name in &names {
        let deleting = machine_named(name, |machine| async move { Ok(machine.delete().await?) });
        waiting(&format!("deleting {name}"), deleting).await?;
        if !given.json() {
            print_line(&format!("deleted {name}"));
            flush();
        }
    }
    if given.json() {
        print_json(&json!({"deleted": names}));
    }
    Ok(())
}
