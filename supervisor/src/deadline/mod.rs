//! Deadlines and deaths: the queue of who is due when, and the thread that acts on it.

mod moment;
mod queue;
mod scheduling;
mod watchdog;

pub(crate) use moment::Moment;
pub use scheduling::Scheduling;
pub use watchdog::WatchdogError;
pub(crate) use watchdog::{Limits, Watchdog, WatchdogThread};
