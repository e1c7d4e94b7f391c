//! `everforge egress log`.

use crate::connection::machine_named;
use crate::failures::Done;
use crate::tables::{moment, print_json, print_rows, size};
use crate::usage::Given;
use everforge::api::EgressAttempt;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::future::ready;

const LIMIT: i64 = 50;
const HEADING: [&str; 6] = ["TIME", "VERDICT", "WHAT", "SENT", "RECEIVED", "WHY"];

pub async fn log(given: Given) -> Done {
    let limit = usize::try_from(given.int("limit").unwrap_or(LIMIT)).unwrap_or_default();
    let refused_alone = given.flag("refused");
    let found: Vec<EgressAttempt> = machine_named(&given.required("name"), |machine| async move {
        let wanted = machine.egress().log().try_filter(|attempt| ready(!refused_alone || attempt.verdict == "refused"));
        Ok(wanted.take(limit).try_collect().await?)
    })
    .await?;
    if given.json() {
        print_json(&found);
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

fn row(attempt: &EgressAttempt) -> Vec<Value> {
    let what = format!("{} {}:{}{}", attempt.method, attempt.host, attempt.port, attempt.path);
    let why = match (attempt.why.as_str(), &attempt.secrets[..]) {
        ("", []) => attempt.allowed_by.clone(),
        ("", secrets) => format!("{}, with {}", attempt.allowed_by, secrets.join(" ")),
        (why, _) => why.to_owned(),
    };
    let [sent, received] = [attempt.sent_bytes, attempt.received_bytes].map(size);
    vec![moment(Some(&attempt.time)), json!(attempt.verdict), json!(what), json!(sent), json!(received), json!(why)]
}
