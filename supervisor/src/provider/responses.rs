//! OpenAI's Responses: calls and results are items of one list, paired by `call_id`.

use super::adapter::Declared;
use super::calls::{Calls, Ending, free_text_arguments, text_arguments};
use super::document::{Node, ResponseError, open};
use super::returned::text_that_tells_errors;
use super::wire_id::{self, WireId};
use crate::call::{RequestedCall, ToolReturn};
use serde_json::{Value, json};

pub(super) fn is_response(value: &Value) -> bool {
    value["object"] == "response" && value["output"].is_array()
}

pub(super) fn calls(response: &str) -> Result<Vec<RequestedCall>, ResponseError> {
    let top = open(response)?;
    let mut calls = Calls::default();
    let mut unfinished = None;
    let mut ends_with_finished_call = false;
    for node in top.need("output")?.items()? {
        let item = node.members()?;
        let kind = item.need("type")?.string()?;
        let is_custom = kind == "custom_tool_call";
        ends_with_finished_call = false;
        if !is_custom && kind != "function_call" {
            continue;
        }
        // The item's own `id` is another one, and means nothing to a result.
        let id = item.need("call_id")?;
        let name = item.need("name")?.name()?;
        let call = if is_custom {
            let input = item.get("input").map_or(Ok(String::new()), |input| input.string())?;
            RequestedCall { id: wire_id::custom(&id.name()?), name, arguments: free_text_arguments(input) }
        } else {
            let arguments = text_arguments(item.get("arguments"))?;
            RequestedCall { id: wire_id::given(&id.name()?), name, arguments }
        };
        calls.push(&id, call)?;
        match item.get("status") {
            Some(status) if status.string()? == "completed" => ends_with_finished_call = true,
            Some(status) => unfinished = unfinished.or(Some(status)),
            None => {}
        }
    }
    if unfinished.is_some() {
        return calls.ended(Ending::CutOff, unfinished);
    }
    let status = top.get("status");
    let ending = match status.as_ref().map(Node::string).transpose()?.as_deref() {
        None | Some("completed") => Ending::Complete,
        Some("incomplete") => {
            let details = top.get("incomplete_details").map(|details| details.members()).transpose()?;
            let reason = details.and_then(|details| details.get("reason"));
            if reason.as_ref().map(Node::string).transpose()?.as_deref() == Some("content_filter") {
                return calls.ended(Ending::Withheld, reason);
            }
            // The limit was reached in what came after the calls, or before them.
            if ends_with_finished_call { Ending::Complete } else { Ending::CutOff }
        }
        Some(_) => Ending::CutOff,
    };
    calls.ended(ending, status)
}

/// All items: a call without the reasoning before it is refused.
pub(super) fn assistant_turn(response: &str) -> Result<Vec<Value>, ResponseError> {
    open(response)?.need("output")?.items()?.iter().map(Node::value).collect()
}

pub(super) fn declare(tool: Declared<'_>) -> Value {
    let Declared { name, description, schema } = tool;
    // Functions are strict here unless they say otherwise, and few schemas are of the kind that strictness demands.
    json!({ "type": "function", "name": name, "description": description, "parameters": schema, "strict": false })
}

pub(super) fn render(returns: &[ToolReturn]) -> Vec<Value> {
    returns
        .iter()
        .map(|returned| {
            let output = text_that_tells_errors(returned);
            match WireId::of(&returned.id) {
                WireId::Custom(own) => item_of(true, own, &output),
                WireId::Given(own) => item_of(false, own, &output),
                // No call of this provider has such an id; what comes back may not be dropped all the same.
                WireId::Made => item_of(false, &returned.id, &output),
            }
        })
        .collect()
}

/// The item that answers one call.
pub(super) fn item_of(is_custom: bool, call_id: &str, output: &str) -> Value {
    let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
    json!({ "type": kind, "call_id": call_id, "output": output })
}
