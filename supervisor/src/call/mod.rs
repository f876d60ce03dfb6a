//! One tool call: what is asked, what came of it, and how the outcome is told.

mod context;
mod exchange;
mod for_model;
mod id;
mod model;
mod outcome;
mod output;
mod receipt;
mod signal;
mod snapshot;

pub use context::{CallContext, StopReason};
pub use exchange::{RequestedCall, ToolReturn};
pub use for_model::{ErrorDetail, ErrorInfo, ErrorResult};
pub use id::CallId;
pub(crate) use model::Place;
pub use model::{
    CallOptions, Command, Directory, Input, OutputMode, Policy, PolicyError, ToolCall, Work, WorkerPolicy,
};
pub use outcome::{Code, Exit, NotRun, Outcome, Status, Termination, Timing, Usage};
pub use output::{Captured, Collector, OutputChunk, OutputStream};
pub use receipt::{KillReason, Receipt};
pub use signal::signal_name;
pub use snapshot::{Context, Writes};
pub use toolexec_protocol::failure::ErrorClass;
