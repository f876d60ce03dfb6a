//! From the text of a catalogue to its tools, or to a list of all that is wrong with it.

mod duplicates;
mod error;
mod file;
mod problem;
#[cfg(test)]
mod sample;
mod schema_value;
mod section;
mod settings;
mod tool;

pub use error::CatalogueError;
pub use file::Catalogue;
pub use problem::{DuplicateTool, Problem};
pub use settings::Defaults;
