//! What tests are run against: a whole server on the engine of tests, and a wire to it that can be cut.

use everforge::Everforge;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Code that writes one line and goes on for ever, as this engine has it.
pub const FOR_EVER: &str = "tell('begun')\nhang()";

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Python that servers of tests run with.
pub fn python() -> PathBuf {
    std::env::var_os("EVERFORGE_PYTHON").map_or_else(|| repository().join(".venv/bin/python"), PathBuf::from)
}

/// One for all tests of a file.
pub fn server() -> &'static FakeServer {
    static SERVER: OnceLock<FakeServer> = OnceLock::new();
    SERVER.get_or_init(FakeServer::start)
}

/// It ends when its standard input does: with us.
pub struct FakeServer {
    _process: Child,
    pub host: String,
    pub token: String,
}

impl FakeServer {
    fn start() -> Self {
        let mut command = Command::new(python());
        command.args(["-m", "kit.fakeserver"]).env("PYTHONPATH", repository().join("tests")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().expect("a server");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("what it says")).read_line(&mut line).expect("its first line");
        let (url, token) = line.trim().strip_prefix("ready ").and_then(|rest| rest.split_once(' ')).expect("an address and a token");
        Self { host: url.strip_prefix("http://").expect("an address").to_owned(), token: token.to_owned(), _process: process }
    }

    pub fn client(&self) -> Everforge {
        self.client_at(&self.host)
    }

    pub fn client_at(&self, host: &str) -> Everforge {
        Everforge::builder().token(&self.token).base_url(format!("http://{host}")).build().expect("a client")
    }
}

/// Between a client and its server.
pub struct Wire {
    pub host: String,
    cuts: watch::Sender<u64>,
    /// How many bytes of answers the next connections carry before they are cut, one after the other; then they carry all.
    pub budgets: Arc<Mutex<VecDeque<usize>>>,
    pub connections: Arc<AtomicUsize>,
}

impl Wire {
    pub async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (server, cuts) = (server.to_owned(), watch::Sender::new(0));
        let (budgets, connections) = (Arc::<Mutex<VecDeque<usize>>>::default(), Arc::<AtomicUsize>::default());
        let host = listener.local_addr().expect("an address").to_string();
        let wire = Self { host, cuts: cuts.clone(), budgets: budgets.clone(), connections: connections.clone() };
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let budget = budgets.lock().unwrap().pop_front().unwrap_or(usize::MAX);
                let (mut cut, server) = (cuts.subscribe(), server.clone());
                tokio::spawn(async move {
                    tokio::select! { () = carry(near, &server, budget) => {}, _ = cut.changed() => {} }
                });
            }
        });
        wire
    }

    /// Every connection there is.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn carry(near: TcpStream, server: &str, mut budget: usize) {
    let far = TcpStream::connect(server).await.expect("the server");
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (near.into_split(), far.into_split());
    let asking = tokio::io::copy(&mut from_client, &mut to_server);
    let answering = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(size @ 1..) = from_server.read(&mut buffer).await {
            if to_client.write_all(&buffer[..size.min(budget)]).await.is_err() || size > budget {
                return;
            }
            budget -= size;
        }
    };
    tokio::select! { _ = asking => {}, () = answering => {} }
}
