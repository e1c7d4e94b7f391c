//! Keys as they come. The terminal is ours for the whole session, so that no moment is lost between two prompts: what is typed ahead is for the next
//! one, and Ctrl-C is heard whenever it is pressed.

use super::keys::Keys;
use super::keystrokes::{Key, Keystrokes};
use super::system::Raw;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const AHEAD_MAX: usize = 64 * 1024; // keys; who types more while nobody looks has put the book on the keyboard
const CHUNKS_AHEAD: usize = 16;
const CHUNK_BYTES: usize = 4096;
const ESCAPE_WAIT: Duration = Duration::from_millis(50); // for the rest of a key that begins with one

pub struct Keyboard {
    queue: Arc<Queue>,
    pump: JoinHandle<()>,
    _raw: Raw,
}

impl Keyboard {
    pub fn new(keys: Arc<Keys>) -> io::Result<Self> {
        let raw = Raw::enter()?;
        let queue = Arc::new(Queue { state: Mutex::default(), arrived: Notify::new(), keys });
        let pump = tokio::spawn(pump(chunks(), queue.clone()));
        Ok(Self { queue, pump, _raw: raw })
    }

    /// Keys are for the prompt from now on; first those that were typed ahead.
    pub fn begin(&self) {
        self.queue.state().is_reading = true;
    }

    pub async fn next(&self) -> Key {
        self.queue.next().await
    }

    /// The prompt is over.
    pub fn end(&self) {
        self.queue.end();
    }

    pub fn queue(&self) -> Arc<Queue> {
        self.queue.clone()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// What was typed and not yet taken.
pub struct Queue {
    state: Mutex<State>,
    arrived: Notify,
    keys: Arc<Keys>,
}

#[derive(Default)]
struct State {
    ahead: VecDeque<Key>,
    is_reading: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ctrl-C while there is no prompt drops what was typed before it, as at any terminal.
    fn take(&self, key: Key) {
        let mut state = self.state();
        if !state.is_reading && key == Key::Ctrl('c') {
            state.ahead.clear();
            self.keys.hear();
        } else if state.ahead.len() < AHEAD_MAX {
            state.ahead.push_back(key);
            self.arrived.notify_one();
        }
    }

    async fn next(&self) -> Key {
        loop {
            if let Some(key) = self.state().ahead.pop_front() {
                return key;
            }
            self.arrived.notified().await;
        }
    }

    /// Ctrl-C right behind Enter is meant for what was just entered. What came behind it is for the next prompt.
    fn end(&self) {
        let mut state = self.state();
        state.is_reading = false;
        if let Some(last) = state.ahead.iter().rposition(|key| *key == Key::Ctrl('c')) {
            state.ahead.drain(..=last);
            self.keys.hear();
        }
    }

    /// A signal, as if Ctrl-C had been pressed. At the prompt it comes from elsewhere, and means nothing.
    pub fn signalled(&self) {
        if !self.state().is_reading {
            self.keys.hear();
        }
    }
}

/// In a thread of its own, which nobody waits for in the end. An empty one: the terminal has gone.
fn chunks() -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel(CHUNKS_AHEAD);
    std::thread::spawn(move || {
        let mut buffer = [0; CHUNK_BYTES];
        loop {
            let count = match io::stdin().lock().read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if sender.blocking_send(buffer[..count].to_vec()).is_err() || count == 0 {
                return;
            }
        }
    });
    receiver
}

async fn pump(mut chunks: Receiver<Vec<u8>>, queue: Arc<Queue>) {
    let mut strokes = Keystrokes::default();
    loop {
        tokio::select! {
            chunk = chunks.recv() => match chunk {
                Some(bytes) if !bytes.is_empty() => strokes.take(&bytes).into_iter().for_each(|key| queue.take(key)),
                _ => return queue.take(Key::Gone),
            },
            () = sleep(ESCAPE_WAIT), if strokes.is_waiting() => strokes.give_up(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn queue() -> Queue {
        Queue { state: Mutex::default(), arrived: Notify::new(), keys: Arc::default() }
    }

    fn typed(queue: &Queue, bytes: &[u8]) {
        Keystrokes::default().take(bytes).into_iter().for_each(|key| queue.take(key));
    }

    fn next(queue: &Queue) -> Option<Key> {
        queue.next().now_or_never()
    }

    #[test]
    fn ctrl_c_right_behind_enter_is_for_what_was_entered_and_what_is_behind_it_for_the_next_prompt() {
        let queue = queue();
        queue.state().is_reading = true;
        typed(&queue, b"hang()\r1 / 0\r\x0320 + 22\r");
        assert_eq!((next(&queue), next(&queue)), (Some(Key::Text("hang()".to_owned())), Some(Key::Enter)));
        queue.end();
        assert!(queue.keys.pressed().now_or_never().is_some());
        assert_eq!((next(&queue), next(&queue), next(&queue)), (Some(Key::Text("20 + 22".to_owned())), Some(Key::Enter), None));
    }

    #[test]
    fn at_the_prompt_ctrl_c_is_a_key_and_elsewhere_it_is_heard_at_once() {
        let queue = queue();
        queue.state().is_reading = true;
        typed(&queue, b"\x03");
        queue.signalled();
        assert!(queue.keys.pressed().now_or_never().is_none());
        assert_eq!(next(&queue), Some(Key::Ctrl('c')));
        queue.end();
        typed(&queue, b"typed ahead\x03");
        assert!(queue.keys.pressed().now_or_never().is_some());
        assert_eq!(next(&queue), None);
    }
}
