//! What every engine offers, and what a batch can be told.

use crate::batch::{
    BatchError, Conflict, Context, Decision, FoldError, Gate, OnError, PauseState, ResumeError, Settled, Slots,
    ToolRecord,
};
use crate::call::RequestedCall;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An engine: a way of running calls, the boundary around them, and the resources that they take, as one object. Whoever has an
/// engine of their own implements this; the contract of a batch (one answer for each call, in the order in which the model
/// asked, whatever became of it) is [`crate::batch`]'s and is the same for all.
///
/// In which process a tool runs is the tool's declaration and not the engine's.
pub trait ToolCallingManager: Send + Sync {
    /// Runs the calls of one answer of a model, or goes on with a batch that was paused. Dropping the future in the middle ends
    /// what runs.
    fn execute_tool_calls<'a>(&'a self, pending: Pending, options: BatchOptions) -> Executing<'a>;

    /// The time limit of tools that declare none. An engine around another one has to pass the inner one's on.
    fn default_timeout(&self) -> Option<Duration> {
        None
    }

    /// Takes no call any more: what was not started is answered as closed, what runs is withdrawn.
    fn close(&self) {}
}

/// A batch that is being run.
pub type Executing<'a> = Pin<Box<dyn Future<Output = Result<Executed, ExecuteError>> + Send + 'a>>;

/// What is to be run.
#[derive(Clone, PartialEq, Debug)]
pub enum Pending {
    /// What a model has asked for.
    Asked(Vec<RequestedCall>),
    /// A batch that waited for somebody, and what they have decided.
    Paused {
        /// The batch.
        state: PauseState,
        /// The decision.
        decision: Decision,
    },
}

impl From<Vec<RequestedCall>> for Pending {
    fn from(calls: Vec<RequestedCall>) -> Self {
        Self::Asked(calls)
    }
}

/// Hears of each executed call once, when it is over; in which order is not defined. A panic of it is caught and logged.
pub type ToolResultObserver = Arc<dyn Fn(&ToolRecord) + Send + Sync>;

/// What a batch can be told; everything is optional.
#[derive(Clone, Default)]
pub struct BatchOptions {
    /// What every tool of the batch sees. A paused batch has its own.
    pub context: Context,
    /// The records so far; those of the batch come behind them. A paused batch has its own.
    pub records: Vec<ToolRecord>,
    /// How writes are folded into the context.
    pub slots: Arc<Slots>,
    /// Asked about every call before any runs; without one all proceed.
    pub gate: Option<Arc<dyn Gate>>,
    /// What becomes of failures of class environment.
    pub on_error: OnError,
    /// How many more rounds there may be; kept for the caller over a pause.
    pub remaining: Option<u32>,
    /// Withdraws the batch: what was not started will not be, what runs is ended, and every call has its answer.
    pub cancel: Option<CancellationToken>,
    /// Hears of executed calls.
    pub on_tool_result: Option<ToolResultObserver>,
}

impl fmt::Debug for BatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchOptions").field("context", &self.context).finish_non_exhaustive()
    }
}

/// What a batch has come to.
#[derive(Debug)]
pub struct Executed {
    /// The result, or the batch as it waits for somebody.
    pub settled: Settled,
    /// Writes to undeclared slots that depend on the order of the calls.
    pub conflicts: Vec<Conflict>,
    /// Why none of the batch's writes is in the context.
    pub fold_error: Option<FoldError>,
}

/// Why a batch was not run; nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// Its calls are no batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// It cannot go on like this.
    #[error(transparent)]
    Resume(#[from] ResumeError),
}
