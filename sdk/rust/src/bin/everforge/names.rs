//! Names of machines near one that was mistyped. To look for them may never be in the way.

use crate::connection::connected;
use crate::near::near;
use futures::{StreamExt, TryStreamExt};

const LOOKED_AT_MAX: usize = 2000; // of the newest

/// `; did you mean ...?`, or nothing.
pub async fn near_names(name: &str) -> String {
    let Ok(server) = connected() else { return String::new() };
    match server.machines().take(LOOKED_AT_MAX).try_collect::<Vec<_>>().await {
        Ok(found) => suggestion(name, found.iter().map(|machine| machine.name.as_str())),
        Err(_) => String::new(),
    }
}

fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = near(name, known);
    if nearest.is_empty() {
        "; `everforge machine list` shows those there are".to_owned()
    } else {
        format!("; did you mean {}?", nearest.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_answered_with_the_near_ones_or_with_where_to_look() {
        assert_eq!(suggestion("frist", ["first", "second", "frost"]), "; did you mean frost or first?");
        assert_eq!(suggestion("x", ["first"]), "; `everforge machine list` shows those there are");
    }
}
