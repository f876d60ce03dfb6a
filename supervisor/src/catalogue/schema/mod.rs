//! The JSON Schemas of a tool, compiled once: of its arguments, and of its result.

mod compiled;
mod input;
mod output;
mod rust_number;

pub use compiled::SchemaError;
pub(super) use input::Default;
pub use input::InputSchema;
pub use output::OutputSchema;
