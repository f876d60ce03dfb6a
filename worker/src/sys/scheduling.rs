//! The scheduling class of a thread.

use std::io;

/// Makes the calling thread `SCHED_FIFO` with the lowest priority of that class: it runs before every ordinary
/// thread, and what it starts is ordinary again (`SCHED_RESET_ON_FORK`); see sched(7).
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE` and with `RLIMIT_RTPRIO` 0.
pub fn become_fifo() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: pid 0 is the calling thread, and `parameters` is a whole `sched_param` that lives through the call.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
