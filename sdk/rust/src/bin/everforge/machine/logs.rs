//! `everforge machine logs`: the tape for people, and for programs that go on where they stopped.

use crate::failures::Done;
use crate::terminal::follower::{Follower, Wanted};
use crate::usage::Given;

pub async fn logs(given: Given) -> Done {
    let wanted = Wanted {
        follow: given.flag("follow"),
        after: given.int("after"),
        instruction: given.int("instruction"),
        output: given.flag("output"),
        positions: given.flag("positions"),
        json: given.json(),
    };
    Follower::new(given.required("name"), wanted).run(given.path("cursor_file")).await
}
