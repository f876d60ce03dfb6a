//! A batch: the calls of one answer of a model, and all that can be decided about them without running one.
//!
//! An engine prepares a batch, runs what its plan names, tells the assembly what came of it, and gets one result in
//! which each call is answered once, in the order in which the model asked. `docs/batches.md` tells the whole.

mod assemble;
mod class;
mod finished;
mod gate;
mod limits;
mod pause;
mod prepare;
mod result;
mod resume;
#[cfg(test)]
mod script;
mod slots;
mod store;

pub use crate::call::{Context, Writes};
pub use assemble::{Assembled, Assembly, Plan, Settled};
pub use finished::{Finished, unanswered};
pub use gate::{Gate, Verdict, Verdicts};
pub use limits::{LimitReached, Limits};
pub use pause::{AfterExecution, BeforeExecution, InconsistentPause, OnError, PauseState, UnreadablePause};
pub use prepare::{Batch, BatchError, Declared, Prepared, Round};
pub use result::{CallError, RecordTiming, ToolExecutionResult, ToolMessage, ToolRecord};
pub use resume::{Decision, ResumeError, resume};
pub use slots::{AlreadyDeclared, Append, Conflict, FoldError, Folded, LastWriter, Merge, Reducer, Slots, Sum};
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
pub use store::{FileStore, PauseStore, StoreError};
