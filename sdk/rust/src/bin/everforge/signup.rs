//! `everforge signup`.

use crate::asking::ask;
use crate::failures::Done;
use crate::login::{keep, server_address};
use crate::optional::Optional;
use crate::output::{flush, print_line, say};
use crate::tables::print_json;
use crate::usage::Given;
use everforge::config::Access;
use everforge::requests::SignUp;
use everforge::sign_up;
use serde_json::json;

pub async fn signup(given: Given) -> Done {
    let url = server_address(given.text("api_base_url"))?;
    let email = given_or_asked(&given, "email", "E-mail", "--email").await?;
    let name = given_or_asked(&given, "account_name", "Account name", "--account-name").await?;
    let done = sign_up(&url, email, name).with(given.text("invitation"), SignUp::invitation).await?;
    if given.json() {
        print_json(&json!({"account": done.account, "server": url, "token": done.token, "mailed": done.mailed}));
    } else if let Some(token) = &done.token {
        print_line(token);
    }
    flush(); // it is shown this once, whatever comes of the rest
    let Some(token) = done.token else {
        say(&format!("everforge: check your mail for the token, then run `everforge login --api-base-url {url}`"));
        return Ok(());
    };
    keep(&Access::new(&url, &token)?).await?;
    say(&format!("everforge: this is the token of {}, shown this once; you are logged in", done.account));
    Ok(())
}

async fn given_or_asked(given: &Given, name: &str, question: &str, option: &str) -> Done<String> {
    match given.text(name).filter(|text| !text.is_empty()) {
        Some(text) => Ok(text),
        None => ask(given, question, option).await,
    }
}
