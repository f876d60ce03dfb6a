//! The thread that starts a zygote and stays with it.
//!
//! A zygote asks for a signal at its parent's death, and that follows the *thread* that started it (prctl(2),
//! `PR_SET_PDEATHSIG`). So each zygote has a thread that starts it, waits for its end and reaps it, and does nothing
//! else.

use super::WorkerProgram;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use tokio::sync::oneshot;
use toolexec_worker::ZYGOTE_NAME;

/// A zygote that was started.
#[derive(Debug)]
pub(super) struct Kept {
    /// The zygote's pidfd.
    pub(super) pidfd: OwnedFd,
    /// Resolves when it was reaped.
    pub(super) exit: oneshot::Receiver<io::Result<ExitStatus>>,
}

/// Starts `program` as a zygote with `socket` as its standard input.
pub(super) async fn start(program: &WorkerProgram, socket: UnixStream) -> io::Result<Kept> {
    let mut command = Command::new(&program.path);
    command.arg0(ZYGOTE_NAME).args(&program.arguments).env_clear();
    command.stdin(OwnedFd::from(socket)).stdout(Stdio::null()).stderr(Stdio::inherit());
    let (started, start) = oneshot::channel();
    let (exited, exit) = oneshot::channel();
    thread::Builder::new().name("toolexec-keeper".into()).spawn(move || keep(command, started, exited))?;
    let pidfd = start.await.unwrap_or_else(|_| Err(io::Error::other("the thread that starts zygotes has ended")))?;
    Ok(Kept { pidfd, exit })
}

fn keep(
    mut command: Command,
    started: oneshot::Sender<io::Result<OwnedFd>>,
    exited: oneshot::Sender<io::Result<ExitStatus>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // The receiver is gone when the start was given up; then nobody wants to know.
            let _given_up = started.send(Err(error));
            return;
        }
    };
    // The control socket's other copy, this process's, must not outlive the start.
    drop(command);
    let pidfd = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("a process id out of range"))
        .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?));
    let _given_up = started.send(pidfd);
    let _nobody_waits = exited.send(child.wait());
}
