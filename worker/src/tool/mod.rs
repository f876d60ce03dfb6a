//! What a worker can do for a call: run an external program, or a tool that is compiled in.

pub(crate) mod command;
mod handler;
pub(crate) mod search_path;
mod toolbox;

pub use handler::{Handler, Returned};
pub use toolbox::{AlreadyThere, Toolbox};
