//! `everforge machine files delete`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::output::print_line;
use crate::tables::print_json;
use crate::usage::Given;
use serde_json::json;

pub async fn delete(given: Given) -> Done {
    let (path, recursive) = (given.required("path"), given.flag("recursive"));
    let request = |machine: everforge::Machine| machine.files().delete(&path).recursive(recursive);
    machine_named(&given.required("name"), |machine| async { Ok(request(machine).await?) }).await?;
    if given.json() {
        print_json(&json!({"deleted": true}));
    } else {
        print_line(&format!("deleted {path}"));
    }
    Ok(())
}
