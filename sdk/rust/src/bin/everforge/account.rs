//! `everforge account ...`: the accounts of a server, for its owner.

use crate::connection::connected;
use crate::failures::Done;
use crate::numbers::short;
use crate::optional::Optional;
use crate::output::print_line;
use crate::python;
use crate::tables::{fields, moment, print_fields, print_json, print_rows};
use crate::usage::Given;
use crate::used::{is_zero, limits};
use everforge::api::{Account, Quota};
use everforge::requests::{ChangeQuota, CreateAccount, Invite};
use serde_json::{Value, json};

const HEADING: [&str; 5] = ["ACCOUNT", "EMAIL", "OWNER", "CREATED", "QUOTA"];

pub async fn list(given: Given) -> Done {
    let found = connected()?.accounts().list().await?;
    if given.json() {
        print_json(&found);
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

fn row(one: &Account) -> Vec<Value> {
    let owner = if one.owner { "yes" } else { "no" };
    vec![json!(one.account), json!(one.email), json!(owner), moment(Some(&one.created_at)), json!(one.quota.as_ref().map(limited))]
}

/// Those limits that there are.
fn limited(quota: &Quota) -> String {
    let limits = fields(quota).into_iter().filter(|(_, value)| !is_zero(value));
    limits.map(|(name, value)| format!("{name}={}", python::str(&value))).collect::<Vec<_>>().join(" ")
}

pub async fn create(given: Given) -> Done {
    let made = connected()?.accounts().create(given.required("name")).with(given.text("email"), CreateAccount::email).await?;
    if given.json() {
        print_json(&made);
    } else {
        print_line(&made.token);
    }
    Ok(())
}

pub async fn delete(given: Given) -> Done {
    let name = given.required("name");
    connected()?.accounts().delete(&name).await?;
    if given.json() {
        print_json(&json!({"deleted": true}));
    } else {
        print_line(&format!("deleted {name}"));
    }
    Ok(())
}

pub async fn quota(given: Given) -> Done {
    let rate = given.float("requests_per_second");
    if let Some(rate) = rate.filter(|rate| !(-1.0..f64::INFINITY).contains(rate)) {
        let why = format!("{} is no number of requests: 0 is no limit, -1 what the server's settings say", short(rate));
        return Err(given.bad("'--requests-per-second'", &why));
    }
    let request = connected()?
        .accounts()
        .quota(given.required("name"))
        .with(given.int("machines"), ChangeQuota::machines)
        .with(given.int("awake"), ChangeQuota::awake)
        .with(given.int("memory_mb"), ChangeQuota::memory_mb)
        .with(given.int("disk_mb"), ChangeQuota::disk_mb)
        .with(rate, ChangeQuota::requests_per_second)
        .with(given.int("egress_bytes_per_day"), ChangeQuota::egress_bytes_per_day);
    let found = request.await?;
    if given.json() {
        print_json(&found);
    } else {
        print_fields(limits(&found));
    }
    Ok(())
}

pub async fn invite(given: Given) -> Done {
    let request = connected()?.accounts().invite();
    let made = request.with(given.text("email"), Invite::email).with(given.text("expires_at"), Invite::expires_at).await?;
    if given.json() {
        print_json(&made);
    } else {
        print_line(&made.invitation);
    }
    Ok(())
}
