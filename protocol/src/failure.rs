//! A tool's failure as it travels: data, not an error of toolexec.

use crate::limits::{MAX_BODY, MAX_FAILURE_TEXT};
use bincode::{Decode, Encode};
use std::any::Any;

/// What a failure asks of the reader. When unsure a failure is semantic: it is not retried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub enum ErrorClass {
    /// The same call may work later.
    Transient,
    /// The caller has to change the call.
    Semantic,
    /// An operator has to act.
    Environment,
}

impl ErrorClass {
    /// The name used in outcomes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Semantic => "semantic",
            Self::Environment => "environment",
        }
    }
}

/// What a tool said went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Failure {
    /// What the failure asks of the reader.
    pub class: ErrorClass,
    /// What went wrong, for the model to read; at most [`MAX_FAILURE_TEXT`] bytes.
    pub message: String,
}

impl Failure {
    /// A failure whose text is cut at a character border if it is over [`MAX_FAILURE_TEXT`] bytes.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_FAILURE_TEXT {
            message.truncate(message.floor_char_boundary(MAX_FAILURE_TEXT));
        }
        Self { class, message }
    }

    /// What a tool has failed with that panicked with this payload.
    pub fn of_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let failure =
            Self::new(ErrorClass::Semantic, format!("the tool panicked: {}", text.unwrap_or("without a text")));
        if text.is_none() {
            // A type of the tool's own may panic once more when it is dropped. It is rare, and mostly small.
            std::mem::forget(payload);
        }
        failure
    }

    /// What a tool has failed with that returned this many bytes, more than [`MAX_BODY`].
    pub fn of_large_result(length: usize) -> Self {
        let text = format!("the result has {length} bytes, more than the {MAX_BODY} that a call may return");
        Self::new(ErrorClass::Semantic, text)
    }
}

/// What a tool says without a class is for the model to mend.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(ErrorClass::Semantic, message)
    }
}

/// As from a [`String`].
impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::new(ErrorClass::Semantic, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_has_a_text_whatever_it_carries() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let told = |payload| Failure::of_panic(payload).message;
        assert_eq!(told(Box::new("a str")), "the tool panicked: a str");
        assert_eq!(told(Box::new("a String".to_owned())), "the tool panicked: a String");
        assert_eq!(told(Box::new(7)), "the tool panicked: without a text");
        assert_eq!(told(Box::new(Bomb)), "the tool panicked: without a text");
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        for extra in 0..4 {
            let text = format!("{}{}", "x".repeat(extra), "🦀".repeat(MAX_FAILURE_TEXT / 4));
            let failure = Failure::new(ErrorClass::Semantic, text);
            assert!(failure.message.len() <= MAX_FAILURE_TEXT);
            assert!(failure.message.len() > MAX_FAILURE_TEXT - 4);
        }
    }
}
