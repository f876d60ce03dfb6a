//! One tool call: what is asked, what came of it, and how the outcome is told.

mod exchange;
mod id;
mod model;
mod outcome;
mod output;
mod receipt;
mod signal;

pub use exchange::{RequestedCall, ToolReturn};
pub use id::CallId;
pub use model::{CallOptions, Command, Directory, Input, OutputMode, Policy, ToolCall, Work, WorkerPolicy};
pub use outcome::{Code, Exit, NotRun, Outcome, Status, Termination, Timing, Usage};
pub use output::{Captured, Collector, OutputChunk, OutputStream};
pub use receipt::{KillReason, Receipt};
pub use signal::signal_name;
