//! Walks through what was typed before: what stands there already chooses what is found. No I/O.

#[derive(Default)]
pub struct Recall {
    search: Option<Search>,
}

struct Search {
    at: usize,
    prefix: String,
    typed: String,
}

impl Recall {
    /// Something was typed: the next search begins anew.
    pub fn forget(&mut self) {
        self.search = None;
    }

    /// None: there is none before. `entries`: the oldest first.
    pub fn older<'a>(&mut self, entries: &'a [String], text: &str, before_cursor: &str) -> Option<&'a str> {
        let begun = || Search { at: entries.len(), prefix: before_cursor.to_owned(), typed: text.to_owned() };
        let search = self.search.get_or_insert_with(begun);
        let found = entries[..search.at].iter().rposition(|entry| entry.starts_with(&search.prefix) && entry != text)?;
        search.at = found;
        Some(&entries[found])
    }

    /// In the end what had been typed.
    pub fn newer(&mut self, entries: &[String], text: &str) -> Option<String> {
        let search = self.search.as_mut()?;
        let next = (search.at + 1).min(entries.len());
        match entries[next..].iter().position(|entry| entry.starts_with(&search.prefix) && entry != text) {
            Some(found) => {
                search.at = next + found;
                Some(entries[search.at].clone())
            }
            None => self.search.take().map(|search| search.typed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_there_chooses_what_is_found() {
        let entries = ["twice(1)", "x = 1", "twice(21)"].map(str::to_owned);
        let mut recall = Recall::default();
        assert_eq!(recall.older(&entries, "twi", "twi"), Some("twice(21)"));
        assert_eq!(recall.older(&entries, "twice(21)", "twice(21)"), Some("twice(1)"));
        assert_eq!(recall.older(&entries, "twice(1)", "twice(1)"), None);
        assert_eq!(recall.newer(&entries, "twice(1)").as_deref(), Some("twice(21)"));
        assert_eq!(recall.newer(&entries, "twice(21)").as_deref(), Some("twi"));
        assert_eq!(recall.newer(&entries, "twi"), None);
        recall.forget();
        assert_eq!(recall.older(&entries, "", ""), Some("twice(21)"));
        assert_eq!(recall.older(&entries, "twice(21)", ""), Some("x = 1"));
    }
}
