//! One zygote: its start, its handshake, and the task that hears it.

use super::connection::{self, ReceiveError, Receiver, SendError, Sender};
use super::worker::{Ended, Worker, WorkerProcess};
use super::{ScratchRoot, WorkerProgram, keeper, scratch_root};
use crate::deadline::Watchdog;
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use toolexec_protocol::frame::FrameReader;
use toolexec_protocol::handshake::{Answer, HandshakeError, Hello, accept};
use toolexec_protocol::id::WorkerId;
use toolexec_protocol::message::{Configuration, FromZygote, SetupFailure, ToZygote};
use toolexec_protocol::strength::KillStrength;

/// How long a worker program may take to answer the greeting: 30 s, since an interpreter may load a lot before it.
const HANDSHAKE_BOUND: Duration = Duration::from_secs(30);

/// Why there is no zygote.
#[derive(Debug, thiserror::Error)]
pub enum ZygoteError {
    /// The worker program could not be started.
    #[error("the worker program {} cannot be started", program.display())]
    Start {
        /// Which.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was started and did not answer.
    #[error("the worker program {} did not answer within {HANDSHAKE_BOUND:?}", program.display())]
    Silent {
        /// Which.
        program: PathBuf,
    },
    /// It ended, or closed the connection, before it answered.
    #[error("the worker program {} ended before it answered; does its main call become_zygote_if_asked first?", program.display())]
    Ended {
        /// Which.
        program: PathBuf,
    },
    /// It answered something else than a welcome.
    #[error("the worker program {} cannot be used", program.display())]
    Handshake {
        /// Which.
        program: PathBuf,
        /// Why.
        source: HandshakeError,
    },
    /// The connection to it failed.
    #[error("the connection to the worker program {} failed", program.display())]
    Connection {
        /// Which.
        program: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no place for its workers' scratch directories.
    #[error(transparent)]
    Scratch(#[from] scratch_root::ScratchError),
}

/// What the pool wants to know of a zygote.
pub(crate) trait ZygoteEvents: Send + Sync + 'static {
    /// A worker is there, idle.
    fn on_forked(&self, worker: Worker);
    /// A worker could not be made.
    fn on_fork_failed(&self, worker: WorkerId, failure: SetupFailure);
    /// A worker has ended and was reaped.
    fn on_ended(&self, worker: WorkerId);
    /// The zygote is gone; its workers die with it.
    fn on_lost(&self);
}

/// A zygote that answers.
#[derive(Debug)]
pub(crate) struct Zygote {
    sender: Sender,
    pidfd: OwnedFd,
}

/// What ends when a zygote has.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The task that hears the zygote; it ends when nothing of it is left.
    pub(crate) task: tokio::task::JoinHandle<()>,
    /// Resolves when the zygote was reaped.
    pub(crate) reaped: oneshot::Receiver<io::Result<std::process::ExitStatus>>,
}

impl Zygote {
    /// Starts `program`, shakes hands, and leaves a task that tells `events` what it says.
    pub(crate) async fn start(
        program: &WorkerProgram,
        scratch: &ScratchRoot,
        strength: Option<KillStrength>,
        watchdog: Watchdog,
        events: Arc<dyn ZygoteEvents>,
    ) -> Result<(Self, Ending), ZygoteError> {
        let path = || program.path.clone();
        let failed = |source: io::Error| ZygoteError::Start { program: path(), source };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let kept = keeper::start(program, theirs).await.map_err(failed)?;
        let (sender, mut receiver) = connection::connect(ours).map_err(failed)?;
        // From here on, dropping the connection ends the zygote.
        sender.send(&Hello::of_this_build()).map_err(connection_failed(program))?;
        let answer = tokio::time::timeout(HANDSHAKE_BOUND, receiver.receive::<Answer>()).await;
        let answer = match answer {
            Err(_elapsed) => return Err(ZygoteError::Silent { program: path() }),
            Ok(Ok(Some(answer))) => answer,
            Ok(Ok(None)) => return Err(ZygoteError::Ended { program: path() }),
            Ok(Err(ReceiveError::Io(error))) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(ZygoteError::Ended { program: path() });
            }
            Ok(Err(error)) => return Err(connection_failed(program)(error)),
        };
        accept(answer).map_err(|source| ZygoteError::Handshake { program: path(), source })?;
        // As late as can be: from the next frame on the zygote removes it, even if this process is killed.
        let scratch = scratch.for_zygote()?;
        let scratch_root = scratch.as_os_str().as_encoded_bytes().to_vec();
        sender
            .send(&ToZygote::Configure(Configuration { scratch_root, strength }))
            .map_err(connection_failed(program))?;
        let hearing =
            Hearing { receiver, watchdog, events, workers: HashMap::new(), scratch, removals: JoinSet::new() };
        let task = tokio::spawn(hearing.run());
        Ok((Self { sender, pidfd: kept.pidfd }, Ending { task, reaped: kept.exit }))
    }

    /// Asks for a worker.
    pub(crate) fn fork(&self, worker: WorkerId) -> Result<(), SendError> {
        self.sender.send(&ToZygote::Fork { worker })
    }

    /// Asks the zygote to end: it kills its workers, reaps them and removes their directories first.
    pub(crate) fn ask_to_end(&self) {
        let _gone = pidfd_send_signal(&self.pidfd, Signal::TERM);
    }

    /// Ends the zygote at once; its workers die with it.
    pub(crate) fn kill(&self) {
        let _gone = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

fn connection_failed<E: std::error::Error + Send + Sync + 'static>(
    program: &WorkerProgram,
) -> impl FnOnce(E) -> ZygoteError + '_ {
    move |error| ZygoteError::Connection { program: program.path.clone(), source: Box::new(error) }
}

/// The task that hears one zygote.
struct Hearing {
    receiver: Receiver,
    watchdog: Watchdog,
    events: Arc<dyn ZygoteEvents>,
    /// Every worker of this zygote that was not reaped yet.
    workers: HashMap<WorkerId, Arc<WorkerProcess>>,
    scratch: PathBuf,
    removals: JoinSet<()>,
}

impl Hearing {
    async fn run(mut self) {
        loop {
            match self.receiver.receive::<FromZygote>().await {
                Ok(Some(message)) => self.on_message(message),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "a zygote is given up");
                    break;
                }
            }
        }
        self.events.on_lost();
        self.bury().await;
    }

    fn on_message(&mut self, message: FromZygote) {
        match message {
            FromZygote::Forked { worker, strength } => match self.on_forked(worker, strength) {
                Ok(worker) => self.events.on_forked(worker),
                Err(error) => {
                    // Without its socket the worker ends by itself: the peer's end was closed with this error.
                    let failure = SetupFailure { step: error.to_string(), errno: error.raw_os_error().unwrap_or(0) };
                    self.events.on_fork_failed(worker, failure);
                }
            },
            FromZygote::ForkFailed { worker, failure } => self.events.on_fork_failed(worker, failure),
            FromZygote::Exited { worker, exit, usage, swept: _, survivors, scratch_left } => {
                if let Some(process) = self.workers.remove(&worker) {
                    process.on_ended(Ended { exit, usage, survivors });
                    self.watchdog.on_reaped(&process);
                }
                if scratch_left {
                    self.remove(self.scratch.join(worker.to_string()));
                }
                self.events.on_ended(worker);
            }
        }
        while self.removals.try_join_next().is_some() {}
    }

    fn on_forked(&mut self, id: WorkerId, strength: KillStrength) -> io::Result<Worker> {
        let [pidfd, socket, stdout, stderr] = self.receiver.take_descriptors().map_err(io::Error::other)?;
        let socket = UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let socket = tokio::net::UnixStream::from_std(socket)?;
        let stdout = pipe::Receiver::from_owned_fd(stdout)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr)?;
        let process = Arc::new(WorkerProcess::new(id, strength, pidfd, socket));
        self.workers.insert(id, Arc::clone(&process));
        Ok(Worker { process, stdout, stderr, frames: FrameReader::new(), calls: 0 })
    }

    /// Removes a directory that a tool has left full, on a thread where that may take its time.
    fn remove(&mut self, directory: PathBuf) {
        self.removals.spawn_blocking(move || {
            if let Err(error) = scratch_root::remove(&directory) {
                tracing::warn!(%error, directory = %directory.display(), "a scratch directory could not be removed");
            }
        });
    }

    /// The zygote is gone. Its workers get SIGKILL from the kernel; their deaths are confirmed all the same, and then
    /// their directories go.
    async fn bury(mut self) {
        for process in self.workers.values() {
            process.on_orphaned();
            self.watchdog.confirm(process);
        }
        for process in self.workers.values() {
            process.until_settled().await;
            self.events.on_ended(process.id);
        }
        self.remove(self.scratch.clone());
        while self.removals.join_next().await.is_some() {}
    }
}
