//! The guardian: where there are no namespaces, the parent of one worker.
//!
//! It is a child subreaper, so whatever the worker leaves behind comes to it, and it ends only when the kernel says
//! that nothing is below it any more. It reads nothing that a tool could write, and says one thing, at its end.

use super::Serve;
use super::fork::{become_worker, failed};
use crate::sandbox::Start;
use crate::sweep::sweep;
use crate::sys::clone::{Namespaces, Side, clone3};
use crate::sys::wait::{Wait, wait_any};
use crate::sys::{close_range, exit};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::unistd::Pid;
use rustix::net::{SendFlags, send};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use toolexec_protocol::frame;
use toolexec_protocol::message::{Exit, FromWorker, SetupFailure};

/// What a supervisor sends to a guardian instead of SIGKILL: kill everything below, then end.
pub const SWEEP_SIGNAL: Signal = Signal::SIGUSR1;

/// Forks the worker and guards it; runs in a process that was forked for this, and ends it.
pub(super) fn run(start: &Start<'_>, socket: UnixStream, serve: Serve<'_>) -> ! {
    let signals = match begin() {
        Ok(signals) => signals,
        Err(failure) => crate::sandbox::refuse(start, &socket, failure),
    };
    match clone3(Namespaces::Shared) {
        Ok(Side::Child) => become_worker(start, socket, serve),
        Ok(Side::Parent { pid, pidfd }) => {
            drop(pidfd);
            guard(pid, &signals, &socket)
        }
        Err(error) => crate::sandbox::refuse(start, &socket, failed("fork below its guardian")(error)),
    }
}

/// Becomes a subreaper, in a session of its own, that sweeps when the zygote dies.
fn begin() -> Result<SigSet, SetupFailure> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, SWEEP_SIGNAL] {
        signals.add(signal);
    }
    signals.thread_block().map_err(io::Error::from).map_err(failed("block its guardian's signals"))?;
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(io::Error::from)
        .map_err(failed("make its guardian a subreaper"))?;
    nix::sys::prctl::set_pdeathsig(SWEEP_SIGNAL)
        .map_err(io::Error::from)
        .map_err(failed("bind its guardian to the zygote"))?;
    let _name_only = nix::sys::prctl::set_name(c"toolexec-guard");
    Ok(signals)
}

fn guard(worker: i32, signals: &SigSet, socket: &UnixStream) -> ! {
    // Of the zygote's and the worker's descriptors it keeps the call socket alone, for one last word.
    let _best_effort = rustix::stdio::dup2_stdout(io::stdin()).and_then(|()| rustix::stdio::dup2_stderr(io::stdin()));
    let _best_effort = close_range::close_all_but(Some(socket.as_raw_fd()));
    let ended = loop {
        match signals.wait() {
            Ok(SWEEP_SIGNAL) => break None,
            Ok(Signal::SIGTERM) => {
                // The worker passes it on to the tool's tree. Its number is its own until it is reaped here.
                let _ended = kill(Pid::from_raw(worker), Signal::SIGTERM);
            }
            Ok(_) | Err(_) => {}
        }
        if let Some(exit) = reap(worker) {
            break Some(exit);
        }
    };
    let swept = sweep();
    if swept.is_ok() {
        say_swept(socket);
    }
    match (ended, swept) {
        (_, Err(_)) => exit::now(1),
        (Some(Exit::Code(code)), Ok(_)) => exit::now(code),
        (Some(Exit::Signal(number)), Ok(_)) => end_by(number),
        // Swept on request: the worker, too, was ended by that.
        (None, Ok(_)) => end_by(Signal::SIGKILL as i32),
    }
}

/// Tells the supervisor that nothing is left, in case the zygote cannot any more.
fn say_swept(socket: &UnixStream) {
    let mut bytes = Vec::new();
    if frame::write(&FromWorker::Swept, &mut bytes).is_ok() {
        // Never waits: where the socket is full or closed, nobody reads it.
        let _nobody_reads = send(socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

/// Reaps what has ended; how the worker did, if it is among them.
fn reap(worker: i32) -> Option<Exit> {
    while let Ok(Wait::Reaped(reaped)) = wait_any(false) {
        if reaped.pid == worker {
            return Some(reaped.exit);
        }
    }
    None
}

/// Ends as the worker did, so that the zygote sees the worker's own cause.
fn end_by(number: i32) -> ! {
    if let Ok(signal) = Signal::try_from(number) {
        // It may be blocked here, and it alone is let through: another that waits must not come first. That cannot fail.
        let _cannot_fail = SigSet::from(signal).thread_unblock();
        let _ends_here = raise(signal);
    }
    exit::now(128 + number)
}
