//! Killing and reaping whatever else is left below this process.
//!
//! Three processes need it: process 1 of a PID namespace between a call's end and its reply, a worker or a
//! guardian that is a child subreaper, and a zygote that inherits what a dead guardian left.

use crate::sys::wait::{Reaped, Wait, wait_any};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use std::io;
use toolexec_protocol::message::{Exit, Usage};

/// What was swept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Swept {
    /// How many processes were alive and are not any more.
    pub(crate) killed: u32,
    /// What all that was reaped had used.
    pub(crate) usage: Usage,
}

/// Kills and reaps every descendant of this process, until the kernel says that there is none (`ECHILD`).
///
/// Waits for a process in an uninterruptible sleep as long as that takes; the supervisor's own bound ends that.
pub(crate) fn sweep() -> io::Result<Swept> {
    let mut swept = Swept::default();
    // What had ended by itself before is reaped but not counted as killed.
    loop {
        match wait_any(false)? {
            Wait::Reaped(reaped) => add_usage(&mut swept.usage, reaped.usage),
            Wait::NoChildren => return Ok(swept),
            Wait::AllAlive => break,
        }
    }
    loop {
        signal_all(Signal::SIGKILL)?;
        match wait_any(true)? {
            Wait::NoChildren => return Ok(swept),
            Wait::AllAlive => {}
            Wait::Reaped(reaped) => {
                record(&mut swept, reaped);
                while let Wait::Reaped(reaped) = wait_any(false)? {
                    record(&mut swept, reaped);
                }
            }
        }
    }
}

fn record(swept: &mut Swept, reaped: Reaped) {
    add_usage(&mut swept.usage, reaped.usage);
    if reaped.exit == Exit::Signal(Signal::SIGKILL as i32) {
        swept.killed += 1;
    }
}

/// Adds what a reaped process used: times add up, the largest resident set stays.
pub(crate) fn add_usage(sum: &mut Usage, part: Usage) {
    sum.cpu_us += part.cpu_us;
    sum.max_rss_bytes = sum.max_rss_bytes.max(part.max_rss_bytes);
}

/// Sends `signal` to every descendant.
///
/// Process 1 of a PID namespace reaches all of them in one stroke: `kill(-1)` signals every process but the
/// caller, under the lock that a fork needs too. Anyone else may never do that, since there -1 means all processes
/// of the user; it walks its children's children instead, and so may miss one that is being forked.
///
/// # Errors
/// What kept the list of children from being read.
pub(crate) fn signal_all(signal: Signal) -> io::Result<()> {
    if getpid() == Pid::from_raw(1) {
        // ESRCH: nobody is left, which is as good.
        let _nobody_left = kill(Pid::from_raw(-1), signal);
        return Ok(());
    }
    let mut pending = children_of(getpid().as_raw())?;
    while let Some(pid) = pending.pop() {
        // A deeper list cannot be read where its process has ended meanwhile; its children are this one's then.
        pending.extend(children_of(pid).unwrap_or_default());
        // ESRCH: it ended in between. The number of a direct child is its own until it is reaped here. A deeper one
        // could in theory have ended and its number be given away in between, which numbers are not so soon.
        let _ended = kill(Pid::from_raw(pid), signal);
    }
    Ok(())
}

/// The children of a process, as `/proc/PID/task/TID/children` tells.
///
/// # Errors
/// Whatever keeps that from being read: then nothing is known, which is not the same as that there are none.
pub(crate) fn children_of(pid: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("children"))?;
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(children)
}
