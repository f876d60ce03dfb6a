//! Names and numbers that cannot be mistaken for one another.

use bincode::{Decode, Encode};
use std::fmt;

/// One worker of one zygote; never used twice in the life of a supervisor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub struct WorkerId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// Pairs a reply with its call: a reply with another nonce is dropped and costs the worker its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct Nonce(pub u64);

/// The name of a tool: 1 to 64 characters out of `A–Z a–z 0–9 _ - .`, as the model providers allow.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ToolName(String);

/// Why a text is not a [`ToolName`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidToolName {
    /// There is no text.
    #[error("a tool's name is empty")]
    Empty,
    /// It has more than [`ToolName::MAX_LENGTH`] bytes.
    #[error("a tool's name has {length} bytes, more than {}", ToolName::MAX_LENGTH)]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// It has a character that the providers do not allow.
    #[error("a tool's name has {character:?}; allowed are A-Z a-z 0-9 _ - .")]
    Character {
        /// The first such character.
        character: char,
    },
}

impl ToolName {
    /// The most bytes of a name. OpenAI's and Anthropic's function names allow 64.
    pub const MAX_LENGTH: usize = 64;

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidToolName`] says what is wrong with it.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() {
            Err(InvalidToolName::Empty)
        } else if name.len() > Self::MAX_LENGTH {
            Err(InvalidToolName::TooLong { length: name.len() })
        } else if let Some(character) = name.chars().find(|c| !allowed(c)) {
            Err(InvalidToolName::Character { character })
        } else {
            Ok(Self(name))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_are_checked() {
        let check = |text: &str| ToolName::new(text).map(|name| name.to_string());
        assert_eq!(check("find_in-text.v2"), Ok("find_in-text.v2".into()));
        assert_eq!(check(""), Err(InvalidToolName::Empty));
        assert_eq!(check("a b"), Err(InvalidToolName::Character { character: ' ' }));
        assert_eq!(check("🦀"), Err(InvalidToolName::Character { character: '🦀' }));
        assert_eq!(check(&"x".repeat(65)), Err(InvalidToolName::TooLong { length: 65 }));
        assert!(check(&"x".repeat(64)).is_ok());
    }
}
