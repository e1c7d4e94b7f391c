//! Ctrl-C while the prompt is not there; at the prompt it is a key as others.

use futures::FutureExt;
use tokio::sync::Notify;

/// Right behind Enter, before anything has begun, it is kept for what is about to.
#[derive(Default)]
pub struct Keys {
    pressed: Notify,
}

impl Keys {
    pub fn hear(&self) {
        self.pressed.notify_one();
    }

    /// The next time that it is pressed, or was and nobody has asked.
    pub async fn pressed(&self) {
        self.pressed.notified().await;
    }

    /// A new prompt: what was pressed before it is not for what is typed there.
    pub fn forget(&self) {
        let _ = self.pressed.notified().now_or_never();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pressed_early_is_kept_until_it_is_asked_for_or_forgotten() {
        let keys = Keys::default();
        assert!(keys.pressed().now_or_never().is_none());
        keys.hear();
        assert!(keys.pressed().now_or_never().is_some());
        keys.hear();
        keys.forget();
        assert!(keys.pressed().now_or_never().is_none());
    }
}
