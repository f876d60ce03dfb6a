//! Signal dispositions.

/// Gives every signal its default disposition and empties the mask, so that nothing ignored, handled or blocked
/// is inherited by what is started later (case O11: an ignored SIGPIPE never ends `producer | head`).
pub fn reset() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL installs no code. The kernel refuses SIGKILL and SIGSTOP, and glibc its two own
        // signals, with EINVAL, which leaves them as they are: at their default.
        let _refused = unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // Unblocking all signals cannot fail: the set is whole and `SIG_SETMASK` is known.
    let _cannot_fail = nix::sys::signal::SigSet::empty().thread_set_mask();
}
