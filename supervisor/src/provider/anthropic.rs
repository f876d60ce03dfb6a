//! Anthropic's Messages: calls are blocks of an assistant message, results are blocks of the user message after it.

use super::adapter::Declared;
use super::calls::{Calls, Ending};
use super::document::{Node, ResponseError, open};
use super::returned;
use crate::call::{RequestedCall, ToolReturn};
use serde_json::{Value, json};

pub(super) fn is_response(value: &Value) -> bool {
    value["type"] == "message" && value["role"] == "assistant" && value["content"].is_array()
}

pub(super) fn calls(response: &str) -> Result<Vec<RequestedCall>, ResponseError> {
    let top = open(response)?;
    let mut calls = Calls::default();
    for node in top.need("content")?.items()? {
        let block = node.members()?;
        // What the provider runs itself has other types, such as `server_tool_use`.
        if block.need("type")?.string()? == "tool_use" {
            let id = block.need("id")?;
            let name = block.need("name")?.name()?;
            let arguments = block.need("input")?.text().to_owned();
            calls.push(&id, RequestedCall { id: id.name()?, name, arguments })?;
        }
    }
    let stop_reason = top.get("stop_reason");
    let ending = match stop_reason.as_ref().map(Node::string).transpose()?.as_deref() {
        Some("max_tokens" | "model_context_window_exceeded") => Ending::CutOff,
        Some("refusal") => Ending::Withheld,
        _ => Ending::Complete,
    };
    calls.ended(ending, stop_reason)
}

/// All blocks: thinking has to come back with its signature. A message without a block may not be sent.
pub(super) fn assistant_turn(response: &str) -> Result<Vec<Value>, ResponseError> {
    let content = open(response)?.need("content")?;
    let is_empty = content.items()?.is_empty();
    let content = content.value()?;
    Ok(if is_empty { Vec::new() } else { vec![json!({ "role": "assistant", "content": content })] })
}

pub(super) fn declare(tool: Declared<'_>) -> Value {
    let Declared { name, description, schema } = tool;
    json!({ "name": name, "description": description, "input_schema": schema })
}

pub(super) fn render(returns: &[ToolReturn]) -> Vec<Value> {
    let blocks: Vec<Value> = returns
        .iter()
        .map(|returned| {
            let mut block = block_of(&returned.id, returned::text(returned));
            if returned.is_error {
                block["is_error"] = true.into();
            }
            block
        })
        .collect();
    if blocks.is_empty() { Vec::new() } else { vec![message_of(blocks)] }
}

/// The block that answers one call.
pub(super) fn block_of(id: &str, content: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": content })
}

/// The message that holds the answers of one turn.
pub(super) fn message_of(blocks: Vec<Value>) -> Value {
    json!({ "role": "user", "content": blocks })
}
