//! Running an external program to its end, and leaving nothing of it behind.

use super::search_path;
use crate::sweep::{add_usage, signal_all, sweep};
use crate::sys::exit;
use crate::sys::wait::{Wait, wait_any};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};
use toolexec_protocol::message::{CommandTask, Exit, Report, StartFailure, Stdin, Usage, WorkingDirectory};

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) report: Report,
    pub(crate) background_killed: u32,
    pub(crate) usage: Usage,
}

/// Runs a command and waits for its own end, not for its children's: those are killed then.
///
/// `supervisor` is the call socket: when its other end is gone there is nobody left to work for, and this process
/// ends. SIGTERM, which the supervisor sends at the start of a grace period, is passed on to the whole tree.
pub(crate) fn run(
    task: &CommandTask,
    stdin: Option<OwnedFd>,
    scratch: &Path,
    supervisor: BorrowedFd<'_>,
) -> io::Result<Ended> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.add(Signal::SIGTERM);
    // Blocked only while a command runs; the standard library gives the program an empty mask.
    signals.thread_block()?;
    let ended = run_blocked(task, stdin, scratch, supervisor, &signals);
    signals.thread_unblock()?;
    ended
}

fn run_blocked(
    task: &CommandTask,
    stdin: Option<OwnedFd>,
    scratch: &Path,
    supervisor: BorrowedFd<'_>,
    signals: &SigSet,
) -> io::Result<Ended> {
    let events = SignalFd::with_flags(signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let child = match start(task, stdin, scratch) {
        Ok(child) => child,
        Err(failure) => {
            let report = Report::NotStarted(failure);
            return Ok(Ended { report, background_killed: 0, usage: Usage::default() });
        }
    };
    let mut usage = Usage::default();
    let exit = wait_for(child, &events, supervisor, &mut usage)?;
    let left = sweep()?;
    add_usage(&mut usage, left.usage);
    Ok(Ended { report: Report::Command(exit), background_killed: left.killed, usage })
}

/// Waits for one child, reaping the orphans that come to this process meanwhile.
fn wait_for(child: i32, events: &SignalFd, supervisor: BorrowedFd<'_>, usage: &mut Usage) -> io::Result<Exit> {
    loop {
        while let Wait::Reaped(reaped) = wait_any(false)? {
            add_usage(usage, reaped.usage);
            if reaped.pid == child {
                return Ok(reaped.exit);
            }
        }
        let mut ready = [
            PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(supervisor, PollFlags::RDHUP),
        ];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !ready[1].revents().is_empty() {
            abandon();
        }
        while let Some(event) = events.read_signal()? {
            if event.ssi_signo == Signal::SIGTERM as u32 {
                signal_all(Signal::SIGTERM);
            }
        }
    }
}

/// The supervisor is gone: end, and take everything along. In a PID namespace the kernel sees to that; elsewhere
/// the sweep does, as far as this process gets.
fn abandon() -> ! {
    let _best_effort = sweep();
    exit::now(0)
}

/// Starts the program and gives back its process id.
fn start(task: &CommandTask, stdin: Option<OwnedFd>, scratch: &Path) -> Result<i32, StartFailure> {
    let directory = match &task.directory {
        WorkingDirectory::Scratch => scratch,
        WorkingDirectory::Path(path) => Path::new(OsStr::from_bytes(path)),
    };
    // Entered here and not by the program's own first steps: so a missing directory is told apart from a missing
    // program (case O13), and a relative `PATH` element or program means what it means to the program.
    std::env::set_current_dir(directory).map_err(|error| StartFailure::Directory { errno: errno(&error) })?;

    let mut environment: Vec<(OsString, OsString)> = task
        .environment
        .iter()
        .map(|(name, value)| (OsString::from_vec(name.clone()), OsString::from_vec(value.clone())))
        .collect();
    for name in ["HOME", "TMPDIR"] {
        if !environment.iter().any(|(given, _)| given == name) {
            environment.push((name.into(), scratch.into()));
        }
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let program = search_path::find(OsStr::from_bytes(&task.program), path)?;

    let mut command = Command::new(program);
    command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(task.arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    {
        use std::os::unix::process::CommandExt;
        command.arg0(OsStr::from_bytes(&task.program));
    }
    command.stdin(match (&task.stdin, stdin) {
        (Stdin::Empty, _) => Stdio::null(),
        (Stdin::Descriptor, Some(descriptor)) => descriptor.into(),
        (Stdin::Descriptor, None) => return Err(StartFailure::Host { step: "receive its standard input".into(), errno: 0 }),
        (Stdin::Bytes(bytes), _) => {
            let file = in_memory(bytes)
                .map_err(|error| StartFailure::Host { step: "store its standard input".into(), errno: errno(&error) })?;
            file.into()
        }
    });
    match command.spawn() {
        Ok(child) => Ok(child.id() as i32),
        Err(error) => Err(start_failure(&error)),
    }
}

/// A file in memory rather than a pipe: a program that does not read its input blocks nobody.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("toolexec-stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn start_failure(error: &io::Error) -> StartFailure {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => StartFailure::NotFound,
        Some(libc::E2BIG) => StartFailure::ArgumentsTooLong,
        Some(errno @ (libc::EACCES | libc::ENOEXEC | libc::EPERM | libc::EISDIR | libc::ELIBBAD | libc::ETXTBSY)) => {
            StartFailure::NotExecutable { errno }
        }
        _ => StartFailure::Host { step: "start it".into(), errno: errno(error) },
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
