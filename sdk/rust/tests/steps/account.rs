//! Steps of an account.

use super::given::{Given, given};
use super::machines::one;
use super::{Done, Failed, Outcome, Thing, plain};
use everforge::api::AuditHead;
use everforge::{Everforge, Machine};
use futures::TryStreamExt;
use serde_json::{Value, json};

pub async fn act(what: &str, client: &Everforge, given: &Given<'_>) -> Outcome {
    match what {
        "client" => {
            let mut request = Everforge::builder();
            given!(request, given, maybe_text token, maybe_text base_url, number retry_seconds);
            Ok(Done { got: Value::Null, made: Some(Thing::Client(request.build()?)) })
        }
        "whoami" => Ok(json!({"account": client.whoami().await?}).into()),
        "create" => create(client, given).await,
        "machine" => Ok(remembered(client.machine(&given.text("name"))?)),
        "machines" => {
            let mut request = client.machines();
            given!(request, given, pairs tags, maybe_text state, maybe_text prefix);
            one(request.map_ok(|machine| machine.name).try_collect::<Vec<_>>().await)
        }
        "call" => call(client, given).await,
        _ => unknown(what),
    }
}

fn unknown(what: &str) -> Outcome {
    Err(Failed::Wrong(format!("there is no step {what} here")))
}

fn remembered(machine: Machine) -> Done {
    Done { got: json!({"name": machine.name()}), made: Some(Thing::Machine(machine)) }
}

async fn create(client: &Everforge, given: &Given<'_>) -> Outcome {
    let mut request = client.create();
    given!(request, given, maybe_text name, pairs tags, integer memory_mb, number cpus, integer disk_mb, integer processes, maybe_text image);
    given!(request, given, maybe_text egress, maybe_texts egress_allow, number idle_seconds, maybe_text expires_at);
    given!(request, given, maybe_text history, maybe_text durability);
    if let Some(env) = given.pairs("env") {
        request = request.envs(env);
    }
    if let Some(metadata) = given.object("metadata") {
        request = request.metadata(metadata.clone());
    }
    if let Some(from) = given.object("from_snapshot").map(Given) {
        request = request.from_snapshot(from.text("machine"), from.text("snapshot"));
    }
    Ok(remembered(request.await?))
}

pub async fn of_machine(machine: &Machine, given: &Given<'_>) -> Outcome {
    let egress = machine.egress();
    let arguments = given.object("arguments").map(Given).expect("arguments by name");
    match given.text("method").as_str() {
        "show" => one(egress.show().await),
        "set" => one(egress.set(arguments.text("policy")).await),
        "allow" => one(egress.allow(arguments.texts("rules")).await),
        "deny" => one(egress.deny(arguments.texts("rules")).await),
        "log" => one(egress.log().try_collect::<Vec<_>>().await),
        other => unknown(other),
    }
}

async fn call(client: &Everforge, given: &Given<'_>) -> Outcome {
    let (group, method) = (given.text("group"), given.text("method"));
    let arguments = given.object("arguments").map(Given).expect("arguments by name");
    match (group.as_str(), method.as_str()) {
        ("", "account") => one(client.account().await),
        ("", "usage") => one(client.usage().await),
        ("tokens", method) => tokens(client, method, &arguments).await,
        ("accounts", method) => accounts(client, method, &arguments).await,
        ("secrets" | "egress", method) => way_out(client, &group, method, &arguments).await,
        ("audit", method) => audit(client, method, &arguments).await,
        ("webhooks", method) => webhooks(client, method, &arguments).await,
        _ => unknown(&format!("call of {group}.{method}")),
    }
}

async fn tokens(client: &Everforge, method: &str, given: &Given<'_>) -> Outcome {
    let tokens = client.tokens();
    match method {
        "list" => one(tokens.list().await),
        "create" => {
            let mut request = tokens.create();
            given!(request, given, maybe_text name, maybe_texts scopes, maybe_text expires_at, pairs tags);
            one(request.await)
        }
        "revoke" => one(tokens.revoke(&given.text("id")).await),
        "link" => one(tokens.link().await),
        _ => unknown(method),
    }
}

async fn accounts(client: &Everforge, method: &str, given: &Given<'_>) -> Outcome {
    let accounts = client.accounts();
    match method {
        "list" => one(accounts.list().await),
        "create" => {
            let mut request = accounts.create(given.text("name"));
            given!(request, given, maybe_text email);
            one(request.await)
        }
        "delete" => one(accounts.delete(&given.text("name")).await),
        "quota" => {
            let mut request = accounts.quota(given.text("name"));
            given!(request, given, integer machines, integer awake, integer memory_mb, integer disk_mb);
            given!(request, given, number requests_per_second, integer egress_bytes_per_day);
            one(request.await)
        }
        "invite" => {
            let mut request = accounts.invite();
            given!(request, given, maybe_text email, maybe_text expires_at);
            one(request.await)
        }
        _ => unknown(method),
    }
}

async fn way_out(client: &Everforge, group: &str, method: &str, given: &Given<'_>) -> Outcome {
    let secrets = client.secrets();
    match (group, method) {
        ("egress", "show") => one(client.egress().show().await),
        ("egress", "set") => {
            let mut request = client.egress().set();
            given!(request, given, maybe_text policy, maybe_texts allow);
            one(request.await)
        }
        ("secrets", "set") => {
            let mut request = secrets.set(given.text("name"), given.text("value"), given.texts("hosts"));
            given!(request, given, maybe_text header, maybe_texts places);
            one(request.await)
        }
        ("secrets", "list") => one(secrets.list().await),
        ("secrets", "delete") => one(secrets.delete(&given.text("name")).await),
        _ => unknown(method),
    }
}

async fn audit(client: &Everforge, method: &str, given: &Given<'_>) -> Outcome {
    let audit = client.audit();
    let kept: Option<AuditHead> = serde_json::from_value(given.value("kept")).unwrap_or_default();
    match method {
        "entries" => {
            let mut request = audit.entries();
            given!(request, given, maybe_text since, maybe_text machine, maybe_text action, maybe_text account, integer after);
            one(request.try_collect::<Vec<_>>().await)
        }
        "page" => {
            let mut request = audit.page().last(given.is("last"));
            given!(request, given, maybe_text since, maybe_text machine, maybe_text action, maybe_text account, integer after, integer limit);
            one(request.await)
        }
        "head" => one(audit.head().await),
        "first" => one(audit.first().await),
        "let_go_since" => one(audit.let_go_since(given.integer("first").unwrap_or(0)).await),
        "verify" => {
            let chain = audit.verify(kept).await?;
            Ok(json!({"count": chain.count, "head": plain(&chain.head)}).into())
        }
        "verify_part" => {
            let part = audit.verify_part(kept).await?;
            Ok(json!({"count": part.count, "head": plain(&part.head)}).into())
        }
        _ => unknown(method),
    }
}

async fn webhooks(client: &Everforge, method: &str, given: &Given<'_>) -> Outcome {
    let webhooks = client.webhooks();
    match method {
        "list" => one(webhooks.list().await),
        "add" => {
            let mut request = webhooks.add(given.text("url"));
            given!(request, given, maybe_texts events, maybe_text secret);
            one(request.await)
        }
        "delete" => one(webhooks.delete(&given.text("id")).await),
        "test" => one(webhooks.test(&given.text("id")).await),
        "dead" => one(webhooks.dead().await),
        "given_up" => one(webhooks.given_up().await),
        "retry" => {
            let mut request = webhooks.retry();
            given!(request, given, maybe_text id);
            one(request.await)
        }
        _ => unknown(method),
    }
}
