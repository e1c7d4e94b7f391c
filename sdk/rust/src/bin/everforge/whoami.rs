//! `everforge whoami`.

use crate::failures::Done;
use crate::tables::{print_fields, print_json};
use crate::usage::Given;
use everforge::{Everforge, find_access};
use serde_json::json;

pub async fn whoami(given: Given) -> Done {
    let access = find_access(None, None)?;
    let found = Everforge::builder().access(access.clone()).build()?.account().await?;
    if given.json() {
        let token = &found.token;
        print_json(&json!({"account": found.account, "owner": found.owner, "server": access.base_url, "token": token, "token_from": access.source}));
        return Ok(());
    }
    let account = if found.owner { found.account + " (owner)" } else { found.account };
    print_fields([("account", account.into()), ("server", access.base_url.into()), ("token from", access.source.into())]);
    if let Some(token) = found.token {
        let scopes: Vec<&str> = token.scopes.iter().map(everforge::api::Scope::as_str).collect();
        print_fields([("may", scopes.join(" ").into())]);
    }
    Ok(())
}
