//! `streamGenerateContent`: each chunk is a response with the next parts. A call is always one part.

use super::StreamError;
use super::assembler::Assembled;
use super::event::{provider_error, some};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// What the chunks so far have said.
#[derive(Default, Debug)]
pub(super) struct Chunks {
    top: Map<String, Value>,
    candidate: Map<String, Value>,
    parts: Vec<Value>,
    has_candidate: bool,
}

impl Chunks {
    pub(super) fn take(&mut self, chunk: &Value) -> Result<(), StreamError> {
        if let Some(error) = some(chunk, "error") {
            return Err(provider_error(error));
        }
        for (name, value) in chunk.as_object().into_iter().flatten() {
            if name != "candidates" {
                self.top.insert(name.clone(), value.clone());
            }
        }
        for candidate in chunk["candidates"].as_array().into_iter().flatten() {
            // Only the first candidate is the answer; others come when more were asked for.
            if some(candidate, "index").is_none_or(|index| index.as_u64() == Some(0)) {
                self.take_candidate(candidate);
            }
        }
        Ok(())
    }

    fn take_candidate(&mut self, candidate: &Value) {
        self.has_candidate = true;
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.take_part(part);
        }
        for (name, value) in candidate.as_object().into_iter().flatten() {
            if name != "content" && !value.is_null() {
                self.candidate.insert(name.clone(), value.clone());
            }
        }
    }

    /// Text goes on from chunk to chunk. A part with a signature stays one of its own, for the signature is of that part.
    fn take_part(&mut self, part: &Value) {
        if let (Some(last), Some((text, is_thought))) = (self.parts.last_mut(), plain_text(part))
            && plain_text(last).is_some_and(|(_, last_is_thought)| last_is_thought == is_thought)
            && let Some(Value::String(last)) = last.get_mut("text")
        {
            last.push_str(text);
        } else {
            self.parts.push(part.clone());
        }
    }

    pub(super) fn finish(mut self) -> Result<Assembled, StreamError> {
        if self.has_candidate {
            if !self.candidate.contains_key("finishReason") {
                return Err(StreamError::EndedEarly { missing: "a chunk with a `finishReason`".into() });
            }
            self.candidate.insert("content".into(), json!({ "role": "model", "parts": self.parts }));
            self.top.insert("candidates".into(), json!([self.candidate]));
        } else if !self.top.contains_key("promptFeedback") {
            return Err(StreamError::EndedEarly { missing: "a chunk with a candidate".into() });
        }
        Ok(Assembled { response: Value::Object(self.top), arguments: HashMap::new() })
    }
}

/// The text of a part that is nothing else, and whether it is a thought.
fn plain_text(part: &Value) -> Option<(&str, bool)> {
    let members = part.as_object()?;
    let is_plain = members.keys().all(|name| name == "text" || name == "thought");
    let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
    part.get("text").and_then(Value::as_str).filter(|_| is_plain).map(|text| (text, is_thought))
}
