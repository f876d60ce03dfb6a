//! Google's `generateContent`: calls are parts of a model's content, results are parts of the user's content after it.

use super::adapter::Declared;
use super::calls::{Calls, Ending};
use super::document::{Members, Node, ResponseError, open};
use super::returned;
use super::wire_id::{self, WireId};
use crate::call::{RequestedCall, ToolReturn};
use serde_json::{Value, json};

pub(super) fn is_response(value: &Value) -> bool {
    value["candidates"].is_array() || value["promptFeedback"].is_object()
}

pub(super) fn calls(response: &str) -> Result<Vec<RequestedCall>, ResponseError> {
    let top = open(response)?;
    let candidate = candidate(&top)?;
    let response_id = top.get("responseId").map(|id| id.string()).transpose()?;
    let mut calls = Calls::default();
    for node in parts(&candidate)? {
        let Some(call) = node.members()?.get("functionCall") else { continue };
        let call = call.members()?;
        if call.get("partialArgs").is_some() || call.get("willContinue").is_some_and(|more| more.text() == "true") {
            let place = call.place_of("partialArgs");
            return Err(ResponseError::Unsupported { place, instead: "leave `streamFunctionCallArguments` out" });
        }
        let name = call.need("name")?.name()?;
        let arguments = call.get("args").map_or_else(String::new, |arguments| arguments.text().to_owned());
        match call.get("id").filter(|id| id.text() != "\"\"") {
            Some(id) => calls.push(&id, RequestedCall { id: wire_id::given(&id.name()?), name, arguments })?,
            None => {
                let id = wire_id::made(response_id.as_deref(), calls.len());
                calls.push_without_id(RequestedCall { id, name, arguments });
            }
        }
    }
    let finish_reason = candidate.get("finishReason");
    let told = finish_reason.as_ref().map(Node::string).transpose()?;
    let ending = match told.as_deref() {
        None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") => Ending::Complete,
        Some("MAX_TOKENS") => Ending::CutOff,
        // The model wanted to call and could not say it. That would look like an empty last word.
        Some(reason @ "MALFORMED_FUNCTION_CALL") => {
            let place = candidate.place_of("finishReason");
            return Err(ResponseError::Withheld { place, reason: reason.to_owned() });
        }
        Some(_) => Ending::Withheld,
    };
    calls.ended(ending, finish_reason)
}

/// The first candidate, which is the only one unless more were asked for.
fn candidate<'a>(top: &Members<'a>) -> Result<Members<'a>, ResponseError> {
    if let Some(feedback) = top.get("promptFeedback")
        && let Some(reason) = feedback.members()?.get("blockReason")
        && top.items("candidates")?.is_empty()
    {
        return Err(ResponseError::Withheld { place: reason.place.clone(), reason: reason.string()? });
    }
    top.need_first("candidates")?.members()
}

/// A candidate that was stopped may have no content, and a content no parts.
fn parts<'a>(candidate: &Members<'a>) -> Result<Vec<Node<'a>>, ResponseError> {
    candidate.get("content").map_or(Ok(Vec::new()), |content| content.members()?.items("parts"))
}

/// The content with all its parts: each has to come back with its `thoughtSignature`.
pub(super) fn assistant_turn(response: &str) -> Result<Vec<Value>, ResponseError> {
    let parts = parts(&candidate(&open(response)?)?)?;
    let parts: Vec<Value> = parts.iter().map(Node::value).collect::<Result<_, _>>()?;
    Ok(if parts.is_empty() { Vec::new() } else { vec![json!({ "role": "model", "parts": parts })] })
}

pub(super) fn declare<'a>(tools: impl Iterator<Item = Declared<'a>>) -> Value {
    let functions: Vec<Value> = tools
        .map(|Declared { name, description, schema }| {
            json!({ "name": name, "description": description, "parametersJsonSchema": schema })
        })
        .collect();
    if functions.is_empty() { json!([]) } else { json!([{ "functionDeclarations": functions }]) }
}

pub(super) fn render(returns: &[ToolReturn]) -> Vec<Value> {
    let parts: Vec<Value> = returns
        .iter()
        .map(|returned| {
            let response = match (&returned.value, returned.is_error) {
                (_, true) => json!({ "error": returned::text(returned) }),
                (Some(value), false) => json!({ "output": value }),
                (None, false) => json!({ "output": returned.content }),
            };
            part_of(WireId::of(&returned.id).own(), &returned.name, response)
        })
        .collect();
    if parts.is_empty() { Vec::new() } else { vec![content_of(parts)] }
}

/// The part that answers one call.
pub(super) fn part_of(id: Option<&str>, name: &str, response: Value) -> Value {
    let mut answer = json!({ "name": name, "response": response });
    if let Some(id) = id {
        answer["id"] = id.into();
    }
    json!({ "functionResponse": answer })
}

/// The content that holds the answers of one turn.
pub(super) fn content_of(parts: Vec<Value>) -> Value {
    json!({ "role": "user", "parts": parts })
}
