//! The zygote: one thread for ever, forks workers, reaps them, tells the supervisor.

mod children;
mod control;
mod fork;
mod guardian;

pub(crate) use fork::{READY, failed, report};
pub use guardian::SWEEP_SIGNAL;

use crate::sys::{exit, signals};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// A worker's life once it is set up: gets the call socket, gives back the exit status.
pub(crate) type Serve<'a> = &'a dyn Fn(UnixStream) -> i32;

/// The exit status of a zygote that could not go on; what was wrong is on its standard error.
const BROKEN: i32 = 70;

/// Runs the zygote on the control connection that is this process's standard input, and ends the process.
pub(crate) fn run(serve: Serve<'_>) -> ! {
    let served = begin().map_err(control::ZygoteError::from).and_then(|socket| control::serve(socket, serve));
    let status = match served {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("toolexec-zygote: {}", chain(&error));
            BROKEN
        }
    };
    exit::now(status)
}

/// Makes this process what every worker may inherit, and takes the control connection out of the way of theirs.
///
/// In order: default signal dispositions and an empty mask; SIGCHLD and SIGTERM blocked, for the signalfd; a
/// session of its own, so that no terminal is the controlling one and no ctrl-c reaches a worker; a polite signal
/// when the supervisor's starting thread ends (the end of the control connection says the same); orphans below
/// come here; no core dumps, whose writing would delay a death; no new privileges, since a set-user-ID program
/// could not be killed where there is no PID namespace.
fn begin() -> io::Result<rustix::fd::OwnedFd> {
    signals::reset();
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGCHLD);
    blocked.add(Signal::SIGTERM);
    blocked.thread_block()?;
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // EPERM: this process leads a session already, which is as good.
    let _leads_already = rustix::process::setsid();
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    nix::sys::prctl::set_child_subreaper(true)?;
    nix::sys::prctl::set_no_new_privs()?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // Only a name for `ps`.
    let _name_only = nix::sys::prctl::set_name(c"toolexec-zygote");
    std::env::set_current_dir("/")?;
    Ok(socket)
}

/// An error and its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
