//! `everforge machine snapshot`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::optional::Optional;
use crate::output::print_line;
use crate::progress::waiting;
use crate::tables::{moment, print_json, print_rows, size};
use crate::usage::Given;
use everforge::Machine;
use everforge::api::Snapshot;
use everforge::requests::TakeSnapshot;
use serde_json::{Value, json};

const HEADING: [&str; 6] = ["ID", "NAME", "CREATED", "AFTER", "REASON", "SIZE"];

pub async fn snapshot(given: Given) -> Done {
    let (label, gone, listing) = (given.text("label"), given.text("gone"), given.flag("listing"));
    if [listing, gone.is_some(), label.is_some()].into_iter().filter(|&asked| asked).count() > 1 {
        return Err(given.bad("", "give one of --name, --list and --delete"));
    }
    let as_json = given.json();
    machine_named(&given.required("name"), |machine| async move {
        match gone {
            _ if listing => list(&machine, as_json).await,
            Some(gone) => delete(&machine, &gone, as_json).await,
            None => take(&machine, label, as_json).await,
        }
    })
    .await
}

async fn list(machine: &Machine, as_json: bool) -> Done {
    let found = machine.snapshots().await?;
    if as_json {
        print_json(&found);
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

fn row(one: &Snapshot) -> Vec<Value> {
    let after = one.instruction.map(|number| format!("instruction {number}"));
    vec![json!(one.id), json!(one.name), moment(Some(&one.created_at)), json!(after), json!(one.reason), json!(size(one.size_bytes))]
}

async fn delete(machine: &Machine, gone: &str, as_json: bool) -> Done {
    machine.delete_snapshot(gone).await?;
    if as_json {
        print_json(&json!({"deleted": true}));
    } else {
        print_line(&format!("deleted {gone}"));
    }
    Ok(())
}

async fn take(machine: &Machine, label: Option<String>, as_json: bool) -> Done {
    let request = machine.snapshot().with(label, TakeSnapshot::name);
    let taken = waiting(&format!("saving {}", machine.name()), async { request.await }).await?;
    if as_json {
        print_json(&taken);
    } else {
        print_line(&taken.id);
    }
    Ok(())
}
