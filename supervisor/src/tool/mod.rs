//! Tools that are written in Rust: functions with typed arguments, and what they declare.

mod any;
mod in_context;
mod tools;
mod typed;

pub use any::{DeclarationError, Tool};
pub use in_context::IsolatedContext;
pub use tools::{AssemblyError, Tools};
