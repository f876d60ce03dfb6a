//! Messages: blocks begin, grow by deltas and end, each under its index.

use super::StreamError;
use super::assembler::Assembled;
use super::event::{grow, need_index, need_text, provider_error, some, without_gap, wrong};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// The key under which a call's input is kept that is no JSON, for the history: the input has to be an object, and
/// Anthropic suggests this one.
const INVALID: &str = "INVALID_JSON";

/// What the events so far have said.
#[derive(Default, Debug)]
pub(super) struct Events {
    message: Map<String, Value>,
    blocks: BTreeMap<u64, Block>,
    is_over: bool,
}

#[derive(Debug)]
struct Block {
    members: Map<String, Value>,
    /// The text of the input so far.
    input: String,
    has_ended: bool,
}

impl Events {
    pub(super) fn take(&mut self, event: &Value) -> Result<(), StreamError> {
        match need_text(event, "type")? {
            "message_start" => match event.get("message") {
                Some(Value::Object(message)) => self.message = message.clone(),
                _ => return Err(wrong("message", "is missing")),
            },
            "content_block_start" => {
                let Some(Value::Object(members)) = event.get("content_block") else {
                    return Err(wrong("content_block", "is missing"));
                };
                let block = Block { members: members.clone(), input: String::new(), has_ended: false };
                let index = need_index(event, "index")?;
                if self.blocks.insert(index, block).is_some() {
                    return Err(wrong("index", format!("is {index}, and that block has begun before")));
                }
            }
            "content_block_delta" => {
                let delta = event.get("delta").ok_or_else(|| wrong("delta", "is missing"))?;
                self.open_block(event)?.take(delta)?;
            }
            "content_block_stop" => self.open_block(event)?.has_ended = true,
            "message_delta" => {
                for (name, value) in event["delta"].as_object().into_iter().flatten() {
                    self.message.insert(name.clone(), value.clone());
                }
                self.take_usage(event);
            }
            "message_stop" => self.is_over = true,
            "error" => return Err(provider_error(some(event, "error").unwrap_or(event))),
            _ => {}
        }
        Ok(())
    }

    /// The counts so far: later ones take the place of earlier ones, and those that are not repeated stay.
    fn take_usage(&mut self, event: &Value) {
        let Some(Value::Object(counts)) = event.get("usage") else { return };
        match self.message.get_mut("usage") {
            Some(Value::Object(usage)) => usage.extend(counts.clone()),
            _ => {
                self.message.insert("usage".into(), Value::Object(counts.clone()));
            }
        }
    }

    fn open_block(&mut self, event: &Value) -> Result<&mut Block, StreamError> {
        let index = need_index(event, "index")?;
        match self.blocks.get_mut(&index) {
            Some(block) if !block.has_ended => Ok(block),
            Some(_) => Err(wrong("index", format!("is {index}, and that block has ended"))),
            None => Err(wrong("index", format!("is {index}, and no such block has begun"))),
        }
    }

    pub(super) fn finish(mut self) -> Result<Assembled, StreamError> {
        if !self.is_over {
            return Err(StreamError::EndedEarly { missing: "`message_stop`".into() });
        }
        let blocks = without_gap(self.blocks, "the block with the index")?;
        let mut arguments = HashMap::new();
        let mut content = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.into_iter().enumerate() {
            if !block.has_ended {
                return Err(StreamError::EndedEarly {
                    missing: format!("the end of the block with the index {index}"),
                });
            }
            content.push(block.finish(&mut arguments));
        }
        self.message.insert("content".into(), content.into());
        Ok(Assembled { response: Value::Object(self.message), arguments })
    }
}

impl Block {
    fn take(&mut self, delta: &Value) -> Result<(), StreamError> {
        match need_text(delta, "type")? {
            "input_json_delta" => self.input.push_str(need_text(delta, "partial_json")?),
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                grow(&mut self.members, "citations", &json!([citation]));
            }
            // Each is named after the member of the block that it adds to; what else a delta may have is not the block's.
            _ => {
                for name in ["text", "thinking", "signature", "content"] {
                    grow(&mut self.members, name, delta.get(name).unwrap_or(&Value::Null));
                }
            }
        }
        Ok(())
    }

    /// The block as it would have come at once. A call without any text of its input has the one that it began with,
    /// which is `{}`.
    fn finish(mut self, arguments: &mut HashMap<String, String>) -> Value {
        if !self.input.is_empty() {
            let input = serde_json::from_str(&self.input).unwrap_or_else(|_| json!({ INVALID: self.input }));
            if let Some(id) = self.members.get("id").and_then(Value::as_str) {
                arguments.insert(id.to_owned(), self.input);
            }
            self.members.insert("input".into(), input);
        }
        Value::Object(self.members)
    }
}
