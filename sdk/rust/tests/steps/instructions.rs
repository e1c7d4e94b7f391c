//! Steps that run code.

use super::given::{Given, given};
use super::machines::one;
use super::{Done, Driver, Failed, Outcome, Thing, cut, plain};
use everforge::{Instruction, Machine, Repl};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::sync::Mutex;

macro_rules! given_to_code {
    ($request:ident, $given:ident) => {
        given!($request, $given, number timeout_seconds);
        if let Some(env) = $given.pairs("env") {
            $request = $request.envs(env);
        }
        if let Some(functions) = $given.functions() {
            $request = $request.functions(functions);
        }
    };
}

/// `run` and `exec` are the same on a machine and on a Repl.
macro_rules! run {
    ($driver:ident, $on:ident, $given:ident) => {{
        if $given.has("cut_after_lines") || $given.has("interrupt_after_lines") {
            let mut request = $on.exec($given.text("code")).interrupt($given.is("interrupt"));
            given_to_code!(request, $given);
            watched($driver, &request.await?, $given, None).await
        } else {
            let mut request = $on.run($given.text("code")).interrupt($given.is("interrupt"));
            given_to_code!(request, $given);
            given!(request, $given, number wait_seconds);
            one(request.await)
        }
    }};
}

fn unknown(what: &str) -> Outcome {
    Err(Failed::Wrong(format!("there is no step {what} here")))
}

fn remembered(instruction: Instruction) -> Done {
    Done { got: json!({"number": instruction.number()}), made: Some(Thing::Instruction(instruction)) }
}

pub async fn of_machine(driver: &Driver, what: &str, machine: &Machine, given: &Given<'_>) -> Outcome {
    match what {
        "run" => run!(driver, machine, given),
        "exec" => {
            let mut request = machine.exec(given.text("code")).interrupt(given.is("interrupt"));
            given_to_code!(request, given);
            Ok(remembered(request.await?))
        }
        "instruction" => Ok(remembered(machine.instruction(given.integer("number").unwrap_or(-1))?)),
        "stream" => streamed(driver, machine, given).await,
        "interrupt" => Ok(json!({"interrupted": machine.interrupt().pending(given.is("pending")).await?}).into()),
        "instructions" => {
            let mut request = machine.instructions();
            given!(request, given, integer after);
            one(request.try_collect::<Vec<_>>().await)
        }
        "tape" => {
            let mut request = machine.tape();
            given!(request, given, integer after);
            one(request.try_collect::<Vec<_>>().await)
        }
        "complete" => {
            let mut request = machine.complete(given.text("code"));
            given!(request, given, integer cursor);
            one(request.await)
        }
        "repl" => {
            let mut request = machine.repl();
            given!(request, given, integer after);
            Ok(Done { got: Value::Null, made: Some(Thing::Repl(request.await?)) })
        }
        "call" => super::account::of_machine(machine, given).await,
        _ => unknown(what),
    }
}

async fn streamed(driver: &Driver, machine: &Machine, given: &Given<'_>) -> Outcome {
    let mut request = machine.stream(given.text("code"));
    given_to_code!(request, given);
    let mut lines = Vec::new();
    while let Some(line) = request.next().await {
        lines.push(line?.text);
        if given.integer("cut_after_lines") == i64::try_from(lines.len()).ok() {
            driver.cut();
        }
    }
    Ok(json!({"lines": lines}).into())
}

pub async fn of_instruction(driver: &Driver, what: &str, instruction: &Instruction, given: &Given<'_>) -> Outcome {
    match what {
        "result" => watched(driver, instruction, given, given.number("wait_seconds")).await,
        "interrupt" => Ok(json!({"interrupted": instruction.interrupt().await?}).into()),
        "info" => one(instruction.info().await),
        _ => unknown(what),
    }
}

/// Does something to it after so many lines.
async fn watched(driver: &Driver, instruction: &Instruction, given: &Given<'_>, wait_seconds: Option<f64>) -> Outcome {
    let (cut_at, interrupt_at) = (given.integer("cut_after_lines"), given.integer("interrupt_after_lines"));
    let control = driver.variables.get("control").and_then(Value::as_str).unwrap_or_default();
    let (mut count, interrupts) = (0, Mutex::new(Vec::new()));
    let mut request = instruction.result().on_stdout(|_| {
        count += 1;
        if Some(count) == cut_at {
            cut(control);
        }
        if Some(count) == interrupt_at {
            let interrupted = instruction.clone();
            interrupts.lock().unwrap().push(tokio::spawn(async move { interrupted.interrupt().await }));
        }
    });
    if let Some(seconds) = wait_seconds {
        request = request.wait_seconds(seconds);
    }
    if let Some(functions) = given.functions() {
        request = request.functions(functions);
    }
    let found = request.await;
    let sent = interrupts.into_inner().unwrap();
    for interrupt in sent {
        interrupt.await.expect("it was sent")?;
    }
    Ok(plain(&found?).into())
}

pub async fn of_repl(driver: &Driver, what: &str, repl: &Repl, given: &Given<'_>) -> Outcome {
    match what {
        "run" => run!(driver, repl, given),
        "position" => Ok(json!({"position": repl.position()}).into()),
        "interrupt" => {
            let mut request = repl.interrupt().pending(given.is("pending"));
            given!(request, given, integer instruction);
            Ok(json!({"interrupted": request.await?}).into())
        }
        "complete" => {
            let mut request = repl.complete(given.text("code"));
            given!(request, given, integer cursor);
            one(request.await)
        }
        "ping" => one(repl.ping().await),
        "close" => {
            repl.close().await;
            Ok(Value::Null.into())
        }
        _ => unknown(what),
    }
}
