//! What a model is given of an outcome.

use super::{Outcome, Status, Termination, ToolReturn};
use serde::Serialize;

/// A failed call in the form that hosts of tools agree on: a flag, an error with its name and code, and the text that the model
/// reads. It never holds a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErrorResult {
    /// Always true.
    #[serde(rename = "isError")]
    pub is_error: bool,
    /// What happened.
    pub error: ErrorDetail,
    /// What the model reads.
    pub content: String,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErrorDetail {
    /// In words.
    pub message: String,
    /// For programs.
    pub info: ErrorInfo,
}

/// The same for programs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErrorInfo {
    /// The kind of error: `ToolTimeoutError`, or `ToolCallError` for every other.
    pub name: &'static str,
    /// The outcome's code.
    pub code: Option<super::Code>,
    /// What became of the tool, where it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
}

impl Outcome {
    /// What the model reads: the tool's value or output where it went well, else what went wrong and what the tool had said
    /// before.
    pub fn for_model(&self) -> String {
        let output = self.output();
        if self.status == Status::Ok {
            return match &self.result {
                // A text is given as it is, and not in the quotes of JSON.
                Some(value) => serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned()),
                None => output,
            };
        }
        let error = format!("Error: {}", self.message.as_deref().unwrap_or("the call failed"));
        // The text of a timeout is always the same, so that nothing before it in a conversation has to be read again.
        if output.is_empty() || self.status == Status::TimedOut { error } else { format!("{error}\n{output}") }
    }

    /// A failure in the form that hosts of tools agree on; `None` where the call went well.
    pub fn error_result(&self) -> Option<ErrorResult> {
        if self.status == Status::Ok {
            return None;
        }
        let message = self.message.clone().unwrap_or_default();
        let name = if self.status == Status::TimedOut { "ToolTimeoutError" } else { "ToolCallError" };
        let info = ErrorInfo { name, code: self.code, termination: self.termination };
        Some(ErrorResult { is_error: true, error: ErrorDetail { message, info }, content: self.for_model() })
    }

    /// What goes back to the provider for the call that it named `id`.
    pub fn tool_return(&self, id: impl Into<String>) -> ToolReturn {
        let is_error = self.status != Status::Ok;
        let value = self.result.as_ref().filter(|_| !is_error);
        // It is JSON, and every JSON text is a value.
        let value = value.and_then(|value| serde_json::from_str(value.get()).ok());
        ToolReturn { id: id.into(), name: self.tool.clone(), content: self.for_model(), value, is_error }
    }

    /// Whether the same call may be made again without anybody's doing: its failure may pass, and nothing of it can still be
    /// running. Whether it should be is for the tool to declare, since it may have had effects.
    pub fn may_be_tried_again(&self) -> bool {
        let passes = self.class == Some(super::ErrorClass::Transient);
        let ended = match self.termination {
            Some(Termination::Returned | Termination::Stopped) => true,
            Some(Termination::Killed) => self.receipt.as_ref().is_some_and(|receipt| receipt.confirmed),
            Some(Termination::Abandoned) => false,
            None => !self.started,
        };
        passes && ended
    }

    /// What the tool has written, its errors behind its output.
    fn output(&self) -> String {
        match (self.stdout.text.trim_end(), self.stderr.text.trim_end()) {
            ("", errors) => errors.to_owned(),
            (output, "") => output.to_owned(),
            // Where a command went well, what it wrote beside its output is not the answer.
            (output, _) if self.status == Status::Ok => output.to_owned(),
            (output, errors) => format!("{output}\n{errors}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{CallId, Captured, Code, ErrorClass, KillReason, Receipt};
    use serde_json::value::RawValue;
    use toolexec_protocol::strength::KillStrength;

    fn outcome(status: Status) -> Outcome {
        let code = (status == Status::TimedOut).then_some(Code::ToolTimeout);
        Outcome { status, code, started: true, ..Outcome::not_started(CallId::new("c"), "t") }
    }

    fn text(text: &str) -> Captured {
        Captured { text: text.into(), ..Captured::default() }
    }

    /// Contract C26, byte for byte; `termination` is one of the keys that may be added.
    #[test]
    fn a_timeout_has_the_form_that_was_agreed_on() {
        let message = Some("tool call timed out after 1500ms".into());
        let mut timed_out = Outcome {
            message,
            stdout: text("begun\n"),
            class: Some(ErrorClass::Transient),
            ..outcome(Status::TimedOut)
        };
        let told = |outcome: &Outcome| serde_json::to_string(&outcome.error_result()).unwrap();
        assert_eq!(
            told(&timed_out),
            r#"{"isError":true,"error":{"message":"tool call timed out after 1500ms","info":{"name":"ToolTimeoutError","code":"TOOL_TIMEOUT"}},"content":"Error: tool call timed out after 1500ms"}"#
        );
        timed_out.termination = Some(Termination::Abandoned);
        assert!(told(&timed_out).contains(r#""code":"TOOL_TIMEOUT","termination":"abandoned"}"#));
    }

    #[test]
    fn a_value_is_read_as_text_and_kept_as_value() {
        let of = |json: &str| {
            let result = Some(RawValue::from_string(json.into()).unwrap());
            Outcome { result, ..outcome(Status::Ok) }.tool_return("id")
        };
        let returned = of(r#""two\nlines""#);
        assert_eq!((returned.content.as_str(), returned.is_error), ("two\nlines", false));
        assert_eq!(returned.value, Some("two\nlines".into()));
        let returned = of(r#"{"n":9007199254740993,"x":1e-320}"#);
        assert_eq!(returned.content, r#"{"n":9007199254740993,"x":1e-320}"#);
        assert_eq!(returned.value.unwrap().to_string(), r#"{"n":9007199254740993,"x":1e-320}"#);
    }

    #[test]
    fn output_is_read_with_what_went_wrong() {
        let both = |status, message: Option<&str>| {
            let message = message.map(str::to_owned);
            Outcome { message, stdout: text("out\n"), stderr: text("err\n"), ..outcome(status) }
        };
        assert_eq!(both(Status::Ok, None).for_model(), "out");
        let failed = both(Status::Error, Some("the command exited with status 1"));
        assert_eq!(failed.for_model(), "Error: the command exited with status 1\nout\nerr");
        assert_eq!(failed.tool_return("id").value, None);
        assert!(failed.error_result().unwrap().error.info.name == "ToolCallError");
        assert_eq!(both(Status::Ok, None).error_result(), None);
    }

    #[test]
    fn only_what_passes_and_has_ended_is_tried_again() {
        let receipt = |confirmed| Receipt {
            strength: KillStrength::PidNamespace,
            reason: KillReason::Deadline,
            deadline_ms: None,
            signalled_after_us: None,
            dead_after_us: None,
            confirmed,
            survivors: 0,
            background_killed: 0,
        };
        let of = |class, started, termination, receipt| {
            Outcome { class, started, termination, receipt, ..outcome(Status::TimedOut) }.may_be_tried_again()
        };
        let transient = Some(ErrorClass::Transient);
        assert!(of(transient, true, Some(Termination::Killed), Some(receipt(true))));
        assert!(of(transient, true, Some(Termination::Returned), None));
        assert!(of(transient, true, Some(Termination::Stopped), None));
        assert!(of(transient, false, None, None));
        assert!(!of(transient, true, Some(Termination::Killed), Some(receipt(false))));
        assert!(!of(transient, true, Some(Termination::Abandoned), None));
        assert!(!of(transient, true, None, None));
        for class in [None, Some(ErrorClass::Semantic), Some(ErrorClass::Environment)] {
            assert!(!of(class, true, Some(Termination::Returned), None));
        }
    }
}
