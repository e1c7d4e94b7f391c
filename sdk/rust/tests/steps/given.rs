//! Arguments of a step.

use everforge::{Answered, Args, Functions};
use serde_json::{Map, Value};

pub struct Given<'a>(pub &'a Map<String, Value>);

impl<'a> Given<'a> {
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    pub fn value(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or(Value::Null)
    }

    pub fn text(&self, name: &str) -> String {
        self.maybe_text(name).unwrap_or_default()
    }

    pub fn maybe_text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    pub fn is(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub fn maybe_texts(&self, name: &str) -> Option<Vec<String>> {
        self.has(name).then(|| self.texts(name))
    }

    pub fn object(&self, name: &str) -> Option<&'a Map<String, Value>> {
        self.0.get(name).and_then(Value::as_object)
    }

    pub fn pairs(&self, name: &str) -> Option<Vec<(String, String)>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.object(name).map(|found| found.iter().map(|(name, value)| (name.clone(), text(value))).collect())
    }

    pub fn functions(&self) -> Option<Functions> {
        let found = self.object("functions")?;
        Some(found.iter().fold(Functions::new(), |functions, (name, answer)| {
            let answer = answer.clone();
            functions.with(name, move |_: Args| std::future::ready(answered(&answer)))
        }))
    }
}

fn answered(answer: &Value) -> Answered {
    match answer.get("$raises").and_then(Value::as_str) {
        Some(text) => Err(text.into()),
        None => Ok(answer.clone()),
    }
}

/// Calls a method of a request for each argument that is given.
macro_rules! given {
    ($request:ident, $given:ident, $($how:ident $name:ident),* $(,)?) => {
        $(if let Some(value) = $given.$how(stringify!($name)) {
            $request = $request.$name(value);
        })*
    };
}
pub(crate) use given;
