//! What an end means: status, code, class and words, decided in one place.
//!
//! From what the supervisor did, from what the zygote told, and from signals; never from a text, and never from an exit
//! status alone. `docs/errors.md` is this file's table.

use super::wire::Reply;
use crate::call::{
    Captured, Code, Exit, KillReason, NotRun, Outcome, Policy, Status, StopReason, Termination, Usage, Writes,
};
use crate::catalogue::{OutputSchema, Returned};
use crate::pool::Refusal;
use crate::process::{Ended, Fate};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;
use toolexec_protocol::encoding::EncodeError;
use toolexec_protocol::failure::{ErrorClass, Failure};
use toolexec_protocol::limits::MAX_BODY;
use toolexec_protocol::message::{self, Report, SetupFailure, StartFailure};
use toolexec_protocol::strength::KillStrength;
use toolexec_worker::ABORTED;

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
    writes: Writes,
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
            writes,
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
        outcome.writes = writes;
        outcome.exit = exit;
        outcome.usage = usage;
        outcome.not_run = not_run;
    }
}

/// What a call has done, as far as the meaning of its end depends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    /// Run this program.
    Command(String),
    /// Run a tool that is compiled in.
    Tool,
}

impl Subject {
    /// For messages.
    fn name(&self) -> &str {
        match self {
            Self::Command(program) => program,
            Self::Tool => "the tool",
        }
    }
}

/// What a tool promises of its result.
pub(super) struct Promise<'a> {
    /// What its result has to be; `None` takes every JSON value, and a command has no result then.
    pub(super) output: Option<&'a OutputSchema>,
    /// What a command wrote to its standard output.
    pub(super) stdout: &'a Captured,
}

impl Verdict {
    /// Holds a tool that went well to its promise: with an output schema a command's standard output is its result, and a
    /// result that does not fit is an error and not passed on.
    pub(super) fn held_to(self, Promise { output, stdout }: Promise<'_>) -> Self {
        let Some(schema) = output.filter(|_| self.status == Status::Ok) else { return self };
        let mut verdict = self;
        let result = match (verdict.result.take(), &verdict.exit) {
            (Some(result), _) => Ok(result),
            (None, Some(_)) => printed(stdout),
            // What goes well is a command or has a value.
            (None, None) => Err("the tool returned no result".to_owned()),
        };
        match result.and_then(|result| schema.check(result.get()).map(|()| result)) {
            Ok(result) => Self { result: Some(result), ..verdict },
            Err(problem) => Self {
                status: Status::Error,
                code: Some(Code::ToolError),
                class: Some(ErrorClass::Semantic),
                message: Some(problem),
                result: None,
                writes: Writes::default(),
                ..verdict
            },
        }
    }
}

/// The JSON value that a command has written to its standard output.
fn printed(stdout: &Captured) -> Result<Box<RawValue>, String> {
    let Captured { text, bytes, dropped, lossy } = stdout;
    if *dropped > 0 {
        return Err(format!(
            "the result is {bytes} bytes long, more than is kept of the standard output; `limits.output` keeps more"
        ));
    }
    if *lossy {
        return Err("the result is not UTF-8".to_owned());
    }
    RawValue::from_string(text.trim_ascii().to_owned()).map_err(|error| format!("the result is not JSON: {error}"))
}

/// Says what an end means.
pub(super) fn classify(end: &End, policy: &Policy, subject: &Subject) -> Verdict {
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
        End::Replied(reply) => replied(reply, policy, subject),
        End::Host(end) => host(end, policy),
        End::Condemned { broken: Some(Broken::SetupFailed(failure)), fate: Fate::Dead { .. }, .. } => not_started(
            Status::Failed,
            Code::SpawnFailed,
            Some(ErrorClass::Environment),
            format!("no worker could be set up: {}", describe_setup(failure)),
        ),
        End::Condemned { reason, fate, ended, broken } => {
            condemned(*reason, *fate, *ended, broken.as_ref(), policy, subject)
        }
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

fn replied(reply: &Reply, policy: &Policy, subject: &Subject) -> Verdict {
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
        Report::NotStarted(failure) => return with_usage(start_failed(failure, subject.name()), reply.usage),
        Report::Value(json) => {
            returned(String::from_utf8(json.clone()).ok().and_then(|json| RawValue::from_string(json).ok()))
        }
        Report::Written { value, writes } => {
            let value =
                returned(String::from_utf8(value.clone()).ok().and_then(|json| RawValue::from_string(json).ok()));
            match serde_json::from_slice::<BTreeMap<String, Value>>(writes) {
                Ok(writes) if value.status == Status::Ok => Verdict { writes: writes.into(), ..value },
                Ok(_) => value,
                Err(_) => {
                    let text = "the tool wrote something else into the context than slots with values";
                    failed(&Failure::new(ErrorClass::Semantic, text))
                }
            }
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
    subject: &Subject,
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
        KillReason::Protocol | KillReason::Lost => return Verdict { usage, ..lost(ended, broken, subject) },
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
fn lost(ended: Option<Ended>, broken: Option<&Broken>, subject: &Subject) -> Verdict {
    let worker_lost = |text: String, termination| {
        let verdict = started(Status::Failed, Some(Code::WorkerLost), Some(ErrorClass::Transient), Some(text));
        Verdict { termination: Some(termination), ..verdict }
    };
    if let Some(Broken::Protocol(what)) = broken {
        return worker_lost(format!("the worker broke the protocol: {what}"), Termination::Killed);
    }
    let crashed = |text: String, exit| {
        let verdict = started(Status::Crashed, Some(Code::ToolCrashed), Some(ErrorClass::Semantic), Some(text));
        Verdict { exit: Some(Exit::from(exit)), ..verdict }
    };
    match ended.map(|ended| ended.exit) {
        Some(message::Exit::Signal(signal)) if signal != rustix::process::Signal::KILL.as_raw() => {
            crashed(format!("the tool was ended by {}", signal_name(signal)), message::Exit::Signal(signal))
        }
        Some(message::Exit::Code(ABORTED)) if *subject == Subject::Tool => {
            let signal = rustix::process::Signal::ABORT.as_raw();
            crashed("the tool was ended by SIGABRT".into(), message::Exit::Signal(signal))
        }
        // Its own doing, and a second try would do the same.
        Some(message::Exit::Code(code)) if *subject == Subject::Tool => {
            let text = format!("the tool ended its process with status {code} before it returned");
            crashed(text, message::Exit::Code(code))
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
        writes: Writes::default(),
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
        writes: Writes::default(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// How a tool that went well is told, when this is promised of its result.
    fn told(result: Option<&str>, stdout: &Captured, schema: serde_json::Value) -> (Status, Option<String>, String) {
        let exit = result.is_none().then_some(Exit { code: Some(0), signal: None });
        let result = result.map(|json| RawValue::from_string(json.into()).unwrap());
        let verdict = Verdict { result, exit, ..started(Status::Ok, None, None, None) };
        let schema = OutputSchema::new(schema).unwrap();
        let verdict = verdict.held_to(Promise { output: Some(&schema), stdout });
        let mut outcome = Outcome::not_started(crate::call::CallId::new("call"), "tool");
        verdict.fill(&mut outcome);
        let failed = outcome.status != Status::Ok;
        assert_eq!(failed.then_some((Code::ToolError, ErrorClass::Semantic)), outcome.code.zip(outcome.class));
        let result = outcome.result.map(|result| result.get().to_owned());
        (outcome.status, result, outcome.message.unwrap_or_default())
    }

    fn wrote(text: &str) -> Captured {
        Captured { text: text.into(), bytes: text.len() as u64, ..Captured::default() }
    }

    #[test]
    fn result_that_does_not_fit_is_an_error_and_not_passed_on() {
        let schema = || json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let right = r#"{"n": 123456789012345678901234567890}"#;
        let fits = (Status::Ok, Some(right.to_owned()), String::new());
        assert_eq!(told(Some(right), &wrote("noise"), schema()), fits);
        assert_eq!(told(None, &wrote(&format!("{right}\n")), schema()), fits, "a command's output is its result");

        let misfit = "the result does not fit the tool's output schema: /n: 1.5 is not of type \"integer\"";
        let broken = (Status::Error, None, misfit.to_owned());
        assert_eq!(told(Some(r#"{"n":1.5}"#), &wrote(""), schema()), broken);
        assert_eq!(told(None, &wrote(r#"{"n":1.5}"#), schema()), broken);
    }

    #[test]
    fn output_that_is_not_one_whole_json_value_is_no_result() {
        let message = |stdout: &Captured| told(None, stdout, json!({})).2;
        assert_eq!(message(&wrote("")), "the result is not JSON: EOF while parsing a value at line 1 column 0");
        assert_eq!(message(&wrote("1 2")), "the result is not JSON: trailing characters at line 1 column 3");
        assert_eq!(message(&Captured { lossy: true, ..wrote("\"\u{fffd}\"") }), "the result is not UTF-8");
        let cut = "the result is 5 bytes long, more than is kept of the standard output; `limits.output` keeps more";
        assert_eq!(message(&Captured { dropped: 3, bytes: 5, ..wrote("12") }), cut);
    }

    #[test]
    fn failure_is_told_as_it_was_and_without_a_promise_nothing_is_looked_at() {
        let schema = OutputSchema::new(json!({ "type": "null" })).unwrap();
        let text = wrote("not JSON");
        let failure = || failed(&Failure::new(ErrorClass::Transient, "busy"));
        let held = failure().held_to(Promise { output: Some(&schema), stdout: &text });
        assert_eq!((held.class, held.message), (Some(ErrorClass::Transient), Some("busy".into())));
        let held = started(Status::Ok, None, None, None).held_to(Promise { output: None, stdout: &text });
        assert_eq!((held.status, held.message), (Status::Ok, None));
    }
}
