//! `everforge token ...`: the tokens of an account.

use crate::connection::connected;
use crate::failures::Done;
use crate::optional::{Optional, some};
use crate::output::print_line;
use crate::tables::{moment, print_json, print_rows};
use crate::usage::Given;
use everforge::api::{Scope, Token};
use everforge::requests::CreateToken;
use serde_json::{Value, json};

const HEADING: [&str; 7] = ["ID", "NAME", "SCOPES", "TAGS", "CREATED", "LAST USED", "EXPIRES"];

pub async fn create(given: Given) -> Done {
    let scopes = given.texts("scope");
    given.among(Scope::WORDS, "--scope", &scopes)?;
    let tags = given.pairs("tag", "--tag")?;
    let request = connected()?
        .tokens()
        .create()
        .with(given.text("name"), CreateToken::name)
        .with(some(scopes), CreateToken::scopes)
        .with(given.text("expires_at"), CreateToken::expires_at)
        .with(tags, CreateToken::tags);
    let made = request.await?;
    if given.json() {
        print_json(&made);
    } else {
        print_line(&made.token);
    }
    Ok(())
}

pub async fn list(given: Given) -> Done {
    let found = connected()?.tokens().list().await?;
    if given.json() {
        print_json(&found);
    } else {
        print_rows(&HEADING, found.iter().map(row));
    }
    Ok(())
}

fn row(token: &Token) -> Vec<Value> {
    let scopes: Vec<&str> = token.scopes.iter().map(Scope::as_str).collect();
    let [created, used, ends] =
        [Some(&token.created_at), token.last_used_at.as_ref(), token.expires_at.as_ref()].map(|time| moment(time.map(String::as_str)));
    vec![json!(token.id), json!(token.name), json!(scopes.join(" ")), json!(token.tags), created, used, ends]
}

pub async fn link(given: Given) -> Done {
    let made = connected()?.tokens().link().await?;
    if given.json() {
        print_json(&made);
    } else {
        print_line(&made.url);
    }
    Ok(())
}

pub async fn revoke(given: Given) -> Done {
    let id = given.required("id");
    connected()?.tokens().revoke(&id).await?;
    if given.json() {
        print_json(&json!({"revoked": id}));
    } else {
        print_line(&format!("revoked {id}"));
    }
    Ok(())
}
