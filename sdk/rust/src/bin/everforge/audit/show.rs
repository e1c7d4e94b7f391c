//! `everforge audit`.

use crate::connection::connected;
use crate::failures::Done;
use crate::optional::Optional;
use crate::output::say;
use crate::tables::{moment, print_json, print_rows};
use crate::usage::Given;
use everforge::Everforge;
use everforge::api::AuditEntry;
use everforge::requests::{AuditEntries, ReadPage};
use futures::TryStreamExt;
use serde_json::{Value, json};

const LAST: i64 = 50;
const HEADING: [&str; 9] = ["NUMBER", "TIME", "ACCOUNT", "TOKEN", "ADDRESS", "ACTION", "MACHINE", "OUTCOME", "DETAIL"];

pub async fn show(given: Given) -> Done {
    let found = wanted(&connected()?, &given).await?;
    if given.json() {
        print_json(&found);
        return Ok(());
    }
    if found.is_empty() {
        say("everforge: no entries match");
    }
    print_rows(&HEADING, found.iter().map(row));
    Ok(())
}

/// All since a time, or so many of the newest.
async fn wanted(server: &Everforge, given: &Given) -> Done<Vec<AuditEntry>> {
    let [machine, action, account] = ["machine", "action", "account"].map(|name| given.text(name));
    if let Some(since) = given.text("since").filter(|since| !since.is_empty()) {
        let entries = server.audit().entries().since(since);
        let entries = entries.with(machine, AuditEntries::machine).with(action, AuditEntries::action).with(account, AuditEntries::account);
        return Ok(entries.try_collect().await?);
    }
    let page = server.audit().page().limit(given.int("last").unwrap_or(LAST)).last(true);
    let page = page.with(given.text("since"), ReadPage::since);
    Ok(page.with(machine, ReadPage::machine).with(action, ReadPage::action).with(account, ReadPage::account).await?.entries)
}

fn row(entry: &AuditEntry) -> Vec<Value> {
    vec![
        json!(entry.number),
        moment(Some(&entry.time)),
        json!(entry.account_name),
        json!(entry.token),
        json!(entry.address),
        json!(entry.action),
        json!(entry.machine),
        json!(entry.outcome),
        json!(entry.detail),
    ]
}
