//! An outcome in words. The words are promises: "killed" is said only of what was confirmed to be dead.

use super::quantity;
use super::remark::Remark;
use crate::KillStrength;
use crate::call::{Captured, Outcome, Receipt, Status, Termination};
use crate::cli::exit_code::{Asked, Disturbance};
use crate::cli::lane::Target;
use std::time::Duration;

/// The least status of a command that could be taken for one of toolexec's own.
const AMBIGUOUS_STATUS: i32 = 124;

/// What was around the call and is not in its outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Circumstances {
    /// What was asked for.
    pub(crate) asked: Asked,
    /// The call's time limit.
    pub(crate) timeout: Option<Duration>,
    /// Whether the output was passed on as it came, and is not in the outcome.
    pub(crate) streamed: bool,
    /// What happened to toolexec itself.
    pub(crate) disturbance: Option<Disturbance>,
}

/// What is to be said about an outcome beside the tool's own output.
pub(crate) fn remarks(outcome: &Outcome, circumstances: &Circumstances) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if !circumstances.streamed {
        remarks.extend(about_the_output(&outcome.stdout, Target::Output));
        remarks.extend(about_the_output(&outcome.stderr, Target::Error));
    }
    remarks.extend(about_the_end(outcome, circumstances));
    if let Some(receipt) = &outcome.receipt {
        remarks.extend(about_what_was_left(receipt, outcome.status));
    }
    remarks
}

/// What is to be said about output that a reader did not take after a kill.
pub(crate) fn given_up(target: Target, bytes: u64, patience: Duration) -> Remark {
    Remark::failure(format!(
        "{} was not read for {} after the end of the call; gave up {} of it",
        target.name(),
        quantity::limit(patience),
        quantity::count(bytes, "byte", "bytes"),
    ))
}

/// What is to be said about output that was over its bound, if any was.
pub(crate) fn over_the_bound(target: Target, dropped: u64, of: u64) -> Option<Remark> {
    let dropped = Some(dropped).filter(|dropped| *dropped > 0)?;
    Some(Remark::note(format!(
        "dropped {} of the {of} that were written to {}: more than is kept",
        quantity::count(dropped, "byte", "bytes"),
        target.name(),
    )))
}

fn about_the_output(captured: &Captured, target: Target) -> Vec<Remark> {
    let replaced = captured
        .lossy
        .then(|| Remark::note(format!("{} has bytes that are not UTF-8; they are shown as \u{fffd}", target.name())));
    over_the_bound(target, captured.dropped, captured.bytes).into_iter().chain(replaced).collect()
}

fn about_the_end(outcome: &Outcome, circumstances: &Circumstances) -> Option<Remark> {
    match outcome.status {
        Status::Ok => None,
        Status::Error => match circumstances.asked {
            Asked::Tool => {
                let message = outcome.message.as_deref().unwrap_or("answered with an error");
                Some(Remark::failure(format!("{}: {message}", outcome.tool)))
            }
            Asked::Command => {
                let code = outcome.exit.as_ref()?.code.filter(|code| *code >= AMBIGUOUS_STATUS)?;
                Some(Remark::note(format!("the command itself exited with {code}")))
            }
        },
        Status::TimedOut => {
            let limit = circumstances
                .timeout
                .or_else(|| outcome.receipt.as_ref()?.deadline_ms.map(Duration::from_millis))
                .map(|limit| format!(" after {}", quantity::limit(limit)))
                .unwrap_or_default();
            Some(Remark::failure(format!("timed out{limit}{}", ending(outcome, " after the deadline"))))
        }
        Status::Cancelled => match circumstances.disturbance {
            // Whoever has read enough, as `head` does, wants to read no more. What could not be written is told already.
            Some(Disturbance::ReaderGone | Disturbance::OutputFailed) => None,
            Some(Disturbance::Interrupted(interrupt) | Disturbance::CutShort(interrupt)) => {
                let ending = ending(outcome, " after the signal");
                Some(Remark::failure(format!("interrupted by {}{ending}", interrupt.name())))
            }
            None => Some(Remark::failure(format!("cancelled{}", ending(outcome, "")))),
        },
        Status::Crashed => {
            let signal = outcome.exit.as_ref().and_then(|exit| exit.signal.as_deref());
            Some(Remark::failure(match (signal, outcome.message.as_deref()) {
                (Some(signal), _) => format!("ended by {signal}"),
                (None, Some(message)) => message.to_owned(),
                (None, None) => "crashed".to_owned(),
            }))
        }
        Status::Rejected | Status::Failed => {
            let message = outcome.message.as_deref().unwrap_or(match outcome.started {
                false => "the call could not be started",
                true => "the call could not be brought to its end",
            });
            // Where the program is at fault it is named.
            Some(Remark::error(match outcome.exit {
                Some(_) if !message.contains(&outcome.tool) => format!("{}: {message}", outcome.tool),
                Some(_) | None => message.to_owned(),
            }))
        }
        Status::Unkillable => {
            let survivors = outcome.receipt.as_ref().map_or(0, |receipt| receipt.survivors);
            let who = match survivors {
                0 => "some of its processes may still be running".to_owned(),
                number => format!("{} may still be running", quantity::count(number, "process", "processes")),
            };
            Some(Remark::error(format!("SIGKILL was sent, and the death was not confirmed in time: {who}")))
        }
    }
}

/// How the processes ended, as far as it was observed; `after` names the moment that the receipt counts from.
fn ending(outcome: &Outcome, after: &str) -> String {
    let Some(receipt) = &outcome.receipt else {
        return match (outcome.started, outcome.termination) {
            (false, _) => " before it was started".to_owned(),
            (true, Some(Termination::Stopped)) => "; it stopped on request".to_owned(),
            (true, Some(Termination::Abandoned)) => "; it is no longer waited for and may still be running".to_owned(),
            (true, Some(Termination::Returned | Termination::Killed) | None) => {
                "; nothing is known of its processes".to_owned()
            }
        };
    };
    if !receipt.confirmed {
        let sent =
            if receipt.signalled_after_us.is_some() { "SIGKILL was sent, but" } else { "no SIGKILL was sent, and" };
        return format!("; {sent} its death was not confirmed ({})", receipt.strength);
    }
    let whole = match receipt.strength {
        KillStrength::PidNamespace | KillStrength::Cgroup | KillStrength::Subreaper => "tree",
        KillStrength::ProcessGroup => "process group",
    };
    let how = match outcome.termination {
        Some(Termination::Killed) => "killed, ",
        Some(Termination::Stopped) => "ended at SIGTERM, ",
        Some(Termination::Returned | Termination::Abandoned) | None => "",
    };
    let when = match receipt.dead_after_us {
        Some(dead) if !after.is_empty() => format!(" {}{after}", quantity::measured(dead)),
        Some(_) | None => String::new(),
    };
    format!("; {how}{whole} confirmed dead{when} ({})", receipt.strength)
}

fn about_what_was_left(receipt: &Receipt, status: Status) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if receipt.background_killed > 0 {
        let left = quantity::count(receipt.background_killed, "background process", "background processes");
        remarks.push(match receipt.confirmed {
            true => Remark::note(format!("killed {left} that the tool had left")),
            false => {
                Remark::failure(format!("sent SIGKILL to {left} that the tool had left; not all of it is confirmed"))
            }
        });
    }
    // An unkillable call has told it already.
    if receipt.survivors > 0 && status != Status::Unkillable {
        let survivors = quantity::count(receipt.survivors, "process", "processes");
        remarks.push(Remark::error(format!("{survivors} could not be shown to be dead")));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Exit, KillReason};
    use crate::cli::interrupts::Interrupt;
    use crate::cli::report::{Weight, render, sample};

    fn circumstances(asked: Asked) -> Circumstances {
        Circumstances { asked, timeout: None, streamed: false, disturbance: None }
    }

    fn told(outcome: &Outcome, circumstances: &Circumstances) -> String {
        render(&remarks(outcome, circumstances), false, false)
    }

    fn of_command(outcome: &Outcome) -> String {
        told(outcome, &circumstances(Asked::Command))
    }

    fn killed(status: Status, reason: KillReason) -> Outcome {
        let mut outcome = sample::outcome(status, None);
        outcome.termination = Some(Termination::Killed);
        outcome.receipt = Some(sample::receipt(reason));
        outcome
    }

    fn signalled(name: &str) -> Option<Exit> {
        Some(Exit { code: None, signal: Some(name.into()) })
    }

    fn exited(code: i32) -> Option<Exit> {
        Some(Exit { code: Some(code), signal: None })
    }

    #[test]
    fn success_says_nothing() {
        assert_eq!(of_command(&sample::outcome(Status::Ok, exited(0))), "");
    }

    #[test]
    fn background_processes_are_counted() {
        let mut outcome = sample::outcome(Status::Ok, exited(0));
        let mut receipt = sample::receipt(KillReason::Finished);
        receipt.background_killed = 2;
        outcome.receipt = Some(receipt.clone());
        assert_eq!(of_command(&outcome), "toolexec: killed 2 background processes that the tool had left\n");
        receipt.background_killed = 1;
        receipt.confirmed = false;
        receipt.survivors = 1;
        outcome.receipt = Some(receipt);
        assert_eq!(
            of_command(&outcome),
            "toolexec: sent SIGKILL to 1 background process that the tool had left; not all of it is confirmed\n\
             toolexec: 1 process could not be shown to be dead\n"
        );
    }

    #[test]
    fn a_commands_own_status_is_told_where_it_is_ambiguous() {
        assert_eq!(of_command(&sample::outcome(Status::Error, exited(3))), "");
        assert_eq!(of_command(&sample::outcome(Status::Error, exited(123))), "");
        for code in [124, 125, 127, 139, 255] {
            let expected = format!("toolexec: the command itself exited with {code}\n");
            assert_eq!(of_command(&sample::outcome(Status::Error, exited(code))), expected);
        }
    }

    #[test]
    fn a_tools_failure_is_told_under_its_name() {
        let mut outcome = sample::outcome(Status::Error, exited(1));
        outcome.tool = "find".into();
        assert_eq!(told(&outcome, &circumstances(Asked::Tool)), "toolexec: find: answered with an error\n");
        outcome.message = Some("no such pattern".into());
        assert_eq!(told(&outcome, &circumstances(Asked::Tool)), "toolexec: find: no such pattern\n");
    }

    #[test]
    fn a_timeout_proves_the_death() {
        let mut outcome = killed(Status::TimedOut, KillReason::Deadline);
        assert_eq!(
            of_command(&outcome),
            "toolexec: timed out after 1s; killed, tree confirmed dead 0.3 ms after the deadline (pid-namespace)\n"
        );
        let precise = Circumstances { timeout: Some(Duration::from_micros(1500)), ..circumstances(Asked::Command) };
        assert!(told(&outcome, &precise).starts_with("toolexec: timed out after 1.5ms; killed"));
        if let Some(receipt) = &mut outcome.receipt {
            receipt.strength = KillStrength::ProcessGroup;
        }
        assert_eq!(
            of_command(&outcome),
            "toolexec: timed out after 1s; killed, process group confirmed dead 0.3 ms after the deadline (process-group)\n"
        );
        outcome.termination = Some(Termination::Returned);
        assert!(of_command(&outcome).starts_with("toolexec: timed out after 1s; process group confirmed dead"));
    }

    #[test]
    fn an_interrupt_is_named() {
        let interrupted = |interrupt| Circumstances {
            disturbance: Some(Disturbance::Interrupted(interrupt)),
            ..circumstances(Asked::Command)
        };
        assert_eq!(
            told(&killed(Status::Cancelled, KillReason::Cancelled), &interrupted(Interrupt::Keyboard)),
            "toolexec: interrupted by SIGINT; killed, tree confirmed dead 0.3 ms after the signal (pid-namespace)\n"
        );
        let mut not_started = sample::outcome(Status::Cancelled, None);
        not_started.started = false;
        assert_eq!(
            told(&not_started, &interrupted(Interrupt::Terminate)),
            "toolexec: interrupted by SIGTERM before it was started\n"
        );
    }

    #[test]
    fn a_reader_that_went_away_is_told_nothing() {
        let gone = Circumstances { disturbance: Some(Disturbance::ReaderGone), ..circumstances(Asked::Command) };
        assert_eq!(told(&killed(Status::Cancelled, KillReason::ReaderGone), &gone), "");
    }

    #[test]
    fn a_crash_names_its_signal() {
        assert_eq!(of_command(&sample::outcome(Status::Crashed, signalled("SIGSEGV"))), "toolexec: ended by SIGSEGV\n");
    }

    #[test]
    fn refusals_and_failures_say_why_and_are_said_even_quietly() {
        for status in [Status::Rejected, Status::Failed] {
            let mut outcome = sample::outcome(status, None);
            outcome.message = Some("there is no tool \"x\"".into());
            let remarks = remarks(&outcome, &circumstances(Asked::Tool));
            assert_eq!(render(&remarks, true, false), "toolexec: there is no tool \"x\"\n");
        }
        let mut not_found = sample::outcome(Status::Failed, None);
        not_found.message = Some("/bin/sh: the command cannot be found".into());
        assert_eq!(of_command(&not_found), "toolexec: /bin/sh: the command cannot be found\n");
        assert_eq!(
            of_command(&sample::outcome(Status::Failed, None)),
            "toolexec: the call could not be brought to its end\n"
        );
    }

    #[test]
    fn an_unkillable_call_says_who_may_be_left() {
        let mut outcome = killed(Status::Unkillable, KillReason::Deadline);
        outcome.termination = None;
        if let Some(receipt) = &mut outcome.receipt {
            receipt.confirmed = false;
            receipt.survivors = 3;
        }
        assert_eq!(
            of_command(&outcome),
            "toolexec: SIGKILL was sent, and the death was not confirmed in time: 3 processes may still be running\n"
        );
    }

    #[test]
    fn dropped_and_replaced_bytes_are_told() {
        let mut outcome = sample::outcome(Status::Ok, exited(0));
        outcome.stdout.bytes = 5000;
        outcome.stdout.dropped = 4000;
        outcome.stderr.lossy = true;
        assert_eq!(
            of_command(&outcome),
            "toolexec: dropped 4000 bytes of the 5000 that were written to standard output: more than is kept\n\
             toolexec: standard error has bytes that are not UTF-8; they are shown as \u{fffd}\n"
        );
    }

    #[test]
    fn output_that_was_given_up_is_counted() {
        let remark = given_up(Target::Output, 65536, Duration::from_millis(250));
        assert_eq!(
            remark.text,
            "standard output was not read for 250ms after the end of the call; gave up 65536 bytes of it"
        );
        assert_eq!(remark.weight, Weight::Failure);
    }

    /// Every combination of what an outcome can hold: "killed" is never said of an unconfirmed death.
    #[test]
    fn killed_is_never_said_without_a_confirmed_death() {
        let statuses = [
            Status::Ok,
            Status::Error,
            Status::TimedOut,
            Status::Cancelled,
            Status::Crashed,
            Status::Rejected,
            Status::Failed,
            Status::Unkillable,
        ];
        let reasons = [
            KillReason::Finished,
            KillReason::Deadline,
            KillReason::Cancelled,
            KillReason::ReaderGone,
            KillReason::Closed,
            KillReason::Protocol,
            KillReason::Lost,
        ];
        let strengths =
            [KillStrength::ProcessGroup, KillStrength::Subreaper, KillStrength::Cgroup, KillStrength::PidNamespace];
        let disturbances = [
            None,
            Some(Disturbance::ReaderGone),
            Some(Disturbance::OutputFailed),
            Some(Disturbance::Interrupted(Interrupt::Keyboard)),
        ];
        let mut said = 0;
        for status in statuses {
            for reason in reasons.map(Some).into_iter().chain([None]) {
                for strength in strengths {
                    for termination in [None, Some(Termination::Returned), Some(Termination::Killed)] {
                        for (confirmed, signalled, background, survivors) in every_receipt() {
                            for disturbance in disturbances {
                                for asked in [Asked::Command, Asked::Tool] {
                                    let mut outcome = sample::outcome(status, None);
                                    outcome.termination = termination;
                                    outcome.receipt = reason.map(|reason| Receipt {
                                        strength,
                                        confirmed,
                                        signalled_after_us: signalled,
                                        background_killed: background,
                                        survivors,
                                        ..sample::receipt(reason)
                                    });
                                    let confirmed = outcome.receipt.as_ref().is_some_and(|receipt| receipt.confirmed);
                                    let circumstances =
                                        Circumstances { asked, timeout: None, streamed: false, disturbance };
                                    let text = told(&outcome, &circumstances);
                                    assert!(confirmed || !text.contains("killed"), "{text} {outcome:?}");
                                    said += usize::from(text.contains("killed"));
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(said > 0);
    }

    fn every_receipt() -> Vec<(bool, Option<u64>, u32, u32)> {
        let mut receipts = Vec::new();
        for confirmed in [false, true] {
            for signalled in [None, Some(5)] {
                for background in [0, 2] {
                    for survivors in [0, 1] {
                        receipts.push((confirmed, signalled, background, survivors));
                    }
                }
            }
        }
        receipts
    }
}
