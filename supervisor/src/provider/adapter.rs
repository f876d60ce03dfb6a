//! The providers, and which file speaks for which.

use super::stream::Assembler;
use super::{DeclareError, Healed, Names, ResponseError, anthropic, gemini, heal, openai, responses};
use crate::call::{RequestedCall, ToolReturn};
use crate::catalogue::{InputSchema, ToolSpec};
use serde_json::{Value, json};

/// Whose JSON it is.
///
/// ```
/// use toolexec::call::ToolReturn;
/// use toolexec::provider::Provider;
///
/// let response = r#"{"type":"message","role":"assistant","stop_reason":"tool_use","content":[
///     {"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1,"b":9007199254740993}}]}"#;
/// let calls = Provider::Anthropic.calls(response)?;
/// assert_eq!(calls[0].arguments, r#"{"a":1,"b":9007199254740993}"#);
///
/// let returned = ToolReturn {
///     id: calls[0].id.clone(),
///     name: calls[0].name.clone(),
///     content: "9007199254740994".into(),
///     value: None,
///     is_error: false,
/// };
/// let mut history = Provider::Anthropic.assistant_turn(response)?;
/// history.extend(Provider::Anthropic.render(&[returned]));
/// assert_eq!(history[1]["content"][0]["tool_use_id"], "toolu_1");
/// # Ok::<(), toolexec::provider::ResponseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Provider {
    /// OpenAI's Chat Completions, and the many that imitate them.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The provider of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// Whose response a value is, where its shape leaves no doubt.
    pub fn detect(response: &Value) -> Option<Self> {
        let mut fitting = Self::ALL.into_iter().filter(|provider| provider.is_response(response));
        fitting.next().filter(|_| fitting.next().is_none())
    }

    fn is_response(self, value: &Value) -> bool {
        match self {
            Self::OpenAiChat => openai::is_response(value),
            Self::OpenAiResponses => responses::is_response(value),
            Self::Anthropic => anthropic::is_response(value),
            Self::Gemini => gemini::is_response(value),
        }
    }

    /// The calls of a complete response, in its order. Their arguments have the digits that the model wrote, and need
    /// not be JSON: whoever runs a call answers that.
    ///
    /// # Errors
    /// [`ResponseError`] says what is missing and where, or why no call of the response may run.
    pub fn calls(self, response: &str) -> Result<Vec<RequestedCall>, ResponseError> {
        match self {
            Self::OpenAiChat => openai::calls(response),
            Self::OpenAiResponses => responses::calls(response),
            Self::Anthropic => anthropic::calls(response),
            Self::Gemini => gemini::calls(response),
        }
    }

    /// What the model said, as the history has to repeat it before the results. It is empty when the model said nothing.
    ///
    /// # Errors
    /// [`ResponseError`] says what is missing and where.
    pub fn assistant_turn(self, response: &str) -> Result<Vec<Value>, ResponseError> {
        match self {
            Self::OpenAiChat => openai::assistant_turn(response),
            Self::OpenAiResponses => responses::assistant_turn(response),
            Self::Anthropic => anthropic::assistant_turn(response),
            Self::Gemini => gemini::assistant_turn(response),
        }
    }

    /// The tools for a request's `tools`. A call has the name that stands here; [`Names`] knows whose it is.
    ///
    /// # Errors
    /// [`DeclareError`] names two tools that the provider could not tell apart.
    pub fn declare<'a>(self, tools: impl Iterator<Item = &'a ToolSpec>) -> Result<Value, DeclareError> {
        let tools: Vec<&ToolSpec> = tools.collect();
        let names = Names::new(self, tools.iter().copied())?;
        let declared = tools.into_iter().filter_map(|tool| {
            let name = names.declared(tool.name.as_str())?.to_owned();
            Some(Declared { name, description: &tool.description, schema: schema(tool.input.as_ref()) })
        });
        Ok(match self {
            Self::OpenAiChat => declared.map(openai::declare).collect(),
            Self::OpenAiResponses => declared.map(responses::declare).collect(),
            Self::Anthropic => declared.map(anthropic::declare).collect(),
            Self::Gemini => gemini::declare(declared),
        })
    }

    /// What goes back to the model, in the order of `returns`: messages, or what the provider has in their place.
    pub fn render(self, returns: &[ToolReturn]) -> Vec<Value> {
        match self {
            Self::OpenAiChat => openai::render(returns),
            Self::OpenAiResponses => responses::render(returns),
            Self::Anthropic => anthropic::render(returns),
            Self::Gemini => gemini::render(returns),
        }
    }

    /// Gives every call in a history that has no result a neutral one, for a provider refuses a history with an open
    /// call. Results that are there stay as they are, and a healed history is not changed again.
    pub fn heal(self, history: &mut Vec<Value>) -> Healed {
        heal::heal(self, history)
    }

    /// Puts a streamed response together.
    pub fn assembler(self) -> Assembler {
        Assembler::new(self)
    }
}

/// One tool, ready to be written in a provider's words.
#[derive(Debug)]
pub(super) struct Declared<'a> {
    pub(super) name: String,
    pub(super) description: &'a str,
    pub(super) schema: Value,
}

/// A tool's schema. OpenAI refuses an object without `properties`, even one that takes none.
fn schema(input: Option<&InputSchema>) -> Value {
    let mut schema = input.and_then(|input| input.as_json().as_object().cloned()).unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}
