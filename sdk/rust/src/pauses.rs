//! How long to go on trying, and how long to wait in between.

use crate::error::Fallible;
use crate::inputs;
use std::time::Duration;
use tokio::time::Instant;

const FIRST_PAUSE_SECONDS: f64 = 0.05; // a server that is only just starting is there in a moment
const PAUSE_SECONDS_MAX: f64 = 5.0;
const GROWTH: f64 = 2.0;
const FAR_SECONDS: f64 = 10.0 * 365.0 * 86400.0; // more than a clock can be trusted to add

/// So many seconds from the first failure on, and pauses that grow meanwhile, each shortened by chance so that many clients do not come back at once.
#[derive(Debug)]
pub(crate) struct Patience {
    seconds: f64,
    until: Option<Instant>,
    pause: f64,
}

impl Patience {
    pub(crate) fn new(seconds: f64) -> Self {
        Self { seconds, until: None, pause: FIRST_PAUSE_SECONDS }
    }

    /// It went well: begin anew with the next failure.
    pub(crate) fn renew(&mut self) {
        *self = Self::new(self.seconds);
    }

    /// The time runs from now on, whenever the first failure comes.
    pub(crate) fn start(&mut self) {
        self.until = Some(Instant::now() + duration(self.seconds));
    }

    /// Before the next try; None when there is to be none.
    pub(crate) fn pause(&mut self, at_least_seconds: f64) -> Option<Duration> {
        if self.until.is_none() {
            self.start();
        }
        let wanted = duration(at_least_seconds.max(self.pause * (0.5 + fastrand::f64() / 2.0)));
        self.pause = (self.pause * GROWTH).min(PAUSE_SECONDS_MAX);
        self.until.is_some_and(|until| Instant::now() + wanted <= until).then_some(wanted)
    }
}

/// A point in time that may be never.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    pub(crate) fn new(seconds: Option<f64>) -> Fallible<Self> {
        inputs::wait_seconds("wait_seconds", seconds)?;
        Ok(Self(seconds.map(|seconds| Instant::now() + duration(seconds))))
    }

    pub(crate) fn after(seconds: f64) -> Self {
        Self(Some(Instant::now() + duration(seconds)))
    }

    pub(crate) fn at(self) -> Option<Instant> {
        self.0
    }

    pub(crate) fn passed(self) -> bool {
        self.0.is_some_and(|until| Instant::now() >= until)
    }

    /// At most these seconds from now, and less when it comes sooner.
    pub(crate) fn within(self, seconds: f64) -> Instant {
        self.within_duration(duration(seconds))
    }

    pub(crate) fn within_duration(self, most: Duration) -> Instant {
        let most = Instant::now() + most;
        self.0.map_or(most, |until| until.min(most))
    }
}

pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, FAR_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_ends_after_its_seconds_and_begins_anew_when_something_went_well() {
        let mut patience = Patience::new(1.0);
        let mut tries = 0;
        while let Some(pause) = patience.pause(0.0) {
            tokio::time::advance(pause).await;
            tries += 1;
        }
        assert!((3..10).contains(&tries), "{tries}");
        patience.renew();
        assert!(patience.pause(0.0).is_some());
        assert!(patience.pause(30.0).is_none(), "a pause that is longer than what is left is no pause");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_never_later_than_what_it_is_given() {
        let deadline = Deadline::after(2.0);
        assert_eq!(deadline.within(1.0), Instant::now() + Duration::from_secs(1));
        assert_eq!(deadline.within(9.0), Instant::now() + Duration::from_secs(2));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(deadline.passed() && !Deadline::NEVER.passed());
    }
}
