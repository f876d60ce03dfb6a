//! Deadlines and deaths: the queue of who is due when, and the thread that acts on it.

mod scheduling;

pub use scheduling::Scheduling;
