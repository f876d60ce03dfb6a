//! Starting a program in a child: a `vfork` and an `execve`, and in between only what a tool's clean start needs.
//!
//! Not `posix_spawn`, nor the standard library's `Command`, which uses it: glibc's leaves its two internal signals (32
//! and 33) ignored in the program, and the standard library hands on the signal mask. A full fork would be right and
//! slower. So this does what `posix_spawn` does, with the program's dispositions and mask as they should be.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

/// How large the child's stack is: it calls three functions that are thin around system calls.
const STACK_SIZE: usize = 64 * 1024;

/// What the child reads from the parent's memory, and the one thing that it writes there.
struct Child {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    stdin: RawFd,
    errno: c_int,
}

/// Starts `program` with these arguments (the first is its own name) and this environment, with `stdin` as its standard
/// input and an empty signal mask, and gives back its process id.
///
/// Signal dispositions are the caller's: all default in a worker (see [`super::signals::reset`]), and with that no
/// handler can run in the child while it shares this memory. Every descriptor from 3 on has to be close-on-exec.
///
/// # Errors
/// What clone, dup2 or execve says; see execve(2) for `ENOENT`, `EACCES`, `E2BIG`, `ENOEXEC` and the rest.
pub(crate) fn spawn(
    program: &CStr,
    arguments: &[CString],
    environment: &[CString],
    stdin: BorrowedFd<'_>,
) -> io::Result<i32> {
    let arguments = null_terminated(arguments);
    let environment = null_terminated(environment);
    let mut child = Child {
        program: program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        stdin: stdin.as_raw_fd(),
        errno: 0,
    };
    let mut stack = vec![0u128; STACK_SIZE / size_of::<u128>()];
    // One past its end, as clone wants it where stacks grow down; aligned to 16 bytes, as a u128 is.
    let top: *mut c_void = stack.as_mut_ptr_range().end.cast();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `top` is the aligned upper end of a stack that nobody else uses and that outlives the child's use of it:
    // CLONE_VFORK holds this thread until the child has called execve or ended. `run_child` gets a `Child` whose
    // pointers are to live, NUL-terminated strings and null-terminated arrays.
    let pid = unsafe { libc::clone(run_child, top, flags, (&raw mut child).cast()) };
    if pid == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `child` is a live local; the read is volatile because the child wrote it behind the compiler's back.
    let errno = unsafe { ptr::read_volatile(&raw const child.errno) };
    if errno != 0 {
        // It never was a program, so nobody is told of its end: it is reaped here.
        let _reaped = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None);
        return Err(io::Error::from_raw_os_error(errno));
    }
    Ok(pid)
}

/// The child's whole life before the program: no allocation, no lock, no destructor.
extern "C" fn run_child(child: *mut c_void) -> c_int {
    let child: *mut Child = child.cast();
    // SAFETY: `spawn` passes a pointer to its live `Child`, and is held while this runs.
    let child = unsafe { &mut *child };
    // SAFETY: two numbers. A duplicate is not close-on-exec.
    if child.stdin != 0 && unsafe { libc::dup2(child.stdin, 0) } == -1 {
        return fail(child);
    }
    // SAFETY: all-zero bytes are an empty `sigset_t`, a plain array of integers.
    let empty: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `empty` is a whole, live set, and no old one is asked for.
    if unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const empty, ptr::null_mut()) } == -1 {
        return fail(child);
    }
    // SAFETY: a NUL-terminated path and two null-terminated arrays of such strings, alive in `spawn`.
    unsafe { libc::execve(child.program, child.arguments, child.environment) };
    fail(child)
}

fn fail(child: &mut Child) -> c_int {
    child.errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    // The status is never seen: `spawn` reads the errno.
    127
}

fn null_terminated(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}
