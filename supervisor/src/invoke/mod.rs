//! Running one call to its one outcome.

mod classify;
mod drain;
mod isolated;
mod proof;
mod task;
mod wire;

pub(crate) use isolated::{Plan, run};
pub(crate) use task::task_of;
