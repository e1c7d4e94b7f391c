//! `everforge webhook ...`: be told of events over HTTP.

use crate::asking::ask_secret;
use crate::connection::connected;
use crate::failures::Done;
use crate::optional::{Optional, some};
use crate::output::{print_line, say};
use crate::tables::{moment, print_json, print_rows};
use crate::usage::Given;
use everforge::requests::{AddWebhook, RetryDead};
use serde_json::json;

const HEADING: [&str; 4] = ["ID", "URL", "EVENTS", "CREATED"];
const DEAD_HEADING: [&str; 6] = ["ID", "WEBHOOK", "EVENT", "CREATED", "TRIES", "ERROR"];

pub async fn add(given: Given) -> Done {
    let secret = match given.text("secret").as_deref() {
        None => None,
        Some("-") => Some(ask_secret(&given, "Secret", "--secret").await?),
        // And it is not repeated.
        Some(_) => return Err(given.bad("--secret", "others see a command line: give --secret - and the secret on standard input")),
    };
    let events: Vec<String> = given.texts("event").iter().flat_map(|words| words.split(',')).map(str::to_owned).collect();
    let request = connected()?.webhooks().add(given.required("url"));
    let made = request.with(some(events), AddWebhook::events).with(secret, AddWebhook::secret).await?;
    if given.json() {
        print_json(&made);
    } else {
        print_line(&format!("{}\t{}", made.id, made.secret));
    }
    Ok(())
}

pub async fn list(given: Given) -> Done {
    let found = connected()?.webhooks().list().await?;
    if given.json() {
        print_json(&found);
    } else {
        let rows = found.iter().map(|one| vec![json!(one.id), json!(one.url), json!(one.events.join(" ")), moment(Some(&one.created_at))]);
        print_rows(&HEADING, rows);
    }
    Ok(())
}

pub async fn test(given: Given) -> Done {
    connected()?.webhooks().test(&given.required("id")).await?;
    if given.json() {
        print_json(&json!({"delivered": true}));
    } else {
        print_line("delivered");
    }
    Ok(())
}

pub async fn delete(given: Given) -> Done {
    let id = given.required("id");
    connected()?.webhooks().delete(&id).await?;
    if given.json() {
        print_json(&json!({"deleted": id}));
    } else {
        print_line(&format!("deleted {id}"));
    }
    Ok(())
}

pub async fn list_dead(given: Given) -> Done {
    let found = connected()?.webhooks().given_up().await?;
    if given.json() {
        print_json(&found.deliveries);
        return Ok(());
    }
    let rows = found
        .deliveries
        .iter()
        .map(|one| vec![json!(one.id), json!(one.webhook), json!(one.event), moment(Some(&one.created_at)), json!(one.attempts), json!(one.error)]);
    print_rows(&DEAD_HEADING, rows);
    if found.let_go != 0 {
        say(&format!("everforge: there was no room for {} older ones since the server's start", found.let_go));
    }
    Ok(())
}

pub async fn retry_dead(given: Given) -> Done {
    let count = connected()?.webhooks().retry().with(given.text("id"), RetryDead::id).await?;
    if given.json() {
        print_json(&json!({"deliveries": count}));
    } else {
        print_line(&format!("{count} tried anew"));
    }
    Ok(())
}
