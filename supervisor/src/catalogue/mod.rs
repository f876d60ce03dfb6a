//! The catalogue: which tools there are, what they declare, and whether a call's arguments fit.

mod spec;
mod table;

pub use spec::{Body, Prepared, ToolSpec};
pub use table::{DuplicateTools, ToolTable};
