//! Reaping, with what the reaped process used.

use std::io;
use toolexec_protocol::message::{Exit, Usage};

/// A process that was reaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reaped {
    /// Its process id, which may be given away again from now on.
    pub pid: i32,
    /// How it ended.
    pub exit: Exit,
    /// What it used, together with those of its descendants that it had waited for.
    pub usage: Usage,
}

/// What a look for ended children found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A child had ended.
    Reaped(Reaped),
    /// There are children, and all of them live.
    AllAlive,
    /// There is no child at all.
    NoChildren,
}

/// Reaps one ended child; with `block`, waits until there is one.
///
/// # Errors
/// None but what a broken kernel would say; an interruption is retried.
pub fn wait_any(block: bool) -> io::Result<Wait> {
    let options = if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status = 0;
        // SAFETY: all-zero bytes are a valid `rusage`, a struct of integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live values of the types that wait4 fills in; -1 and the options are
        // numbers.
        let pid = unsafe { libc::wait4(-1, &raw mut status, options, &raw mut usage) };
        match pid {
            0 => return Ok(Wait::AllAlive),
            -1 => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Wait::NoChildren),
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
            pid => return Ok(Wait::Reaped(Reaped { pid, exit: exit(status), usage: convert(&usage) })),
        }
    }
}

fn exit(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) { Exit::Signal(libc::WTERMSIG(status)) } else { Exit::Code(libc::WEXITSTATUS(status)) }
}

/// `ru_maxrss` is in kibibytes on Linux; see getrusage(2).
fn convert(usage: &libc::rusage) -> Usage {
    let microseconds = |time: libc::timeval| (time.tv_sec as u64) * 1_000_000 + time.tv_usec as u64;
    Usage {
        cpu_us: microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
        max_rss_bytes: (usage.ru_maxrss as u64) * 1024,
    }
}
