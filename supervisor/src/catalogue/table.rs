//! The table of declared tools, made once and never changed.

use super::ToolSpec;

/// The declared tools by name.
#[derive(Debug, Default)]
pub struct ToolTable {
    tools: Vec<ToolSpec>,
}

/// Names that were declared more than once.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("declared more than once: {}", .0.join(", "))]
pub struct DuplicateTools(pub Vec<String>);
