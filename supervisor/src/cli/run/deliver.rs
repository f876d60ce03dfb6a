//! After the call: what is left of its output, what toolexec has to say, and the exit code.

use super::super::exit_code::{self, Disturbance};
use super::super::interrupts::Interrupt;
use super::super::lane::{Lane, Target, WriteEnd, while_moving};
use super::super::relay::{Both, Relay};
use super::super::report::outcome::{Circumstances, given_up, over_the_bound, remarks};
use super::super::report::{Remark, render};
use super::perform::Performed;
use super::{Facts, Manner, Outlets, PATIENCE};
use crate::call::{Outcome, Status};
use std::time::{Duration, Instant};

/// Tells the outcome and closes the executor at the same time; gives back the exit code.
pub(super) async fn deliver(
    performed: Performed,
    relay: Option<Relay>,
    facts: &Facts,
    interrupt: Option<Interrupt>,
    manner: Manner,
    outlets: &Outlets,
) -> u8 {
    let Performed { outcome, at, executor } = performed;
    let closing = async {
        match executor {
            Some(executor) => executor.close().await.unconfirmed,
            None => 0,
        }
    };
    let telling = tell(&outcome, at, relay, facts, interrupt, manner, outlets);
    let (code, unconfirmed) = tokio::join!(telling, closing);
    if unconfirmed > 0 && outcome.status != Status::Unkillable && !manner.json {
        let remark = Remark::error(format!("the death of {unconfirmed} of the workers was not confirmed"));
        say(&[remark], Some(Instant::now()), manner, outlets).await;
    }
    code
}

async fn tell(
    outcome: &Outcome,
    at: Instant,
    relay: Option<Relay>,
    facts: &Facts,
    interrupt: Option<Interrupt>,
    manner: Manner,
    outlets: &Outlets,
) -> u8 {
    let streamed = relay.is_some();
    // Since when the reader has had nothing to wait for but itself.
    let since = at.checked_sub(Duration::from_micros(outcome.timing.drain_us)).unwrap_or(at);
    let is_bounded = interrupt.is_some() || (streamed && !is_waited_for(outcome.status));
    let bounded = is_bounded.then_some(since);
    let mut own = Vec::new();
    let given_up_bytes = match relay {
        Some(relay) => finish_stream(relay, bounded, outcome, &mut own, outlets).await,
        None if manner.json => write_all([json_line(outcome), Vec::new()], bounded, outlets).await,
        None => write_all(collected(outcome), bounded, outlets).await,
    };
    let ends = Both { output: outlets.output.end(), error: outlets.error.end() };
    let gave_up = given_up_bytes != Both::default();
    let disturbance = disturbance(interrupt, outcome.status, gave_up, [&ends.output, &ends.error]);
    let sides =
        [(Target::Output, given_up_bytes.output, ends.output), (Target::Error, given_up_bytes.error, ends.error)];
    for (target, bytes, end) in sides {
        match end {
            // Whoever has read enough, as `head` does, wants to read no more.
            Some(WriteEnd::ReaderGone) => {}
            Some(WriteEnd::Failed(why)) => own.push(Remark::error(format!("cannot write to {}: {why}", target.name()))),
            None if bytes > 0 => own.push(given_up(target, bytes, PATIENCE)),
            None => {}
        }
    }
    if !manner.json {
        let circumstances = Circumstances { asked: facts.asked, timeout: facts.timeout, streamed, disturbance };
        own.extend(remarks(outcome, &circumstances));
    }
    // A reader of both that stood still already is not waited for a second time.
    let heard_since = if gave_up && Target::are_one() { since } else { Instant::now() };
    say(&own, bounded.map(|_| heard_since), manner, outlets).await;
    exit_code::of(outcome, facts.asked, disturbance)
}

/// Whether the reader of the output is waited for without a bound: so it is for a tool that ended by itself.
fn is_waited_for(status: Status) -> bool {
    match status {
        Status::Ok | Status::Error | Status::Crashed | Status::Rejected => true,
        Status::TimedOut | Status::Cancelled | Status::Failed | Status::Unkillable => false,
    }
}

/// What happened to toolexec, from what it was told and from how its writing ended.
fn disturbance(
    interrupt: Option<Interrupt>,
    status: Status,
    gave_up: bool,
    ends: [&Option<WriteEnd>; 2],
) -> Option<Disturbance> {
    let failed = ends.iter().any(|end| matches!(end, Some(WriteEnd::Failed(_))));
    let gone = ends.iter().any(|end| **end == Some(WriteEnd::ReaderGone));
    match interrupt {
        // What the signal did explains the outcome better than what became of the output then.
        Some(interrupt) if status == Status::Cancelled => Some(Disturbance::Interrupted(interrupt)),
        _ if failed => Some(Disturbance::OutputFailed),
        _ if gone => Some(Disturbance::ReaderGone),
        Some(interrupt) if gave_up && is_waited_for(status) => Some(Disturbance::CutShort(interrupt)),
        Some(interrupt) => Some(Disturbance::Interrupted(interrupt)),
        None => None,
    }
}

fn json_line(outcome: &Outcome) -> Vec<u8> {
    // An outcome holds nothing that JSON cannot: texts, numbers, and JSON.
    let line = serde_json::to_string(outcome).unwrap_or_else(|error| {
        serde_json::json!({ "version": 1, "status": "failed", "message": error.to_string() }).to_string()
    });
    (line + "\n").into_bytes()
}

/// What goes to standard output and to standard error.
fn collected(outcome: &Outcome) -> [Vec<u8>; 2] {
    let mut output = outcome.stdout.text.clone().into_bytes();
    // The result of a command is what it has written.
    let returned = outcome.result.as_ref().filter(|_| outcome.exit.is_none());
    if let Some(result) = returned {
        output.extend_from_slice(result.get().as_bytes());
        output.push(b'\n');
    }
    [output, outcome.stderr.text.clone().into_bytes()]
}

/// Writes to both to the end, or until that cannot be; how it ended is remembered by the lanes. With `since`, only as
/// long as a reader takes something. The bytes that were given up are given back.
async fn write_all(bytes: [Vec<u8>; 2], since: Option<Instant>, outlets: &Outlets) -> Both<u64> {
    let Outlets { output, error, .. } = outlets;
    let write = |lane, bytes: Vec<u8>| async move {
        // A lane that has nothing to write here may stand still for another reason.
        if !bytes.is_empty() && Lane::write(lane, bytes).await.is_ok() {
            let _remembered_by_the_lane = lane.flushed().await;
        }
    };
    let [to_output, to_error] = bytes;
    let writing = async { tokio::join!(write(output, to_output), write(error, to_error)) };
    match since {
        None => {
            writing.await;
        }
        Some(since) => {
            while_moving([output, error], since, PATIENCE, writing).await;
        }
    }
    Both { output: output.behind(), error: error.behind() }
}

/// Writes what is left of a stream; with `since`, only as long as a reader takes something. What the bound dropped is
/// remarked, and the bytes that were given up are given back.
async fn finish_stream(
    mut relay: Relay,
    since: Option<Instant>,
    outcome: &Outcome,
    remarks: &mut Vec<Remark>,
    outlets: &Outlets,
) -> Both<u64> {
    let Outlets { output, error, .. } = outlets;
    // All was sent before the outcome was there. Should a sender be left alive somewhere, nobody waits for it.
    relay.close();
    let rest = async {
        relay.pass_on(output, error).await;
        tokio::join!(output.flushed(), error.flushed())
    };
    let finished = match since {
        None => Some(rest.await),
        Some(since) => while_moving([output, error], since, PATIENCE, rest).await,
    };
    let dropped = relay.dropped();
    remarks.extend(over_the_bound(Target::Output, dropped.output.bytes, dropped.output.of));
    remarks.extend(over_the_bound(Target::Error, dropped.error.bytes, dropped.error.of));
    // What the executor gave up before, and what is given up here.
    let mut given_up = Both { output: outcome.stdout.dropped, error: outcome.stderr.dropped };
    if finished.is_none() {
        let left = relay.left();
        given_up.output += left.output + output.behind();
        given_up.error += left.error + error.behind();
    }
    given_up
}

/// Says something on standard error; with `since`, only as long as its reader takes something.
async fn say(remarks: &[Remark], since: Option<Instant>, manner: Manner, outlets: &Outlets) {
    let mut text = render(remarks, manner.quiet, manner.colours);
    if text.is_empty() {
        return;
    }
    if outlets.are_in_a_line() {
        text.insert(0, '\n');
    }
    // Where nobody listens there is nobody else to be told.
    let _given_up = write_all([Vec::new(), text.into_bytes()], since, outlets).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disturbance_that_explains_the_outcome_is_told() {
        let signal = Some(Interrupt::Keyboard);
        let interrupted = Some(Disturbance::Interrupted(Interrupt::Keyboard));
        let (gone, failed) = (&Some(WriteEnd::ReaderGone), &Some(WriteEnd::Failed("no space".into())));
        let cases = [
            (None, Status::Ok, false, [&None, &None], None),
            (None, Status::Ok, false, [gone, &None], Some(Disturbance::ReaderGone)),
            (None, Status::Cancelled, true, [&None, gone], Some(Disturbance::ReaderGone)),
            (None, Status::Ok, false, [gone, failed], Some(Disturbance::OutputFailed)),
            (None, Status::TimedOut, true, [&None, &None], None),
            (signal, Status::Cancelled, true, [gone, &None], interrupted),
            (signal, Status::Ok, false, [gone, &None], Some(Disturbance::ReaderGone)),
            (signal, Status::Ok, false, [&None, &None], interrupted),
            (signal, Status::Ok, true, [&None, &None], Some(Disturbance::CutShort(Interrupt::Keyboard))),
            (signal, Status::TimedOut, true, [&None, &None], interrupted),
        ];
        for (interrupt, status, gave_up, ends, expected) in cases {
            assert_eq!(disturbance(interrupt, status, gave_up, ends), expected, "{interrupt:?} {status:?} {ends:?}");
        }
    }
}
