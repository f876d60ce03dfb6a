//! Reading a provider's response by place, so that an error can name the place.
//!
//! The text is read one level at a time, and what nobody asks for is only skipped. An object that is asked for as text
//! comes out as it was written: a number has the digits that the model gave it, which a parsed value would not keep for
//! every number.

use crate::catalogue::excerpt;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The most bytes of foreign text that an error repeats.
pub(super) const EXCERPT: usize = 400;

/// Why a response cannot be read, or why its calls may not run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResponseError {
    /// The text is not JSON.
    #[error("the response is not JSON: {0}")]
    NotJson(String),
    /// The provider did not answer, but told of an error.
    #[error("the provider answered with an error: {message}")]
    Provider {
        /// What it said.
        message: String,
    },
    /// Something that has to be there is not.
    #[error("{place} is missing")]
    Missing {
        /// Where it should be.
        place: String,
    },
    /// Something is there, and of another kind than it has to be.
    #[error("{place} is {found}, and has to be {expected}")]
    Unexpected {
        /// Where it is.
        place: String,
        /// What it is.
        found: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// Two calls have the same id, so that a result could not say whose it is.
    #[error("{place} is {id:?}, the id of an earlier call")]
    DuplicateId {
        /// Where the id stands again.
        place: String,
        /// The id.
        id: String,
    },
    /// A call of a kind that is not understood here.
    #[error("{place} is not supported: {instead}")]
    Unsupported {
        /// Where it is.
        place: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// The response was cut off in the middle. None of its calls may run: the last may be half of one.
    #[error("{place} is {reason:?}: the response was cut off, and its last call may be half of one")]
    CutOff {
        /// Where it says so.
        place: String,
        /// What it says.
        reason: String,
    },
    /// The model or its provider has taken the response back. None of its calls may run.
    #[error("{place} is {reason:?}: no call of this response may run")]
    Withheld {
        /// Where it says so.
        place: String,
        /// What it says.
        reason: String,
    },
}

/// One value of a response and where it stands.
#[derive(Debug)]
pub(super) struct Node<'a> {
    /// Where it stands, such as `choices[0].message`; empty for the response itself.
    pub(super) place: String,
    json: &'a RawValue,
}

/// An object of a response.
#[derive(Debug)]
pub(super) struct Members<'a> {
    place: String,
    members: HashMap<String, &'a RawValue>,
}

/// The object that a response is.
///
/// # Errors
/// Also when it is the description of an error, which all providers put under `error`.
pub(super) fn open(response: &str) -> Result<Members<'_>, ResponseError> {
    let top = Node::read(response)?.members()?;
    match top.get("error") {
        Some(error) => Err(ResponseError::Provider { message: message_of_error(&error.value()?) }),
        None => Ok(top),
    }
}

/// What a provider's description of an error says.
pub(super) fn message_of_error(error: &Value) -> String {
    match error.get("message").unwrap_or(error) {
        Value::String(message) => excerpt(message, EXCERPT),
        other => excerpt(other, EXCERPT),
    }
}

/// What kind of value it is, in words.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl<'a> Node<'a> {
    /// The whole response.
    pub(super) fn read(response: &'a str) -> Result<Self, ResponseError> {
        let json = serde_json::from_str(response).map_err(|error| ResponseError::NotJson(error.to_string()))?;
        Ok(Self { place: String::new(), json })
    }

    /// Its text, as it was written.
    pub(super) fn text(&self) -> &'a str {
        self.json.get()
    }

    pub(super) fn is_string(&self) -> bool {
        self.text().starts_with('"')
    }

    /// As an object.
    pub(super) fn members(&self) -> Result<Members<'a>, ResponseError> {
        let members = self.as_a("an object")?;
        Ok(Members { place: self.place.clone(), members })
    }

    /// As an array's items.
    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, ResponseError> {
        let items: Vec<&'a RawValue> = self.as_a("an array")?;
        let node = |(index, json)| Node { place: format!("{}[{index}]", self.place), json };
        Ok(items.into_iter().enumerate().map(node).collect())
    }

    /// As a string.
    pub(super) fn string(&self) -> Result<String, ResponseError> {
        self.as_a("a string of Unicode text")
    }

    /// As a string that names something, and so has to have a character.
    pub(super) fn name(&self) -> Result<String, ResponseError> {
        match self.string()? {
            name if name.is_empty() => Err(ResponseError::Unexpected {
                place: self.place.clone(),
                found: "an empty string",
                expected: "a name",
            }),
            name => Ok(name),
        }
    }

    /// As a value of its own.
    pub(super) fn value(&self) -> Result<Value, ResponseError> {
        self.as_a("a value of at most 128 levels, in Unicode text")
    }

    fn as_a<T: serde::Deserialize<'a>>(&self, expected: &'static str) -> Result<T, ResponseError> {
        serde_json::from_str(self.text()).map_err(|_| ResponseError::Unexpected {
            place: if self.place.is_empty() { "the response".to_owned() } else { self.place.clone() },
            found: self.kind(),
            expected,
        })
    }

    fn kind(&self) -> &'static str {
        match self.text().bytes().next() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }
}

impl<'a> Members<'a> {
    /// A member, where `null` counts as none: providers write it for what is not there.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        let json = *self.members.get(name)?;
        (json.get() != "null").then(|| Node { place: self.place_of(name), json })
    }

    /// A member that has to be there.
    pub(super) fn need(&self, name: &str) -> Result<Node<'a>, ResponseError> {
        self.get(name).ok_or_else(|| ResponseError::Missing { place: self.place_of(name) })
    }

    /// The items of a member that may be missing.
    pub(super) fn items(&self, name: &str) -> Result<Vec<Node<'a>>, ResponseError> {
        self.get(name).map_or(Ok(Vec::new()), |member| member.items())
    }

    /// The first item of a member, both of which have to be there.
    pub(super) fn need_first(&self, name: &str) -> Result<Node<'a>, ResponseError> {
        let first = self.need(name)?.items()?.into_iter().next();
        first.ok_or_else(|| ResponseError::Missing { place: format!("{}[0]", self.place_of(name)) })
    }

    /// Where a member stands, or would stand.
    pub(super) fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }
}
