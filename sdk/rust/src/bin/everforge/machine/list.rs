//! `everforge machine list`.

use crate::connection::connected;
use crate::failures::Done;
use crate::output::{on_terminal, print, print_line};
use crate::python::json_line;
use crate::tables::{moment, plain, print_rows};
use crate::usage::Given;
use everforge::api::{ListedMachine, State};
use everforge::requests::Machines;
use futures::TryStreamExt;
use serde_json::{Value, json};

const HEADING: [&str; 7] = ["NAME", "STATE", "CREATED", "LAST USED", "MEMORY MB", "IMAGE", "TAGS"];
const IMAGE_CHARACTERS: usize = 12; // of a digest, as many as tell one from another

pub async fn list(given: Given) -> Done {
    let state = given.one_of(State::WORDS, "--state", "state")?;
    let tags = given.pairs("tag", "--tag")?;
    let prefix = given.text("prefix").filter(|prefix| !prefix.is_empty());
    let is_all = tags.is_none() && state.is_none() && prefix.is_none();
    let mut machines = connected()?.machines();
    if let Some(tags) = tags {
        machines = machines.tags(tags);
    }
    if let Some(state) = state {
        machines = machines.state(state);
    }
    if let Some(prefix) = prefix {
        machines = machines.prefix(prefix);
    }
    match (given.json(), on_terminal()) {
        (true, _) => print_as_json(machines).await,
        (_, true) => print_table(machines, is_all).await,
        _ => print_lines(machines).await,
    }
}

/// All of them first: the widest says how wide the columns are.
async fn print_table(machines: Machines, is_all: bool) -> Done {
    let found: Vec<_> = machines.try_collect().await?;
    if found.is_empty() {
        print_line(if is_all { "No machines; `everforge machine new` makes one." } else { "No such machines." });
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

/// As they come: a server may have very many.
async fn print_lines(mut machines: Machines) -> Done {
    while let Some(machine) = machines.try_next().await? {
        print_line(&row(&machine).iter().map(plain).collect::<Vec<_>>().join("\t"));
    }
    Ok(())
}

async fn print_as_json(mut machines: Machines) -> Done {
    let mut separator = "[";
    while let Some(machine) = machines.try_next().await? {
        print(separator);
        print(&json_line(&machine));
        separator = ",\n ";
    }
    print_line(if separator == "[" { "[]" } else { "]" });
    Ok(())
}

fn row(machine: &ListedMachine) -> Vec<Value> {
    let image: String = machine.image.chars().take(IMAGE_CHARACTERS).collect();
    let times = [moment(Some(&machine.created_at)), moment(Some(&machine.last_used_at))];
    let [created, used] = times;
    vec![json!(machine.name), json!(machine.state), created, used, json!(machine.memory_mb), json!(image), json!(machine.tags)]
}
