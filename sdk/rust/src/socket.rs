//! WebSockets by tungstenite: the one place that knows it, and where its errors become ours.

use crate::door::Door;
use crate::failures::{Broken, error_of, foreign};
use crate::transport::{Answer, Content};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use reqwest::{Method, Upgraded};
use std::fmt;
use tokio::sync::{Mutex, watch};
use tokio::time::{Duration, Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024 + 1024;
const CLOSE_SECONDS: u64 = 2; // a server that does not say good-bye is not waited for

type Connection = WebSocketStream<Upgraded>;

/// One connection. Whoever stops waiting for a frame loses none.
pub(crate) struct Socket {
    sink: Mutex<SplitSink<Connection, Message>>,
    stream: Mutex<SplitStream<Connection>>,
    is_dropped: watch::Sender<bool>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Socket")
    }
}

impl Socket {
    pub(crate) async fn open(door: &Door, url: &str, until: Instant) -> Result<Self, Broken> {
        match timeout_at(until, Self::shake_hands(door, url)).await {
            Ok(found) => found,
            Err(_) => Err(Broken::Unreached { why: "its time is over".to_owned(), cause: crate::generated::sentences::causes::SLOW }),
        }
    }

    async fn shake_hands(door: &Door, url: &str) -> Result<Self, Broken> {
        let key = generate_key();
        let accepted = derive_accept_key(key.as_bytes());
        let headers = [
            ("connection", "Upgrade".to_owned()),
            ("upgrade", "websocket".to_owned()),
            ("sec-websocket-version", "13".to_owned()),
            ("sec-websocket-key", key),
        ];
        let mut answer = door.send_raw(&Method::GET, url, &headers, Content::Nothing).await?;
        if answer.status() != 101 {
            return Err(Broken::Refused(refusal(&mut answer, &door.base_url).await?));
        }
        if answer.headers().get("sec-websocket-accept").and_then(|value| value.to_str().ok()) != Some(&accepted) {
            return Err(Broken::Bad(foreign(&door.base_url)));
        }
        let config = WebSocketConfig::default().max_message_size(Some(FRAME_BYTES_MAX)).max_frame_size(Some(FRAME_BYTES_MAX));
        let (sink, stream) = WebSocketStream::from_raw_socket(answer.upgraded().await?, Role::Client, Some(config)).await.split();
        Ok(Self { sink: Mutex::new(sink), stream: Mutex::new(stream), is_dropped: watch::Sender::new(false) })
    }

    /// What the other side has not taken by then stays in its middle: the connection is of no more use.
    pub(crate) async fn send(&self, text: &str, until: Instant) -> Result<(), Broken> {
        let sent = timeout_at(until, async { self.sink.lock().await.send(Message::text(text)).await }).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(cut(&error)),
            Err(_) => {
                self.drop_connection();
                Err(Broken::Cut("it takes nothing any more".to_owned()))
            }
        }
    }

    /// None when nothing came.
    pub(crate) async fn receive(&self, until: Instant) -> Result<Option<String>, Broken> {
        let mut dropped = self.is_dropped.subscribe();
        let mut stream = self.stream.lock().await;
        let next = async {
            loop {
                match stream.next().await {
                    Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                    Some(Ok(Message::Binary(bytes))) => {
                        return String::from_utf8(bytes.to_vec()).map_err(|_| Broken::Cut("what it says is no text".to_owned()));
                    }
                    Some(Ok(Message::Close(Some(frame)))) => {
                        return Err(Broken::Closed { status: frame.code.into(), reason: frame.reason.as_str().to_owned() });
                    }
                    Some(Ok(Message::Close(None))) | None => return Err(Broken::Cut("it ended the connection".to_owned())),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(cut(&error)),
                }
            }
        };
        tokio::select! {
            found = timeout_at(until, next) => found.map_or(Ok(None), |found| found.map(Some)),
            _ = dropped.wait_for(|is_dropped| *is_dropped) => Err(Broken::Cut("it was dropped".to_owned())),
        }
    }

    /// With a good-bye.
    pub(crate) async fn close(&self) {
        let bye = async {
            if self.sink.lock().await.close().await.is_ok() {
                let mut stream = self.stream.lock().await;
                while let Some(Ok(_)) = stream.next().await {}
            }
        };
        let _ = timeout(Duration::from_secs(CLOSE_SECONDS), bye).await;
        self.drop_connection();
    }

    /// Without one, which nobody would hear. Whoever still waits for a frame is told.
    pub(crate) fn drop_connection(&self) {
        self.is_dropped.send_replace(true);
    }
}

async fn refusal(answer: &mut Answer, base_url: &str) -> Result<crate::Error, Broken> {
    let headers = answer.headers();
    let body = answer.refusal().await?;
    Ok(error_of(answer.status(), |name| headers.get(name).and_then(|value| value.to_str().ok()), &body, base_url))
}

fn cut(error: &SocketError) -> Broken {
    Broken::Cut(error.to_string())
}
