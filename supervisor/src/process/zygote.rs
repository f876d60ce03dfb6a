//! One zygote: its start, its handshake, and the task that hears it.

use super::call_socket::CallSocket;
use super::connection::{self, ReceiveError, Receiver, SendError, Sender};
use super::keeper::{self, Kept};
use super::worker::{Ended, Worker, WorkerProcess};
use super::{ScratchRoot, WorkerProgram, scratch_root};
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
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use toolexec_protocol::frame::FrameReader;
use toolexec_protocol::handshake::{Answer, HandshakeError, Hello, accept};
use toolexec_protocol::id::WorkerId;
use toolexec_protocol::message::{Configuration, FromZygote, SetupFailure, ToZygote};
use toolexec_protocol::strength::KillStrength;
use toolexec_worker::ZYGOTE_NAME;

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
    /// This program was itself started as a zygote and did not become one.
    #[error(
        "this program was started as a worker program and did not become one: its main has to call \
         become_zygote_if_asked first"
    )]
    NotAsked,
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

/// A zygote, what hears it, and what resolves when it was reaped.
pub(crate) type Started = (Zygote, Hearing, Reaped);

/// Resolves when a zygote was reaped.
pub(crate) type Reaped = oneshot::Receiver<io::Result<std::process::ExitStatus>>;

impl Zygote {
    /// Starts `program` and shakes hands. What it says from then on is told to `events` by [`Hearing::listen`]. Given up
    /// in the middle, it leaves no process.
    pub(crate) async fn start(
        program: &WorkerProgram,
        scratch: &ScratchRoot,
        strength: Option<KillStrength>,
        watchdog: Watchdog,
        events: Arc<dyn ZygoteEvents>,
    ) -> Result<Started, ZygoteError> {
        // Else each would start the next, for ever.
        if std::env::args_os().next().is_some_and(|name| name == ZYGOTE_NAME) {
            return Err(ZygoteError::NotAsked);
        }
        let path = || program.path.clone();
        let failed = |source: io::Error| ZygoteError::Start { program: path(), source };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let Kept { pidfd, exit } = keeper::start(program, theirs).await.map_err(failed)?;
        // A program that does not speak the protocol need not end with the connection.
        let zygote = KilledUnlessKept(Some(pidfd));
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
        let workers = HashMap::new();
        let hearing = Hearing { receiver, watchdog, events, workers, scratch, removals: JoinSet::new() };
        let zygote = Self { sender, pidfd: zygote.keep().map_err(failed)? };
        Ok((zygote, hearing, exit))
    }

    /// Asks for a worker.
    pub(crate) fn fork(&self, worker: WorkerId) -> Result<(), SendError> {
        self.sender.send(&ToZygote::Fork { worker })
    }

    /// Asks the zygote to end: it kills its workers, reaps them and removes their directories first.
    pub(crate) fn ask_to_end(&self) {
        let _gone = pidfd_send_signal(&self.pidfd, Signal::TERM);
        // Where nothing separates a tool from its zygote, it may have stopped it.
        let _gone = pidfd_send_signal(&self.pidfd, Signal::CONT);
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

/// A zygote that is killed if its start is given up.
struct KilledUnlessKept(Option<OwnedFd>);

impl KilledUnlessKept {
    fn keep(mut self) -> io::Result<OwnedFd> {
        self.0.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for KilledUnlessKept {
    fn drop(&mut self) {
        if let Some(pidfd) = &self.0 {
            let _gone = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

/// What hears one zygote; it says nothing before it is asked to.
pub(crate) struct Hearing {
    receiver: Receiver,
    watchdog: Watchdog,
    events: Arc<dyn ZygoteEvents>,
    /// Every worker of this zygote that was not reaped yet.
    workers: HashMap<WorkerId, Arc<WorkerProcess>>,
    scratch: PathBuf,
    removals: JoinSet<()>,
}

impl Hearing {
    /// Begins to tell, in a task of `runtime`.
    pub(crate) fn listen(self, runtime: &Handle) -> JoinHandle<()> {
        runtime.spawn(self.run())
    }

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
            FromZygote::Exited { worker, exit, usage, swept, survivors, scratch_left } => {
                if swept > 0 {
                    tracing::warn!(%worker, swept, "a guardian was killed; the zygote had to kill what it left");
                }
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
        let socket = CallSocket::new(socket)?;
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
            // Struck too: one whose set-up was not done yet was not bound to the zygote's death.
            self.watchdog.kill(process);
        }
        for process in self.workers.values() {
            process.until_settled().await;
            self.events.on_ended(process.id);
        }
        // A zygote that could end in order has removed it.
        if self.scratch.symlink_metadata().is_ok() {
            self.remove(self.scratch.clone());
        }
        while self.removals.join_next().await.is_some() {}
    }
}
