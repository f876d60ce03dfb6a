//! The zygote's loop: requests in, workers and their ends out.

use super::Serve;
use super::children::{Children, Was};
use super::fork::{FORK, Fork, fork_worker};
use super::guardian::SWEEP_SIGNAL;
use crate::channel::{Channel, ChannelError};
use crate::sandbox::KEEP_USER;
use crate::scratch;
use crate::sweep::children_of;
use crate::sys::wait::{Reaped, Wait, wait_any};
use interprocess::os::unix::uds_local_socket::Stream;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use toolexec_protocol::handshake::{Answer, Hello, answer};
use toolexec_protocol::id::WorkerId;
use toolexec_protocol::message::{Configuration, FromZygote, SetupFailure, ToZygote};
use toolexec_protocol::strength::KillStrength;

/// How long an ending zygote waits for its workers' deaths: 10 s. What is in an uninterruptible sleep longer than
/// that cannot be helped, and ends when the kernel lets it.
const END_BOUND: Duration = Duration::from_secs(10);

/// How long the zygote waits for an orphan of a dead guardian to die before it is told as a survivor: 1 s.
const ORPHAN_BOUND: Duration = Duration::from_secs(1);

/// Why a zygote cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum ZygoteError {
    #[error("the system refused")]
    Io(#[from] io::Error),
    #[error("the supervisor cannot be talked to")]
    Channel(#[from] ChannelError),
    #[error("the supervisor broke the protocol: {0}")]
    Supervisor(&'static str),
}

/// Serves the supervisor until it closes the connection, or until SIGTERM; then kills every worker, reaps them all
/// and removes what they left on disk.
pub(super) fn serve(socket: OwnedFd, serve: Serve<'_>) -> Result<(), ZygoteError> {
    match try_serve(socket, serve) {
        Err(ZygoteError::Channel(error)) if error.is_peer_gone() => Ok(()),
        served => served,
    }
}

fn try_serve(socket: OwnedFd, serve: Serve<'_>) -> Result<(), ZygoteError> {
    let mut channel = Channel::new(Stream::from(socket));
    let Some(configuration) = shake_hands(&mut channel)? else {
        return Ok(());
    };
    let root_path =
        CString::new(configuration.scratch_root).map_err(|_| ZygoteError::Supervisor("its scratch root has a NUL"))?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = openat(CWD, &root_path, flags, Mode::empty()).map_err(io::Error::from)?;
    // As long as this lock is held, nobody takes the directory for one that a dead supervisor left.
    flock(&root, FlockOperation::LockShared).map_err(io::Error::from)?;
    let mut events = SigSet::empty();
    events.add(Signal::SIGCHLD);
    events.add(Signal::SIGTERM);
    let events =
        SignalFd::with_flags(&events, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(io::Error::from)?;
    let strength = match configuration.strength {
        Some(strength) => Strength::Demanded(strength),
        None => Strength::Untried,
    };
    let mut zygote = Zygote { channel, events, root, strength, children: Children::default(), serve };
    // Whatever ends the loop, the workers go first.
    let served = zygote.serve();
    zygote.end(&root_path);
    served
}

/// Agrees on a version and takes the configuration; `None` when the supervisor goes away before, or was refused.
fn shake_hands(channel: &mut Channel<Stream>) -> Result<Option<Configuration>, ZygoteError> {
    let Some(hello) = channel.receive::<Hello>()? else {
        return Ok(None);
    };
    let answer = answer(&hello);
    channel.send(&answer)?;
    if let Answer::Refusal(_) = answer {
        return Ok(None);
    }
    match channel.receive::<ToZygote>()? {
        Some(ToZygote::Configure(configuration)) => Ok(Some(configuration)),
        Some(ToZygote::Fork { .. }) => Err(ZygoteError::Supervisor("it asked for a worker before it said how")),
        None => Ok(None),
    }
}

/// Which mechanism the workers get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Strength {
    /// The strongest that works; the first fork tries.
    Untried,
    /// This one and no other; it was not tried yet.
    Demanded(KillStrength),
    /// This one: a worker with it was set up.
    Settled(KillStrength),
}

struct Zygote<'a> {
    channel: Channel<Stream>,
    events: SignalFd,
    root: OwnedFd,
    strength: Strength,
    children: Children,
    serve: Serve<'a>,
}

impl Zygote<'_> {
    fn serve(&mut self) -> Result<(), ZygoteError> {
        loop {
            while let Some(message) = self.channel.next_received()? {
                match message {
                    ToZygote::Fork { worker } => self.fork(worker)?,
                    ToZygote::Configure(_) => {
                        return Err(ZygoteError::Supervisor("it said twice how workers are made"));
                    }
                }
            }
            let mut ready = [
                PollFd::from_borrowed_fd(self.channel.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.events.as_fd(), PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let [requests, signals] = ready.map(|descriptor| !descriptor.revents().is_empty());
            if signals {
                while let Some(event) = self.events.read_signal().map_err(io::Error::from)? {
                    if event.ssi_signo == Signal::SIGTERM as u32 {
                        return Ok(());
                    }
                }
                self.reap()?;
            }
            if requests && !self.channel.fill()? {
                return Ok(());
            }
        }
    }

    fn fork(&mut self, worker: WorkerId) -> Result<(), ZygoteError> {
        match self.fork_settled(worker) {
            Ok((fork, strength)) => {
                self.children.on_forked(fork.pid, worker);
                let descriptors = [fork.pidfd.as_fd(), fork.socket.as_fd(), fork.stdout.as_fd(), fork.stderr.as_fd()];
                self.channel.send_with(&FromZygote::Forked { worker, strength }, &descriptors)?;
            }
            Err(failure) => self.channel.send(&FromZygote::ForkFailed { worker, failure })?,
        }
        Ok(())
    }

    /// Forks with the mechanism that is settled. The first worker settles it: its set-up is watched to the end, so
    /// that a host which allows a namespace and then forbids to use it is found out here.
    fn fork_settled(&mut self, worker: WorkerId) -> Result<(Fork, KillStrength), SetupFailure> {
        let name = directory_name(worker);
        let (strength, settled) = match self.strength {
            Strength::Settled(strength) => (strength, true),
            Strength::Demanded(strength) => (strength, false),
            Strength::Untried => (KillStrength::PidNamespace, false),
        };
        let forked = fork_worker(self.root.as_fd(), &name, strength, !settled, self.serve);
        match forked {
            Ok(fork) => {
                self.strength = Strength::Settled(strength);
                Ok((fork, strength))
            }
            Err(failure) => {
                // What a failed set-up has made, if it came so far.
                self.remove_empty_scratch(worker);
                if self.strength == Strength::Untried && says_no_namespaces(&failure) {
                    self.strength = Strength::Demanded(KillStrength::Subreaper);
                    return self.fork_settled(worker);
                }
                Err(failure)
            }
        }
    }

    /// Reaps every ended child and tells of the workers among them.
    fn reap(&mut self) -> Result<(), ZygoteError> {
        while let Wait::Reaped(reaped) = wait_any(false)? {
            if let Was::Worker(worker) = self.children.on_reaped(reaped.pid) {
                self.on_worker_ended(worker, reaped)?;
            }
        }
        Ok(())
    }

    fn on_worker_ended(&mut self, worker: WorkerId, reaped: Reaped) -> Result<(), ZygoteError> {
        let (swept, survivors) = match self.strength {
            Strength::Settled(KillStrength::PidNamespace) => (0, 0),
            Strength::Settled(_) | Strength::Demanded(_) | Strength::Untried => self.sweep_orphans()?,
        };
        let scratch_left = !self.remove_empty_scratch(worker);
        let exited =
            FromZygote::Exited { worker, exit: reaped.exit, usage: reaped.usage, swept, survivors, scratch_left };
        self.channel.send(&exited)?;
        Ok(())
    }

    /// Removes a worker's scratch directory if it is empty, as most are: one system call. True when it is gone. What is
    /// not empty is the supervisor's to remove, since that may take long and the zygote has others to serve.
    fn remove_empty_scratch(&self, worker: WorkerId) -> bool {
        let removed = unlinkat(&self.root, directory_name(worker), AtFlags::REMOVEDIR);
        matches!(removed, Ok(()) | Err(rustix::io::Errno::NOENT))
    }

    /// Kills and reaps whatever a guardian that was itself killed has left: it came to this process, which is the
    /// next subreaper above. Gives back how many were killed and how many did not die in time.
    fn sweep_orphans(&mut self) -> io::Result<(u32, u32)> {
        let mut swept = 0;
        let give_up = Instant::now() + ORPHAN_BOUND;
        loop {
            let own = std::process::id() as i32;
            // A list that cannot be read says nothing, so somebody may be left.
            let Ok(children) = children_of(own) else {
                return Ok((swept, 1));
            };
            let orphans: Vec<i32> = children.into_iter().filter(|pid| !self.children.is_worker(*pid)).collect();
            if orphans.is_empty() {
                return Ok((swept, 0));
            }
            if Instant::now() >= give_up {
                return Ok((swept, orphans.len() as u32));
            }
            for pid in &orphans {
                // The number is the orphan's until this process reaps it.
                let _ended = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
            for pid in orphans {
                if self.wait_for(pid, give_up)? {
                    swept += 1;
                }
            }
        }
    }

    /// Waits until one certain child has ended, and reaps it. False when it has not by `give_up`.
    fn wait_for(&mut self, pid: i32, give_up: Instant) -> io::Result<bool> {
        use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
        loop {
            match waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if Instant::now() >= give_up => return Ok(false),
                Ok(WaitStatus::StillAlive) => {
                    let pause = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
                    // A pause of a millisecond; what the signalfd says stays there for the loop above.
                    let _paused = poll(&mut [], Some(&pause));
                }
                Ok(_) | Err(nix::errno::Errno::ECHILD) => return Ok(true),
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends every worker, reaps them, and removes the scratch root with all that is in it.
    fn end(&mut self, root: &CString) {
        let signal = match self.strength {
            Strength::Settled(KillStrength::PidNamespace) => Signal::SIGKILL,
            Strength::Settled(_) | Strength::Demanded(_) | Strength::Untried => SWEEP_SIGNAL,
        };
        for pid in self.children.pids() {
            let pid = Pid::from_raw(pid);
            // The numbers are the workers' until they are reaped below. SIGCONT for a guardian that a tool stopped.
            let _ended = kill(pid, signal);
            let _ended = kill(pid, Signal::SIGCONT);
        }
        let give_up = Instant::now() + END_BOUND;
        while self.children.len() > 0 {
            match wait_any(false) {
                Ok(Wait::Reaped(reaped)) => {
                    if let Was::Worker(worker) = self.children.on_reaped(reaped.pid) {
                        self.remove_empty_scratch(worker);
                    }
                }
                Ok(Wait::NoChildren) | Err(_) => break,
                Ok(Wait::AllAlive) => {
                    let left = give_up.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
                    let mut ready = [PollFd::from_borrowed_fd(self.events.as_fd(), PollFlags::IN)];
                    let _woken = poll(&mut ready, Some(&timeout));
                    while let Ok(Some(_)) = self.events.read_signal() {}
                }
            }
        }
        let _told_nobody = self.sweep_orphans();
        // Best effort: what stays is removed at the next start of a supervisor.
        let root = Path::new(OsStr::from_bytes(root.as_bytes()));
        if let (Some(parent), Some(name)) = (root.parent(), root.file_name())
            && let Ok(parent) = openat(CWD, parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        {
            let _left_for_the_next_start = scratch::remove_tree(parent.as_fd(), name);
            remove_run_directory(root, parent);
        }
    }
}

/// Whether a failed fork says that this host allows no PID and user namespaces, and not that it lacks something else just
/// now: only then is a weaker mechanism settled for good. See clone(2) and user_namespaces(7) for what is said.
fn says_no_namespaces(failure: &SetupFailure) -> bool {
    let is_about_them = failure.step == FORK || failure.step == KEEP_USER;
    is_about_them
        && matches!(
            failure.errno,
            libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS | libc::EINVAL | libc::ENOSYS
        )
}

/// Removes the directory above the root too, once its supervisor is dead: as long as that lives it holds a lock there.
fn remove_run_directory(root: &Path, directory: OwnedFd) {
    if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    if let Some(directory) = root.parent() {
        // Not empty where another zygote of the same supervisor is about to remove its own part: it does this then.
        let _left_to_another = std::fs::remove_dir(directory);
    }
}

fn directory_name(worker: WorkerId) -> CString {
    // A number and a letter have no NUL.
    CString::new(worker.to_string()).unwrap_or_default()
}
