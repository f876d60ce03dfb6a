//! Making one worker.

use super::Serve;
use super::guardian;
use crate::sandbox::{Identity, Start, apply};
use crate::sys::clone::{Namespaces, Side, clone3};
use crate::sys::exit;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use toolexec_protocol::frame;
use toolexec_protocol::message::{FromWorker, SetupFailure};
use toolexec_protocol::strength::KillStrength;

/// The step at which a host says that it allows no namespaces.
pub(super) const FORK: &str = "fork";

/// A worker as the zygote sees it, with the descriptors that the supervisor gets.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) socket: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Forks a worker with a scratch directory `name` below `root`.
///
/// With `watched`, waits until the worker has told that it is set up, and gives its failure back otherwise; without,
/// a failure is the worker's first and last message to the supervisor.
pub(super) fn fork_worker(
    root: BorrowedFd<'_>,
    name: &CStr,
    strength: KillStrength,
    watched: bool,
    serve: Serve<'_>,
) -> Result<Fork, SetupFailure> {
    let (ours, theirs) = UnixStream::pair().map_err(failed("make its call socket"))?;
    let (stdout, stdout_writer) =
        pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(failed("make its stdout"))?;
    let (stderr, stderr_writer) =
        pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(failed("make its stderr"))?;
    let watch = if watched {
        Some(pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(failed("watch its set-up"))?)
    } else {
        None
    };
    let start = Start {
        root,
        name,
        identity: Identity::current(),
        strength,
        stdout: stdout_writer.as_fd(),
        stderr: stderr_writer.as_fd(),
        ready: watch.as_ref().map(|(_, writer)| writer.as_fd()),
    };
    let namespaces = match strength {
        KillStrength::PidNamespace => Namespaces::PidAndUser,
        KillStrength::Subreaper => Namespaces::Shared,
        KillStrength::Cgroup | KillStrength::ProcessGroup => {
            return Err(SetupFailure {
                step: format!("kill with {strength}, which this version does not offer"),
                errno: 0,
            });
        }
    };
    match clone3(namespaces).map_err(failed(FORK))? {
        Side::Child => {
            // Only this copy of the call socket may live on here: the peer's end would keep it open for ever.
            drop(ours);
            if strength == KillStrength::Subreaper {
                guardian::run(&start, theirs, serve)
            }
            become_worker(&start, theirs, serve)
        }
        Side::Parent { pid, pidfd } => {
            drop((theirs, stdout_writer, stderr_writer));
            let fork = Fork { pid, pidfd, socket: ours.into(), stdout, stderr };
            match watch {
                None => Ok(fork),
                Some((reader, writer)) => {
                    drop(writer);
                    settle(fork, reader)
                }
            }
        }
    }
}

/// The exit status of a worker whose own loop panicked; Rust programs exit with it.
const PANICKED: i32 = 101;

/// The new process's side: set up, serve, end.
pub(super) fn become_worker(start: &Start<'_>, socket: UnixStream, serve: Serve<'_>) -> ! {
    match apply(start, socket.as_fd()) {
        Ok(()) => {
            // The set-up has closed every descriptor but 0 to 2 and the socket. A panic must not unwind into the frames of
            // the zygote, whose values own descriptors that are closed here.
            exit::now(catch_unwind(AssertUnwindSafe(|| serve(socket))).unwrap_or(PANICKED))
        }
        Err(failure) => {
            report(start, &socket, failure);
            exit::now(1)
        }
    }
}

/// Tells the zygote where it waits for that, and the supervisor otherwise.
pub(crate) fn report(start: &Start<'_>, socket: &UnixStream, failure: SetupFailure) {
    let mut bytes = Vec::new();
    if frame::write(&FromWorker::SetupFailed(failure), &mut bytes).is_err() {
        return;
    }
    // Nothing more can be done about a failure to tell of a failure: the worker's end says it then.
    let _told = match start.ready {
        Some(ready) => ready.try_clone_to_owned().and_then(|ready| File::from(ready).write_all(&bytes)),
        None => (&mut &*socket).write_all(&bytes),
    };
}

/// Waits for a watched worker: one zero byte, or a frame with its failure, or its end without a word.
fn settle(fork: Fork, reader: OwnedFd) -> Result<Fork, SetupFailure> {
    let mut told = Vec::new();
    File::from(reader).read_to_end(&mut told).map_err(failed("watch its set-up"))?;
    // What fails behind that word is told behind it.
    let told = match told.strip_prefix(READY) {
        Some([]) => return Ok(fork),
        Some(rest) => rest,
        None => &told,
    };
    // It has ended or is about to; reaped here, since no table knows it.
    let _reaped = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(fork.pid), None);
    let mut frames = frame::FrameReader::new();
    frames.push(told);
    match frames.next() {
        Ok(Some(FromWorker::SetupFailed(failure))) => Err(failure),
        Ok(Some(FromWorker::Reply { .. } | FromWorker::Swept) | None) | Err(_) => {
            Err(SetupFailure { step: "set itself up".into(), errno: 0 })
        }
    }
}

/// What a watched worker writes when it is set up.
pub(crate) const READY: &[u8] = &[0];

pub(crate) fn failed(step: &str) -> impl FnOnce(io::Error) -> SetupFailure + '_ {
    move |error| SetupFailure { step: step.into(), errno: error.raw_os_error().unwrap_or(0) }
}
