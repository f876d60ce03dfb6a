//! The watchdog thread's place in the kernel's scheduler.

use rustix::process::{getpriority_process, setpriority_process};
use std::num::NonZeroU64;

/// The scheduling class of the watchdog thread; see sched(7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduling {
    /// `SCHED_FIFO`: it runs before every ordinary thread.
    Fifo,
    /// An ordinary thread with this nice value, -20 to 19; below 0 it is preferred.
    Nice(i32),
}

/// The nice value that an ordinary watchdog asks for, where `RLIMIT_NICE` or `CAP_SYS_NICE` allows it.
const WANTED_NICE: i32 = -20;

/// Raises the calling thread as far as this machine allows, and makes its timers exact.
pub(super) fn raise_this_thread() -> Scheduling {
    // A timer slack of 1 ns instead of 50 µs (PR_SET_TIMERSLACK, prctl(2)). Where it is refused, kills are up to
    // 50 µs later.
    let _less_exact = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if toolexec_worker::sys::scheduling::become_fifo().is_ok() {
        return Scheduling::Fifo;
    }
    // On Linux this is about the calling thread, not about the process; see setpriority(2), "C library/kernel
    // differences".
    let _not_allowed = setpriority_process(None, WANTED_NICE);
    Scheduling::Nice(getpriority_process(None).unwrap_or(0))
}
