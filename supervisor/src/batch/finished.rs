//! What came of one call, and the answers to those of which nothing came.

use super::{ToolMessage, ToolRecord, Writes};
use crate::call::{CallId, Code, Outcome, RequestedCall, Status, ToolReturn};
use serde_json::Value;
use toolexec_protocol::failure::ErrorClass;

/// `serde_json` reads an object with such a key as a number or as raw text: what has one is not read as it was written.
const RESERVED: &str = "$serde_json::private::";

/// What came of one call that was run.
#[derive(Debug)]
pub struct Finished {
    outcome: Outcome,
    content: String,
    /// Only of a call that succeeded: there is no way to put writes beside a failure.
    writes: Writes,
}

/// Why calls that were not started will not be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Withdrawal {
    /// The caller has withdrawn the batch.
    Cancelled,
    /// The engine was closed.
    Closed,
}

impl Finished {
    /// This outcome, which the model reads as [`Outcome::for_model`] tells it.
    pub fn new(outcome: Outcome) -> Self {
        let content = outcome.for_model();
        Self { outcome, content, writes: Writes::default() }
    }

    /// The same, but for what the model reads.
    #[must_use]
    pub fn with_content(self, content: impl Into<String>) -> Self {
        Self { content: content.into(), ..self }
    }

    /// The same, with what the call has written. A call that failed has written nothing, whatever it says.
    #[must_use]
    pub fn with_writes(self, writes: Writes) -> Self {
        if self.outcome.status == Status::Ok { Self { writes, ..self } } else { self }
    }

    pub(super) fn unknown(call: &RequestedCall, message: String) -> Self {
        Self::new(Outcome::rejected(call_id(call), &call.name, Code::UnknownTool, message))
    }

    pub(super) fn rejected(call: &RequestedCall, reason: Option<&str>) -> Self {
        let text = reason.map_or_else(|| "rejected".to_owned(), |reason| format!("rejected: {reason}"));
        let outcome = Outcome::rejected(call_id(call), &call.name, Code::NotApproved, text.clone());
        Self::new(outcome).with_content(text)
    }

    pub(super) fn replied(call: &RequestedCall, value: &Value) -> Self {
        let result = serde_json::value::to_raw_value(value).ok();
        Self::new(Outcome { status: Status::Ok, result, ..Outcome::not_started(call_id(call), &call.name) })
    }

    pub(super) fn not_run(call: &RequestedCall, withdrawal: Withdrawal) -> Self {
        let (status, code, class, text) = match withdrawal {
            Withdrawal::Cancelled => {
                let text = "not run: it was cancelled before it was started; ask again if it is still needed";
                (Status::Cancelled, Code::Cancelled, None, text)
            }
            Withdrawal::Closed => {
                let text = "not run: tool execution was closed before it was started";
                (Status::Failed, Code::Closed, Some(ErrorClass::Environment), text)
            }
        };
        let message = Some(text.into());
        let outcome = Outcome::not_started(call_id(call), &call.name);
        Self::new(Outcome { status, code: Some(code), class, message, ..outcome }).with_content(text)
    }

    /// Nothing is known, so nothing is said but that: neither that it has failed nor that it has ended.
    pub(super) fn lost(call: &RequestedCall) -> Self {
        let text = "outcome unknown: it was started and is no longer waited for; it may still be running, and its \
                    effects may land later";
        let outcome = Outcome {
            status: Status::Failed,
            code: Some(Code::WorkerLost),
            class: Some(ErrorClass::Transient),
            started: true,
            side_effects_possible: true,
            attempts: 1,
            message: Some(text.into()),
            ..Outcome::not_started(call_id(call), &call.name)
        };
        Self::new(outcome).with_content(text)
    }

    /// The answer and the report of this call.
    pub(super) fn answer(self, call: &RequestedCall, executed: bool, return_direct: bool) -> (ToolMessage, ToolRecord) {
        let Self { outcome, content, writes } = self;
        let record = ToolRecord { executed, ..ToolRecord::new(call, &outcome, content.clone(), return_direct) };
        let tool_return = outcome.tool_return(call.id.as_str());
        // The name is the one that the model wrote, whatever ran it is called.
        let name = call.name.clone();
        let value = tool_return.value.filter(can_be_stored);
        (ToolMessage { tool_return: ToolReturn { name, content, value, ..tool_return }, writes }, record)
    }
}

/// Answers for the calls of a history that has none for them, since a turn has ended in between: no provider takes a
/// history with open calls. Whether they were run is not known here, and not said.
pub fn unanswered<'a>(
    calls: impl IntoIterator<Item = &'a RequestedCall>,
    is_answered: impl Fn(&str) -> bool,
) -> Vec<ToolReturn> {
    let text = "no result is known: the turn ended before this call was answered; ask again if it is still needed";
    calls
        .into_iter()
        .filter(|call| !is_answered(&call.id))
        .map(|call| ToolReturn {
            id: call.id.clone(),
            name: call.name.clone(),
            content: text.into(),
            value: None,
            is_error: true,
        })
        .collect()
}

/// A tool must not be able to make a batch that cannot be stored: its value is then left out, and its text stands.
fn can_be_stored(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(elements) => elements.iter().all(can_be_stored),
        Value::Object(keys) => keys.iter().all(|(key, value)| !key.starts_with(RESERVED) && can_be_stored(value)),
    }
}

fn call_id(call: &RequestedCall) -> CallId {
    CallId::new(call.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::script::{call, returned};
    use super::*;
    use serde_json::json;
    use serde_json::value::RawValue;

    fn value(json: &str) -> (Option<Value>, String) {
        let result = Some(RawValue::from_string(json.into()).unwrap());
        let outcome = Outcome { status: Status::Ok, result, ..Outcome::not_started(CallId::new("1"), "tool") };
        let (message, _) = Finished::new(outcome).answer(&call("1", "tool"), true, false);
        (message.tool_return.value, message.tool_return.content)
    }

    #[test]
    fn a_value_that_could_not_be_read_again_is_left_out_and_its_text_stands() {
        assert_eq!(value("null"), (Some(Value::Null), "null".into()));
        for json in [
            format!("{}{}", "[".repeat(1000), "]".repeat(1000)),
            r#"{"a":1,"$serde_json::private::Number":"1"}"#.into(),
            r#"[{"a":1,"\u0024serde_json::private::RawValue":"1"}]"#.into(),
        ] {
            assert_eq!(value(&json), (None, json));
        }
    }

    #[test]
    fn open_calls_of_a_history_are_answered_and_no_others() {
        let calls = [call("1", "a"), call("2", "b")];
        let answers = unanswered(&calls, |id| id == "1");
        let ids: Vec<_> = answers.iter().map(|answer| (answer.id.as_str(), answer.is_error)).collect();
        assert_eq!(ids, [("2", true)]);
    }

    #[test]
    fn an_answer_has_the_name_and_the_id_that_the_model_wrote() {
        let (message, record) = returned(json!([1])).answer(&call("7", "as written"), true, true);
        let ToolReturn { id, name, .. } = message.tool_return;
        assert_eq!((id.as_str(), name.as_str()), ("7", "as written"));
        assert_eq!((record.id.as_str(), record.name.as_str(), record.return_direct), ("7", "as written", true));
    }
}
