//! The guide of docs/rust.md, block by block; a test compares the two. It finds its server as the command line does: `cargo run --example guide`.

use everforge::{Everforge, Fallible, Kind};
use futures::TryStreamExt;
use serde_json::json;

#[tokio::main]
async fn main() -> Fallible<()> {
    let client = Everforge::new()?; // finds its server as the command line does
    let machine = client.create().tag("project", "docs").await?;
    machine.run("prices = [3.5, 4.0, 4.5]").await?;
    machine.hibernate().await?; // it sleeps, and costs disk only
    let mean = machine.run("sum(prices) / len(prices)").await?;
    println!("{:?}", mean.value); // woken, and it remembers: Some("4.0")

    let bad = machine.run("1 / 0").await?;
    println!("{} {:?}", bad.ok(), bad.error);
    let error = bad.raise_for_error().unwrap_err();
    println!("{}", error.is_a(Kind::InstructionFailed));

    let mut lines = machine.stream("for n in range(3): print('line', n)");
    while let Some(line) = lines.try_next().await? {
        println!("{line}");
    }

    let instruction = machine.exec("import time; time.sleep(60)").timeout_seconds(90).await?;
    instruction.interrupt().await?;
    println!("{}", instruction.result().wait_seconds(30).await?.end);

    let asked = machine.run("ask('how many?') + 1").function("ask", |args| async move { Ok(json!(args.at(0).as_str().unwrap_or_default().len())) });
    println!("{:?}", asked.await?.value);

    machine.files().write("data/notes.txt", "kept with the machine").await?;
    let copy = machine.fork().await?; // memory, files and all, from this instant
    println!("{}", copy.files().read_text("data/notes.txt").await?);
    let point = machine.snapshot().name("before").await?;
    machine.run("del prices").await?;
    machine.rollback().to(point.id).await?;
    println!("{:?}", machine.run("len(prices)").await?.value);

    let repl = machine.repl().await?;
    println!("{:?}", repl.run("6 * 7").await?.value);
    repl.close().await;
    copy.delete().await?;
    machine.delete().await?;
    Ok(())
}
