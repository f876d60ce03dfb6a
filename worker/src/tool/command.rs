//! Running an external program to its end, and leaving nothing of it behind.

use super::search_path;
use crate::sweep::{add_usage, signal_all, sweep};
use crate::sys::exit;
use crate::sys::spawn::spawn;
use crate::sys::wait::{Wait, wait_any};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use toolexec_protocol::message::{CommandTask, Exit, Report, StartFailure, Stdin, Usage, WorkingDirectory};

/// The signals that a worker reads and does not suffer: blocked from its zygote on, but while a compiled tool runs.
pub(crate) fn worker_signals() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.add(Signal::SIGTERM);
    signals
}

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
    let events = SignalFd::with_flags(&worker_signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
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
                signal_all(Signal::SIGTERM)?;
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

    let environment = Environment::new(&task.environment, scratch);
    let program = search_path::find(OsStr::from_bytes(&task.program), environment.path())?;
    let program = c_string(program.into_os_string().into_vec(), "its program's name")?;
    let mut arguments = vec![c_string(task.program.clone(), "its program's name")?];
    for argument in &task.arguments {
        arguments.push(c_string(argument.clone(), "an argument")?);
    }
    let input = match (&task.stdin, stdin) {
        (Stdin::Empty, _) => None,
        (Stdin::Descriptor, Some(descriptor)) => Some(descriptor),
        (Stdin::Descriptor, None) => return Err(host("receive its standard input", 0)),
        (Stdin::Bytes(bytes), _) => {
            Some(in_memory(bytes).map_err(|error| host("store its standard input", errno(&error)))?.into())
        }
    };
    // The worker's own standard input is empty.
    let own = io::stdin();
    let stdin = input.as_ref().map_or(own.as_fd(), OwnedFd::as_fd);
    spawn(&program, &arguments, &environment.strings()?, stdin).map_err(|error| start_failure(&error))
}

/// The program's environment: what the call says, and a home in the scratch directory.
struct Environment {
    variables: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Environment {
    fn new(given: &[(Vec<u8>, Vec<u8>)], scratch: &Path) -> Self {
        let mut variables = given.to_vec();
        for name in ["HOME", "TMPDIR"] {
            if !variables.iter().any(|(given, _)| given == name.as_bytes()) {
                variables.push((name.into(), scratch.as_os_str().as_bytes().to_vec()));
            }
        }
        Self { variables }
    }

    fn path(&self) -> Option<&OsStr> {
        self.variables.iter().find(|(name, _)| name == b"PATH").map(|(_, value)| OsStr::from_bytes(value))
    }

    fn strings(&self) -> Result<Vec<CString>, StartFailure> {
        let string =
            |(name, value): &(Vec<u8>, Vec<u8>)| c_string([name.as_slice(), b"=", value].concat(), "a variable");
        self.variables.iter().map(string).collect()
    }
}

/// The supervisor has refused a NUL already; a worker does not trust it for that.
fn c_string(bytes: Vec<u8>, what: &str) -> Result<CString, StartFailure> {
    CString::new(bytes).map_err(|_| host(&format!("pass {what}, which has a NUL byte"), libc::EINVAL))
}

fn host(step: &str, errno: i32) -> StartFailure {
    StartFailure::Host { step: step.into(), errno }
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
        _ => host("start it", errno(error)),
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
