//! `everforge egress show`, `allow`, `deny`, `set` and `default`.

use crate::connection::{connected, machine_named};
use crate::failures::Done;
use crate::optional::{Optional, some};
use crate::output::{flush, print_line, say};
use crate::tables::print_json;
use crate::usage::Given;
use everforge::api::{Egress, EgressPolicy};
use everforge::requests::SetEgressDefault;

fn tell(policy: &EgressPolicy, as_json: bool) {
    if as_json {
        print_json(policy);
        return;
    }
    print_line(policy.egress.as_str());
    for rule in &policy.egress_allow {
        print_line(&format!("  {rule}"));
    }
}

pub async fn show(given: Given) -> Done {
    let found = match given.text("name") {
        None => connected()?.egress().show().await?,
        Some(name) => machine_named(&name, |machine| async move { Ok(machine.egress().show().await?) }).await?,
    };
    tell(&found, given.json());
    Ok(())
}

pub async fn allow(given: Given) -> Done {
    let (name, hosts) = (given.required("name"), given.texts("hosts"));
    let found = machine_named(&name, |machine| async move { Ok(machine.egress().allow(hosts).await?) }).await?;
    tell(&found, given.json());
    Ok(())
}

pub async fn deny(given: Given) -> Done {
    let (name, hosts) = (given.required("name"), given.texts("hosts"));
    let found = machine_named(&name, |machine| async move { Ok(machine.egress().deny(hosts).await?) }).await?;
    tell(&found, given.json());
    Ok(())
}

pub async fn set(given: Given) -> Done {
    let policy = given.one_of(Egress::WORDS, "POLICY", "policy")?.unwrap_or_default();
    let name = given.required("name");
    let change = machine_named(&name, |machine| async move {
        let before = machine.egress().show().await?.egress_allow;
        Ok((before, machine.egress().set(policy).await?))
    });
    let (before, now) = change.await?;
    tell(&now, given.json());
    let dropped: Vec<String> = before.into_iter().filter(|rule| !now.egress_allow.contains(rule)).collect();
    if !dropped.is_empty() && !given.json() {
        flush();
        let several = if dropped.len() > 1 { "s" } else { "" };
        say(&format!("everforge: {} rule{several} dropped: {}", dropped.len(), dropped.join(" ")));
    }
    Ok(())
}

pub async fn set_default(given: Given) -> Done {
    let policy = given.one_of(Egress::WORDS, "POLICY", "policy")?;
    let request = connected()?.egress().set();
    let found = request.with(policy, SetEgressDefault::policy).with(some(given.texts("allow")), SetEgressDefault::allow).await?;
    tell(&found, given.json());
    Ok(())
}
