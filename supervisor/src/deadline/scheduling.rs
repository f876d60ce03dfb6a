//! The watchdog thread's place in the kernel's scheduler.

/// The scheduling class of the watchdog thread; see sched(7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduling {
    /// `SCHED_FIFO`: it runs before every ordinary thread.
    Fifo,
    /// An ordinary thread with this nice value, -20 to 19; below 0 it is preferred.
    Nice(i32),
}
