//! `everforge machine rollback` and `everforge machine reset`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::optional::Optional;
use crate::output::print_line;
use crate::progress::waiting;
use crate::tables::print_json;
use crate::usage::Given;
use everforge::Point;
use everforge::requests::Rollback;
use serde_json::json;

pub async fn rollback(given: Given) -> Done {
    let (name, discard) = (given.required("name"), given.flag("discard"));
    let point = match (given.text("snapshot"), given.int("instruction")) {
        (Some(_), Some(_)) => return Err(given.bad("--instruction", "give a snapshot or an instruction, not both")),
        (snapshot, instruction) => instruction.map(Point::from).or(snapshot.map(Point::from)),
    };
    let going = machine_named(&name, |machine| async move { Ok(machine.rollback().discard(discard).with(point, Rollback::to).await?) });
    let done = waiting(&format!("taking {name} back"), going).await?;
    if given.json() {
        print_json(&done);
        return Ok(());
    }
    let point = done.snapshot.name.filter(|name| !name.is_empty()).unwrap_or(done.snapshot.id);
    print_line(&format!("{name} is back at {point}"));
    tell_of_undo(&name, done.undo.as_deref(), discard);
    Ok(())
}

pub async fn reset(given: Given) -> Done {
    let (name, discard) = (given.required("name"), given.flag("discard"));
    let resetting = machine_named(&name, |machine| async move { Ok(machine.reset().discard(discard).await?) });
    let undo = waiting(&format!("resetting {name}"), resetting).await?;
    if given.json() {
        print_json(&json!({"undo": undo}));
        return Ok(());
    }
    print_line(&format!("{name} is as new"));
    tell_of_undo(&name, undo.as_deref(), discard);
    Ok(())
}

fn tell_of_undo(name: &str, undo: Option<&str>, discard: bool) {
    if let Some(undo) = undo {
        print_line(&format!("undo with: everforge machine rollback {name} {undo}"));
    } else if discard {
        print_line("what was before is not kept");
    }
}
