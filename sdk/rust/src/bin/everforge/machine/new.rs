//! `everforge machine new`.

use crate::connection::{connected, suggesting};
use crate::failures::Done;
use crate::optional::{Optional, some};
use crate::output::print_line;
use crate::progress::waiting;
use crate::python::quoted;
use crate::tables::print_json;
use crate::usage::Given;
use everforge::api::{Egress, When};
use everforge::requests::Create;
use serde_json::json;

pub async fn create(given: Given) -> Done {
    let egress = given.one_of(Egress::WORDS, "--egress", "egress")?;
    let history = given.one_of(When::WORDS, "--history", "history")?;
    let durability = given.one_of(When::WORDS, "--durability", "durability")?;
    let (tags, env) = (given.pairs("tag", "--tag")?, given.pairs("env", "--env")?);
    let copied = snapshot_of(&given)?;
    let request = connected()?
        .create()
        .with(given.text("name"), Create::name)
        .with(tags, Create::tags)
        .with(given.int("memory_mb"), Create::memory_mb)
        .with(given.float("cpus"), Create::cpus)
        .with(given.int("disk_mb"), Create::disk_mb)
        .with(given.int("processes"), Create::processes)
        .with(given.text("image"), Create::image)
        .with(env, Create::envs)
        .with(egress, Create::egress)
        .with(some(given.texts("allow")), Create::egress_allow)
        .with(given.float("idle_seconds"), Create::idle_seconds)
        .with(given.text("expires_at"), Create::expires_at)
        .with(history, Create::history)
        .with(durability, Create::durability)
        .with(copied.clone(), |request, (machine, snapshot)| request.from_snapshot(machine, snapshot));
    let copied = copied.as_ref().map(|(machine, _)| machine.as_str());
    let made = suggesting(copied, waiting("making a machine", async { Ok(request.await?) })).await?;
    if given.json() {
        print_json(&json!({"machine_name": made.name()}));
    } else {
        print_line(made.name());
    }
    Ok(())
}

fn snapshot_of(given: &Given) -> Done<Option<(String, String)>> {
    let Some(text) = given.text("from_snapshot") else { return Ok(None) };
    match text.split_once(':') {
        Some((machine, snapshot)) if !machine.is_empty() && !snapshot.is_empty() => Ok(Some((machine.to_owned(), snapshot.to_owned()))),
        _ => Err(given.bad("--from-snapshot", &format!("{} is not MACHINE:SNAPSHOT", quoted(&text)))),
    }
}
