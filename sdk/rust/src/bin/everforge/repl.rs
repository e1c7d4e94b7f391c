//! `everforge repl`: a comfortable prompt on a machine, or what comes through a pipe.

use crate::failures::Done;
use crate::output::{on_terminal, stdin_on_terminal};
use crate::terminal::interactive::talk;
use crate::terminal::piped::feed;
use crate::usage::Given;
use everforge::{Everforge, Fallible, Machine};

pub struct Wanted {
    /// None: a new machine.
    pub name: Option<String>,
    pub timeout_seconds: Option<f64>,
    pub shows_others: bool,
    tags: Vec<(String, String)>,
}

pub async fn repl(given: Given) -> Done {
    let tags = tags(&given)?;
    let name = given.text("name");
    if name.is_some() && !tags.is_empty() {
        return Err(given.bad("--tag", "a machine that is there already keeps its tags: leave out --tag"));
    }
    let wanted = Wanted { name, timeout_seconds: given.float("instruction_timeout_seconds"), shows_others: given.flag("others"), tags };
    if stdin_on_terminal() && on_terminal() { talk(wanted).await } else { feed(wanted).await }
}

fn tags(given: &Given) -> Done<Vec<(String, String)>> {
    let pairs = given.texts("tag").into_iter().map(|word| {
        let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
        pair.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| given.bad("--tag", "a tag is written key=value"))
    });
    pairs.collect()
}

/// The machine that is named, or a new one.
pub async fn entered(server: &Everforge, wanted: &Wanted) -> Fallible<Machine> {
    match &wanted.name {
        Some(name) => server.machine(name),
        None => server.create().tags(wanted.tags.clone()).await,
    }
}
