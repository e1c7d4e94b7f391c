//! The steps of the contract (sdk/contract/README.md), done with this SDK.

mod account;
mod given;
mod instructions;
mod machines;
mod matching;

use everforge::{Error, Everforge, Instruction, Machine, Repl, Unverified};
use given::Given;
use matching::problems;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What a step remembers.
#[derive(Clone)]
pub enum Thing {
    Client(Everforge),
    Machine(Machine),
    Instruction(Instruction),
    Repl(Repl),
}

/// What a step came to.
pub struct Done {
    pub got: Value,
    pub made: Option<Thing>,
}

impl From<Value> for Done {
    fn from(got: Value) -> Self {
        Self { got, made: None }
    }
}

/// Why there is no answer.
pub enum Failed {
    /// The SDK said so, and the step may want it.
    Error(Box<Error>),
    /// The step cannot be done at all.
    Wrong(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

impl From<Unverified> for Failed {
    fn from(error: Unverified) -> Self {
        match error {
            Unverified::Failed(error) => error.into(),
            Unverified::Broken(broken) => Self::Wrong(broken.to_string()),
        }
    }
}

pub type Outcome = Result<Done, Failed>;

pub fn plain(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("what the SDK gives can be written as JSON")
}

pub struct Driver {
    variables: Map<String, Value>,
    client: Everforge,
    things: HashMap<String, Thing>,
}

impl Driver {
    pub fn new(variables: Map<String, Value>) -> Self {
        let text = |name: &str| variables[name].as_str().expect("a text").to_owned();
        let client = Everforge::builder().token(text("token")).base_url(text("url")).build().expect("a client");
        Self { client, variables, things: HashMap::new() }
    }

    /// Tells of each step; the first wrong one ends it.
    pub async fn run(&mut self, steps: &[Value], tell: impl Fn(usize, &Value)) -> Result<(), String> {
        for (i, step) in steps.iter().enumerate() {
            if step.get("only").and_then(Value::as_str).unwrap_or("sdk") == "sdk" {
                self.step(step).await.map_err(|wrong| format!("step {i}: {wrong}"))?;
                tell(i, step);
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Value) -> Result<(), String> {
        let with = self.filled(step.get("with").unwrap_or(&json!({})));
        let found = match self.act(step, Given(with.as_object().expect("arguments by name"))).await {
            Ok(done) => Ok(self.remembered(step, done)),
            Err(Failed::Error(error)) => Err(json!({"code": error.code, "message": error.message})),
            Err(Failed::Wrong(why)) => return Err(format!("{step}: {why}")),
        };
        let wrong = match (&found, step.get("fails"), step.get("gives")) {
            (Ok(got), Some(_), _) => vec![format!("it should have failed, and gave {got}")],
            (Err(error), Some(fails), _) => problems(&self.filled(fails), error, ""),
            (Err(error), None, _) => vec![format!("it failed: {error}")],
            (Ok(got), None, Some(gives)) => problems(&self.filled(gives), got, ""),
            (Ok(_), None, None) => Vec::new(),
        };
        if let Ok(got) = &found {
            self.keep(step, got);
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("{step}: {}", wrong.join("; "))) }
    }

    async fn act(&mut self, step: &Value, given: Given<'_>) -> Outcome {
        let name = |field: &str| step.get(field).and_then(Value::as_str).unwrap_or_default();
        let client = match self.things.get(name("client")) {
            Some(Thing::Client(client)) => client.clone(),
            _ => self.client.clone(),
        };
        match (name("do"), self.things.get(name("on")).cloned()) {
            ("cut", _) => {
                self.cut();
                Ok(Value::Null.into())
            }
            (what, Some(Thing::Machine(machine))) => match machines::act(what, &machine, &given).await {
                None => instructions::of_machine(self, what, &machine, &given).await,
                Some(outcome) => outcome,
            },
            (what, Some(Thing::Instruction(instruction))) => instructions::of_instruction(self, what, &instruction, &given).await,
            (what, Some(Thing::Repl(repl))) => instructions::of_repl(self, what, &repl, &given).await,
            (what, _) => account::act(what, &client, &given).await,
        }
    }

    fn remembered(&mut self, step: &Value, done: Done) -> Value {
        if let (Some(thing), Some(name)) = (done.made, step.get("as").and_then(Value::as_str)) {
            if let Thing::Machine(machine) = &thing {
                self.variables.insert(name.to_owned(), machine.name().into());
            }
            self.things.insert(name.to_owned(), thing);
        }
        done.got
    }

    fn keep(&mut self, step: &Value, got: &Value) {
        for (name, path) in step.get("keep").and_then(Value::as_object).into_iter().flatten() {
            let pointer = format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"));
            self.variables.insert(name.clone(), got.pointer(&pointer).cloned().unwrap_or(Value::Null));
        }
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.variables.iter().find(|(name, _)| *text == format!("${{{name}}}")).map_or_else(
                || {
                    let spell = |found: &Value| found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                    self.variables.iter().fold(text.clone(), |text, (name, found)| text.replace(&format!("${{{name}}}"), &spell(found))).into()
                },
                |(_, found)| found.clone(),
            ),
            Value::Array(items) => items.iter().map(|one| self.filled(one)).collect(),
            Value::Object(fields) => fields.iter().map(|(name, one)| (name.clone(), self.filled(one))).collect(),
            other => other.clone(),
        }
    }

    /// Cuts every connection, and returns when that is done.
    fn cut(&self) {
        let control = self.variables.get("control").and_then(Value::as_str).expect("who cuts connections");
        cut(control);
    }
}

pub fn cut(control: &str) {
    let rest = control.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    let mut stream = TcpStream::connect(host).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    write!(stream, "GET {path}/cut HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").expect("a request");
    let _ = stream.read_to_end(&mut Vec::new());
}
