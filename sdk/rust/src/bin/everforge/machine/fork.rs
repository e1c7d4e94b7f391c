//! `everforge machine fork`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::output::print_line;
use crate::progress::waiting;
use crate::tables::print_json;
use crate::usage::Given;
use serde_json::json;

pub async fn fork(given: Given) -> Done {
    let (name, names, count) = (given.required("name"), given.texts("new"), given.int("count"));
    if !names.is_empty() && count.is_some_and(|count| usize::try_from(count) != Ok(names.len())) {
        return Err(given.bad("--count", &format!("{} names were given", names.len())));
    }
    let copies = machine_named(&name, |machine| async move {
        let forks = machine.forks();
        Ok(if names.is_empty() { forks.count(count.unwrap_or(1)) } else { forks.names(names) }.await?)
    });
    let made = waiting(&format!("copying {name}"), copies).await?;
    let names: Vec<&str> = made.iter().map(everforge::Machine::name).collect();
    if given.json() {
        print_json(&json!({"machine_names": names}));
    } else {
        print_line(&names.join("\n"));
    }
    Ok(())
}
