//! What is said after the handshake: closed enums, named by direction.
//!
//! Descriptors ride beside frames: with the first byte of [`FromZygote::Forked`] come four, in the order of
//! [`FORKED_DESCRIPTORS`]; with the first byte of a [`ToWorker::Call`] whose task has
//! [`Stdin::Descriptor`] comes one.

use crate::failure::Failure;
use crate::id::{Nonce, WorkerId};
use crate::strength::KillStrength;
use bincode::{Decode, Encode};

/// The descriptors of a [`FromZygote::Forked`], in this order: pidfd, call socket, stdout, stderr.
pub const FORKED_DESCRIPTORS: usize = 4;

/// From the supervisor to a zygote, after its `Hello`.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum ToZygote {
    /// How workers are to be made; the first message after the handshake, sent once.
    Configure(Configuration),
    /// Fork one worker.
    Fork {
        /// The new worker's id.
        worker: WorkerId,
    },
}

/// How a zygote makes its workers.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Configuration {
    /// A directory of the supervisor's, absolute; each worker gets a directory of its own in it.
    pub scratch_root: Vec<u8>,
    /// The mechanism to use instead of the strongest that works here.
    pub strength: Option<KillStrength>,
}

/// From a zygote to the supervisor.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum FromZygote {
    /// A worker was forked; its descriptors ride with this frame.
    Forked {
        /// Its id.
        worker: WorkerId,
        /// How surely it can be killed.
        strength: KillStrength,
    },
    /// A worker could not be forked.
    ForkFailed {
        /// The id it would have had.
        worker: WorkerId,
        /// What went wrong.
        failure: SetupFailure,
    },
    /// A worker has ended and was reaped. Not told any more by a zygote that is itself ending.
    Exited {
        /// Its id.
        worker: WorkerId,
        /// How it ended.
        exit: Exit,
        /// What it and its reaped descendants used; see wait4(2).
        usage: Usage,
        /// Processes that were still there after its death and were killed by the zygote (never with PID namespaces).
        swept: u32,
        /// Processes that could not be shown to be dead.
        survivors: u32,
        /// Whether its scratch directory is still there, because it was not empty; the supervisor removes it.
        scratch_left: bool,
    },
}

/// From the supervisor to a worker.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum ToWorker {
    /// Do this.
    Call {
        /// To be repeated in the reply.
        nonce: Nonce,
        /// Whether no other call follows: then the worker need not get ready for one. It is ended by the supervisor.
        last: bool,
        /// What to do.
        task: Task,
    },
}

/// What a call asks for.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Task {
    /// Run an external program.
    Command(CommandTask),
    /// Run a tool that is compiled into the worker program.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments: the text of a JSON object.
        arguments: Vec<u8>,
    },
    /// The same for a tool that reads the slots that calls have in common.
    ToolInContext {
        /// Its name.
        name: String,
        /// Its arguments: the text of a JSON object.
        arguments: Vec<u8>,
        /// The slots with their values: the text of a JSON object.
        context: Vec<u8>,
    },
}

/// An external program and all that it gets.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct CommandTask {
    /// The program: a path with a slash, or a name that is looked up in the `PATH` of `environment`.
    pub program: Vec<u8>,
    /// Its arguments, one element each, byte for byte.
    pub arguments: Vec<Vec<u8>>,
    /// Its whole environment. `HOME` and `TMPDIR` are set to the scratch directory where they are not here.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where it starts.
    pub directory: WorkingDirectory,
    /// What it reads.
    pub stdin: Stdin,
}

/// Where a command starts.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum WorkingDirectory {
    /// The worker's own scratch directory, which is removed after its death.
    Scratch,
    /// This directory, absolute.
    Path(Vec<u8>),
}

/// What a command reads from its standard input.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Empty,
    /// These bytes, from a file in memory.
    Bytes(Vec<u8>),
    /// A descriptor that rides with the call's first byte.
    Descriptor,
}

/// From a worker to the supervisor.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum FromWorker {
    /// The call is over, and nothing that it started is left in the worker's tree.
    Reply {
        /// The call's.
        nonce: Nonce,
        /// How it went.
        report: Report,
        /// Processes that the call had left in the background; they were killed and reaped.
        background_killed: u32,
        /// What the call used.
        usage: Usage,
        /// Whether the worker may serve another call, as far as it can tell.
        reusable: bool,
    },
    /// The worker could not be set up; it ends after this and never started a call.
    SetupFailed(SetupFailure),
    /// From a worker's guardian, its last word: the worker is dead, and so is everything below it. The zygote says so
    /// too; this is for when there is no zygote any more.
    Swept,
}

/// How a call went.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Report {
    /// A command ended.
    Command(Exit),
    /// A command was not started.
    NotStarted(StartFailure),
    /// A tool returned: the text of a JSON value.
    Value(Vec<u8>),
    /// A tool said that it failed.
    Failure(Failure),
    /// The worker program has no tool of that name.
    UnknownTool,
    /// A tool returned, and wants something written into the slots that calls have in common.
    Written {
        /// The text of a JSON value.
        value: Vec<u8>,
        /// The slots to be written with their values: the text of a JSON object.
        writes: Vec<u8>,
    },
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Exit {
    /// It exited with this status, 0 to 255.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// Why a command was not started.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum StartFailure {
    /// There is no such program.
    NotFound,
    /// It is there and cannot be executed.
    NotExecutable {
        /// The kernel's errno.
        errno: i32,
    },
    /// An argument, or all of them together, is longer than the kernel takes (`E2BIG`, execve(2)).
    ArgumentsTooLong,
    /// The working directory cannot be entered.
    Directory {
        /// The kernel's errno.
        errno: i32,
    },
    /// Something else of the host.
    Host {
        /// What was tried.
        step: String,
        /// The kernel's errno.
        errno: i32,
    },
}

/// A step of making a worker that failed.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct SetupFailure {
    /// What was tried.
    pub step: String,
    /// The kernel's errno, 0 where it was not the kernel that refused.
    pub errno: i32,
}

/// What processes used, as the kernel counts it in `struct rusage`; see getrusage(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub struct Usage {
    /// User and system time in microseconds.
    pub cpu_us: u64,
    /// The largest resident set of one process in bytes.
    pub max_rss_bytes: u64,
}
