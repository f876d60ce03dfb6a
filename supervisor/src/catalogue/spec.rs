//! One tool's declaration.

use crate::call::{Command, Policy};
use toolexec_protocol::id::ToolName;

/// A declared tool.
#[derive(Debug)]
pub struct ToolSpec {
    /// What calls name it by.
    pub name: ToolName,
    /// What the model reads about it.
    pub description: String,
    /// What it does.
    pub body: Body,
    /// Its limits.
    pub policy: Policy,
}

/// What a tool does when it is called.
#[derive(Debug)]
pub enum Body {
    /// A tool that is compiled into the worker program, found there by its name.
    Compiled,
}

/// A call whose arguments were checked, ready for a worker.
#[derive(Debug)]
pub enum Prepared {
    /// A command with all its arguments filled in.
    Command(Command),
    /// A compiled tool with the text of its JSON arguments.
    Tool {
        /// The text of a JSON object.
        arguments: String,
    },
}
