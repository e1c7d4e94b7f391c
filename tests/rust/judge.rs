//! The published client against a running server: FOREVERVM_API_BASE and FOREVERVM_TOKEN say where.
#![cfg(test)]

use forevervm_sdk::api::api_types::{ExecResult, ExecResultType, Instruction};
use forevervm_sdk::api::http_api::{CreateMachineRequest, ListMachinesRequest};
use forevervm_sdk::api::id_types::MachineName;
use forevervm_sdk::api::protocol::{MessageFromServer, StandardOutput, StandardOutputStream};
use forevervm_sdk::api::token::ApiToken;
use forevervm_sdk::client::error::ClientError;
use forevervm_sdk::client::repl::ReplConnection;
use forevervm_sdk::client::ForeverVMClient;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::env;
use std::future::Future;
use std::time::Duration;
use url::Url;

const PATIENCE: Duration = Duration::from_secs(60);
const PLOT: &str = "import matplotlib.pyplot as plt\nplt.plot([0, 1, 2])\nplt.show()";

fn client_with(token: &str) -> ForeverVMClient {
    let base = env::var("FOREVERVM_API_BASE").expect("FOREVERVM_API_BASE");
    ForeverVMClient::new(
        Url::parse(&base).unwrap(),
        ApiToken::new(token.to_string()).unwrap(),
    )
}

fn client() -> ForeverVMClient {
    client_with(&env::var("FOREVERVM_TOKEN").expect("FOREVERVM_TOKEN"))
}

/// The client itself waits for ever: where it would, a test must fail instead.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("the client waits in vain")
}

async fn machine(client: &ForeverVMClient, tags: &[(&str, &str)]) -> MachineName {
    let tags: HashMap<String, String> = tags
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let wanted = CreateMachineRequest {
        tags,
        memory_mb: Some(512),
    };
    soon(client.create_machine(wanted))
        .await
        .unwrap()
        .machine_name
}

async fn listed(client: &ForeverVMClient, tags: &[(&str, &str)]) -> Vec<MachineName> {
    let tags = tags
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let found = soon(client.list_machines(ListMachinesRequest { tags }))
        .await
        .unwrap();
    found.machines.into_iter().map(|m| m.name).collect()
}

async fn run(client: &ForeverVMClient, machine: &MachineName, code: &str) -> ExecResult {
    let accepted = soon(client.exec_instruction(machine, Instruction::new(code)))
        .await
        .unwrap();
    soon(client.exec_result(machine, accepted.instruction_seq.unwrap()))
        .await
        .unwrap()
        .result
}

async fn repl_run(
    repl: &mut ReplConnection,
    code: &str,
    timeout_seconds: i32,
) -> (Vec<StandardOutput>, ExecResult) {
    let instruction = Instruction {
        code: code.to_string(),
        timeout_seconds,
    };
    let mut handle = soon(repl.exec_instruction(instruction)).await.unwrap();
    let mut outputs = Vec::new();
    while let Some(output) = soon(handle.next()).await {
        outputs.push(output);
    }
    (outputs, soon(handle.result()).await.unwrap())
}

fn value(result: ExecResult) -> Option<String> {
    match result.result {
        ExecResultType::Value { value, .. } => value,
        ExecResultType::Error { error } => panic!("a value was expected, not {error}"),
    }
}

fn error(result: ExecResult) -> String {
    match result.result {
        ExecResultType::Error { error } => error,
        other => panic!("an error was expected, not {other:?}"),
    }
}

#[tokio::test]
async fn the_tag_filter_is_exact_and_tags_come_back_as_given() {
    let client = client();
    let both = machine(&client, &[("judge", "rust"), ("colour", "blau")]).await;
    let one = machine(&client, &[("judge", "rust")]).await;
    assert_eq!(
        listed(&client, &[("judge", "rust")]).await,
        vec![one, both.clone()]
    );
    assert_eq!(
        listed(&client, &[("judge", "rust"), ("colour", "blau")]).await,
        vec![both.clone()]
    );
    assert!(listed(&client, &[("judge", "rus")]).await.is_empty());
    let all = soon(client.list_machines(ListMachinesRequest::default()))
        .await
        .unwrap()
        .machines;
    let found = all.iter().find(|m| m.name == both).unwrap();
    assert_eq!(found.tags.len(), 2);
    assert_eq!(found.tags["colour"], "blau");
}

#[tokio::test]
async fn stream_result_tells_both_streams_and_the_result_also_after_the_end() {
    let client = client();
    let machine = machine(&client, &[]).await;
    let code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('ü', end='')\n'done'";
    assert_eq!(
        value(run(&client, &machine, code).await).as_deref(),
        Some("'done'")
    );
    let mut stream = soon(client.exec_result_stream(&machine, 0.into()))
        .await
        .unwrap();
    let (mut lines, mut ends) = (Vec::new(), 0);
    while let Some(message) = soon(stream.next()).await {
        match message.unwrap() {
            MessageFromServer::Output {
                chunk,
                instruction_id,
            } => {
                assert_eq!(instruction_id, 0.into());
                assert_eq!(chunk.seq, (lines.len() as i64).into());
                lines.push((chunk.stream, chunk.data));
            }
            MessageFromServer::Result(result) => {
                assert_eq!(value(result.result).as_deref(), Some("'done'"));
                ends += 1;
            }
            other => panic!("{other:?} has no place here"),
        }
    }
    let out = |text: &str| (StandardOutputStream::Stdout, text.to_string());
    lines.sort_by_key(|(_, data)| data.clone()); // two pipes: between them the order may be either
    assert_eq!(
        lines,
        vec![
            out("a"),
            (StandardOutputStream::Stderr, "b".to_string()),
            out("ü")
        ]
    );
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn a_plot_arrives_as_png_in_data() {
    let client = client();
    let machine = machine(&client, &[]).await;
    let ExecResultType::Value {
        data: Some(data), ..
    } = run(&client, &machine, PLOT).await.result
    else {
        panic!("a picture was expected");
    };
    assert!(
        data["png"].as_str().unwrap().starts_with("iVBORw0KGgo"),
        "the signature of PNG, in base64"
    );
}

#[tokio::test]
async fn a_repl_tells_outputs_errors_and_timeouts_and_the_state_survives() {
    let client = client();
    let mut repl = soon(client.repl(&"new".to_string().into())).await.unwrap();
    assert!(listed(&client, &[]).await.contains(&repl.machine_name));
    let (outputs, result) = repl_run(&mut repl, "x = 41\nfor i in range(40): print(i)", 15).await;
    assert_eq!(value(result), None);
    for (i, output) in outputs.iter().enumerate() {
        assert_eq!(
            (&output.data, output.seq),
            (&i.to_string(), (i as i64).into())
        );
    }
    assert_eq!(outputs.len(), 40);
    assert!(error(
        repl_run(&mut repl, "import time; time.sleep(60)", 1)
            .await
            .1
    )
    .contains("Timed out"));
    let raised = error(repl_run(&mut repl, "{}['key']", 15).await.1);
    assert!(raised.contains("KeyError") && raised.contains("key"));
    assert_eq!(
        value(repl_run(&mut repl, "x + 1", 15).await.1).as_deref(),
        Some("42")
    );
}

#[tokio::test]
async fn two_repls_on_one_machine_share_its_state_and_not_their_outputs() {
    let client = client();
    let machine = machine(&client, &[]).await;
    let (mut one, mut two) = (
        soon(client.repl(&machine)).await.unwrap(),
        soon(client.repl(&machine)).await.unwrap(),
    );
    let (heard_by_one, heard_by_two) = tokio::join!(
        repl_run(&mut one, "one = 1\nfor i in range(20): print('one')", 15),
        repl_run(&mut two, "two = 2\nfor i in range(20): print('two')", 15)
    );
    for (heard, word) in [(&heard_by_one, "one"), (&heard_by_two, "two")] {
        assert_eq!(heard.0.len(), 20);
        assert!(heard.0.iter().all(|output| output.data == word));
    }
    assert_eq!(
        value(repl_run(&mut one, "one + two", 15).await.1).as_deref(),
        Some("3")
    );
}

#[tokio::test]
async fn a_refused_exec_ends_in_an_error_and_the_repl_goes_on() {
    let client = client();
    let mut repl = soon(client.repl(&"new".to_string().into())).await.unwrap();
    assert!(!error(repl_run(&mut repl, &"#".repeat(2 << 20), 15).await.1).is_empty());
    assert_eq!(
        value(repl_run(&mut repl, "6 * 7", 15).await.1).as_deref(),
        Some("42")
    );
}

#[tokio::test]
async fn refusals_have_a_code_and_a_repl_is_refused_in_the_handshake() {
    let client = client();
    match soon(client.exec_result(&"nobody".to_string().into(), 0.into())).await {
        Err(ClientError::ApiError(refusal)) => assert_eq!(refusal.code, "MachineNotFound"),
        other => panic!("{other:?}"),
    }
    match soon(client_with("wrong.wrong").whoami()).await {
        Err(ClientError::ApiError(refusal)) => assert_eq!(refusal.code, "Unauthenticated"),
        Ok(who) => panic!("{} with a wrong token", who.account),
        Err(other) => panic!("{other:?}"),
    }
    assert!(matches!(
        soon(client.repl(&"nobody".to_string().into())).await,
        Err(ClientError::TungsteniteError(_))
    ));
    assert!(matches!(
        soon(client_with("wrong.wrong").repl(&"new".to_string().into())).await,
        Err(ClientError::TungsteniteError(_))
    ));
}
