//! What toolexec refuses before there is a call: told as an outcome like everything else.

use crate::ErrorClass;
use crate::call::{CallId, Code, Outcome, Status};

/// Why a call was not even handed to the executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    status: Status,
    code: Code,
    class: ErrorClass,
    message: String,
}

impl Refusal {
    /// The call is at fault.
    pub(super) fn of_the_call(code: Code, message: impl Into<String>) -> Self {
        Self { status: Status::Rejected, code, class: ErrorClass::Semantic, message: message.into() }
    }

    /// The surroundings are at fault.
    pub(super) fn of_the_host(message: impl Into<String>) -> Self {
        Self {
            status: Status::Failed,
            code: Code::SpawnFailed,
            class: ErrorClass::Environment,
            message: message.into(),
        }
    }

    /// The outcome of the call that was never made.
    pub(super) fn into_outcome(self, tool: &str) -> Outcome {
        let Self { status, code, class, message } = self;
        let outcome = Outcome::not_started(CallId::fresh(), tool);
        Outcome { status, code: Some(code), class: Some(class), message: Some(message), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_whole_outcome() {
        let outcome = Refusal::of_the_host("the directory /x is missing").into_outcome("sh");
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(json["status"], "failed");
        assert_eq!(json["code"], "SPAWN_FAILED");
        assert_eq!(json["class"], "environment");
        assert_eq!(json["message"], "the directory /x is missing");
        assert_eq!(json["started"], false);
        assert_eq!(json["receipt"], serde_json::Value::Null);
        let outcome = Refusal::of_the_call(Code::UnknownTool, "no").into_outcome("x");
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(json["status"], "rejected");
        assert_eq!(json["code"], "UNKNOWN_TOOL");
        assert_eq!(json["class"], "semantic");
    }
}
