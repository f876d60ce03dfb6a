//! Signal dispositions.

/// The kernel's `struct sigaction`, all zero: `SIG_DFL`, no flags, no restorer, an empty mask. 32 bytes are at least what
/// it has on every 64-bit machine.
const DEFAULT: [u64; 4] = [0; 4];

/// The size of the kernel's signal set in bytes, which `rt_sigaction` wants to be told.
const SET_SIZE: usize = 8;

/// The number of the last signal on Linux; see signal(7).
const LAST: i32 = 64;

/// The exit status of a process 1 whose tool has aborted: 128 and the signal's number, as shells tell it.
pub const ABORTED: i32 = 128 + libc::SIGABRT;

/// Lets an abort of this process be told as one.
///
/// A process 1 gets no signal whose disposition is the default (pid_namespaces(7)), its own SIGABRT neither; abort(3) then ends
/// it by an illegal instruction, which would be told as SIGSEGV. A program that is executed from here has the default again.
pub(crate) fn tell_abort() {
    extern "C" fn on_abort(_: libc::c_int) {
        super::exit::now(ABORTED)
    }
    let action = nix::sys::signal::SigAction::new(
        nix::sys::signal::SigHandler::Handler(on_abort),
        nix::sys::signal::SaFlags::empty(),
        nix::sys::signal::SigSet::empty(),
    );
    // SAFETY: `on_abort` calls _exit alone, which is async-signal-safe (signal-safety(7)), and touches no data.
    let _cannot_fail = unsafe { nix::sys::signal::sigaction(nix::sys::signal::Signal::SIGABRT, &action) };
}

/// Gives every signal its default disposition and empties the mask, so that nothing ignored, handled or blocked
/// is inherited by what is started later (case O11: an ignored SIGPIPE never ends `producer | head`).
///
/// By the system call and not by glibc's `signal`, which refuses the two signals that it keeps for itself (32 and 33):
/// a parent may have ignored these too.
pub(crate) fn reset() {
    for signal in 1..=LAST {
        // SAFETY: `DEFAULT` is at least as large as the structure that is read, is valid as one, and installs no code;
        // no old action is asked for. The kernel refuses SIGKILL and SIGSTOP with EINVAL, which changes nothing.
        let _refused = unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT.as_ptr(), std::ptr::null_mut::<u64>(), SET_SIZE)
        };
    }
    // Unblocking all signals cannot fail: the set is whole and `SIG_SETMASK` is known.
    let _cannot_fail = nix::sys::signal::SigSet::empty().thread_set_mask();
}
