//! What a batch comes to. It is stored in snapshots: keys are added, never renamed or removed.

use super::{Context, Writes, class};
use crate::call::{Code, Outcome, RequestedCall, Status, Termination, Timing, ToolReturn};
use serde::{Deserialize, Serialize};
use toolexec_protocol::failure::ErrorClass;

/// What came of a batch. Its first four keys are frozen; a reader ignores keys that it does not know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolExecutionResult {
    /// One answer for each call, in the order in which the model asked.
    pub messages: Vec<ToolMessage>,
    /// A report of each call since the records began, the calls of this batch last and in the same order.
    pub records: Vec<ToolRecord>,
    /// The context after the writes of the calls that succeeded.
    pub context: Context,
    /// The calls that failed, in the same order.
    pub errors: Vec<CallError>,
    /// The answer to the user, where the results are to be it and the model is not asked again: only if every call of
    /// the batch declares `return_direct` and none failed or was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_direct: Option<String>,
}

/// One answer, and what its call has written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolMessage {
    /// What goes back to the model.
    #[serde(flatten)]
    pub tool_return: ToolReturn,
    /// What the call has written, for whoever rebuilds a context from a history of messages; no provider gets it.
    #[serde(default, skip_serializing_if = "Writes::is_empty")]
    pub writes: Writes,
}

/// A report of one call: plain data, made to be stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRecord {
    /// As in [`RequestedCall::id`].
    pub id: String,
    /// As in [`RequestedCall::name`].
    pub name: String,
    /// As in [`RequestedCall::arguments`].
    pub arguments: String,
    /// Whether the call was given to be run: not so where a verdict answered it, its tool is not known, or it was
    /// withdrawn before.
    pub executed: bool,
    /// As in [`Outcome::status`].
    pub status: Status,
    /// As in [`Outcome::code`].
    pub code: Option<Code>,
    /// As in [`Outcome::class`].
    #[serde(default, with = "class")]
    pub class: Option<ErrorClass>,
    /// As in [`Outcome::termination`].
    pub termination: Option<Termination>,
    /// Whether the end of its processes was confirmed; `None` where nothing was started.
    pub confirmed: Option<bool>,
    /// As in [`Outcome::side_effects_possible`].
    pub side_effects_possible: bool,
    /// As in [`Outcome::attempts`].
    pub attempts: u32,
    /// As in [`Outcome::message`].
    pub message: Option<String>,
    /// What the model read.
    pub content: String,
    /// Where the time went.
    pub timing: RecordTiming,
    /// Whether the tool declares `return_direct`.
    pub return_direct: bool,
}

/// Where a call's time went, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RecordTiming {
    /// Waiting for a worker.
    pub queue_ms: u64,
    /// The tool's own time.
    pub run_ms: u64,
    /// From the reason of a kill to the confirmed death.
    pub kill_ms: u64,
    /// The whole call.
    pub total_ms: u64,
}

/// A call that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallError {
    /// As in [`RequestedCall::id`].
    pub id: String,
    /// As in [`RequestedCall::name`].
    pub name: String,
    /// What the failure asks of the reader; `None` where the call was withdrawn.
    #[serde(default, with = "class")]
    pub class: Option<ErrorClass>,
    /// What went wrong.
    pub message: String,
    /// What exactly.
    pub code: Option<Code>,
}

impl ToolExecutionResult {
    /// A result for whoever does without an [`super::Assembly`], such as an engine that only pretends.
    pub fn new(messages: Vec<ToolMessage>, records: Vec<ToolRecord>, context: Context, errors: Vec<CallError>) -> Self {
        Self { messages, records, context, errors, return_direct: None }
    }
}

impl ToolRecord {
    /// The report of a call that was given to be run.
    pub fn new(call: &RequestedCall, outcome: &Outcome, content: String, return_direct: bool) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            executed: true,
            status: outcome.status,
            code: outcome.code,
            class: outcome.class,
            termination: outcome.termination,
            confirmed: outcome.receipt.as_ref().map(|receipt| receipt.confirmed),
            side_effects_possible: outcome.side_effects_possible,
            attempts: outcome.attempts,
            message: outcome.message.clone(),
            content,
            timing: outcome.timing.into(),
            return_direct,
        }
    }

    /// The call that it reports of.
    pub fn call(&self) -> RequestedCall {
        RequestedCall { id: self.id.clone(), name: self.name.clone(), arguments: self.arguments.clone() }
    }

    /// What [`ToolExecutionResult::errors`] says of it. A call that a verdict has rejected did not fail: somebody has
    /// decided about it.
    pub fn error(&self) -> Option<CallError> {
        if self.status == Status::Ok || self.code == Some(Code::NotApproved) {
            return None;
        }
        Some(CallError {
            id: self.id.clone(),
            name: self.name.clone(),
            class: self.class,
            message: self.message.clone().unwrap_or_else(|| self.content.clone()),
            code: self.code,
        })
    }
}

impl From<Timing> for RecordTiming {
    fn from(timing: Timing) -> Self {
        Self {
            queue_ms: timing.queue_us / 1000,
            run_ms: timing.run_us / 1000,
            kill_ms: timing.kill_us / 1000,
            total_ms: timing.total_us / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &str = concat!(
        r#"{"messages":[{"id":"1","name":"add","content":"1.10","value":1.10,"is_error":false,"writes":{"n":1.10}}],"#,
        r#""records":[{"id":"1","name":"add","arguments":"{}","executed":true,"status":"ok","code":null,"class":null,"#,
        r#""termination":"returned","confirmed":true,"side_effects_possible":true,"attempts":1,"message":null,"#,
        r#""content":"1.10","timing":{"queue_ms":0,"run_ms":2,"kill_ms":0,"total_ms":3},"return_direct":false}],"#,
        r#""context":{"n":123456789012345678901234567890},"#,
        r#""errors":[{"id":"0","name":"x","class":"environment","message":"no","code":"SPAWN_FAILED"}]}"#,
    );

    #[test]
    fn the_stored_form_is_read_and_written_digit_by_digit() {
        let result: ToolExecutionResult = serde_json::from_str(STORED).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), STORED);
    }

    #[test]
    fn keys_of_later_versions_are_ignored_at_every_level() {
        let later = STORED.replace(r#"{"id""#, r#"{"later":[1,{"n":2}],"id""#).replacen('{', r#"{"later":{"n":1},"#, 1);
        let result: ToolExecutionResult = serde_json::from_str(&later).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), STORED);
    }

    #[test]
    fn each_of_the_four_frozen_keys_is_required() {
        for key in ["messages", "records", "context", "errors"] {
            let without = STORED.replacen(&format!(r#""{key}":"#), r#""another":"#, 1);
            let error = serde_json::from_str::<ToolExecutionResult>(&without).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
