//! Running one call to its one outcome.

mod classify;
mod drain;
mod host;
mod isolated;
mod proof;
mod task;
mod wire;

pub use host::HostSettings;
pub(crate) use host::{HostPlan, HostThreads, run as run_on_host};
pub(crate) use isolated::{Plan, run};
pub(crate) use task::task_of;
