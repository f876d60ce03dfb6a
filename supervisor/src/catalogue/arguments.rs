//! The arguments of one call: the text of a JSON object, checked, with the defaults filled in.

use super::InputSchema;
use super::excerpt::excerpt;
use super::json::{MAX_DEPTH, Object, ObjectError};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use toolexec_protocol::limits::MAX_BODY;

/// The most bytes that one element of a command line may have: Linux's `MAX_ARG_STRLEN` of 32 pages of 4 KiB, less
/// the NUL that ends it; see execve(2).
pub(super) const MAX_ELEMENT: usize = 32 * 4096 - 1;

/// The most bytes of a key that an error repeats.
const KEY_EXCERPT: usize = 80;

/// Why the arguments of a call do not fit its tool. The text is for the model: it says what to change.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArgumentError {
    /// There is more text than one call may carry.
    #[error("the call is {length} bytes long, more than the {MAX_BODY} that one call may carry")]
    TooLarge {
        /// How long it is.
        length: usize,
    },
    /// The text is not JSON.
    #[error("the arguments are not JSON: {0}")]
    NotJson(String),
    /// The text is JSON, but not an object.
    #[error("the arguments are {found}, and have to be one JSON object")]
    NotAnObject {
        /// What it is instead.
        found: &'static str,
    },
    /// A key stands twice in one object. Which of the two values is meant cannot be known.
    #[error("the arguments have the key {key:?} twice, again at line {line} column {column}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The line where it stands again.
        line: usize,
        /// The column, in characters.
        column: usize,
    },
    /// A key is not Unicode text.
    #[error("a key of the arguments is not Unicode text: it has one half of a surrogate pair")]
    UnreadableKey,
    /// A key is reserved.
    #[error("the key {0:?} is reserved")]
    ReservedKey(String),
    /// There are objects in arrays in objects, and so on, more than 128 deep.
    #[error("the arguments are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// They do not fit the tool's input schema.
    #[error("the arguments do not fit: {}{}", .problems.join("; "), rest(*.complete))]
    Mismatch {
        /// What does not fit, each with the JSON pointer of the value.
        problems: Vec<String>,
        /// Whether these are all.
        complete: bool,
    },
    /// An argument that the command line needs is not there.
    #[error("the argument `{0}` is missing")]
    Missing(String),
    /// An argument is not Unicode text, and so has no bytes.
    #[error("the argument `{0}` is not Unicode text: it has one half of a surrogate pair")]
    Unreadable(String),
    /// An argument has a NUL character.
    #[error("the argument `{0}` has a NUL character, which a command line cannot carry")]
    Nul(String),
    /// An argument makes an element of the command line longer than the kernel takes.
    #[error(
        "the argument `{argument}` ({length} bytes) makes an element of the command line longer than {MAX_ELEMENT} bytes, \
         the most that the kernel takes (MAX_ARG_STRLEN, execve(2)); a tool gets longer text through its standard \
         input: stdin = \"json\" in the catalogue"
    )]
    TooLong {
        /// The argument.
        argument: String,
        /// How long its text is.
        length: usize,
    },
}

fn rest(complete: bool) -> &'static str {
    if complete { "" } else { "; and perhaps more" }
}

/// The checked arguments of one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Arguments {
    object: Object,
}

impl Arguments {
    /// Reads and checks the text of a JSON object, where an empty text means `{}`.
    pub(super) fn read(text: &str, schema: Option<&InputSchema>) -> Result<Self, ArgumentError> {
        if text.len() > MAX_BODY {
            return Err(ArgumentError::TooLarge { length: text.len() });
        }
        let text = if text.trim_ascii().is_empty() { "{}" } else { text };
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| ArgumentError::NotJson(error.to_string()))?;
        if let Some(found) = other_than_object(raw.get()) {
            return Err(ArgumentError::NotAnObject { found });
        }
        let mut object = Object::compact(text).map_err(|error| refused(error, text))?;
        if let Some(schema) = schema {
            let missing = |default: &&super::schema::Default| object.value(&default.name).is_none();
            let defaults: Vec<_> = schema.defaults().iter().filter(missing).collect();
            for default in &defaults {
                object.push(&default.name, &default.json);
            }
            let mut value: Value =
                serde_json::from_str(text).map_err(|error| ArgumentError::NotJson(error.to_string()))?;
            if let Value::Object(members) = &mut value {
                members.extend(defaults.iter().map(|default| (default.name.clone(), default.value.clone())));
            }
            schema.check(&value, text.len())?;
        }
        Ok(Self { object })
    }

    /// The whole object as JSON text: the numbers as they were written, the defaults filled in at the end.
    pub(super) fn into_json(self) -> String {
        self.object.text
    }

    /// Whether there is such an argument.
    pub(super) fn has(&self, name: &str) -> bool {
        self.object.value(name).is_some()
    }

    /// One argument's text: a string byte for byte, everything else as its JSON text.
    pub(super) fn text(&self, name: &str) -> Result<Cow<'_, str>, ArgumentError> {
        let json = self.object.value(name).ok_or_else(|| ArgumentError::Missing(name.to_owned()))?;
        if !json.starts_with('"') {
            return Ok(json.into());
        }
        serde_json::from_str::<String>(json).map(Cow::Owned).map_err(|_| ArgumentError::Unreadable(name.to_owned()))
    }
}

/// What a JSON value is, where it is not an object.
fn other_than_object(json: &str) -> Option<&'static str> {
    match json.bytes().next() {
        Some(b'{') => None,
        Some(b'[') => Some("an array"),
        Some(b'"') => Some("a string"),
        Some(b't' | b'f') => Some("a boolean"),
        Some(b'n') => Some("null"),
        _ => Some("a number"),
    }
}

fn refused(error: ObjectError, text: &str) -> ArgumentError {
    match error {
        ObjectError::DuplicateKey { key, offset } => {
            let before = text.get(..offset).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            ArgumentError::DuplicateKey {
                key: excerpt(key, KEY_EXCERPT),
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
            }
        }
        ObjectError::ReservedKey(key) => ArgumentError::ReservedKey(excerpt(key, KEY_EXCERPT)),
        ObjectError::TooDeep => ArgumentError::TooDeep,
        ObjectError::UnreadableKey => ArgumentError::UnreadableKey,
    }
}
