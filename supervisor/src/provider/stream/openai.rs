//! Chat Completions: each chunk has fragments of the message, and of its calls by their index.

use super::StreamError;
use super::assembler::Assembled;
use super::event::{grow, need_index, provider_error, some, text, without_gap, wrong};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// What the chunks so far have said.
#[derive(Default, Debug)]
pub(super) struct Chunks {
    top: Map<String, Value>,
    message: Map<String, Value>,
    calls: BTreeMap<u64, Call>,
    finish_reason: Option<Value>,
}

#[derive(Default, Debug)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    text: String,
    is_custom: bool,
}

impl Chunks {
    pub(super) fn take(&mut self, chunk: &Value) -> Result<(), StreamError> {
        if let Some(error) = some(chunk, "error") {
            return Err(provider_error(error));
        }
        for (name, value) in chunk.as_object().into_iter().flatten() {
            if !value.is_null() && !matches!(name.as_str(), "choices" | "object") {
                self.top.insert(name.clone(), value.clone());
            }
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            // Only the first choice is the answer; others come when more were asked for.
            if some(choice, "index").is_none_or(|index| index.as_u64() == Some(0)) {
                self.take_delta(&choice["delta"])?;
                self.finish_reason = some(choice, "finish_reason").cloned().or(self.finish_reason.take());
            }
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: &Value) -> Result<(), StreamError> {
        for (name, fragment) in delta.as_object().into_iter().flatten() {
            match name.as_str() {
                "tool_calls" => {
                    for fragment in fragment.as_array().into_iter().flatten() {
                        self.take_call(fragment)?;
                    }
                }
                // Some write it into every chunk.
                "role" if self.message.contains_key("role") => {}
                _ => grow(&mut self.message, name, fragment),
            }
        }
        Ok(())
    }

    fn take_call(&mut self, fragment: &Value) -> Result<(), StreamError> {
        let index = self.index(fragment)?;
        let call = self.calls.entry(index).or_default();
        let is_custom = some(fragment, "custom").is_some();
        let (body, input) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
        let body = fragment.get(body).unwrap_or(&Value::Null);
        call.is_custom |= is_custom;
        once(&mut call.id, text(fragment, "id")?, "id", index)?;
        once(&mut call.name, text(body, "name")?, "name", index)?;
        call.text.push_str(text(body, input)?.unwrap_or_default());
        Ok(())
    }

    /// Which call a fragment belongs to. Some services leave the index out; then the id has to say it.
    fn index(&self, fragment: &Value) -> Result<u64, StreamError> {
        if some(fragment, "index").is_some() {
            return need_index(fragment, "index");
        }
        match text(fragment, "id")?.filter(|id| !id.is_empty()) {
            None => Err(wrong("tool_calls[].index", "is missing, and there is no id")),
            Some(id) => {
                let known = self.calls.iter().find(|(_, call)| call.id.as_deref() == Some(id)).map(|(index, _)| *index);
                let next = self.calls.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
                Ok(known.unwrap_or(next))
            }
        }
    }

    pub(super) fn finish(mut self) -> Result<Assembled, StreamError> {
        let Some(finish_reason) = self.finish_reason else {
            return Err(StreamError::EndedEarly { missing: "a chunk with a `finish_reason`".into() });
        };
        self.message.entry("role").or_insert_with(|| "assistant".into());
        self.message.entry("content").or_insert(Value::Null);
        let calls = without_gap(self.calls, "the call with the index")?;
        let calls: Vec<Value> = calls
            .into_iter()
            .map(|call| match call {
                Call { id, name, text, is_custom: true } => {
                    json!({ "id": id, "type": "custom", "custom": { "name": name, "input": text } })
                }
                Call { id, name, text, is_custom: false } => {
                    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": text } })
                }
            })
            .collect();
        if !calls.is_empty() {
            self.message.insert("tool_calls".into(), calls.into());
        }
        let choice = json!({ "index": 0, "message": self.message, "finish_reason": finish_reason });
        self.top.insert("object".into(), "chat.completion".into());
        self.top.insert("choices".into(), json!([choice]));
        Ok(Assembled { response: Value::Object(self.top), arguments: HashMap::new() })
    }
}

/// Takes what comes once, or again and the same.
fn once(known: &mut Option<String>, new: Option<&str>, what: &str, index: u64) -> Result<(), StreamError> {
    match (known.as_deref(), new.filter(|new| !new.is_empty())) {
        (_, None) => Ok(()),
        (Some(known), Some(new)) if known == new => Ok(()),
        (Some(known), Some(new)) => {
            let place = format!("the {what} of the call with the index {index}");
            Err(wrong(&place, format!("is {new:?}, and was {known:?} before")))
        }
        (None, Some(new)) => {
            *known = Some(new.to_owned());
            Ok(())
        }
    }
}
