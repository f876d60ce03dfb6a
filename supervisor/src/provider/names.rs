//! Tools' names as a provider takes them.
//!
//! A tool may be called `files.read`; the providers take letters, digits, `_` and `-`, and 64 of them. A name of another
//! kind is changed, always in the same way, and two tools never get the same name.

use super::Provider;
use crate::catalogue::ToolSpec;
use std::collections::HashMap;

/// The most characters of a name; each provider's documentation has this number.
const MAX_LENGTH: usize = 64;

/// How many hexadecimal digits tell a shortened name from others with the same beginning.
const DIGEST_LENGTH: usize = 8;

/// Why tools cannot be declared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeclareError {
    /// Two tools would have the same name.
    #[error("the tools {first:?} and {second:?} would both be declared as {name:?}: rename one of them")]
    SameName {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// The name for both.
        name: String,
    },
}

/// The names of the declared tools, both ways. Tools that were not declared are not in it, so that a call of one is a
/// call of an unknown tool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    declared: HashMap<String, String>,
    tools: HashMap<String, String>,
}

impl Names {
    /// The names of these tools for a provider.
    ///
    /// # Errors
    /// [`DeclareError`] names two tools that would have the same name.
    pub fn new<'a>(provider: Provider, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Result<Self, DeclareError> {
        Self::of(provider, tools.into_iter().map(|tool| tool.name.as_str()))
    }

    fn of<'a>(provider: Provider, tools: impl IntoIterator<Item = &'a str>) -> Result<Self, DeclareError> {
        let mut names = Self::default();
        for tool in tools {
            let name = declared_name(provider, tool);
            if let Some(first) = names.tools.insert(name.clone(), tool.to_owned()) {
                return Err(DeclareError::SameName { first, second: tool.to_owned(), name });
            }
            names.declared.insert(tool.to_owned(), name);
        }
        Ok(names)
    }

    /// The name that a tool was declared by: what the model calls it.
    pub fn declared(&self, tool: &str) -> Option<&str> {
        self.declared.get(tool).map(String::as_str)
    }

    /// The tool that was declared by a name, which is what stands in a call.
    pub fn tool(&self, declared: &str) -> Option<&str> {
        self.tools.get(declared).map(String::as_str)
    }
}

/// The name itself if the provider takes it.
fn declared_name(provider: Provider, tool: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let mut name: String = tool.chars().map(allowed).collect();
    // Gemini wants a letter or `_` at the beginning.
    if provider == Provider::Gemini && name.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_') {
        name.insert(0, '_');
    }
    if name.len() > MAX_LENGTH {
        // The name is ASCII by now, so that this is no character's middle.
        name.truncate(MAX_LENGTH - DIGEST_LENGTH - 1);
        name.push_str(&format!("_{:08x}", digest(tool)));
    }
    name
}

/// FNV-1a, 32 bits: it has to be the same in every build and on every day, for a history keeps names. It need not
/// withstand anybody, for two tools with the same name are refused.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(provider: Provider, tool: &str, expected: &str) {
        let names = Names::of(provider, [tool]).unwrap();
        assert_eq!((names.declared(tool), names.tool(expected)), (Some(expected), Some(tool)), "{provider:?}");
    }

    #[test]
    fn a_name_is_changed_only_where_the_provider_does_not_take_it() {
        for provider in Provider::ALL {
            check(provider, "find_in-Text2", "find_in-Text2");
            check(provider, &"x".repeat(64), &"x".repeat(64));
            check(provider, "files.read", "files_read");
            check(provider, &"a.b".repeat(30), &format!("{}a_04ee9a77", "a_b".repeat(18)));
        }
        check(Provider::OpenAiChat, "7zip", "7zip");
        check(Provider::Gemini, "7zip", "_7zip");
        check(Provider::Gemini, "-x", "_-x");
    }

    #[test]
    fn two_tools_with_one_name_are_refused_by_their_names() {
        for provider in Provider::ALL {
            let error = Names::of(provider, ["files_read", "x", "files.read"]).unwrap_err();
            let expected = "the tools \"files_read\" and \"files.read\" would both be declared as \"files_read\": rename one \
                            of them";
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_tool_that_was_not_declared_has_no_name() {
        let names = Names::of(Provider::Anthropic, ["a.b"]).unwrap();
        assert_eq!((names.declared("a_b"), names.tool("a.b"), names.tool("")), (None, None, None));
    }

    proptest! {
        #[test]
        fn names_map_back_to_their_tools(
            tools in prop::collection::hash_set("[a-zA-Z0-9_.-]{1,128}|[a.][b_]{60,70}", 0..8),
        ) {
            for provider in Provider::ALL {
                let Ok(names) = Names::of(provider, tools.iter().map(String::as_str)) else { continue };
                for tool in &tools {
                    let declared = names.declared(tool).unwrap();
                    prop_assert!(declared.len() <= 64, "{}", declared);
                    prop_assert!(declared.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                    prop_assert_eq!(names.tool(declared), Some(tool.as_str()));
                }
            }
        }
    }
}
