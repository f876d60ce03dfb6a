//! `clone3`, used as `fork` with namespaces and a pidfd.
//!
//! Neither nix nor rustix wraps it; see clone(2). A raw clone skips glibc's fork handlers, which is sound only
//! in a process with one thread (no lock can be held by a thread that the child lacks), so the thread count is
//! checked here, before every call.

use rustix::fs::{AtFlags, CWD, statat};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Which side of the fork this is.
#[derive(Debug)]
pub enum Side {
    /// The caller.
    Parent {
        /// The child's process id in the caller's PID namespace.
        pid: i32,
        /// A descriptor of the child, close-on-exec.
        pidfd: OwnedFd,
    },
    /// The new process.
    Child,
}

/// What the child gets of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Namespaces {
    /// Nothing: it shares the caller's.
    Shared,
    /// A PID and a user namespace; it is process 1 there.
    PidAndUser,
}

/// Forks this process. The child is another process with a copy of everything, and ends on its own.
///
/// # Errors
/// Of kind `Other` when this process has more than one thread; else what clone3 says, such as `EPERM` or
/// `ENOSPC` where namespaces are not allowed.
pub fn clone3(namespaces: Namespaces) -> io::Result<Side> {
    let threads = thread_count()?;
    if threads != 1 {
        return Err(io::Error::other(format!(
            "this process has {threads} threads; only one with a single thread may fork"
        )));
    }
    let mut pidfd: RawFd = -1;
    let wanted = match namespaces {
        Namespaces::Shared => 0,
        Namespaces::PidAndUser => libc::CLONE_NEWPID | libc::CLONE_NEWUSER,
    };
    let (tid_flags, tid_address) =
        thread_id_address().map_or((0, 0), |address| (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID, address));
    let arguments = libc::clone_args {
        flags: (wanted | tid_flags | libc::CLONE_PIDFD) as u64,
        pidfd: (&raw mut pidfd) as u64,
        child_tid: tid_address,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    // SAFETY: `arguments` is a whole `clone_args` of the size given, alive during the call. `pidfd` points to a
    // live `RawFd`. `child_tid` is 0 or glibc's own slot for the thread's id, which the child has at the same
    // address. Without CLONE_VM and with `stack` 0 the child goes on with a copy of this stack, and with one
    // thread (checked above) no lock or allocator state can be left half-changed in it.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => {
            // SAFETY: clone3 succeeded with CLONE_PIDFD, so the kernel has stored a new open descriptor in
            // `pidfd` that nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Side::Parent { pid: pid as i32, pidfd })
        }
    }
}

/// How many threads this process has: `/proc/self/task` has two links and one more for each (one stat instead
/// of reading a directory; see `proc_task_getattr` in the kernel's fs/proc/base.c).
///
/// # Errors
/// What stat says, such as `ENOENT` where `/proc` is not mounted.
pub fn thread_count() -> io::Result<u64> {
    let stat = statat(CWD, "/proc/self/task", AtFlags::empty())?;
    Ok(u64::from(stat.st_nlink as u32).saturating_sub(2))
}

/// Where glibc keeps this thread's id. A child made by a raw clone3 has to have its own id stored there, or
/// `raise` and `abort` in it would signal the wrong thread. `None` on a kernel without checkpoint support.
fn thread_id_address() -> Option<u64> {
    let mut address: u64 = 0;
    // SAFETY: PR_GET_TID_ADDRESS stores one pointer-sized value through its second argument, which points to a
    // live u64; see PR_GET_TID_ADDRESS(2const).
    let result = unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut address) };
    (result == 0 && address != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::exit;
    use std::thread;

    #[test]
    fn a_process_with_two_threads_may_not_fork() {
        // The test's own thread and the harness's are two already; this one makes sure of it.
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let second = thread::spawn(move || wait.recv());
        assert!(thread_count().unwrap() >= 2);
        match clone3(Namespaces::Shared) {
            Err(error) => assert!(error.to_string().contains("threads; only one"), "{error}"),
            Ok(Side::Child) => exit::now(1),
            Ok(Side::Parent { .. }) => panic!("it forked"),
        }
        drop(done);
        let _hung_up = second.join();
    }
}
