//! Deadlines and deaths: the queue of who is due when, and the thread that acts on it.

mod moment;
mod queue;
mod scheduling;
mod watchdog;

pub use scheduling::Scheduling;
pub(crate) use moment::Moment;
pub(crate) use watchdog::{Limits, Watchdog, WatchdogThread};
pub use watchdog::WatchdogError;
