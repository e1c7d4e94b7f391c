//! `everforge machine hibernate` and `everforge machine wake`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::output::print_line;
use crate::progress::waiting;
use crate::tables::print_json;
use crate::usage::Given;
use everforge::api;

pub async fn hibernate(given: Given) -> Done {
    let name = given.required("name");
    let saving = machine_named(&name, |machine| async move { Ok(machine.hibernate().await?) });
    tell(&given, &waiting(&format!("saving {name}"), saving).await?);
    Ok(())
}

pub async fn wake(given: Given) -> Done {
    let name = given.required("name");
    let waking = machine_named(&name, |machine| async move { Ok(machine.wake().await?) });
    tell(&given, &waiting(&format!("waking {name}"), waking).await?);
    Ok(())
}

fn tell(given: &Given, found: &api::Machine) {
    if given.json() {
        print_json(found);
    } else {
        print_line(&format!("{} is {}", given.required("name"), found.state));
    }
}
