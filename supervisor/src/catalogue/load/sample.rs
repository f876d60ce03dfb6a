//! Catalogues for tests.

use super::{Catalogue, CatalogueError};
use crate::catalogue::ToolSpec;
use std::path::Path;

/// Where the catalogues of tests would be.
pub(super) const PATH: &str = "/cat/toolexec.toml";

/// Arguments that fit the tool of [`catalogue`].
pub(super) const ARGUMENTS: &str = r#"{"text": "hello"}"#;

/// The smallest tool.
pub(super) const TOOL: &str = "[tool.a]\ndescription = 'x'\ncommand = ['true']\n";

pub(super) fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
    Catalogue::parse(text, Path::new(PATH))
}

/// What is said of a catalogue, without the file's name.
pub(super) fn complaint(text: &str) -> String {
    parse(text).unwrap_err().to_string().replace("/cat/toolexec.toml:", "")
}

/// A catalogue of one tool with these lines; the keys that every tool needs are put before them unless they are there.
pub(super) fn catalogue(lines: &str) -> Result<Catalogue, String> {
    let needs = |key: &str| !lines.lines().any(|line| line.starts_with(key));
    let description = if needs("description") { "description = 'does a'\n" } else { "\n" };
    let command = if needs("command") { "command = ['prog', '{text}']\n" } else { "\n" };
    let text = format!("[tool.a]\n{description}{command}{lines}\n");
    Catalogue::parse(&text, Path::new("/cat/toolexec.toml"))
        .map_err(|error| error.to_string().replace("/cat/toolexec.toml:", ""))
}

pub(super) fn with_tool<T>(lines: &str, look: impl FnOnce(&ToolSpec) -> T) -> T {
    let catalogue = catalogue(lines).unwrap_or_else(|error| panic!("{lines}\n{error}"));
    look(catalogue.tools.get("a").unwrap())
}

/// What is said of such a catalogue.
pub(super) fn refused(lines: &str) -> String {
    match catalogue(lines) {
        Ok(_) => panic!("{lines} is taken"),
        Err(error) => error,
    }
}
