//! What the model reads of an outcome.

use crate::call::{Captured, Outcome, Status};
use serde_json::Value;

/// What the model reads of an outcome: what the tool returned, else what a command wrote to its standard output. Of a
/// failure: the message, and what the tool had written until then, each under its name.
pub fn content(outcome: &Outcome) -> String {
    match outcome.status {
        Status::Ok => match &outcome.result {
            Some(result) => returned(result.get()),
            None => outcome.stdout.text.clone(),
        },
        Status::Error
        | Status::TimedOut
        | Status::Cancelled
        | Status::Crashed
        | Status::Rejected
        | Status::Failed
        | Status::Unkillable => {
            let mut text = outcome.message.clone().unwrap_or_else(|| "the call failed".into());
            append(&mut text, "stdout", &outcome.stdout);
            append(&mut text, "stderr", &outcome.stderr);
            text
        }
    }
}

/// The value that a tool has returned; `None` where it cannot be held as one, such as at a nesting of hundreds.
pub(super) fn value(outcome: &Outcome) -> Option<Value> {
    match outcome.status {
        Status::Ok => outcome.result.as_ref().and_then(|result| serde_json::from_str(result.get()).ok()),
        Status::Error
        | Status::TimedOut
        | Status::Cancelled
        | Status::Crashed
        | Status::Rejected
        | Status::Failed
        | Status::Unkillable => None,
    }
}

/// A string is read as it is, without its quotes; any other value as the JSON text that came.
fn returned(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

fn append(text: &mut String, name: &str, captured: &Captured) {
    if !captured.text.is_empty() {
        text.push_str("\n\n");
        text.push_str(name);
        text.push_str(":\n");
        text.push_str(&captured.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallId;
    use serde_json::value::RawValue;

    fn outcome(status: Status) -> Outcome {
        Outcome { status, ..Outcome::not_started(CallId::new("1"), "tool") }
    }

    fn returning(json: &str) -> Outcome {
        Outcome { result: Some(RawValue::from_string(json.into()).unwrap()), ..outcome(Status::Ok) }
    }

    fn written(text: &str) -> Captured {
        Captured { text: text.into(), ..Captured::default() }
    }

    #[test]
    fn a_returned_string_is_read_without_quotes_and_other_values_as_they_came() {
        assert_eq!(content(&returning(r#""two\nlines""#)), "two\nlines");
        assert_eq!(content(&returning(r#"{"b": 1.10, "a": [ ]}"#)), r#"{"b": 1.10, "a": [ ]}"#);
        assert_eq!(content(&returning("null")), "null");
    }

    #[test]
    fn a_command_is_read_by_its_standard_output() {
        let outcome = Outcome { stdout: written("yes\n"), stderr: written("warning\n"), ..outcome(Status::Ok) };
        assert_eq!(content(&outcome), "yes\n");
        assert_eq!(value(&outcome), None);
    }

    #[test]
    fn a_failure_is_read_by_its_message_and_what_was_written_until_then() {
        let outcome = Outcome {
            message: Some("tool call timed out after 10ms".into()),
            stdout: written("begun\n"),
            ..outcome(Status::TimedOut)
        };
        assert_eq!(content(&outcome), "tool call timed out after 10ms\n\nstdout:\nbegun\n");
    }

    #[test]
    fn a_value_too_deep_to_be_held_is_still_read() {
        let json = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let outcome = returning(&json);
        assert_eq!(value(&outcome), None);
        assert_eq!(content(&outcome), json);
    }
}
