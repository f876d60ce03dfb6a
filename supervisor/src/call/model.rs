//! What a caller asks for.

use super::output::OutputChunk;
use super::{CallId, Context};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolexec_protocol::strength::KillStrength;

/// One call, to be given to [`crate::Executor::call`].
#[derive(Debug)]
pub struct ToolCall {
    /// Its name in the outcome and in events.
    pub id: CallId,
    /// What is to be done.
    pub work: Work,
    /// How this call differs from what the tool declares.
    pub options: CallOptions,
}

impl ToolCall {
    /// A call of a declared tool; `arguments` is the text of a JSON object, where an empty text means `{}`.
    pub fn new(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        let work = Work::Tool { name: tool.into(), arguments: arguments.into() };
        Self { id: CallId::fresh(), work, options: CallOptions::default() }
    }

    /// A call of a command that no catalogue declares.
    pub fn command(command: Command, policy: Policy) -> Self {
        Self { id: CallId::fresh(), work: Work::Command { command, policy }, options: CallOptions::default() }
    }

    /// Lets `token` withdraw the call: the tree is then killed, and the outcome says `cancelled`.
    #[must_use]
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.options.cancel = Some(token);
        self
    }

    /// The same call once more, with the same id, if it can be made twice: a command may own a descriptor that it has used up, and
    /// what a reader of the output was given cannot be taken back.
    pub fn again(&self) -> Option<Self> {
        let Self { id, work, options } = self;
        let Work::Tool { name, arguments } = work else {
            return None;
        };
        let CallOptions { cancel, timeout, output: OutputMode::Collect, context, answer } = options else {
            return None;
        };
        let work = Work::Tool { name: name.clone(), arguments: arguments.clone() };
        let (cancel, context, answer) = (cancel.clone(), context.clone(), answer.clone());
        let options = CallOptions { cancel, timeout: *timeout, output: OutputMode::Collect, context, answer };
        Some(Self { id: id.clone(), work, options })
    }

    /// Replaces the tool's own time limit. Zero is refused by the executor, as everywhere.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }
}

/// What a call does.
#[derive(Debug)]
pub enum Work {
    /// Runs a tool of the executor's table.
    Tool {
        /// The tool's name as the model wrote it.
        name: String,
        /// The text of a JSON object; an empty text means `{}`.
        arguments: String,
    },
    /// Runs a command as it stands.
    Command {
        /// The command.
        command: Command,
        /// Its limits; the executor's defaults do not apply.
        policy: Policy,
    },
}

/// What a caller may say about one call, beside what the tool's declaration says.
#[derive(Debug, Default)]
pub struct CallOptions {
    /// Withdraws the call.
    pub cancel: Option<CancellationToken>,
    /// Replaces the tool's time limit.
    pub timeout: Option<Duration>,
    /// Where the output goes.
    pub output: OutputMode,
    /// What the tool sees of the slots that calls have in common, where it declares that it reads them.
    pub context: Context,
    /// What somebody has said when they were asked about this call: that it may run, or why not. All attempts share it, so that
    /// nobody is asked again.
    pub(crate) answer: Option<Arc<OnceLock<Result<(), String>>>>,
}

/// Where a call's output goes.
#[derive(Debug, Default)]
pub enum OutputMode {
    /// Into the outcome, head and tail up to the policy's bound.
    #[default]
    Collect,
    /// To a reader, as it comes. A reader that does not read slows the tool down and never a kill; one that
    /// is dropped ends the call as `cancelled`.
    Stream(mpsc::Sender<OutputChunk>),
}

/// An external program and what it gets.
#[derive(Debug)]
pub struct Command {
    /// A path, or a name to be looked up in the `PATH` of `environment`.
    pub program: OsString,
    /// One element an argument, byte for byte.
    pub arguments: Vec<OsString>,
    /// Its whole environment, but that `HOME` and `TMPDIR` name the scratch directory where they are not here.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: Directory,
    /// What it reads.
    pub stdin: Input,
}

/// Where a command starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Directory {
    /// The call's own scratch directory.
    Scratch,
    /// This directory; a relative path is taken from the supervisor's own.
    Path(PathBuf),
}

/// What a command reads from its standard input.
#[derive(Debug)]
pub enum Input {
    /// Nothing.
    Empty,
    /// These bytes, at most [`toolexec_protocol::limits::MAX_BODY`].
    Bytes(Vec<u8>),
    /// An open file, pipe or terminal, which the tool then owns.
    Descriptor(OwnedFd),
}

/// The limits of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How long the tool's body may take; `None` is no limit, and costs nothing. Never zero.
    pub timeout: Option<Duration>,
    /// SIGTERM this long before the time limit; shorter than `timeout`. Never zero.
    pub grace: Option<Duration>,
    /// How long the call may wait for a worker; `None` is no limit. Never zero.
    pub queue_timeout: Option<Duration>,
    /// How many bytes of each of stdout and stderr are kept, at least [`Policy::SMALLEST_OUTPUT`]; `None` is
    /// [`Policy::DEFAULT_OUTPUT`]. It bounds what is collected; a reader of [`OutputMode::Stream`] bounds for itself.
    pub output: Option<usize>,
    /// The weakest kill that the call accepts.
    pub kill: KillStrength,
    /// A process of its own, or a served one.
    pub worker: WorkerPolicy,
}

impl Policy {
    /// What is kept of each output stream where nothing else is said: 1 MiB.
    pub const DEFAULT_OUTPUT: usize = 1024 * 1024;

    /// The smallest bound on output: one byte.
    pub const SMALLEST_OUTPUT: usize = 1;
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            timeout: None,
            grace: None,
            queue_timeout: None,
            output: None,
            kill: KillStrength::ProcessGroup,
            worker: WorkerPolicy::Fresh,
        }
    }
}

/// Where a call's work is done; it decides what a policy can say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// An external program below a worker.
    Command,
    /// A tool inside a worker.
    Worker,
    /// This process.
    Host,
}

/// A policy says something that cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(&'static str);

impl Policy {
    /// Refuses what has no meaning that two users would agree on, such as a limit of zero (case O21), and what nobody would
    /// read.
    pub(crate) fn check(&self, place: Place) -> Result<(), PolicyError> {
        let Self { timeout, grace, queue_timeout, output, kill, worker } = self;
        let zero = |duration: &Option<Duration>| duration.is_some_and(|duration| duration.is_zero());
        let refuse = |text| Err(PolicyError(text));
        if zero(timeout) {
            return refuse("a timeout of zero is refused; leave it out for no limit");
        }
        if zero(grace) {
            return refuse("a grace of zero is refused; leave it out for none");
        }
        if zero(queue_timeout) {
            return refuse("a queue timeout of zero is refused; leave it out for no limit");
        }
        if output.is_some_and(|output| output < Policy::SMALLEST_OUTPUT) {
            return refuse("an output bound of zero is refused");
        }
        match (grace, timeout) {
            (Some(_), None) => return refuse("a grace period needs a timeout to lie in"),
            (Some(grace), Some(timeout)) if grace >= timeout => {
                return refuse("the grace period has to be shorter than the timeout");
            }
            (Some(_), Some(_)) | (None, _) => {}
        }
        match place {
            Place::Command => Ok(()),
            Place::Worker if grace.is_some() => {
                refuse("a grace period is for commands: a tool inside a worker program gets no SIGTERM")
            }
            Place::Worker => Ok(()),
            Place::Host if *kill > KillStrength::ProcessGroup => {
                refuse("it demands a kill and runs in the host's own process, where nothing is killed; isolate it")
            }
            Place::Host if *worker != WorkerPolicy::Fresh => {
                refuse("it wants to share a worker and runs in the host's own process")
            }
            Place::Host if output.is_some() => {
                refuse("it bounds its output and runs in the host's own process, whose output is not collected")
            }
            Place::Host => Ok(()),
        }
    }
}

/// Whether calls share a worker process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerPolicy {
    /// One call, one process: nothing of one call can reach the next.
    Fresh,
    /// A worker serves this many calls of the same tool, or fewer: it is retired on any doubt.
    Reuse {
        /// The most calls of one worker.
        max_calls: NonZeroU32,
    },
}
