//! Looking into an event, and the errors of what is found there.

use super::StreamError;
use crate::catalogue::excerpt;
use crate::provider::document::{EXCERPT, kind_of, message_of_error};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An event that has something wrong in it.
pub(super) fn wrong(place: &str, problem: impl Into<String>) -> StreamError {
    StreamError::Event { place: place.to_owned(), problem: problem.into() }
}

/// An event that tells of an error.
pub(super) fn provider_error(error: &Value) -> StreamError {
    StreamError::Provider { message: message_of_error(error) }
}

/// A member that is there and not null.
pub(super) fn some<'a>(value: &'a Value, member: &str) -> Option<&'a Value> {
    value.get(member).filter(|value| !value.is_null())
}

/// A text that may be missing.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> Result<Option<&'a str>, StreamError> {
    match some(value, member) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(member, format!("is {}, and has to be a string", kind_of(other)))),
    }
}

/// A text that has to be there.
pub(super) fn need_text<'a>(value: &'a Value, member: &str) -> Result<&'a str, StreamError> {
    text(value, member)?.ok_or_else(|| wrong(member, "is missing"))
}

/// An index that has to be there. It is a key and never a length, so that any is harmless.
pub(super) fn need_index(value: &Value, member: &str) -> Result<u64, StreamError> {
    match some(value, member) {
        None => Err(wrong(member, "is missing")),
        Some(index) => {
            index.as_u64().ok_or_else(|| wrong(member, format!("is {}, which is no index", excerpt(index, EXCERPT))))
        }
    }
}

/// The parts of a response in the order of their indexes, of which none may be left out.
pub(super) fn without_gap<T>(parts: BTreeMap<u64, T>, what: &str) -> Result<Vec<T>, StreamError> {
    let gap = parts.keys().zip(0..).find(|(index, expected)| *index != expected);
    match gap {
        Some((index, expected)) => {
            Err(StreamError::EndedEarly { missing: format!("{what} {expected} came, though {index} did") })
        }
        None => Ok(parts.into_values().collect()),
    }
}

/// Adds a fragment to what came before it: texts and lists grow, what else there is takes the newest value.
pub(super) fn grow(whole: &mut Map<String, Value>, name: &str, fragment: &Value) {
    match (whole.get_mut(name), fragment) {
        (_, Value::Null) => {}
        (Some(Value::String(whole)), Value::String(more)) => whole.push_str(more),
        (Some(Value::Array(whole)), Value::Array(more)) => whole.extend_from_slice(more),
        (Some(whole), newest) => *whole = newest.clone(),
        (None, first) => {
            whole.insert(name.to_owned(), first.clone());
        }
    }
}
