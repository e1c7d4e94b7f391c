//! Progress on stderr, on a terminal: a spinner where a wait is long, a bar where bytes go. stdout is for results.

use crate::output::{say_part, stderr_on_terminal};
use crate::tables::{plain, size};
use std::time::{Duration, Instant};
use tokio::time::{interval_at, sleep};

const SPINNER_AFTER: Duration = Duration::from_millis(500); // what is done sooner needs none
const FRAME: Duration = Duration::from_millis(100);
const BAR_CHARACTERS: usize = 30;
pub const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
pub const CLEAR_LINE: &str = "\r\x1b[K";

/// With a spinner, when it takes a while.
pub async fn waiting<T>(text: &str, work: impl Future<Output = T>) -> T {
    if !stderr_on_terminal() {
        return work.await;
    }
    let mut line = Line::default();
    tokio::select! {
        done = work => done,
        () = spin(text, &mut line) => unreachable!("it spins until the work is done"),
    }
}

async fn spin(text: &str, line: &mut Line) {
    sleep(SPINNER_AFTER).await;
    let mut ticks = interval_at(tokio::time::Instant::now(), FRAME);
    for frame in FRAMES.iter().cycle() {
        ticks.tick().await;
        line.draw(&format!("{frame} {}", plain(&text.into())));
    }
}

/// Whom to tell of bytes that went. Where nobody watches nothing is drawn.
pub fn transfer(text: &str) -> impl FnMut(u64, Option<u64>) + Send + 'static {
    let (shown, is_watched) = (plain(&text.into()), stderr_on_terminal());
    let (mut line, mut drawn) = (Line::default(), None::<Instant>);
    move |done, total| {
        if is_watched && drawn.is_none_or(|at| at.elapsed() >= FRAME) {
            drawn = Some(Instant::now());
            line.draw(&format!("{shown} {}", bar(done, total)));
        }
    }
}

fn bar(done: u64, total: Option<u64>) -> String {
    let counted = |bytes: u64| size(i64::try_from(bytes).unwrap_or(i64::MAX));
    match total {
        None | Some(0) => counted(done),
        Some(total) => {
            let full = usize::try_from(done.min(total) * BAR_CHARACTERS as u64 / total).unwrap_or(0);
            format!("{}{} {} of {}", "━".repeat(full), " ".repeat(BAR_CHARACTERS - full), counted(done), counted(total))
        }
    }
}

/// One that is drawn over and over, and is gone in the end, however that comes.
#[derive(Default)]
struct Line {
    is_drawn: bool,
}

impl Line {
    fn draw(&mut self, text: &str) {
        self.is_drawn = true;
        say_part(&format!("{CLEAR_LINE}{text}"));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.is_drawn {
            say_part(CLEAR_LINE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_there_are_bytes() {
        assert_eq!(bar(500, None), "500 B");
        assert_eq!(bar(50, Some(100)), format!("{}{} 50 B of 100 B", "━".repeat(15), " ".repeat(15)));
        assert_eq!(bar(200, Some(100)), format!("{} 200 B of 100 B", "━".repeat(30)));
    }
}
