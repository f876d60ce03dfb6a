//! Words for the tests of this module: a batch as a script.

use super::{
    Append, Assembled, Assembly, Batch, Context, Declared, Finished, OnError, PauseState, Prepared, Round, Settled,
    Slots, ToolExecutionResult, Verdict, Writes,
};
use crate::call::{CallId, Code, KillReason, Outcome, Receipt, RequestedCall, Status, Termination, Timing};
use proptest::prelude::*;
use serde_json::Value;
use toolexec_protocol::failure::ErrorClass;
use toolexec_protocol::strength::KillStrength;

pub(super) fn call(id: &str, name: &str) -> RequestedCall {
    RequestedCall { id: id.into(), name: name.into(), arguments: format!(r#"{{"of":"{id}"}}"#) }
}

/// What the tools of the scripts declare, each after its name.
pub(super) fn known(call: &RequestedCall) -> Declared {
    match call.name.as_str() {
        "unknown" => Declared::Unknown { message: "there is no tool \"unknown\"".into() },
        name => Declared::Known { serial: name == "serial", return_direct: name.starts_with("direct") },
    }
}

pub(super) fn ready_in(calls: Vec<RequestedCall>, round: Round) -> Assembly {
    running(Batch::new(calls, known).unwrap().prepare(None, round))
}

pub(super) fn ready(calls: Vec<RequestedCall>) -> Assembly {
    ready_in(calls, Round::default())
}

pub(super) fn running(prepared: Prepared) -> Assembly {
    match prepared {
        Prepared::Ready(assembly) => assembly,
        Prepared::Paused(state) => panic!("paused: {state}"),
    }
}

pub(super) fn finished(assembled: Assembled) -> ToolExecutionResult {
    match assembled.settled {
        Settled::Finished(result) => result,
        Settled::Paused(state) => panic!("paused: {state}"),
    }
}

pub(super) fn finish(assembly: Assembly) -> ToolExecutionResult {
    finished(assembly.finish(&Slots::default()))
}

pub(super) fn returned(value: impl Into<Value>) -> Finished {
    let result = serde_json::value::to_raw_value(&value.into()).ok();
    let outcome = Outcome::not_started(CallId::new("of the worker"), "tool");
    Finished::new(Outcome { status: Status::Ok, started: true, attempts: 1, result, ..outcome })
}

pub(super) fn failed(class: ErrorClass, message: &str) -> Finished {
    let outcome = Outcome::not_started(CallId::new("of the worker"), "tool");
    Finished::new(Outcome {
        status: Status::Error,
        code: Some(Code::ToolError),
        class: Some(class),
        started: true,
        attempts: 1,
        message: Some(message.into()),
        ..outcome
    })
}

/// Id and content of each message.
pub(super) fn told(result: &ToolExecutionResult) -> Vec<(&str, &str)> {
    result
        .messages
        .iter()
        .map(|message| (message.tool_return.id.as_str(), message.tool_return.content.as_str()))
        .collect()
}

/// A batch that the gate has paused at call `b`, with one verdict of each kind before and behind it.
pub(super) fn paused_before() -> PauseState {
    let gate = |call: &RequestedCall, _: &Context| match call.id.as_str() {
        "b" => Verdict::Pause,
        "c" => Verdict::RejectBecause("not now".into()),
        "d" => Verdict::Reply("as \u{e4}lways".into()),
        _ => Verdict::Proceed,
    };
    let calls = ["a", "b", "c", "d"].map(|id| call(id, "tool")).to_vec();
    let round = Round { remaining: Some(8), ..first_round() };
    match Batch::new(calls, known).unwrap().prepare(Some(&gate), round) {
        Prepared::Paused(state) => state,
        Prepared::Ready(_) => panic!("not paused"),
    }
}

/// A batch of which the environment has failed `b` and `d`, and the model's own mistake `c`.
pub(super) fn paused_after() -> PauseState {
    let calls = ["a", "b", "c", "d"].map(|id| call(id, "tool")).to_vec();
    let mut batch = ready_in(calls, Round { on_error: OnError::Pause, ..first_round() });
    let write = |text: &str| Writes::default().with("log", text);
    batch.on_outcome(3, failed(ErrorClass::Environment, "the disk is full"));
    batch.on_outcome(0, returned(number("1.10")).with_writes(write("a")));
    batch.on_outcome(2, failed(ErrorClass::Semantic, "no such file"));
    batch.on_outcome(1, failed(ErrorClass::Environment, "not logged in"));
    paused(batch.finish(&log()))
}

/// A round with something in all of its parts.
fn first_round() -> Round {
    let mut earlier = ready(vec![call("0", "tool")]);
    let outcome = Outcome::not_started(CallId::new("of the worker"), "tool");
    earlier.on_outcome(
        0,
        Finished::new(Outcome {
            status: Status::TimedOut,
            code: Some(Code::ToolTimeout),
            class: Some(ErrorClass::Transient),
            termination: Some(Termination::Killed),
            started: true,
            side_effects_possible: true,
            attempts: 3,
            message: Some("tool call timed out after 1000ms".into()),
            timing: Timing {
                queue_us: 1999,
                start_us: 1,
                run_us: 1_000_000,
                kill_us: 2999,
                drain_us: 0,
                total_us: 1_005_000,
            },
            receipt: Some(Receipt {
                strength: KillStrength::PidNamespace,
                reason: KillReason::Deadline,
                deadline_ms: Some(1000),
                signalled_after_us: Some(100),
                dead_after_us: Some(2999),
                confirmed: true,
                survivors: 0,
                background_killed: 0,
            }),
            ..outcome
        }),
    );
    Round {
        context: log().initial().with("digits", number("12345678901234567890123")),
        records: finish(earlier).records,
        remaining: None,
        on_error: OnError::Proceed,
    }
}

pub(super) fn log() -> Slots {
    Slots::default().declare("log", Append).unwrap()
}

pub(super) fn paused(assembled: Assembled) -> PauseState {
    match assembled.settled {
        Settled::Paused(state) => state,
        Settled::Finished(result) => panic!("finished: {result:?}"),
    }
}

pub(super) fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Any JSON value of some depth, whose numbers have any digits.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?(e[1-9][0-9]?)?".prop_map(|text| number(&text)),
    ];
    leaf.prop_recursive(6, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|keys| Value::Object(keys.into_iter().collect())),
        ]
    })
}

/// Any paused batch, by either road.
pub(super) fn any_pause() -> impl Strategy<Value = PauseState> {
    let calls = prop::collection::vec((any::<String>(), any::<String>(), value(), any::<bool>()), 1..5);
    (calls, any::<bool>(), any::<Option<u32>>(), value()).prop_map(|(calls, before, remaining, slot)| {
        let requested = calls.iter().enumerate().map(|(index, (id, arguments, ..))| RequestedCall {
            id: format!("{index}{id}"),
            name: "tool".into(),
            arguments: arguments.clone(),
        });
        let batch = Batch::new(requested.collect(), known).unwrap();
        let round = Round {
            context: Context::default().with("slot", slot),
            remaining,
            on_error: OnError::Pause,
            ..first_round()
        };
        if before {
            let gate = |call: &RequestedCall, _: &Context| match call.id.split_at(1) {
                ("0", _) => Verdict::Pause,
                (_, reason) => Verdict::RejectBecause(reason.into()),
            };
            return match batch.prepare(Some(&gate), round) {
                Prepared::Paused(state) => state,
                Prepared::Ready(_) => panic!("not paused"),
            };
        }
        let mut batch = running(batch.prepare(None, round));
        for (index, (_, text, value, works)) in calls.into_iter().enumerate() {
            let outcome = if works && index > 0 {
                returned(value.clone()).with_writes(Writes::default().with(text, value))
            } else {
                failed(ErrorClass::Environment, &text)
            };
            batch.on_outcome(index, outcome);
        }
        paused(batch.finish(&Slots::default()))
    })
}
