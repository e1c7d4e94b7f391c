//! `everforge login` and `everforge logout`.

use crate::asking::ask_secret;
use crate::failures::{Done, Failure};
use crate::output::{flush, print_line, say};
use crate::tables::print_json;
use crate::usage::Given;
use everforge::config::{Access, check_url, config_path, delete_config, local_url, write_config};
use everforge::generated::sentences::sentences;
use everforge::{Error, Everforge, Kind, find_access, log_in, sentences as words};
use serde_json::json;

pub async fn login(given: Given) -> Done {
    let (token, url) = (given.text("token"), given.text("api_base_url"));
    let access = match given.text("link") {
        Some(_) if token.is_some() || url.is_some() => {
            return Err(given.bad("LINK", "a link has the address and the token in it: leave out --token and --api-base-url"));
        }
        Some(link) => linked(&link).await?,
        None => asked(&given, token, url).await?,
    };
    let account = keep(&access).await?;
    if given.json() {
        print_json(&json!({"account": account, "server": access.base_url}));
    } else {
        print_line(&format!("logged in as {account} at {}", access.base_url));
    }
    Ok(())
}

async fn asked(given: &Given, token: Option<String>, url: Option<String>) -> Done<Access> {
    let url = server_address(url)?;
    let token = match token.filter(|token| !token.is_empty()) {
        Some(token) => token,
        None => ask_secret(given, &format!("Token for {url}"), "--token").await?,
    };
    Ok(Access::new(&url, &token)?)
}

async fn linked(link: &str) -> Done<Access> {
    let (url, made) = log_in(link).await?;
    Ok(Access::new(&url, &made.token)?)
}

pub fn logout(given: &Given) -> Done {
    let gone = delete_config().map_err(|error| Failure::local(config_path().display(), &error))?;
    if given.json() {
        print_json(&json!({"logged_out": gone}));
    } else {
        print_line(if gone { "logged out" } else { "there was no log-in" });
    }
    warn_of_environment("it is still used");
    Ok(())
}

/// What was given, else the environment's, the last log-in's, or this computer's server.
pub fn server_address(given: Option<String>) -> Done<String> {
    let named = given.filter(|url| !url.is_empty()).or_else(|| variable("EVERFORGE_URL"));
    if let Some(url) = named {
        return Ok(check_url(&url)?);
    }
    match find_access(None, None) {
        Ok(access) => Ok(access.base_url),
        Err(error) if error.is_a(Kind::ConfigurationBad) => {
            Ok(local_url().ok_or_else(|| Error::new(Kind::ConfigurationBad, sentences::NO_SERVER_GIVEN))?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tried first. The account's name.
pub async fn keep(access: &Access) -> Done<String> {
    let found = Everforge::builder().access(access.clone()).build()?.whoami().await;
    let account = found.map_err(|mut error| {
        if error.is_a(Kind::Unauthenticated) {
            error.message = words::say(sentences::TOKEN_UNKNOWN_LOGIN, &[("url", &access.base_url)]);
        }
        error
    })?;
    write_config(access).map_err(|error| Failure::local(config_path().display(), &error))?;
    warn_of_environment("it goes before this log-in");
    Ok(account)
}

fn warn_of_environment(what: &str) {
    if variable("EVERFORGE_TOKEN").is_some() {
        flush();
        say(&format!("everforge: EVERFORGE_TOKEN is set: {what}"));
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}
