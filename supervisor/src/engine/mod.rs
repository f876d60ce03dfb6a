//! Engines: who runs the calls of a batch, how many at once, and with which resources.

mod bounded;
mod concurrent;
mod manager;
mod run;
mod sequential;

pub use bounded::Bounded;
pub use concurrent::Concurrent;
pub use manager::{BatchOptions, ExecuteError, Executed, Executing, Pending, ToolCallingManager, ToolResultObserver};
pub use sequential::Sequential;
