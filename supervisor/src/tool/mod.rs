//! Tools that are written in Rust: functions with typed arguments, and what they declare.

mod any;
mod tools;
mod typed;

pub use any::{DeclarationError, Tool};
pub use tools::{AssemblyError, Tools};
