//! A CI check: a project's tests, halved between two forks of one machine, which is prepared once.
//!
//! With a server running (`make run`): `cargo run --example ci_check -- path/to/project`
//! Ends with 0 when all tests passed, with 1 when one did not or there are none, with 3 when they could not be run.

use everforge::{Error, Everforge, Machine};
use std::process::ExitCode;

const PREPARE: &str = r#"
import os, subprocess, sys, unittest
os.chdir("project")
if os.path.exists("requirements.txt"):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"], check=True)

def flat(suite):
    return [test for part in suite for test in flat(part)] if isinstance(suite, unittest.TestSuite) else [suite]

def run_half(half):
    return unittest.TextTestRunner(sys.stdout, verbosity=2).run(unittest.TestSuite(tests[half::2])).wasSuccessful()

tests = flat(unittest.defaultTestLoader.discover("."))
len(tests)
"#;
const PREPARE_SECONDS: f64 = 600.0;
const TEST_SECONDS: f64 = 1800.0;

/// Everything that both halves need, done once: the project is there, its packages are installed, its modules are imported. Gives how many tests it has.
async fn prepare(machine: &Machine, project: &str) -> Result<usize, Error> {
    machine.files().upload_folder(project, "project").await?;
    let found = machine.run(PREPARE).timeout_seconds(PREPARE_SECONDS).await?.raise_for_error()?;
    Ok(found.value.and_then(|count| count.parse().ok()).unwrap_or(0))
}

/// In a fork, which has all of that in its memory. Did every test pass?
async fn run_half(fork: &Machine, half: usize) -> Result<bool, Error> {
    let running = fork.run(format!("run_half({half})")).timeout_seconds(TEST_SECONDS);
    let result = running.on_stdout(move |line| println!("half {}: {line}", half + 1)).await?.raise_for_error()?;
    Ok(result.value.as_deref() == Some("True"))
}

async fn check(client: &Everforge, project: &str, machines: &mut Vec<Machine>) -> Result<bool, Error> {
    let prepared = client.create().tag("example", "ci-check").await?;
    machines.push(prepared.clone());
    let tests = prepare(&prepared, project).await?;
    println!("{tests} tests found");
    if tests == 0 {
        return Ok(false);
    }
    let forks = prepared.forks().count(2).await?;
    machines.extend(forks.iter().cloned());
    let (first, second) = tokio::try_join!(run_half(&forks[0], 0), run_half(&forks[1], 1))?;
    Ok(first && second)
}

async fn checked(project: &str) -> Result<bool, Error> {
    let (client, mut machines) = (Everforge::new()?, Vec::new());
    let verdict = check(&client, project, &mut machines).await;
    // However it went: else they would sleep until they are wanted again.
    for machine in machines {
        if let Err(error) = machine.delete().await {
            eprintln!("Machine {} is left: {error}", machine.name());
        }
    }
    verdict
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(project) = std::env::args().nth(1) else {
        eprintln!("give the folder of a project: ci_check path/to/project");
        return ExitCode::from(2);
    };
    match checked(&project).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("The tests could not be run: {error}");
            ExitCode::from(3)
        }
    }
}
