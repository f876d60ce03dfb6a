//! The calls of one response: in its order, each under an id of its own, and none where the response was not ended well.

use super::document::{Node, ResponseError};
use crate::call::RequestedCall;
use std::collections::HashSet;

/// How a response ended, as far as its calls care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// It is whole.
    Complete,
    /// It reached a limit of length.
    CutOff,
    /// The model or its provider has taken it back.
    Withheld,
}

/// The calls seen so far.
#[derive(Default, Debug)]
pub(super) struct Calls {
    calls: Vec<RequestedCall>,
    ids: HashSet<String>,
}

impl Calls {
    /// Adds a call. `id` is the provider's own.
    pub(super) fn push(&mut self, id: &Node<'_>, call: RequestedCall) -> Result<(), ResponseError> {
        let own = id.name()?;
        if !self.ids.insert(own.clone()) {
            return Err(ResponseError::DuplicateId { place: id.place.clone(), id: own });
        }
        self.push_without_id(call);
        Ok(())
    }

    /// Adds a call that the provider gave no id.
    pub(super) fn push_without_id(&mut self, call: RequestedCall) {
        self.calls.push(call);
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The calls, if they may run. A response without any is the model's last word, however it ended.
    pub(super) fn ended(self, ending: Ending, told: Option<Node<'_>>) -> Result<Vec<RequestedCall>, ResponseError> {
        let Some(told) = told.filter(|_| !self.is_empty()) else { return Ok(self.calls) };
        let place = told.place.clone();
        match ending {
            Ending::Complete => Ok(self.calls),
            Ending::CutOff => Err(ResponseError::CutOff { place, reason: told.string()? }),
            Ending::Withheld => Err(ResponseError::Withheld { place, reason: told.string()? }),
        }
    }
}

/// The arguments where a provider writes them as a string of JSON text. Some that imitate it write the object itself,
/// and some write nothing for a tool without parameters.
pub(super) fn text_arguments(node: Option<Node<'_>>) -> Result<String, ResponseError> {
    match node {
        None => Ok(String::new()),
        Some(node) if node.is_string() => node.string(),
        Some(node) => Ok(node.text().to_owned()),
    }
}

/// The arguments of a call whose input is free text: the text under the key `input`.
pub(super) fn free_text_arguments(input: String) -> String {
    serde_json::json!({ "input": input }).to_string()
}
