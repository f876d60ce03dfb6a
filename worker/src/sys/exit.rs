//! Ending a forked process without running what its parent registered.

/// Ends this process at once: no destructor, no `atexit` handler, no flushing; see _exit(2).
///
/// A forked worker holds a copy of everything that its zygote had registered, so `std::process::exit` would run
/// things twice.
pub fn now(code: i32) -> ! {
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(code) }
}
