//! What an end means: status, code, class and words, decided in one place.
//!
//! From what the supervisor did, from what the zygote told, and from signals; never from a text, and never from an exit
//! status alone. `docs/errors.md` is this file's table.

use super::wire::Reply;
use crate::call::{Code, Exit, KillReason, NotRun, Outcome, Policy, Status, StopReason, Termination, Usage};
use crate::catalogue::Returned;
use crate::pool::Refusal;
use crate::process::{Ended, Fate};
use serde_json::value::RawValue;
use std::time::Duration;
use toolexec_protocol::encoding::EncodeError;
use toolexec_protocol::failure::{ErrorClass, Failure};
use toolexec_protocol::limits::MAX_BODY;
use toolexec_protocol::message::{self, Report, SetupFailure, StartFailure};
use toolexec_protocol::strength::KillStrength;

/// How a call has ended.
#[derive(Debug)]
pub(super) enum End {
    /// It got no worker.
    Refused(Refusal),
    /// This machine's kill is weaker than the call accepts.
    TooWeak { offered: KillStrength },
    /// It does not fit into a frame.
    TooLarge(EncodeError),
    /// The worker answered before any kill was recorded.
    Replied(Reply),
    /// It ran in this process.
    Host(HostEnd),
    /// The worker was killed, or had to be.
    Condemned { reason: KillReason, fate: Fate, ended: Option<Ended>, broken: Option<Broken> },
}

/// How a call in this process has ended.
#[derive(Debug)]
pub(super) enum HostEnd {
    /// Its body has returned, or panicked.
    Returned(Returned),
    /// Its body has returned a failure after it was asked to stop at the beginning of its grace period.
    EndedWhenAsked,
    /// It was given up, and has ended since.
    Stopped(StopReason),
    /// It was given up, and may still run.
    Abandoned(StopReason),
}

/// Why a worker cannot be talked to any more.
#[derive(Debug)]
pub(super) enum Broken {
    /// It closed its socket, by dying or otherwise, without a reply.
    Closed,
    /// It said something else than what it should.
    Protocol(String),
    /// It could not be set up.
    SetupFailed(SetupFailure),
}

/// What an end means.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) status: Status,
    code: Option<Code>,
    class: Option<ErrorClass>,
    termination: Option<Termination>,
    pub(super) started: bool,
    side_effects_possible: bool,
    message: Option<String>,
    result: Option<Box<RawValue>>,
    exit: Option<Exit>,
    usage: Option<Usage>,
    not_run: Option<NotRun>,
}

impl Verdict {
    /// Writes it into an outcome.
    pub(super) fn fill(self, outcome: &mut Outcome) {
        let Self {
            status,
            code,
            class,
            termination,
            started,
            side_effects_possible,
            message,
            result,
            exit,
            usage,
            not_run,
        } = self;
        outcome.status = status;
        outcome.code = code;
        outcome.class = class;
        outcome.termination = termination;
        outcome.started = started;
        outcome.side_effects_possible = side_effects_possible;
        outcome.message = message;
        outcome.result = result;
        outcome.exit = exit;
        outcome.usage = usage;
        outcome.not_run = not_run;
    }
}

/// Says what an end means. `program` is a command's, for messages.
pub(super) fn classify(end: &End, policy: &Policy, program: &str) -> Verdict {
    match end {
        End::Refused(refusal) => refused(refusal),
        End::TooWeak { offered } => not_started(
            Status::Failed,
            Code::ContainmentUnavailable,
            Some(ErrorClass::Environment),
            format!(
                "the tool demands a kill by {} or better, and this machine offers {offered}; `toolexec doctor` says what is missing",
                policy.kill
            ),
        ),
        End::TooLarge(error) => {
            not_started(Status::Rejected, Code::InvalidArguments, Some(ErrorClass::Semantic), error.to_string())
        }
        End::Replied(reply) => replied(reply, policy, program),
        End::Host(end) => host(end, policy),
        End::Condemned { broken: Some(Broken::SetupFailed(failure)), fate: Fate::Dead { .. }, .. } => not_started(
            Status::Failed,
            Code::SpawnFailed,
            Some(ErrorClass::Environment),
            format!("no worker could be set up: {}", describe_setup(failure)),
        ),
        End::Condemned { reason, fate, ended, broken } => condemned(*reason, *fate, *ended, broken.as_ref(), policy),
    }
}

fn refused(refusal: &Refusal) -> Verdict {
    let message = refusal.to_string();
    match refusal {
        Refusal::QueueFull | Refusal::TooManyAbandoned(_) => {
            not_started(Status::Rejected, Code::QueueFull, Some(ErrorClass::Transient), message)
        }
        Refusal::QueueTimeout(_) => {
            not_started(Status::Rejected, Code::QueueTimeout, Some(ErrorClass::Transient), message)
        }
        Refusal::Withdrawn => not_started(Status::Cancelled, Code::Cancelled, None, message),
        Refusal::Closed => not_started(Status::Failed, Code::Closed, Some(ErrorClass::Environment), message),
        Refusal::Spawn(_) => not_started(Status::Failed, Code::SpawnFailed, Some(ErrorClass::Environment), message),
    }
}

fn replied(reply: &Reply, policy: &Policy, program: &str) -> Verdict {
    let verdict = match &reply.report {
        Report::Command(message::Exit::Code(0)) => started(Status::Ok, None, None, None),
        // It ended because it was asked to, when its time was nearly up. One that ends well all the same was in time.
        Report::Command(_) if reply.asked_to_end => Verdict {
            termination: Some(Termination::Stopped),
            ..started(Status::TimedOut, Some(Code::ToolTimeout), Some(ErrorClass::Transient), Some(stopped(policy)))
        },
        Report::Command(message::Exit::Code(code)) => {
            let text = format!("the command exited with status {code}");
            started(Status::Error, Some(Code::ToolError), Some(ErrorClass::Semantic), Some(text))
        }
        Report::Command(message::Exit::Signal(signal)) => {
            let text = format!("the command was ended by {}", signal_name(*signal));
            started(Status::Crashed, Some(Code::ToolCrashed), Some(ErrorClass::Semantic), Some(text))
        }
        Report::NotStarted(failure) => return with_usage(start_failed(failure, program), reply.usage),
        Report::Value(json) => {
            returned(String::from_utf8(json.clone()).ok().and_then(|json| RawValue::from_string(json).ok()))
        }
        Report::Failure(failure) => failed(failure),
        Report::UnknownTool => {
            let text = "the worker program has no tool of this name".to_owned();
            return not_started(Status::Rejected, Code::UnknownTool, Some(ErrorClass::Semantic), text);
        }
    };
    let exit = match &reply.report {
        Report::Command(exit) => Some(Exit::from(*exit)),
        _ => None,
    };
    with_usage(Verdict { exit, ..verdict }, reply.usage)
}

fn host(end: &HostEnd, policy: &Policy) -> Verdict {
    let (reason, termination) = match end {
        HostEnd::Returned(Ok(json)) if json.len() > MAX_BODY => return failed(&Failure::of_large_result(json.len())),
        HostEnd::Returned(Ok(json)) => return returned(RawValue::from_string(json.clone()).ok()),
        HostEnd::Returned(Err(failure)) => return failed(failure),
        // As a command that ended at its SIGTERM.
        HostEnd::EndedWhenAsked => {
            return Verdict {
                termination: Some(Termination::Stopped),
                ..started(Status::TimedOut, Some(Code::ToolTimeout), Some(ErrorClass::Transient), Some(stopped(policy)))
            };
        }
        HostEnd::Stopped(reason) => (*reason, Termination::Stopped),
        HostEnd::Abandoned(reason) => (*reason, Termination::Abandoned),
    };
    let verdict = match reason {
        StopReason::Deadline { timeout } => {
            let text = format!("tool call timed out after {}", milliseconds(timeout));
            started(Status::TimedOut, Some(Code::ToolTimeout), Some(ErrorClass::Transient), Some(text))
        }
        StopReason::Cancelled => {
            started(Status::Cancelled, Some(Code::Cancelled), None, Some("the call was cancelled".into()))
        }
        StopReason::Closed => {
            let text = "the executor was closed while the tool ran".to_owned();
            started(Status::Failed, Some(Code::Closed), Some(ErrorClass::Environment), Some(text))
        }
    };
    // The text of a timeout is the same for every tool; that one may still run is said by `abandoned`.
    Verdict { termination: Some(termination), ..verdict }
}

/// A tool has returned a value, or something that is none.
fn returned(value: Option<Box<RawValue>>) -> Verdict {
    match value {
        Some(value) => Verdict { result: Some(value), ..started(Status::Ok, None, None, None) },
        None => {
            let text = "the tool returned something that is not JSON".to_owned();
            started(Status::Error, Some(Code::ToolError), Some(ErrorClass::Semantic), Some(text))
        }
    }
}

/// A tool has said that it failed.
fn failed(failure: &Failure) -> Verdict {
    // Cut again: a hostile worker need not have kept to the bound.
    let Failure { class, message } = Failure::new(failure.class, failure.message.as_str());
    started(Status::Error, Some(Code::ToolError), Some(class), Some(message))
}

fn with_usage(verdict: Verdict, usage: message::Usage) -> Verdict {
    Verdict { usage: Some(usage.into()), ..verdict }
}

fn start_failed(failure: &StartFailure, program: &str) -> Verdict {
    let error = |errno: &i32| std::io::Error::from_raw_os_error(*errno);
    let environment = |text| not_started(Status::Failed, Code::SpawnFailed, Some(ErrorClass::Environment), text);
    match failure {
        StartFailure::NotFound => {
            Verdict { not_run: Some(NotRun::NotFound), ..environment(format!("{program}: the command cannot be found")) }
        }
        StartFailure::NotExecutable { errno } => {
            let text = format!("{program}: the command cannot be executed: {}", error(errno));
            Verdict { not_run: Some(NotRun::NotExecutable), ..environment(text) }
        }
        StartFailure::ArgumentsTooLong => not_started(
            Status::Rejected,
            Code::InvalidArguments,
            Some(ErrorClass::Semantic),
            "the command's arguments and environment are together longer than the kernel takes (E2BIG); give them on standard input or in a file".into(),
        ),
        StartFailure::Directory { errno } => environment(format!("the working directory of {program} cannot be entered: {}", error(errno))),
        StartFailure::Host { step, errno } => environment(format!("{program}: the host could not {step}: {}", error(errno))),
    }
}

fn condemned(
    reason: KillReason,
    fate: Fate,
    ended: Option<Ended>,
    broken: Option<&Broken>,
    policy: &Policy,
) -> Verdict {
    let usage = ended.map(|ended| Usage::from(ended.usage));
    let dead = match fate {
        Fate::Dead { .. } => true,
        Fate::Survivors { .. } | Fate::Unconfirmed | Fate::Pending => false,
    };
    if !dead {
        let text = match fate {
            Fate::Survivors { count, .. } => {
                format!("the kill was sent; {count} processes of the call are not confirmed to be dead")
            }
            Fate::Dead { .. } | Fate::Unconfirmed | Fate::Pending => {
                "the kill was sent and is not yet confirmed".to_owned()
            }
        };
        let text = match reason {
            KillReason::Deadline => format!("{}; {text}", timed_out(policy)),
            KillReason::Finished
            | KillReason::Cancelled
            | KillReason::ReaderGone
            | KillReason::Closed
            | KillReason::Protocol
            | KillReason::Lost => text,
        };
        let verdict = started(Status::Unkillable, Some(Code::Unkillable), Some(ErrorClass::Environment), Some(text));
        return Verdict { termination: None, usage, ..verdict };
    }
    let verdict = match reason {
        KillReason::Deadline => {
            started(Status::TimedOut, Some(Code::ToolTimeout), Some(ErrorClass::Transient), Some(timed_out(policy)))
        }
        KillReason::Cancelled | KillReason::Finished => {
            started(Status::Cancelled, Some(Code::Cancelled), None, Some("the call was cancelled".into()))
        }
        KillReason::ReaderGone => {
            let text = "the reader of the output went away".to_owned();
            started(Status::Cancelled, Some(Code::Cancelled), None, Some(text))
        }
        KillReason::Closed => {
            let text = "the executor was closed while the tool ran".to_owned();
            started(Status::Failed, Some(Code::Closed), Some(ErrorClass::Environment), Some(text))
        }
        KillReason::Protocol | KillReason::Lost => return Verdict { usage, ..lost(ended, broken) },
    };
    let exit = Some(Exit::from(message::Exit::Signal(rustix::process::Signal::KILL.as_raw())));
    Verdict { termination: Some(Termination::Killed), usage, exit, ..verdict }
}

fn timed_out(policy: &Policy) -> String {
    format!("tool call timed out after {}", policy.timeout.map_or_else(String::new, milliseconds))
}

fn stopped(policy: &Policy) -> String {
    let grace = policy.grace.map_or_else(String::new, milliseconds);
    let timeout = policy.timeout.map_or_else(String::new, milliseconds);
    format!("tool call timed out: it was asked to end {grace} before its limit of {timeout}, and ended")
}

/// Whole milliseconds as such; what has a fraction of one, in full.
fn milliseconds(duration: Duration) -> String {
    if duration.as_millis() > 0 && duration.subsec_nanos().is_multiple_of(1_000_000) {
        format!("{}ms", duration.as_millis())
    } else {
        format!("{duration:?}")
    }
}

/// The worker is gone, or was not to be trusted any more, without a reply.
fn lost(ended: Option<Ended>, broken: Option<&Broken>) -> Verdict {
    let worker_lost = |text: String, termination| {
        let verdict = started(Status::Failed, Some(Code::WorkerLost), Some(ErrorClass::Transient), Some(text));
        Verdict { termination: Some(termination), ..verdict }
    };
    if let Some(Broken::Protocol(what)) = broken {
        return worker_lost(format!("the worker broke the protocol: {what}"), Termination::Killed);
    }
    match ended.map(|ended| ended.exit) {
        Some(message::Exit::Signal(signal)) if signal != rustix::process::Signal::KILL.as_raw() => {
            let text = format!("the tool was ended by {}", signal_name(signal));
            let verdict = started(Status::Crashed, Some(Code::ToolCrashed), Some(ErrorClass::Semantic), Some(text));
            Verdict { exit: Some(Exit::from(message::Exit::Signal(signal))), ..verdict }
        }
        Some(message::Exit::Signal(_)) => worker_lost(
            "the worker was lost: it closed its connection, was killed from outside, or went down with its zygote"
                .into(),
            Termination::Killed,
        ),
        Some(message::Exit::Code(code)) => {
            worker_lost(format!("the worker ended with status {code} before it answered"), Termination::Returned)
        }
        None => worker_lost("the worker was lost, and nothing was told of its end".into(), Termination::Killed),
    }
}

fn started(status: Status, code: Option<Code>, class: Option<ErrorClass>, message: Option<String>) -> Verdict {
    Verdict {
        status,
        code,
        class,
        termination: Some(Termination::Returned),
        started: true,
        side_effects_possible: true,
        message,
        result: None,
        exit: None,
        usage: None,
        not_run: None,
    }
}

fn not_started(status: Status, code: Code, class: Option<ErrorClass>, message: String) -> Verdict {
    Verdict {
        status,
        code: Some(code),
        class,
        termination: None,
        started: false,
        side_effects_possible: false,
        message: Some(message),
        result: None,
        exit: None,
        usage: None,
        not_run: None,
    }
}

fn describe_setup(failure: &SetupFailure) -> String {
    match failure.errno {
        0 => failure.step.clone(),
        errno => format!("{}: {}", failure.step, std::io::Error::from_raw_os_error(errno)),
    }
}

fn signal_name(signal: i32) -> String {
    crate::call::signal_name(signal)
}
