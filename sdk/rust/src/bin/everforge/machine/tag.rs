//! `everforge machine tag`.

use crate::connection::{connected, suggesting};
use crate::failures::Done;
use crate::tables::{print_json, print_rows};
use crate::usage::Given;
use everforge::{Error, Everforge, Kind};
use indexmap::IndexMap;
use serde_json::json;

type Tags = IndexMap<String, String>;

pub async fn tag(given: Given) -> Done {
    let wanted = given.pairs("tags", "KEY=VALUE")?.unwrap_or_default();
    let (name, remove, server) = (given.required("name"), given.texts("remove"), connected()?);
    let tags = suggesting(Some(&name), change(&server, &name, wanted, &remove)).await?;
    if given.json() {
        print_json(&json!({"tags": tags}));
        return Ok(());
    }
    let mut sorted: Vec<_> = tags.into_iter().collect();
    sorted.sort_unstable();
    print_rows(&["KEY", "VALUE"], sorted.into_iter().map(|(key, value)| vec![json!(key), json!(value)]));
    Ok(())
}

async fn change(server: &Everforge, name: &str, wanted: Vec<(String, String)>, remove: &[String]) -> Done<Tags> {
    let machine = server.machine(name)?;
    let found = machine.info().await?.tags;
    if !remove.is_empty() {
        check_is_kept_by_no_token(server, name, remove).await?;
    }
    let mut changed = found.clone();
    changed.extend(wanted);
    changed.retain(|key, _| !remove.contains(key));
    Ok(if changed == found { found } else { machine.update().tags(changed).await?.tags })
}

/// A token for machines with a tag cannot take that one away: the server would put it back, and say nothing.
async fn check_is_kept_by_no_token(server: &Everforge, name: &str, remove: &[String]) -> Done {
    let tags = server.account().await?.token.map(|token| token.tags).unwrap_or_default();
    match tags.iter().find(|(key, _)| remove.contains(key)) {
        None => Ok(()),
        Some((key, value)) => {
            let why = format!(
                "this token is for machines with {key}={value} alone, and {name} stays one of them: take a token that is for the whole account"
            );
            Err(Error::new(Kind::Forbidden, why).into())
        }
    }
}
