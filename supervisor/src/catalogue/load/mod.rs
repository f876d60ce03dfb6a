//! From the text of a catalogue to its tools, or to a list of all that is wrong with it.

mod duplicates;
mod file;
mod problem;
mod schema_value;
mod section;
mod tool;

pub use file::{Catalogue, CatalogueError, Defaults};
pub use problem::{DuplicateTool, Problem};
