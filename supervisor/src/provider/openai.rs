//! OpenAI's Chat Completions: calls in an assistant message, one message for each result.

use super::adapter::Declared;
use super::calls::{Calls, Ending, free_text_arguments, text_arguments};
use super::document::{Members, Node, ResponseError, open};
use super::returned::text_that_tells_errors;
use crate::call::{RequestedCall, ToolReturn};
use serde_json::{Value, json};

/// A completion, or an assistant message that has calls; without them the message could be Anthropic's as well.
pub(super) fn is_response(value: &Value) -> bool {
    value.pointer("/choices/0/message").is_some_and(Value::is_object)
        || value["role"] == "assistant" && value["tool_calls"].is_array()
}

pub(super) fn calls(response: &str) -> Result<Vec<RequestedCall>, ResponseError> {
    let (message, finish_reason) = message(response)?;
    let message = message.members()?;
    if message.get("function_call").is_some() {
        let place = message.place_of("function_call");
        return Err(ResponseError::Unsupported { place, instead: "declare the functions under `tools`" });
    }
    let mut calls = Calls::default();
    for node in message.items("tool_calls")? {
        let call = node.members()?;
        let (id, name, arguments) = call_of(&call)?;
        calls.push(&id, RequestedCall { id: id.name()?, name, arguments })?;
    }
    let ending = match finish_reason.as_ref().map(Node::string).transpose()?.as_deref() {
        Some("length") => Ending::CutOff,
        Some("content_filter") => Ending::Withheld,
        // Imitations have reasons of their own for an ordinary end.
        _ => Ending::Complete,
    };
    calls.ended(ending, finish_reason)
}

fn call_of<'a>(call: &Members<'a>) -> Result<(Node<'a>, String, String), ResponseError> {
    let id = call.need("id")?;
    if let Some(custom) = call.get("custom") {
        let custom = custom.members()?;
        let input = custom.get("input").map_or(Ok(String::new()), |input| input.string())?;
        return Ok((id, custom.need("name")?.name()?, free_text_arguments(input)));
    }
    let function = call.need("function")?.members()?;
    Ok((id, function.need("name")?.name()?, text_arguments(function.get("arguments"))?))
}

/// The assistant's message, and why it ended.
fn message(response: &str) -> Result<(Node<'_>, Option<Node<'_>>), ResponseError> {
    let top = open(response)?;
    if top.get("choices").is_none() && top.get("role").is_some() {
        return Ok((Node::read(response)?, None));
    }
    let choice = top.need_first("choices")?.members()?;
    Ok((choice.need("message")?, choice.get("finish_reason")))
}

/// The message itself, without what the service writes and does not read: members that are null, and an empty list of
/// calls.
pub(super) fn assistant_turn(response: &str) -> Result<Vec<Value>, ResponseError> {
    let (message, _) = message(response)?;
    message.members()?;
    let mut message = message.value()?;
    if let Some(members) = message.as_object_mut() {
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        members.retain(|name, value| match name.as_str() {
            "content" => true,
            "tool_calls" => !value.is_null() && !is_empty(value),
            _ => !value.is_null(),
        });
        members.entry("role").or_insert_with(|| "assistant".into());
    }
    Ok(vec![message])
}

pub(super) fn declare(tool: Declared<'_>) -> Value {
    let Declared { name, description, schema } = tool;
    json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } })
}

pub(super) fn render(returns: &[ToolReturn]) -> Vec<Value> {
    returns.iter().map(|returned| message_of(&returned.id, &text_that_tells_errors(returned))).collect()
}

/// The message that answers one call.
pub(super) fn message_of(id: &str, content: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": content })
}
