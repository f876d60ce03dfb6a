//! The one table of exit codes.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | the tool succeeded |
//! | 1–255 | with `run -- CMD`: the command's own status, whatever it is |
//! | 1 | a tool of the catalogue answered with an error |
//! | 75 | `batch` waits for a decision |
//! | 124 | timed out |
//! | 125 | toolexec refused or failed |
//! | 126, 127 | the command cannot be executed, cannot be found |
//! | 128 + n | ended by signal n; 129, 130 and 143 where toolexec itself got SIGHUP, SIGINT, SIGTERM |
//! | 141 | whoever read the output went away |
//!
//! A command's own status of 124 and more is passed through, as `env`, `nice` and a shell do: a wrapper that
//! changed it would break more scripts than the ambiguity does. What it means is told by the outcome (`--json`)
//! and by a line on standard error.

use super::interrupts::Interrupt;
use crate::call::{Exit, KillReason, NotRun, Outcome, Status, signal_name};

/// It went well.
pub(super) const OK: u8 = 0;
/// A tool of the catalogue answered with an error.
pub(super) const TOOL_ERROR: u8 = 1;
/// A batch waits for a decision: `EX_TEMPFAIL` of sysexits.h, try again later.
pub(super) const PAUSED: u8 = 75;
/// The time limit came first.
pub(super) const TIMED_OUT: u8 = 124;
/// toolexec refused or failed.
pub(super) const REFUSED: u8 = 125;
/// The command is there and cannot be executed.
pub(super) const NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
pub(super) const NOT_FOUND: u8 = 127;
/// Whoever read the output went away: what a program gets that dies of SIGPIPE.
pub(super) const READER_GONE: u8 = 141;
/// Added to the number of a signal.
const SIGNALLED: i32 = 128;

/// What was asked for: a command's status is passed on, a tool's is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// `run -- CMD`.
    Command,
    /// `run TOOL`.
    Tool,
}

/// What happened to toolexec itself meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disturbance {
    /// It was asked to end.
    Interrupted(Interrupt),
    /// It was asked to end, and gave up output for that.
    CutShort(Interrupt),
    /// The reader of its standard output or standard error went away.
    ReaderGone,
    /// Its output could not be written for another reason.
    OutputFailed,
}

/// The exit code of a call.
pub(super) fn of(outcome: &Outcome, asked: Asked, disturbance: Option<Disturbance>) -> u8 {
    match disturbance {
        Some(Disturbance::OutputFailed) => return REFUSED,
        Some(Disturbance::CutShort(interrupt)) => return of_interrupt(interrupt),
        // The tool may have ended by itself before its last output met the closed pipe. A failure of its own says
        // more than the missing reader does.
        Some(Disturbance::ReaderGone) if matches!(outcome.status, Status::Ok | Status::Cancelled) => {
            return READER_GONE;
        }
        Some(Disturbance::ReaderGone | Disturbance::Interrupted(_)) | None => {}
    }
    match outcome.status {
        Status::Ok => OK,
        Status::Error => match asked {
            Asked::Tool => TOOL_ERROR,
            Asked::Command => outcome.exit.as_ref().and_then(of_exit).unwrap_or(TOOL_ERROR),
        },
        Status::TimedOut => TIMED_OUT,
        Status::Cancelled => match (disturbance, outcome.receipt.as_ref().map(|receipt| receipt.reason)) {
            (Some(Disturbance::Interrupted(interrupt)), _) => of_interrupt(interrupt),
            (_, Some(KillReason::ReaderGone)) => READER_GONE,
            (_, _) => of_interrupt(Interrupt::Keyboard),
        },
        Status::Crashed => outcome.exit.as_ref().and_then(of_exit).unwrap_or(REFUSED),
        Status::Rejected => REFUSED,
        Status::Failed => match (asked, outcome.not_run) {
            (Asked::Command, Some(NotRun::NotFound)) => NOT_FOUND,
            (Asked::Command, Some(NotRun::NotExecutable)) => NOT_EXECUTABLE,
            (Asked::Command | Asked::Tool, _) => REFUSED,
        },
        Status::Unkillable => REFUSED,
    }
}

/// The exit code where toolexec itself was asked to end: as a shell has it for a program that the signal ended.
pub(super) fn of_interrupt(interrupt: Interrupt) -> u8 {
    u8::try_from(SIGNALLED + interrupt.signal().as_raw()).unwrap_or(REFUSED)
}

/// A process's end as a shell has it. `None` where it says nothing of a failure.
fn of_exit(exit: &Exit) -> Option<u8> {
    match (&exit.signal, exit.code) {
        (Some(name), _) => u8::try_from(SIGNALLED + signal_number(name)?).ok(),
        (None, Some(code)) => u8::try_from(code).ok().filter(|code| *code != OK),
        (None, None) => None,
    }
}

/// The number of a signal of this name.
fn signal_number(name: &str) -> Option<i32> {
    /// The kernel's last signal on most machines; see signal(7).
    const LAST: i32 = 64;
    (1..=LAST).find(|number| signal_name(*number) == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Code;
    use crate::cli::report::sample;

    const STATUSES: [Status; 8] = [
        Status::Ok,
        Status::Error,
        Status::TimedOut,
        Status::Cancelled,
        Status::Crashed,
        Status::Rejected,
        Status::Failed,
        Status::Unkillable,
    ];

    fn exits() -> Vec<Option<Exit>> {
        let mut exits = vec![None];
        exits.extend((0..=255).map(|code| Some(Exit { code: Some(code), signal: None })));
        exits.extend(
            ["SIGHUP", "SIGSEGV", "SIGKILL", "SIGSYS", "SIGRTMIN+0", "SIGRTMIN+30", "signal 33", "nonsense"]
                .map(|name| Some(Exit { code: None, signal: Some(name.into()) })),
        );
        exits
    }

    #[test]
    fn every_status_and_exit_has_its_code() {
        for status in STATUSES {
            for exit in exits() {
                for asked in [Asked::Command, Asked::Tool] {
                    let code = of(&sample::outcome(status, exit.clone()), asked, None);
                    let own = exit.as_ref().and_then(|exit| exit.code);
                    let signal = exit.as_ref().and_then(|exit| exit.signal.as_deref());
                    let expected = match (status, own, signal, asked) {
                        (Status::Ok, ..) => 0,
                        (Status::Error, _, _, Asked::Tool) => 1,
                        (Status::Error | Status::Crashed, None, Some("SIGHUP"), _) => 129,
                        (Status::Error | Status::Crashed, None, Some("SIGSEGV"), _) => 139,
                        (Status::Error | Status::Crashed, None, Some("SIGKILL"), _) => 137,
                        (Status::Error | Status::Crashed, None, Some("SIGSYS"), _) => 159,
                        (Status::Error | Status::Crashed, None, Some("SIGRTMIN+0"), _) => 162,
                        (Status::Error | Status::Crashed, None, Some("SIGRTMIN+30"), _) => 192,
                        (Status::Error | Status::Crashed, None, Some("signal 33"), _) => 161,
                        (Status::Error, Some(own), None, Asked::Command) if own != 0 => own,
                        (Status::Crashed, Some(own), None, _) if own != 0 => own,
                        (Status::Error, _, _, Asked::Command) => 1,
                        (Status::Crashed, ..) => 125,
                        (Status::TimedOut, ..) => 124,
                        (Status::Cancelled, ..) => 130,
                        (Status::Rejected | Status::Failed | Status::Unkillable, ..) => 125,
                    };
                    assert_eq!(i32::from(code), expected, "{status:?} {exit:?} {asked:?}");
                }
            }
        }
    }

    #[test]
    fn only_success_is_zero() {
        for status in STATUSES {
            for exit in exits() {
                for asked in [Asked::Command, Asked::Tool] {
                    let code = of(&sample::outcome(status, exit.clone()), asked, None);
                    assert_eq!(code == 0, status == Status::Ok, "{status:?} {exit:?} {asked:?}");
                }
            }
        }
    }

    #[test]
    fn a_command_that_cannot_start_is_told_apart() {
        let mut outcome = sample::outcome(Status::Failed, None);
        outcome.code = Some(Code::SpawnFailed);
        outcome.started = false;
        assert_eq!(of(&outcome, Asked::Command, None), 125);
        for (not_run, code) in [(NotRun::NotFound, 127), (NotRun::NotExecutable, 126)] {
            outcome.not_run = Some(not_run);
            assert_eq!(of(&outcome, Asked::Command, None), code);
            // Of a tool it is the catalogue that is wrong.
            assert_eq!(of(&outcome, Asked::Tool, None), 125);
        }
    }

    #[test]
    fn an_interrupted_call_exits_as_the_signal_would_have_it() {
        let code = |status, interrupt| {
            of(&sample::outcome(status, None), Asked::Command, Some(Disturbance::Interrupted(interrupt)))
        };
        assert_eq!(code(Status::Cancelled, Interrupt::Hangup), 129);
        assert_eq!(code(Status::Cancelled, Interrupt::Keyboard), 130);
        assert_eq!(code(Status::Cancelled, Interrupt::Terminate), 143);
        // It was over before the signal: what it came to is the answer.
        assert_eq!(code(Status::Ok, Interrupt::Keyboard), 0);
        assert_eq!(code(Status::TimedOut, Interrupt::Terminate), 124);
        assert_eq!(code(Status::Unkillable, Interrupt::Terminate), 125);
    }

    #[test]
    fn a_reader_that_went_away_is_141() {
        let code = |status, exit| of(&sample::outcome(status, exit), Asked::Command, Some(Disturbance::ReaderGone));
        assert_eq!(code(Status::Cancelled, None), 141);
        assert_eq!(code(Status::Ok, None), 141);
        assert_eq!(code(Status::Error, Some(Exit { code: Some(3), signal: None })), 3);
        assert_eq!(code(Status::TimedOut, None), 124);
        let mut told_by_the_receipt = sample::outcome(Status::Cancelled, None);
        told_by_the_receipt.receipt = Some(sample::receipt(KillReason::ReaderGone));
        assert_eq!(of(&told_by_the_receipt, Asked::Command, None), 141);
    }

    #[test]
    fn output_that_cannot_be_written_is_a_failure_of_toolexec() {
        for status in STATUSES {
            let outcome = sample::outcome(status, None);
            assert_eq!(of(&outcome, Asked::Command, Some(Disturbance::OutputFailed)), 125);
        }
    }

    #[test]
    fn every_signal_has_its_number_back() {
        for number in 1..=64 {
            assert_eq!(signal_number(&signal_name(number)), Some(number));
        }
        for name in ["SIGRTMIN+31", "signal 0", "SIG", "", "sigsegv"] {
            assert_eq!(signal_number(name), None, "{name}");
        }
    }

    #[test]
    fn output_that_was_given_up_for_a_signal_is_no_success() {
        for status in STATUSES {
            let cut_short = Some(Disturbance::CutShort(Interrupt::Terminate));
            assert_eq!(of(&sample::outcome(status, None), Asked::Command, cut_short), 143);
        }
    }
}
