//! Steps on a machine itself, its copies and its files.

use super::given::{Given, given};
use super::{Done, Outcome, Thing, plain};
use everforge::{Machine, Point};
use futures::TryStreamExt;
use serde_json::{Value, json};

fn remembered(machine: Machine) -> Done {
    Done { got: json!({"name": machine.name()}), made: Some(Thing::Machine(machine)) }
}

/// None for a step that is not of these.
pub async fn act(what: &str, machine: &Machine, given: &Given<'_>) -> Option<Outcome> {
    if let Some(outcome) = files(what, machine, given).await {
        return Some(outcome);
    }
    Some(match what {
        "info" => one(machine.info().await),
        "hibernate" => one(machine.hibernate().await),
        "wake" => one(machine.wake().await),
        "update" => update(machine, given).await,
        "delete" => one(machine.delete().await),
        "reset" => machine.reset().discard(given.is("discard")).await.map(|undo| json!({"undo": undo}).into()).map_err(Into::into),
        "fork" => {
            let mut request = machine.fork();
            given!(request, given, maybe_text name);
            request.await.map(remembered).map_err(Into::into)
        }
        "forks" => {
            let mut request = machine.forks();
            given!(request, given, integer count, maybe_texts names);
            let names = |made: Vec<Machine>| made.iter().map(Machine::name).collect::<Value>().into();
            request.await.map(names).map_err(Into::into)
        }
        "snapshot" => {
            let mut request = machine.snapshot();
            given!(request, given, maybe_text name);
            one(request.await)
        }
        "snapshots" => one(machine.snapshots().await),
        "delete_snapshot" => one(machine.delete_snapshot(&given.text("snapshot")).await),
        "rollback" => {
            let mut request = machine.rollback().discard(given.is("discard"));
            match given.value("to") {
                Value::String(snapshot) => request = request.to(snapshot),
                Value::Number(number) => request = request.to(Point::Instruction(number.as_i64().unwrap_or(-1))),
                _ => {}
            }
            one(request.await)
        }
        _ => return None,
    })
}

async fn update(machine: &Machine, given: &Given<'_>) -> Outcome {
    let mut request = machine.update();
    given!(request, given, pairs tags, number idle_seconds, maybe_text history, maybe_text durability, maybe_text expires_at);
    if let Some(metadata) = given.object("metadata") {
        request = request.metadata(metadata.clone());
    }
    one(request.await)
}

async fn files(what: &str, machine: &Machine, given: &Given<'_>) -> Option<Outcome> {
    let (files, path) = (machine.files(), given.text("path"));
    Some(match what {
        "file_write" => one(files.write(&path, given.text("text")).await),
        "file_read" => files.read_text(&path).await.map(|text| json!({"text": text}).into()).map_err(Into::into),
        "file_list" => {
            let listed: Result<Vec<String>, _> = files.list(&path).map_ok(|file| file.name).try_collect().await;
            one(listed)
        }
        "file_exists" => files.exists(&path).await.map(|exists| json!({"exists": exists}).into()).map_err(Into::into),
        "file_delete" => one(files.delete(path).recursive(given.is("recursive")).await),
        _ => return None,
    })
}

pub fn one<T: serde::Serialize>(found: everforge::Fallible<T>) -> Outcome {
    found.map(|found| plain(&found).into()).map_err(Into::into)
}
