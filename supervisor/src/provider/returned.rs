//! The text of a result, for providers that have no flag or no room for what it leaves open.

use crate::call::ToolReturn;
use std::borrow::Cow;

/// What a failure's text begins with where nothing else says that it is one.
const ERROR: &str = "Error: ";

/// What stands for a failure that says nothing: Anthropic refuses an error without content, and a model could not tell
/// it from a success elsewhere.
const SILENT: &str = "the tool failed and said nothing";

/// The text for a provider with a flag for failures.
pub(super) fn text(returned: &ToolReturn) -> &str {
    let is_silent = returned.is_error && returned.content.trim().is_empty();
    if is_silent { SILENT } else { &returned.content }
}

/// The text for a provider without such a flag.
pub(super) fn text_that_tells_errors(returned: &ToolReturn) -> Cow<'_, str> {
    let text = text(returned);
    if returned.is_error && !text.starts_with(ERROR) { format!("{ERROR}{text}").into() } else { text.into() }
}
