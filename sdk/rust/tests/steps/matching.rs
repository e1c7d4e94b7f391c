//! Does what came fit what was wanted? The patterns of the contract: see sdk/contract/README.md.

use serde_json::Value;

/// Where it does not, one sentence for each place.
pub fn problems(wanted: &Value, got: &Value, at: &str) -> Vec<String> {
    let place = if at.is_empty() { "it" } else { at };
    let wrong = || vec![format!("{place} should be {wanted}, and is {got}")];
    match (wanted, got) {
        (Value::Object(pattern), _) if pattern.len() == 1 && pattern.keys().all(|word| word.starts_with('$')) => {
            if pattern.iter().all(|(word, value)| fits(word, value, got)) { Vec::new() } else { wrong() }
        }
        (Value::Object(pattern), Value::Object(found)) => pattern
            .iter()
            .flat_map(|(name, value)| match found.get(name) {
                Some(one) => problems(value, one, &format!("{at}.{name}")),
                None => vec![format!("{at}.{name} should be {value}, and is not there")],
            })
            .collect(),
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            items.iter().zip(found).enumerate().flat_map(|(i, (one, other))| problems(one, other, &format!("{at}[{i}]"))).collect()
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => Vec::new(),
        _ if wanted == got => Vec::new(),
        _ => wrong(),
    }
}

fn fits(word: &str, value: &Value, got: &Value) -> bool {
    match word {
        "$has" => got.as_str().is_some_and(|text| text.contains(value.as_str().unwrap_or_default())),
        "$not" => !problems(value, got, "").is_empty(),
        "$any" => !got.is_null(),
        "$above" => got.as_f64() > value.as_f64(),
        "$some" => got.as_array().is_some_and(|items| items.iter().any(|one| problems(value, one, "").is_empty())),
        _ => panic!("there is no pattern {word}"),
    }
}
