//! The fixed order of a worker's set-up. Every step is required: the first that fails is the worker's end.

use super::{Identity, descriptors};
use crate::sys::exit;
use crate::tool::command::worker_signals;
use crate::zygote::{READY, failed, report};
use nix::sys::signal::Signal;
use rustix::fs::{Mode, mkdirat};
use rustix::thread::CapabilitiesSecureBits;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use toolexec_protocol::message::SetupFailure;
use toolexec_protocol::strength::KillStrength;

/// The step at which a host forbids to use a namespace that it allowed to be made.
pub(crate) const KEEP_USER: &str = "keep its user in its user namespace";

/// A program gains no capability by being run by root; see capabilities(7), "The securebits flags". The worker itself keeps
/// those that it has in its own user namespace: by them it is out of reach for what it runs, which could otherwise trace
/// it, take its call socket and answer in its place.
const NO_ROOT: CapabilitiesSecureBits = CapabilitiesSecureBits::NO_ROOT.union(CapabilitiesSecureBits::NO_ROOT_LOCKED);

/// What a new worker starts from; all descriptors are the zygote's, inherited.
pub(crate) struct Start<'a> {
    /// The supervisor's scratch root.
    pub(crate) root: BorrowedFd<'a>,
    /// The name of this worker's directory in it.
    pub(crate) name: &'a CStr,
    /// Who it is.
    pub(crate) identity: Identity,
    /// How it is going to be killed.
    pub(crate) strength: KillStrength,
    /// The write end of its standard output.
    pub(crate) stdout: BorrowedFd<'a>,
    /// The write end of its standard error.
    pub(crate) stderr: BorrowedFd<'a>,
    /// Where the zygote waits for word that the set-up is done, if it does.
    pub(crate) ready: Option<BorrowedFd<'a>>,
}

/// Sets this process up as a worker.
///
/// Inherited from the zygote and kept: default dispositions, no core dumps, no new privileges, an empty environment, a
/// standard input that is empty, and SIGCHLD and SIGTERM blocked, which are read from a signalfd. Then, in order: its
/// identity inside its user namespace, where being root is no privilege; a session of its own; death together with its
/// parent (the end of the call socket says the same); where there is no PID namespace, orphans below come to it; a scratch
/// directory, and being in it; only the descriptors 0 to 2 and the call socket.
pub(crate) fn apply(start: &Start<'_>, socket: BorrowedFd<'_>) -> Result<(), SetupFailure> {
    if start.strength == KillStrength::PidNamespace {
        start.identity.keep().map_err(failed(KEEP_USER))?;
        rustix::thread::set_capabilities_secure_bits(NO_ROOT)
            .map_err(io::Error::from)
            .map_err(failed("give up root's capabilities"))?;
    }
    nix::unistd::setsid().map_err(io::Error::from).map_err(failed("start a session"))?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(io::Error::from)
        .map_err(failed("bind itself to its parent"))?;
    if start.strength != KillStrength::PidNamespace {
        nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from).map_err(failed("become a subreaper"))?;
    }
    let _name_only = nix::sys::prctl::set_name(c"toolexec-worker");
    mkdirat(start.root, start.name, Mode::RWXU)
        .map_err(io::Error::from)
        .map_err(failed("make its scratch directory"))?;
    enter(start).map_err(failed("enter its scratch directory"))?;
    descriptors::place(start.stdout, start.stderr).map_err(failed("place its descriptors"))?;
    // While the zygote's pipe is still open; a failure of the last step is told behind it.
    if let Some(ready) = start.ready {
        ready
            .try_clone_to_owned()
            .and_then(|ready| File::from(ready).write_all(READY))
            .map_err(failed("say that it is set up"))?;
    }
    descriptors::close_others(socket.as_raw_fd()).map_err(failed("close its other descriptors"))?;
    // A guardian has blocked one more.
    worker_signals().thread_set_mask().map_err(io::Error::from).map_err(failed("set its signal mask"))
}

fn enter(start: &Start<'_>) -> io::Result<()> {
    rustix::process::fchdir(start.root)?;
    rustix::process::chdir(start.name)?;
    Ok(())
}

/// Tells that a worker could not be made, and ends this process.
pub(crate) fn refuse(start: &Start<'_>, socket: &UnixStream, failure: SetupFailure) -> ! {
    report(start, socket, failure);
    exit::now(1)
}
