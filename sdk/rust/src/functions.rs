//! Functions of this program that code in a machine may call: what they may be, and their answers.

use crate::error::{Error, Fallible, Kind};
use crate::generated::api::Answer;
use crate::generated::sentences::sentences;
use crate::inputs::function_name;
use crate::results::Call;
use crate::sentences::say;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

const CALL_BYTES_MAX: usize = 1024 * 1024; // of an answer as JSON
const ERROR_CHARACTERS_MAX: usize = 4000; // of what a function raised

/// What a function of this program gives: a value, or an error that is raised in the machine.
pub type Answered = std::result::Result<Value, Box<dyn std::error::Error + Send + Sync>>;

type Function = Arc<dyn Fn(Args) -> BoxFuture<'static, Answered> + Send + Sync>;

/// What the code in the machine has called a function with.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Args {
    /// By their place.
    pub args: Vec<Value>,
    /// By their name.
    pub kwargs: Map<String, Value>,
}

impl Args {
    /// By its place, from 0; null where none was given.
    pub fn at(&self, place: usize) -> &Value {
        self.args.get(place).unwrap_or(&Value::Null)
    }

    /// By its name; null where none was given.
    pub fn named(&self, name: &str) -> &Value {
        self.kwargs.get(name).unwrap_or(&Value::Null)
    }
}

/// By the names that the code has for them.
///
/// ```no_run
/// # async fn example(machine: everforge::Machine) -> everforge::Fallible<()> {
/// use everforge::Functions;
/// use serde_json::json;
///
/// let functions = Functions::new()
///     .with("now", |_| async { Ok(json!(1_900_000_000)) })
///     .with("approve", |args| async move {
///         let total = args.named("total").as_f64().ok_or("approve() takes a total")?; // an error is raised in the machine
///         Ok(json!(total < 200.0))
///     });
/// let result = machine.run("approve(total=120)").functions(functions).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<String, Function>);

impl Functions {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// And one more.
    pub fn with<F, G>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Args) -> G + Send + Sync + 'static,
        G: Future<Output = Answered> + Send + 'static,
    {
        self.0.insert(name.into(), Arc::new(move |args| Box::pin(function(args))));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }

    /// For an instruction's text; `InvalidInput` before anything is run.
    pub(crate) fn names(&self) -> Fallible<Option<Vec<String>>> {
        self.0.keys().try_for_each(|name| function_name(name))?;
        Ok(if self.is_empty() { None } else { Some(self.0.keys().cloned().collect()) })
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What the function gives or fails with; a panic is its failure, too, and not the end of whoever waits: the code in the machine waits as well.
pub(crate) async fn call(asked: &Call, function: &Function) -> Answer {
    let args = Args { args: asked.args.clone(), kwargs: asked.kwargs.clone() };
    match AssertUnwindSafe(async { function(args).await }).catch_unwind().await {
        Ok(Ok(value)) => returned(&asked.function, value),
        Ok(Err(error)) => failed(&format!("Error: {error}")),
        Err(panic) => failed(&format!("Panic: {}", panic_text(panic.as_ref()))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("its message cannot be shown")
}

/// An error of the call, where it is not what the machine could be given.
fn returned(function: &str, value: Value) -> Answer {
    let size = ascii_size(&value);
    if size > CALL_BYTES_MAX {
        return refused(function, &say(sentences::ANSWER_TOO_LARGE, &[("most", &CALL_BYTES_MAX), ("bytes", &size)]));
    }
    Answer { value: Some(value).filter(|value| !value.is_null()), error: None }
}

/// As JSON of ASCII, which is how the machine is given it.
fn ascii_size(value: &Value) -> usize {
    value.to_string().chars().map(|letter| if letter.is_ascii() { 1 } else { 6 * letter.len_utf16() }).sum()
}

pub(crate) fn refused(function: &str, why: &str) -> Answer {
    failed(&say(sentences::ANSWER_NOT_SENDABLE, &[("function", &function), ("why", &why)]))
}

fn failed(text: &str) -> Answer {
    Answer { value: None, error: Some(text.chars().take(ERROR_CHARACTERS_MAX).collect()) }
}

// --- what would wait for itself --------------------------------------------------------------------------------------------------------------

type Places = BTreeMap<(String, String), i64>; // a server and the name of a machine, and the instruction that waits

tokio::task_local! {
    static ANSWERED: Places;
}

/// Finds an answer for an instruction that waits for it. Whoever waited in there for that machine would wait for ever.
pub(crate) async fn answering<T>(base_url: &str, machine: &str, instruction: i64, finding: impl Future<Output = T>) -> T {
    let mut places = ANSWERED.try_with(Clone::clone).unwrap_or_default();
    places.insert((base_url.to_owned(), machine.to_owned()), instruction);
    ANSWERED.scope(places, finding).await
}

/// `WrongState` when it, or a new one, could only end after the answer that is being found here. Earlier ones have ended.
pub(crate) fn check_wait(base_url: &str, machine: &str, instruction: Option<i64>) -> Fallible<()> {
    let waits = ANSWERED.try_with(|places| places.get(&(base_url.to_owned(), machine.to_owned())).copied()).ok().flatten();
    match waits {
        Some(waits) if instruction.is_none_or(|number| number >= waits) => {
            Err(Error::new(Kind::WrongState, say(sentences::WAITS_FOR_ANSWER, &[("number", &waits), ("machine", &machine)])))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn whoever_would_wait_for_itself_is_told_so() {
        let found = answering("http://x", "m", 3, async {
            (check_wait("http://x", "m", None), check_wait("http://x", "m", Some(2)), check_wait("http://x", "other", None))
        });
        let (new, earlier, other) = found.await;
        assert!(new.unwrap_err().message.starts_with("instruction 3 of m waits for the answer of this function"));
        assert!(earlier.is_ok() && other.is_ok());
        assert!(check_wait("http://x", "m", None).is_ok());
    }

    #[tokio::test]
    async fn what_a_function_fails_or_panics_with_is_raised_in_the_machine() {
        let functions = Functions::new().with("fails", |_| async { Err("no luck".into()) }).with("panics", |_| async { panic!("at {}", 3) }).with(
            "panics_at_once",
            |args: Args| {
                assert!(!args.args.is_empty(), "nothing was given");
                async { Ok(Value::Null) }
            },
        );
        for (name, error) in [("fails", "Error: no luck"), ("panics", "Panic: at 3"), ("panics_at_once", "Panic: nothing was given")] {
            let asked = Call { number: 0, function: name.to_owned(), args: Vec::new(), kwargs: Map::new() };
            assert_eq!(call(&asked, functions.get(name).unwrap()).await.error.as_deref(), Some(error));
        }
    }

    #[test]
    fn an_answer_that_is_too_large_is_an_error_of_the_call() {
        let answer = returned("ask", "é".repeat(CALL_BYTES_MAX / 2).into());
        let error = answer.error.unwrap();
        assert!(error.starts_with("ask returned what cannot be sent: an answer may have 1048576 bytes as JSON, not"), "{error}");
        assert_eq!(returned("ask", json!(null)), Answer::default());
        assert_eq!(returned("ask", json!([1])).value, Some(json!([1])));
    }
}
