//! Runs the steps of a scenario against a server: `cargo run --example scenario -- FILE VARIABLES.json`. Prints a line for each step, and ends with 1
//! at the first wrong one.

#[path = "../tests/steps/mod.rs"]
mod steps;

use serde_json::{Map, Value};
use std::process::ExitCode;

fn read(path: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

async fn run(scenario: &str, variables: &str) -> Result<(), String> {
    let (scenario, variables) = (read(scenario)?, read(variables)?);
    let variables: Map<String, Value> = variables.as_object().cloned().ok_or("variables are an object")?;
    let steps = scenario["steps"].as_array().cloned().ok_or("a scenario has steps")?;
    let mut driver = steps::Driver::new(variables);
    driver.run(&steps, |i, step| println!("{i} {} {}", step["do"].as_str().unwrap_or_default(), step.get("on").unwrap_or(&Value::Null))).await
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, variables] = arguments.as_slice() else {
        eprintln!("give a scenario and its variables: scenario FILE VARIABLES.json");
        return ExitCode::from(2);
    };
    match run(scenario, variables).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    }
}
