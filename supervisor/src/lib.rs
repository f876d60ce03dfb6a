//! toolexec runs the tool calls of LLM agents so that a time limit is a fact instead of a wish.
//!
//! A call runs in a pre-forked worker process. At its deadline the worker's whole process tree gets
//! SIGKILL, and the call is answered after the kernel has confirmed that nothing of the tree is left.
//!
//! Start with [`Executor`]; `docs/architecture.md` draws the whole.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("toolexec runs on Linux only: it stands on pidfds, PID namespaces and child subreapers");

pub mod batch;
pub mod call;
pub mod catalogue;
#[cfg(feature = "cli")]
pub mod cli;
mod deadline;
pub mod engine;
mod executor;
pub mod filter;
mod invoke;
mod pool;
mod process;
pub mod provider;
mod tool;

pub use deadline::Scheduling;
pub use deadline::WatchdogError;
pub use executor::{CloseReport, Executor, ExecutorBuilder, StartError};
pub use invoke::HostSettings;
pub use pool::PoolSettings;
pub use process::{ScratchError, WorkerProgram, ZygoteError, serve_commands};
pub use tool::{AssemblyError, DeclarationError, IsolatedContext, Tool, Tools};
pub use toolexec_protocol::failure::{ErrorClass, Failure};
pub use toolexec_protocol::id::ToolName;
pub use toolexec_protocol::strength::KillStrength;
pub use toolexec_worker as worker;
