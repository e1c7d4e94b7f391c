//! `everforge usage`.

use crate::connection::connected;
use crate::failures::Done;
use crate::tables::{fields, print_fields, print_json, size};
use crate::usage::Given;
use everforge::api::Quota;
use serde_json::Value;

pub async fn usage(given: Given) -> Done {
    let found = connected()?.usage().await?;
    if given.json() {
        print_json(&found);
        return Ok(());
    }
    let mut shown = fields(&found);
    shown.insert("disk_bytes".to_owned(), format!("{} ({})", found.disk_bytes, size(found.disk_bytes)).into());
    shown.shift_remove("quota");
    print_fields(shown);
    if let Some(quota) = found.quota {
        print_fields(limits(&quota).map(|(name, value)| (format!("quota: {name}"), value)));
    }
    Ok(())
}

/// What an account may have at most; 0 is no limit.
pub fn limits(quota: &Quota) -> impl Iterator<Item = (String, Value)> + use<> {
    fields(quota).into_iter().map(|(name, value)| if is_zero(&value) { (name, "no limit".into()) } else { (name, value) })
}

pub fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}
