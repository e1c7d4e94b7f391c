//! What answers at an address need not be a server of ours, nor mean well: it is given no more than one token, and costs no more than it may.

use everforge::{Everforge, Kind};
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

fn client(host: &str) -> Everforge {
    Everforge::builder().token("id.secret").base_url(format!("http://{host}")).retry_seconds(0).build().unwrap()
}

/// Somebody who does that with every connection; where, and how many there were.
async fn stranger<F>(act: impl Fn(TcpStream, String) -> F + Send + Sync + 'static) -> (String, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (host, count) = (listener.local_addr().unwrap().to_string(), Arc::<AtomicUsize>::default());
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut head = Vec::new();
            while !head.windows(4).any(|found| found == b"\r\n\r\n") && stream.read_buf(&mut head).await.is_ok_and(|size| size > 0) {}
            tokio::spawn(act(stream, String::from_utf8_lossy(&head).into_owned()));
        }
    });
    (host, count)
}

async fn say(mut stream: TcpStream, text: String) {
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed_so_that_the_token_goes_nowhere_else() {
    let (elsewhere, count) = stranger(|stream, _| say(stream, String::new())).await;
    let away = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{elsewhere}/v1/whoami\r\ncontent-length: 0\r\n\r\n");
    let (host, _) = stranger(move |stream, _| say(stream, away.clone())).await;
    let error = client(&host).whoami().await.unwrap_err();
    assert_eq!(error.kind, Kind::VersionMismatch);
    assert_eq!(error.message, format!("what answers at http://{host} is not an Everforge server (HTTP 307): check the address"));
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let (host, _) = stranger(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nx-everforge-version: 0.1.0\r\n\r\n").await;
        while stream.write_all(&[b' '; 8192]).await.is_ok() {}
    })
    .await;
    let error = client(&host).whoami().await.unwrap_err();
    assert_eq!((error.kind, error.message.contains("1048576 bytes")), (Kind::ProtocolError, true), "{error}");
}

#[tokio::test]
async fn a_frame_that_is_too_long_is_not_waited_for() {
    let (host, count) = stranger(|mut stream, head| async move {
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap_or_default().to_owned();
        let accepted = derive_accept_key(key.as_bytes());
        let upgrade =
            format!("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accepted}\r\n\r\n");
        let hello = br#"{"type":"connected","position":-1}"#;
        let mut said = [upgrade.as_bytes(), &[0x81, u8::try_from(hello.len()).unwrap()], hello].concat();
        said.extend([0x81, 127]);
        said.extend((1u64 << 40).to_be_bytes());
        let _ = stream.write_all(&said).await;
        let _ = stream.read(&mut [0]).await; // until it is dropped
    })
    .await;
    let repl = client(&host).machine("m").unwrap().repl().await.unwrap();
    let error = repl.entries().wait_seconds(1).next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, Kind::StillRunning);
    assert!(count.load(Ordering::Relaxed) > 1, "the connection was kept, and the rest of the frame waited for");
}

#[tokio::test]
async fn nobody_there_is_said_at_once_and_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    drop(listener);
    let begun = Instant::now();
    let error = client(&host).whoami().await.unwrap_err();
    assert_eq!(error.kind, Kind::Unreachable);
    assert!(error.message.starts_with(&format!("no server answers at http://{host} (the connection was refused): ")), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_link_that_logs_in_is_in_no_error() {
    let (host, _) = stranger(|stream, _| async move { drop(stream) }).await;
    let error = everforge::log_in(&format!("http://{host}/login/onetimecode")).await.unwrap_err();
    assert_eq!(error.kind, Kind::Uncertain);
    assert!(!format!("{error:?}").contains("onetimecode"), "{error:?}");
}

#[test]
fn secrets_are_in_no_debug_output() {
    let client = client("127.0.0.1:9");
    let machine = client.machine("m").unwrap();
    let logged_in: everforge::api::LoggedIn = serde_json::from_str(r#"{"account": "ann", "token": "id.secret", "url": "http://x"}"#).unwrap();
    let shown = format!("{client:?} {machine:?} {:?} {:?} {:?} {logged_in:?}", machine.files(), client.tokens(), machine.instruction(0).unwrap());
    assert!(shown.contains("http://127.0.0.1:9") && shown.contains("ann") && !shown.contains("secret"), "{shown}");
}
