//! `everforge secret ...`: values that machines use and never see.

use crate::asking::ask_hidden;
use crate::connection::connected;
use crate::failures::Done;
use crate::optional::{Optional, some};
use crate::output::{print_line, stdin_on_terminal};
use crate::stdin::read_all;
use crate::tables::{moment, print_json, print_rows};
use crate::usage::Given;
use everforge::api::{Place, Secret};
use everforge::requests::SetSecret;
use everforge::{Error, Kind};
use serde_json::{Value, json};

const VALUE_BYTES_MAX: usize = 1024 * 1024;
const HEADING: [&str; 5] = ["NAME", "HOSTS", "HEADER", "CHANGED", "PLACEHOLDER"];
const NOT_TEXT: &str = "what came on standard input is not text: a secret's value is 8 to 4096 characters of ASCII, so give bytes as base64";

pub async fn set(given: Given) -> Done {
    let places = given.texts("into");
    given.among(Place::WORDS, "--into", &places)?;
    let value = value().await?;
    let request = connected()?.secrets().set(given.required("name"), value, given.texts("host"));
    let made = request.with(given.text("header"), SetSecret::header).with(some(places), SetSecret::places).await?;
    if given.json() {
        print_json(&made);
    } else {
        let hosts = made.hosts.join(", ");
        print_line(&format!("Machines find {} in ${}; the value goes to {hosts} and nowhere else.", made.placeholder, made.name));
    }
    Ok(())
}

/// Never from the command line, which others see.
async fn value() -> Done<String> {
    if stdin_on_terminal() {
        return ask_hidden("Value").await;
    }
    let mut found = read_all(VALUE_BYTES_MAX).await?;
    found.truncate(VALUE_BYTES_MAX);
    let text = String::from_utf8(found).map_err(|_| Error::new(Kind::InvalidInput, NOT_TEXT))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

pub async fn list(given: Given) -> Done {
    let found = connected()?.secrets().list().await?;
    if given.json() {
        print_json(&found);
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

fn row(secret: &Secret) -> Vec<Value> {
    vec![json!(secret.name), json!(secret.hosts.join(" ")), json!(secret.header), moment(Some(&secret.changed_at)), json!(secret.placeholder)]
}

pub async fn delete(given: Given) -> Done {
    let name = given.required("name");
    connected()?.secrets().delete(&name).await?;
    if given.json() {
        print_json(&json!({"deleted": true}));
    } else {
        print_line(&format!("deleted {name}"));
    }
    Ok(())
}
