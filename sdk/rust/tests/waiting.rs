//! Who waits for a machine can stop, is told in time, and is not troubled by cuts. Against a real server, on the engine of tests.

mod kit;

use everforge::{Everforge, Functions, Kind, Machine};
use futures::{StreamExt, TryStreamExt};
use kit::{FOR_EVER, FakeServer, Wire};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

const SECONDS_MAX: Duration = Duration::from_secs(60);

async fn made() -> (&'static FakeServer, Everforge, Machine) {
    let server = kit::server();
    let client = server.client();
    let machine = client.create().await.expect("a machine");
    (server, client, machine)
}

async fn states(machine: &Machine) -> Vec<String> {
    machine.instructions().map_ok(|found| found.state.to_string()).try_collect().await.expect("its instructions")
}

#[tokio::test]
async fn dropping_a_run_ends_the_waiting_and_not_the_instruction() {
    let (_server, _client, machine) = made().await;
    let begun = Notify::new();
    let running = machine.run(FOR_EVER).on_stdout(|_| begun.notify_one());
    tokio::select! { _ = running => panic!("it goes on for ever"), () = begun.notified() => {} }
    assert_eq!(states(&machine).await, ["running"]);
    assert!(machine.interrupt().await.unwrap());
    let result = machine.instruction(0).unwrap().result().await.unwrap();
    assert_eq!((result.end.as_str(), result.stdout.as_str()), ("interrupted", "begun\n"));
}

#[tokio::test]
async fn dropping_a_stream_early_leaves_the_instruction_alone() {
    let (_server, _client, machine) = made().await;
    let mut lines = machine.stream(FOR_EVER);
    assert_eq!(lines.next().await.unwrap().unwrap(), "begun");
    drop(lines);
    assert_eq!(states(&machine).await, ["running"]);
}

#[tokio::test]
async fn whoever_stops_waiting_on_a_repl_takes_nothing_from_the_others() {
    let (_server, _client, machine) = made().await;
    let repl = machine.repl().await.unwrap();
    let (first, third) = (repl.run("sleep(0.5)"), repl.run("3"));
    let second = timeout(Duration::from_millis(100), repl.run("hang()").timeout_seconds(1));
    let (first, second, third) = futures::join!(first.into_future(), second, third.into_future());
    assert!(second.is_err());
    assert_eq!((first.unwrap().end.as_str(), third.unwrap().value.as_deref()), ("value", Some("3")));
    assert_eq!(repl.run("6 * 7").await.unwrap().value.as_deref(), Some("42"));
}

#[tokio::test]
async fn closing_a_client_tells_whoever_waits_for_it() {
    let (server, _client, machine) = made().await;
    let other = server.client();
    let mine = other.machine(machine.name()).unwrap();
    let (repl, begun) = (mine.repl().await.unwrap(), Notify::new());
    let mut entries = repl.entries();
    let closing = async {
        begun.notified().await;
        other.close();
    };
    let listening = async {
        while entries.try_next().await?.is_some() {}
        Ok::<_, everforge::Error>(())
    };
    let running = mine.run(FOR_EVER).on_stdout(|_| begun.notify_one()).into_future();
    let waiting = futures::future::join3(running, listening, closing);
    let (run, heard, ()) = timeout(SECONDS_MAX, waiting).await.expect("they are told");
    for error in [run.unwrap_err(), heard.unwrap_err(), mine.info().await.unwrap_err()] {
        assert_eq!(error.kind, Kind::ClientError);
        assert!(error.message.starts_with("this client is closed: "), "{error}");
    }
    assert_eq!(states(&machine).await, ["running"]);
}

#[tokio::test]
async fn wait_seconds_is_how_long_the_caller_has_also_when_the_server_is_away() {
    let (server, client, machine) = made().await;
    assert_eq!(machine.run(FOR_EVER).wait_seconds(0.3).await.unwrap_err().kind, Kind::StillRunning);
    let wire = Wire::to(&server.host).await;
    let mine = server.client_at(&wire.host).machine(machine.name()).unwrap();
    mine.info().await.unwrap();
    let repl = mine.repl().await.unwrap();
    wire.budgets.lock().unwrap().extend([0; 1000]); // it takes connections, and says no more
    wire.cut();
    let begun = Instant::now();
    assert_eq!(mine.instruction(0).unwrap().result().wait_seconds(0.5).await.unwrap_err().kind, Kind::StillRunning);
    let error = repl.entries().wait_seconds(0.5).next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, Kind::StillRunning);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(client.machine(machine.name()).unwrap().instruction(0).unwrap().info().await.unwrap().state.as_str(), "running");
}

#[tokio::test]
async fn every_line_comes_once_however_often_the_connection_is_cut() {
    let (server, _client, machine) = made().await;
    for i in 0..10 {
        machine.run(format!("for j in range(5): tell('{i}.' + str(j), 'x' * 50)")).await.unwrap();
    }
    let wire = Wire::to(&server.host).await;
    let mine = server.client_at(&wire.host).machine(machine.name()).unwrap();
    mine.info().await.unwrap();
    wire.cut();
    wire.budgets.lock().unwrap().extend([700, 900, 400, 1500, 300, 2000, 800]);
    let mut lines = Vec::new();
    let mut tape = mine.tape().follow(true).wait_seconds(30.0);
    while let Some(entry) = tape.try_next().await.unwrap() {
        lines.extend(entry.lines().map(|line| line.text).filter(|text| !text.starts_with('x')));
        if entry.kind() == "ended" && entry.instruction() == Some(9) {
            break;
        }
    }
    let wanted: Vec<String> = (0..10).flat_map(|i| (0..5).map(move |j| format!("{i}.{j}"))).collect();
    assert_eq!(lines, wanted);
    assert!(wire.connections.load(Ordering::Relaxed) > 5);
}

#[tokio::test]
async fn a_cut_between_a_request_and_its_answer_does_nothing_twice() {
    let (server, _client, machine) = made().await;
    machine.run("x = 0").await.unwrap();
    let wire = Wire::to(&server.host).await;
    let mine = server.client_at(&wire.host).machine(machine.name()).unwrap();
    mine.info().await.unwrap();
    wire.budgets.lock().unwrap().extend([0, 0]);
    wire.cut();
    assert_eq!(mine.run("x += 1; x").await.unwrap().value.as_deref(), Some("1"));
    let repl = mine.repl().await.unwrap();
    let running = repl.run("x += 1; tell('a')\nsleep(0.5)").on_stdout(|line| {
        if *line == *"a" {
            wire.cut();
        }
    });
    let result = running.await.unwrap();
    assert_eq!((result.stdout.as_str(), result.end.as_str()), ("a\n", "value"));
    assert_eq!(repl.run("x").await.unwrap().value.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_function_that_fails_panics_or_returns_too_much_is_an_error_in_the_machine() {
    let (_server, _client, machine) = made().await;
    let again = machine.clone();
    let functions = Functions::new()
        .with("fails", |_| async { Err("no luck".into()) })
        .with("panics", |_| async { panic!("at once") })
        .with("floods", |_| async { Ok(json!("x".repeat(2 * 1024 * 1024))) })
        .with("waits", move |_| {
            let again = again.clone();
            async move { Ok(json!(again.run("1").await?.value)) }
        });
    for (name, wanted) in
        [("fails", "Error: no luck"), ("panics", "Panic: at once"), ("floods", "cannot be sent"), ("waits", "waits for the answer of this function")]
    {
        let result = timeout(SECONDS_MAX, machine.run(format!("{name}()")).functions(functions.clone()).into_future()).await.unwrap().unwrap();
        assert!(result.error.as_deref().is_some_and(|error| error.contains(wanted)), "{name}: {:?}", result.error);
    }
    let error = machine.run("1").function("a b", |_| async { Ok(Value::Null) }).await.unwrap_err();
    assert_eq!(error.kind, Kind::InvalidInput);
}

#[tokio::test]
async fn a_function_is_not_called_again_for_a_result_that_is_asked_for_again() {
    let (_server, _client, machine) = made().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let functions = Functions::new().with("count", move |_| {
        let counted = counted.clone();
        async move { Ok(json!(counted.fetch_add(1, Ordering::Relaxed) + 1)) }
    });
    let instruction = machine.exec("count() + count()").functions(functions.clone()).await.unwrap();
    for asked in [instruction.result(), instruction.result(), machine.instruction(instruction.number()).unwrap().result().functions(functions)] {
        assert_eq!(asked.await.unwrap().value.as_deref(), Some("3"));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn files_go_through_cuts_and_a_download_that_is_dropped_leaves_nothing() {
    let (server, _client, machine) = made().await;
    let (folder, wire) = (tempfile::tempdir().unwrap(), Wire::to(&server.host).await);
    let content: Vec<u8> = (0..3_000_000u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let mine = server.client_at(&wire.host).machine(machine.name()).unwrap();
    mine.info().await.unwrap();
    wire.budgets.lock().unwrap().extend([0, 0]);
    wire.cut();
    mine.files().write("large", &content).await.unwrap();
    wire.budgets.lock().unwrap().extend([1_000_000, 2_000_000]);
    wire.cut();
    let local = folder.path().join("large");
    assert_eq!(mine.files().download("large", &local).await.unwrap(), 3_000_000);
    assert_eq!(std::fs::read(&local).unwrap(), content);
    wire.cut();
    assert_eq!(mine.files().upload(&local, "again").await.unwrap().size_bytes, 3_000_000);
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let other = folder.path().join("other");
    let fetching = mine.files().download("again", &other).progress(move |_, _| told.notify_one());
    tokio::select! { biased; () = begun.notified() => {}, _ = fetching => {} }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).filter(|name| *name != *"other").collect();
    assert_eq!(left, ["large"]);
}
