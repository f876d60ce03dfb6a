//! The stream of any provider: what goes in, what comes out, and the bound on it.

use super::{anthropic, gemini, openai, responses};
use crate::call::RequestedCall;
use crate::provider::document::kind_of;
use crate::provider::{Provider, ResponseError};
use serde_json::Value;
use std::collections::HashMap;

/// The most bytes of texts and numbers that the events of one stream may have. A long answer of a model has some
/// hundred kilobytes, which the events of one provider repeat three times; who sends more than this sends no answer.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What each value costs beside its text, so that a stream of empty ones ends too.
const VALUE_COST: usize = 16;

/// Puts a streamed response together.
///
/// It takes the events in their order, as JSON values: of server-sent events what stands behind `data:`, without the
/// `[DONE]` that ends some streams. A call comes out when the whole response is there, and never before.
///
/// ```
/// use serde_json::json;
/// use toolexec::provider::Provider;
///
/// let mut assembler = Provider::OpenAiChat.assembler();
/// let fragment = |text: &str| json!([{ "index": 0, "function": { "arguments": text } }]);
/// let begin = json!([{ "index": 0, "id": "call_1", "type": "function", "function": { "name": "add" } }]);
/// for calls in [begin, fragment("{\"a\""), fragment(":1}")] {
///     assembler.push(&json!({ "choices": [{ "index": 0, "delta": { "tool_calls": calls } }] }))?;
/// }
/// assembler.push(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }))?;
/// assert_eq!(assembler.finish()?.calls[0].arguments, r#"{"a":1}"#);
/// # Ok::<(), toolexec::provider::StreamError>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    provider: Provider,
    parts: Parts,
    left: usize,
    failed: Option<StreamError>,
}

#[derive(Debug)]
enum Parts {
    OpenAiChat(openai::Chunks),
    OpenAiResponses(responses::Events),
    Anthropic(anthropic::Events),
    Gemini(gemini::Chunks),
}

/// A response that came as a stream.
#[derive(Clone, PartialEq, Debug)]
pub struct Streamed {
    /// The response as if it had come at once: its text is what [`Provider::assistant_turn`] takes.
    pub response: Value,
    /// Its calls, with their arguments as they were streamed.
    pub calls: Vec<RequestedCall>,
}

/// Why the events of a stream are no whole response.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// It ended too early. No call of it may run.
    #[error("the stream ended before {missing}")]
    EndedEarly {
        /// What should have come.
        missing: String,
    },
    /// An event is not what it should be.
    #[error("in an event, {place} {problem}")]
    Event {
        /// Where in the event.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// The provider told of an error in the middle of its answer.
    #[error("the provider ended the stream with an error: {message}")]
    Provider {
        /// What it said.
        message: String,
    },
    /// There is more than anybody reads.
    #[error("the events of the stream have more than {MAX_BYTES} bytes")]
    TooLarge,
    /// The stream is whole, and the response is not one whose calls may run.
    #[error(transparent)]
    Response(#[from] ResponseError),
}

/// What a provider's events have come to.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) response: Value,
    /// The arguments of calls by their ids, where they came as text and are a value in the response.
    pub(super) arguments: HashMap<String, String>,
}

impl Assembler {
    /// For one response.
    pub(crate) fn new(provider: Provider) -> Self {
        let parts = match provider {
            Provider::OpenAiChat => Parts::OpenAiChat(openai::Chunks::default()),
            Provider::OpenAiResponses => Parts::OpenAiResponses(responses::Events::default()),
            Provider::Anthropic => Parts::Anthropic(anthropic::Events::default()),
            Provider::Gemini => Parts::Gemini(gemini::Chunks::default()),
        };
        Self { provider, parts, left: MAX_BYTES, failed: None }
    }

    /// Takes the next event. Events of a kind that is not known are passed over, as the providers ask.
    ///
    /// # Errors
    /// [`StreamError`] when the response cannot become whole any more; it is told again from then on.
    pub fn push(&mut self, event: &Value) -> Result<(), StreamError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let taken = self.take(event);
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        taken
    }

    fn take(&mut self, event: &Value) -> Result<(), StreamError> {
        self.left = self.left.checked_sub(cost(event)).ok_or(StreamError::TooLarge)?;
        if !event.is_object() {
            let problem = format!("is {}, and has to be an object", kind_of(event));
            return Err(StreamError::Event { place: "the event itself".into(), problem });
        }
        match &mut self.parts {
            Parts::OpenAiChat(chunks) => chunks.take(event),
            Parts::OpenAiResponses(events) => events.take(event),
            Parts::Anthropic(events) => events.take(event),
            Parts::Gemini(chunks) => chunks.take(event),
        }
    }

    /// The whole response.
    ///
    /// # Errors
    /// [`StreamError`] when it is not whole, when an event was refused, and whatever [`Provider::calls`] refuses.
    pub fn finish(self) -> Result<Streamed, StreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Assembled { response, mut arguments } = match self.parts {
            Parts::OpenAiChat(chunks) => chunks.finish(),
            Parts::OpenAiResponses(events) => events.finish(),
            Parts::Anthropic(events) => events.finish(),
            Parts::Gemini(chunks) => chunks.finish(),
        }?;
        let mut calls = self.provider.calls(&response.to_string())?;
        for call in &mut calls {
            if let Some(text) = arguments.remove(&call.id) {
                call.arguments = text;
            }
        }
        Ok(Streamed { response, calls })
    }
}

/// How much of the bound an event takes.
fn cost(value: &Value) -> usize {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(cost).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + cost(value)).sum(),
        Value::Number(number) => number.as_str().len(),
        Value::Null | Value::Bool(_) => 0,
    };
    own + VALUE_COST
}
