//! What came of a call: one object for the library, the command line and logs.

use super::{CallId, Captured, Receipt, Writes, signal_name};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use toolexec_protocol::failure::ErrorClass;
use toolexec_protocol::message;

/// What came of one call. There is exactly one for every call, and its JSON form only ever gains keys.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The version of this form: 1.
    pub version: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool's name; for a command, the last part of its program's path.
    pub tool: String,
    /// How it went.
    pub status: Status,
    /// What exactly, where it did not go well.
    pub code: Option<Code>,
    /// What the failure asks of the reader.
    #[serde(serialize_with = "class")]
    pub class: Option<ErrorClass>,
    /// How its processes ended; `None` when nothing was started, or when a death could not be confirmed.
    pub termination: Option<Termination>,
    /// Whether the call was handed to a worker.
    pub started: bool,
    /// Whether the tool may have changed something outside of itself.
    pub side_effects_possible: bool,
    /// What the model should read about a failure; `None` when it went well.
    pub message: Option<String>,
    /// The JSON value that a tool returned; commands return none.
    pub result: Option<Box<RawValue>>,
    /// How the command's own process ended, where one did.
    pub exit: Option<Exit>,
    /// How often the call was tried.
    pub attempts: u32,
    /// What it wrote to its standard output.
    pub stdout: Captured,
    /// What it wrote to its standard error.
    pub stderr: Captured,
    /// Where the time went.
    pub timing: Timing,
    /// What its processes used, as far as the kernel told.
    pub usage: Option<Usage>,
    /// The proof of their end; `None` when nothing was started.
    pub receipt: Option<Receipt>,
    /// What the call has written into the slots that calls have in common; only where it went well. Not in the JSON form.
    #[serde(skip)]
    pub writes: Writes,
    /// Which way a command's program could not be run. Not in the JSON form, where `message` says it.
    #[serde(skip)]
    pub not_run: Option<NotRun>,
}

/// Why a command's program could not be run, as far as a shell tells it apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotRun {
    /// There is no such program.
    NotFound,
    /// It is there and cannot be executed.
    NotExecutable,
}

impl Outcome {
    /// The version of the JSON form.
    pub const VERSION: u32 = 1;

    /// What there is before anything is known: a call that was not started and failed for no reason yet.
    pub(crate) fn not_started(call_id: CallId, tool: &str) -> Self {
        Self {
            version: Self::VERSION,
            call_id,
            tool: tool.to_owned(),
            status: Status::Failed,
            code: None,
            class: None,
            termination: None,
            started: false,
            side_effects_possible: false,
            message: None,
            result: None,
            exit: None,
            attempts: 0,
            stdout: Captured::default(),
            stderr: Captured::default(),
            timing: Timing::default(),
            usage: None,
            receipt: None,
            writes: Writes::default(),
            not_run: None,
        }
    }

    /// A call that was refused before anything was started.
    pub(crate) fn rejected(call_id: CallId, tool: &str, code: Code, message: String) -> Self {
        let outcome = Self::not_started(call_id, tool);
        let class = Some(ErrorClass::Semantic);
        Self { status: Status::Rejected, code: Some(code), class, message: Some(message), ..outcome }
    }
}

impl Outcome {
    /// A call that its caller has withdrawn before anything was started.
    pub(crate) fn withdrawn(call_id: CallId, tool: &str) -> Self {
        let message = Some("the call was withdrawn before it was started".into());
        Self { status: Status::Cancelled, code: Some(Code::Cancelled), message, ..Self::not_started(call_id, tool) }
    }
}

/// How a call went.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool returned.
    Ok,
    /// The tool said that it failed, or a command exited with another status than 0.
    Error,
    /// The time limit came first.
    TimedOut,
    /// The caller withdrew.
    Cancelled,
    /// A signal that nobody here sent ended it.
    Crashed,
    /// It never started, and the call or the load is why.
    Rejected,
    /// toolexec or the host could not do its part.
    Failed,
    /// SIGKILL was sent, and the death was not confirmed within the bound.
    Unkillable,
}

/// What exactly a call ended with. The names are stable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The tool said that it failed, or a command exited with another status than 0.
    ToolError,
    /// The time limit came first.
    ToolTimeout,
    /// The caller withdrew.
    Cancelled,
    /// A signal that nobody here sent ended the tool.
    ToolCrashed,
    /// The arguments do not fit the tool's declaration.
    InvalidArguments,
    /// There is no such tool.
    UnknownTool,
    /// The call was not approved.
    NotApproved,
    /// Too many calls wait for a worker.
    QueueFull,
    /// No worker came free in time.
    QueueTimeout,
    /// The worker was killed from outside, its zygote was lost, or it broke the protocol.
    WorkerLost,
    /// The host could not start the tool.
    SpawnFailed,
    /// This machine has no kill as sure as the tool demands.
    ContainmentUnavailable,
    /// The executor was closed.
    Closed,
    /// The death was not confirmed within the bound.
    Unkillable,
}

/// How a call's processes ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// By themselves.
    Returned,
    /// By SIGKILL, and their death was confirmed.
    Killed,
    /// On request: the command ended at the SIGTERM that begins a grace period, the tool in this process when it was asked.
    Stopped,
    /// Not at all, as far as is known: the tool runs in this process, was asked to stop, and is no longer waited for.
    Abandoned,
}

/// How a command's own process ended: exactly one of the two is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Exit {
    /// The status it exited with.
    pub code: Option<i32>,
    /// The name of the signal that ended it, such as `SIGSEGV`.
    pub signal: Option<String>,
}

/// Where a call's time went, in microseconds of `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Timing {
    /// Waiting for a worker.
    pub queue_us: u64,
    /// Handing the call to the worker.
    pub start_us: u64,
    /// From there to the reply or to the end of the time limit.
    pub run_us: u64,
    /// From the reason of the kill to the confirmed death; 0 where nothing was killed.
    pub kill_us: u64,
    /// Collecting what was left in the output pipes.
    pub drain_us: u64,
    /// The whole call.
    pub total_us: u64,
}

/// What a call's processes used, as the kernel counts it; see getrusage(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Usage {
    /// User and system time in microseconds.
    pub cpu_us: u64,
    /// The largest resident set of one process in bytes.
    pub max_rss_bytes: u64,
}

impl From<message::Exit> for Exit {
    fn from(exit: message::Exit) -> Self {
        match exit {
            message::Exit::Code(code) => Self { code: Some(code), signal: None },
            message::Exit::Signal(signal) => Self { code: None, signal: Some(signal_name(signal)) },
        }
    }
}

impl From<message::Usage> for Usage {
    fn from(usage: message::Usage) -> Self {
        Self { cpu_us: usage.cpu_us, max_rss_bytes: usage.max_rss_bytes }
    }
}

fn class<S: Serializer>(class: &Option<ErrorClass>, serializer: S) -> Result<S::Ok, S::Error> {
    class.map(ErrorClass::as_str).serialize(serializer)
}
