//! Responses: items grow by events, and the last event has the whole response.
//!
//! Some services that imitate it send the last event without the items; then they are put together from the events.

use super::StreamError;
use super::assembler::Assembled;
use super::event::{need_index, need_text, provider_error, some, without_gap, wrong};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// What the events so far have said.
#[derive(Default, Debug)]
pub(super) struct Events {
    items: BTreeMap<u64, Item>,
    response: Option<Map<String, Value>>,
}

#[derive(Debug)]
struct Item {
    value: Value,
    /// The arguments or the input so far.
    text: String,
    is_done: bool,
}

impl Events {
    pub(super) fn take(&mut self, event: &Value) -> Result<(), StreamError> {
        match need_text(event, "type")? {
            "response.output_item.added" => {
                let item = Item { value: item_of(event)?, text: String::new(), is_done: false };
                let index = need_index(event, "output_index")?;
                if self.items.insert(index, item).is_some() {
                    return Err(wrong("output_index", format!("is {index}, and that item has begun before")));
                }
            }
            "response.output_item.done" => {
                let item = Item { value: item_of(event)?, text: String::new(), is_done: true };
                self.items.insert(need_index(event, "output_index")?, item);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let fragment = need_text(event, "delta")?;
                self.open_item(event)?.text.push_str(fragment);
            }
            "response.function_call_arguments.done" => self.end_text(event, "arguments")?,
            "response.custom_tool_call_input.done" => self.end_text(event, "input")?,
            "response.completed" | "response.incomplete" => match event.get("response") {
                Some(Value::Object(response)) => self.response = Some(response.clone()),
                _ => return Err(wrong("response", "is missing")),
            },
            "response.failed" => {
                let error = event.get("response").and_then(|response| some(response, "error"));
                return Err(provider_error(error.unwrap_or(&Value::Null)));
            }
            "error" => return Err(provider_error(some(event, "error").unwrap_or(event))),
            _ => {}
        }
        Ok(())
    }

    fn end_text(&mut self, event: &Value, member: &str) -> Result<(), StreamError> {
        let text = need_text(event, member)?;
        let item = self.open_item(event)?;
        if !item.text.is_empty() && item.text != text {
            return Err(wrong(member, "is another text than its fragments were"));
        }
        text.clone_into(&mut item.text);
        item.value[member] = text.into();
        Ok(())
    }

    fn open_item(&mut self, event: &Value) -> Result<&mut Item, StreamError> {
        let index = need_index(event, "output_index")?;
        match self.items.get_mut(&index) {
            Some(item) if !item.is_done => Ok(item),
            Some(_) => Err(wrong("output_index", format!("is {index}, and that item has ended"))),
            None => Err(wrong("output_index", format!("is {index}, and no such item has begun"))),
        }
    }

    pub(super) fn finish(self) -> Result<Assembled, StreamError> {
        let Some(mut response) = self.response else {
            return Err(StreamError::EndedEarly { missing: "`response.completed`".into() });
        };
        if response.get("output").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            let items = without_gap(self.items, "the item with the index")?;
            if let Some(open) = items.iter().position(|item| !item.is_done) {
                return Err(StreamError::EndedEarly { missing: format!("the end of the item with the index {open}") });
            }
            response.insert("output".into(), items.into_iter().map(|item| item.value).collect());
        }
        Ok(Assembled { response: Value::Object(response), arguments: HashMap::new() })
    }
}

fn item_of(event: &Value) -> Result<Value, StreamError> {
    event.get("item").filter(|item| item.is_object()).cloned().ok_or_else(|| wrong("item", "is missing"))
}
