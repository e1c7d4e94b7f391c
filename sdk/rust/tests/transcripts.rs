//! Every transcript of the contract, replayed: what this SDK asks, and what it makes of the answers, is what all languages do.

mod steps;

use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use steps::Driver;

const TRANSCRIPT_SECONDS_MAX: u64 = 60;

/// The server that plays all of them; it ends with us.
struct Replay {
    process: Child,
    url: String,
}

impl Drop for Replay {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn contract() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../contract")
}

impl Replay {
    fn start() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = std::env::var_os("EVERFORGE_PYTHON").map_or_else(|| here.join("../../.venv/bin/python"), PathBuf::from);
        let mut command = Command::new(python);
        let mut process = command.arg(contract().join("replay.py")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the replay server");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("what it says")).read_line(&mut line).expect("its first line");
        let url = line.trim().strip_prefix("ready ").expect("its address").to_owned();
        Self { process, url }
    }

    fn verdict(&self, name: &str) -> Value {
        let host = self.url.strip_prefix("http://").expect("an address");
        let mut stream = TcpStream::connect(host).expect("a connection");
        write!(stream, "GET /verdict/{name} HTTP/1.1\r\nhost: {host}\r\n\r\n").expect("a request");
        let (mut head, mut length) = (BufReader::new(stream), 0);
        loop {
            let mut line = String::new();
            head.read_line(&mut line).expect("a header");
            if let Some(found) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = found.trim().parse().expect("a number");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        head.read_exact(&mut body).expect("a verdict");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// What went wrong.
    async fn play(&self, name: &str, steps: &[Value]) -> Result<(), String> {
        let variables = json!({"url": format!("{}/{name}", self.url), "token": "replay.token", "dead_url": "http://127.0.0.1:9", "run": "r1"});
        let mut driver = Driver::new(variables.as_object().cloned().unwrap_or_else(Map::new));
        let run = tokio::time::timeout(Duration::from_secs(TRANSCRIPT_SECONDS_MAX), driver.run(steps, |_, _| {}));
        run.await.map_err(|_| "it did not end".to_owned())??;
        drop(driver);
        let verdict = self.verdict(name);
        if verdict["ok"] == true { Ok(()) } else { Err(verdict["problems"].to_string()) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transcript_is_replayed_to_its_end() {
    let replay = Replay::start();
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(contract().join("transcripts")).expect("transcripts").map(|entry| entry.expect("a file").path()).collect();
    names.sort();
    let mut wrong = Vec::new();
    for path in &names {
        let name = path.file_stem().expect("a name").to_string_lossy();
        let transcript: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
        if let Err(why) = replay.play(&name, transcript["steps"].as_array().expect("steps")).await {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(names.len() > 20, "only {} transcripts are there", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
