//! What a model and its tools say to each other, whichever provider's words carry it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One call as a model has asked for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The provider's name for it: whatever comes back has to repeat it.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: the text of a JSON object if the model did well, where an empty text means
    /// `{}`. Numbers keep their digits.
    pub arguments: String,
}

/// What goes back to the model for one call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolReturn {
    /// As in [`RequestedCall::id`].
    pub id: String,
    /// As in [`RequestedCall::name`].
    pub name: String,
    /// What the model reads.
    pub content: String,
    /// The value that the tool has returned, for providers that carry one; never where it failed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether `content` tells of a failure.
    pub is_error: bool,
}

/// A key that is there holds a value, and `null` is one: a tool may well have returned it.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
