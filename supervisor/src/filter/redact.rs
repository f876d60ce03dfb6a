//! Keeping what is secret out of texts.

use super::chain::{Answer, call_once};
use crate::Executor;
use crate::call::{Outcome, ToolCall, Work};
use crate::catalogue::InputSchema;
use serde_json::Value;
use serde_json::value::RawValue;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// The shortest text that is looked for: 4 bytes. A shorter one is found in too many words to be one's secret.
const SHORTEST: usize = 4;

/// Takes secrets out of what comes back: a tool that repeats a password in its output or its error does not give it to the
/// model and the logs. Secret is what the tool's schema marks `writeOnly`, JSON Schema's word for it: the texts in such a property of
/// the arguments, at any depth, from 4 bytes on. The tool itself gets them unchanged.
#[derive(Clone, Debug)]
pub struct RedactLayer {
    executor: Arc<Executor>,
}

impl RedactLayer {
    /// For the tools of this executor.
    pub fn new(executor: Arc<Executor>) -> Self {
        Self { executor }
    }
}

impl<S> Layer<S> for RedactLayer {
    type Service = RedactService<S>;

    fn layer(&self, inner: S) -> RedactService<S> {
        RedactService { inner, executor: Arc::clone(&self.executor) }
    }
}

/// See [`RedactLayer`].
#[derive(Clone, Debug)]
pub struct RedactService<S> {
    inner: S,
    executor: Arc<Executor>,
}

impl<S> Service<ToolCall> for RedactService<S>
where
    S: Service<ToolCall, Response = Outcome, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: ToolCall) -> Answer {
        let again = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, again);
        let secrets = match &call.work {
            Work::Tool { name, arguments } => {
                let schema = self.executor.tools().get(name).and_then(|tool| tool.input.as_ref());
                secrets(arguments, schema)
            }
            Work::Command { .. } => Vec::new(),
        };
        Box::pin(async move {
            let mut outcome = call_once(inner, call).await;
            redact(&mut outcome, &secrets);
            Ok(outcome)
        })
    }
}

/// Arguments as they may be told: with [`REDACTED`] in the place of each secret.
pub(super) fn shown_arguments(arguments: &str, schema: Option<&InputSchema>) -> String {
    let Some(schema) = schema.map(InputSchema::as_json).filter(|schema| has_secrets(schema)) else {
        return arguments.to_owned();
    };
    match serde_json::from_str(arguments) {
        Ok(mut value) => {
            hide(&mut value, schema);
            value.to_string()
        }
        // Nobody can tell which part of it is one.
        Err(_) => REDACTED.to_owned(),
    }
}

fn is_secret(schema: &Value) -> bool {
    schema["writeOnly"] == true
}

fn has_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => is_secret(schema) || members.values().any(has_secrets),
        Value::Array(items) => items.iter().any(has_secrets),
        _ => false,
    }
}

/// Calls `found` for each value that the schema marks.
fn each_secret(value: &mut Value, schema: &Value, found: &mut impl FnMut(&mut Value)) {
    if is_secret(schema) {
        return found(value);
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                each_secret(member, &schema["properties"][name.as_str()], found);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_secret(item, &schema["items"], found)),
        _ => {}
    }
}

fn hide(value: &mut Value, schema: &Value) {
    each_secret(value, schema, &mut |secret| *secret = REDACTED.into());
}

/// The secret texts, the longest first, each as it is and as JSON writes it.
fn secrets(arguments: &str, schema: Option<&InputSchema>) -> Vec<String> {
    let Some(schema) = schema.map(InputSchema::as_json).filter(|schema| has_secrets(schema)) else {
        return Vec::new();
    };
    // What is not JSON is not given to the tool.
    let Ok(mut value) = serde_json::from_str::<Value>(arguments) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    each_secret(&mut value, schema, &mut |secret| collect(secret, &mut texts));
    let escaped: Vec<String> = texts.iter().map(|text| json_text(text)).collect();
    texts.extend(escaped);
    texts.retain(|text| text.len() >= SHORTEST);
    texts.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
    texts.dedup();
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A text as it stands between the quotes of JSON.
fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

fn redact(outcome: &mut Outcome, secrets: &[String]) {
    if secrets.is_empty() {
        return;
    }
    let hide = |text: &mut String| {
        for secret in secrets {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), REDACTED);
            }
        }
    };
    if let Some(message) = &mut outcome.message {
        hide(message);
    }
    hide(&mut outcome.stdout.text);
    hide(&mut outcome.stderr.text);
    if let Some(result) = &outcome.result {
        let mut text = result.get().to_owned();
        hide(&mut text);
        if text != result.get() {
            // A number in whose place a text came, outside of quotes, would not be JSON.
            let json = RawValue::from_string(text).or_else(|_| RawValue::from_string(format!("{REDACTED:?}")));
            outcome.result = json.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallId;
    use serde_json::json;

    fn schema() -> InputSchema {
        InputSchema::new(json!({
            "properties": {
                "user": { "type": "string" },
                "password": { "type": "string", "writeOnly": true },
                "servers": { "items": { "properties": { "token": { "writeOnly": true } } } },
            },
        }))
        .unwrap()
    }

    const ARGUMENTS: &str =
        r#"{"user": "ann", "password": "pa\"ss", "servers": [{"name": "a", "token": ["t0k3n"]}, {"token": 12345678}]}"#;

    #[test]
    fn secrets_are_not_told_with_the_arguments() {
        let expected = r#"{"user":"ann","password":"[redacted]","servers":[{"name":"a","token":"[redacted]"},{"token":"[redacted]"}]}"#;
        let shown: Value = serde_json::from_str(&shown_arguments(ARGUMENTS, Some(&schema()))).unwrap();
        assert_eq!(shown, serde_json::from_str::<Value>(expected).unwrap());
        assert_eq!(shown_arguments(ARGUMENTS, None), ARGUMENTS);
        assert_eq!(shown_arguments("{broken", Some(&schema())), "[redacted]");
    }

    #[test]
    fn secrets_are_taken_out_of_every_text_of_an_outcome() {
        let mut outcome = Outcome::not_started(CallId::new("c"), "t");
        outcome.message = Some(r#"no user ann with pa"ss"#.into());
        outcome.stdout.text = "t0k3n, t0k3n and 12345678".into();
        outcome.stderr.text = "ann".into();
        outcome.result = RawValue::from_string(r#"{"said":"pa\"ss","ann":"t0k3n"}"#.into()).ok();
        redact(&mut outcome, &secrets(ARGUMENTS, Some(&schema())));
        assert_eq!(outcome.message.unwrap(), "no user ann with [redacted]");
        assert_eq!(outcome.stdout.text, "[redacted], [redacted] and [redacted]");
        assert_eq!(outcome.stderr.text, "ann");
        assert_eq!(outcome.result.unwrap().get(), r#"{"said":"[redacted]","ann":"[redacted]"}"#);
    }

    #[test]
    fn a_result_stays_json() {
        let mut outcome = Outcome::not_started(CallId::new("c"), "t");
        outcome.result = RawValue::from_string("[12345678]".into()).ok();
        redact(&mut outcome, &secrets(ARGUMENTS, Some(&schema())));
        assert_eq!(outcome.result.unwrap().get(), r#""[redacted]""#);
    }
}
