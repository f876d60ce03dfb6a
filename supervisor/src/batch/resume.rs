//! What becomes of a paused batch when somebody has decided. Nobody who was asked is asked again, and nothing that has
//! run is run again but what failed.

use super::assemble::{Assembly, Place};
use super::pause::{AfterExecution, BeforeExecution, OnError, PauseState};
use super::{Batch, BatchError, Declared, Prepared, Verdict};
use crate::call::RequestedCall;

/// What somebody has decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// On the pending call of a batch that was not run. [`Verdict::Pause`] leaves it paused.
    Judged(Verdict),
    /// The environment is mended: what it has failed is run again.
    Retry,
    /// The environment is as it is: its failures go to the model.
    Proceed,
    /// Nobody will decide: what was not run is answered so, and nothing is run.
    Cancel,
}

/// Why a paused batch cannot go on like this.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResumeError {
    /// It was not run yet.
    #[error("a batch that was not run yet waits for a verdict, not for a retry")]
    NotRunYet,
    /// It was run already.
    #[error("a batch that was run already waits for a retry or for going on, not for a verdict")]
    RunAlready,
    /// Its calls are no batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// Goes on with a paused batch; `declared` is what the tools declare today. The state stays with the caller, who can
/// store it again if this fails. An [`Assembly`] with nothing to run has only to be finished.
///
/// `on_error` is for a batch that was not run yet; one that is retried pauses again if the environment fails again.
pub fn resume(
    state: &PauseState,
    decision: Decision,
    on_error: OnError,
    declared: impl FnMut(&RequestedCall) -> Declared,
) -> Result<Prepared, ResumeError> {
    match (state, decision) {
        (PauseState::BeforeExecution(pause), Decision::Judged(verdict)) => judged(pause, verdict, on_error, declared),
        (PauseState::AfterExecution(pause), Decision::Retry) => Ok(retried(pause, declared)),
        (PauseState::AfterExecution(pause), Decision::Proceed | Decision::Cancel) => Ok(left(pause, declared)),
        (PauseState::BeforeExecution(pause), Decision::Cancel) => cancelled(pause, declared),
        (PauseState::BeforeExecution(_), Decision::Retry | Decision::Proceed) => Err(ResumeError::NotRunYet),
        (PauseState::AfterExecution(_), Decision::Judged(_)) => Err(ResumeError::RunAlready),
    }
}

fn judged(
    pause: &BeforeExecution,
    verdict: Verdict,
    on_error: OnError,
    declared: impl FnMut(&RequestedCall) -> Declared,
) -> Result<Prepared, ResumeError> {
    let mut verdicts = pause.verdicts().clone();
    verdicts.decide(&pause.pending().id, verdict);
    let batch = Batch::new(pause.calls().to_vec(), declared)?;
    Ok(batch.prepare_judged(verdicts, pause.round(on_error)))
}

fn cancelled(
    pause: &BeforeExecution,
    declared: impl FnMut(&RequestedCall) -> Declared,
) -> Result<Prepared, ResumeError> {
    let mut verdicts = pause.verdicts().clone();
    for call in pause.calls() {
        if verdicts.get(&call.id) == Some(&Verdict::Pause) {
            verdicts.decide(&call.id, Verdict::Proceed);
        }
    }
    let mut prepared =
        Batch::new(pause.calls().to_vec(), declared)?.prepare_judged(verdicts, pause.round(OnError::Proceed));
    if let Prepared::Ready(assembly) = &mut prepared {
        assembly.on_cancelled();
    }
    Ok(prepared)
}

fn retried(pause: &AfterExecution, mut declared: impl FnMut(&RequestedCall) -> Declared) -> Prepared {
    let mut lane = false;
    let places = places(pause, |call| {
        let declared = declared(call);
        let failed = pause.failed().iter().any(|failed| failed.id == call.id);
        if let Declared::Known { serial: true, .. } = declared
            && failed
        {
            lane = true;
        }
        (declared, failed)
    });
    Prepared::Ready(Assembly::new(places, lane, pause.round(OnError::Pause)))
}

fn left(pause: &AfterExecution, mut declared: impl FnMut(&RequestedCall) -> Declared) -> Prepared {
    let places = places(pause, |call| (declared(call), false));
    Prepared::Ready(Assembly::new(places, false, pause.round(OnError::Proceed)))
}

/// A place for each message: to be run, if `look` says so, or as it is.
fn places(pause: &AfterExecution, mut look: impl FnMut(&RequestedCall) -> (Declared, bool)) -> Vec<Place> {
    let mut places = Vec::with_capacity(pause.messages().len());
    for message in pause.messages() {
        let id = &message.tool_return.id;
        let call = pause.failed().iter().find(|failed| failed.id == *id).cloned().unwrap_or_else(|| RequestedCall {
            id: id.clone(),
            name: message.tool_return.name.clone(),
            arguments: String::new(),
        });
        let (declared, again) = look(&call);
        places.push(match (declared, again) {
            (declared, true) => Place::run(call, declared),
            (declared, false) => {
                let error = pause.errors().iter().find(|error| error.id == *id).cloned();
                let return_direct = matches!(declared, Declared::Known { return_direct: true, .. });
                Place::kept(message.clone(), error, return_direct)
            }
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::script::{
        call, failed, finished, known, log, paused, paused_after, paused_before, ready_in, returned, running, told,
    };
    use super::*;
    use crate::batch::{Context, Plan, Round, Writes};
    use serde_json::json;
    use toolexec_protocol::failure::ErrorClass;

    fn go_on(state: &PauseState, decision: Decision) -> Prepared {
        resume(state, decision, OnError::Proceed, known).unwrap()
    }

    fn write(text: &str) -> Writes {
        Writes::default().with("log", text)
    }

    #[test]
    fn an_approved_call_is_run_with_the_others_and_the_other_verdicts_stand() {
        let mut batch = running(go_on(&paused_before(), Decision::Judged(Verdict::Proceed)));
        assert_eq!(batch.plan(), Plan::Free(vec![0, 1]));
        batch.on_outcome(1, returned("of b"));
        batch.on_outcome(0, returned("of a"));
        let result = finished(batch.finish(&log()));
        let expected = [("a", "of a"), ("b", "of b"), ("c", "rejected: not now"), ("d", "as \u{e4}lways")];
        assert_eq!(told(&result), expected);
        let records: Vec<_> = result.records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(records, ["0", "a", "b", "c", "d"]);
    }

    #[test]
    fn a_call_that_is_not_approved_is_answered_and_the_others_are_run() {
        let batch = running(go_on(&paused_before(), Decision::Judged(Verdict::Reject)));
        assert_eq!(batch.plan(), Plan::Free(vec![0]));
        let batch = running(go_on(&paused_before(), Decision::Judged(Verdict::Reply("by hand".into()))));
        assert_eq!(told(&finished(batch.finish(&log())))[1], ("b", "by hand"));
    }

    #[test]
    fn a_human_who_does_not_decide_leaves_it_paused() {
        let state = paused_before();
        let Prepared::Paused(again) = go_on(&state, Decision::Judged(Verdict::Pause)) else { panic!("runs") };
        assert_eq!(again, state);
    }

    #[test]
    fn calls_that_wait_for_approval_are_asked_for_one_after_the_other() {
        let gate = |_: &RequestedCall, _: &Context| Verdict::Pause;
        let calls = vec![call("a", "tool"), call("b", "tool")];
        let prepared = Batch::new(calls, known).unwrap().prepare(Some(&gate), Round::default());
        let Prepared::Paused(first) = prepared else { panic!("runs") };
        assert_eq!(first.to_string(), "tool waits for approval");
        let Prepared::Paused(second) = go_on(&first, Decision::Judged(Verdict::Proceed)) else { panic!("runs") };
        let PauseState::BeforeExecution(pause) = &second else { panic!("{second}") };
        assert_eq!(pause.pending().id, "b");
        assert_eq!(running(go_on(&second, Decision::Judged(Verdict::Reject))).plan(), Plan::Free(vec![0]));
    }

    #[test]
    fn a_tool_that_appeared_while_the_batch_was_paused_is_not_run_unasked() {
        let gate = |_: &RequestedCall, _: &Context| Verdict::Pause;
        let calls = vec![call("a", "unknown"), call("b", "tool")];
        let Prepared::Paused(state) = Batch::new(calls, known).unwrap().prepare(Some(&gate), Round::default()) else {
            panic!("runs")
        };
        let all = |_: &RequestedCall| Declared::Known { serial: false, return_direct: false };
        let batch = running(resume(&state, Decision::Judged(Verdict::Proceed), OnError::Proceed, all).unwrap());
        assert_eq!(batch.plan(), Plan::Free(vec![1]));
        assert_eq!(told(&finished(batch.finish(&log())))[0], ("a", "rejected: nobody was asked about it"));
    }

    #[test]
    fn a_retry_runs_what_the_environment_has_failed_and_nothing_else() {
        let mut batch = running(go_on(&paused_after(), Decision::Retry));
        assert_eq!(batch.plan(), Plan::Free(vec![1, 3]));
        assert_eq!(batch.call(1).map(|call| call.arguments.as_str()), Some(r#"{"of":"b"}"#));
        // As the first time: nobody sees what a sibling has written.
        assert_eq!(batch.context().get("log"), Some(&json!([])));
        batch.on_outcome(3, returned("of d").with_writes(write("d")));
        batch.on_outcome(1, returned("of b").with_writes(write("b")));
        let result = finished(batch.finish(&log()));
        assert_eq!(told(&result), [("a", "1.10"), ("b", "of b"), ("c", "Error: no such file"), ("d", "of d")]);
        // In call order, as if nothing had failed.
        assert_eq!(result.context.get("log"), Some(&json!(["a", "b", "d"])));
        assert_eq!(result.errors.iter().map(|error| error.id.as_str()).collect::<Vec<_>>(), ["c"]);
        let records: Vec<_> = result.records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(records, ["0", "a", "b", "c", "d", "b", "d"]);
    }

    #[test]
    fn a_retry_that_the_environment_fails_again_pauses_again() {
        let mut batch = running(go_on(&paused_after(), Decision::Retry));
        batch.on_outcome(1, returned("of b").with_writes(write("b")));
        batch.on_outcome(3, failed(ErrorClass::Environment, "still full"));
        let state = paused(batch.finish(&log()));
        assert_eq!(state.to_string(), "the environment has failed tool: still full");
        let mut batch = running(go_on(&state, Decision::Retry));
        assert_eq!(batch.plan(), Plan::Free(vec![3]));
        batch.on_outcome(3, returned("of d").with_writes(write("d")));
        let result = finished(batch.finish(&log()));
        assert_eq!(told(&result), [("a", "1.10"), ("b", "of b"), ("c", "Error: no such file"), ("d", "of d")]);
        assert_eq!(result.context.get("log"), Some(&json!(["a", "b", "d"])));
    }

    #[test]
    fn what_a_closed_engine_did_not_run_waits_for_another_where_the_policy_is_to_pause() {
        let round = Round { on_error: OnError::Pause, ..Round::default() };
        let mut batch = ready_in(vec![call("a", "tool"), call("b", "tool")], round);
        assert!(batch.on_started(0));
        batch.on_closed();
        batch.on_outcome(0, returned("just in time"));
        let state = paused(batch.finish(&log()));
        assert_eq!(running(go_on(&state, Decision::Retry)).plan(), Plan::Free(vec![1]));
    }

    #[test]
    fn a_cancelled_batch_does_not_wait_for_anybody() {
        let round = Round { on_error: OnError::Pause, ..Round::default() };
        let mut batch = ready_in(vec![call("a", "tool")], round);
        assert!(batch.on_started(0));
        batch.on_cancelled();
        batch.on_outcome(0, failed(ErrorClass::Environment, "no network"));
        assert_eq!(told(&finished(batch.finish(&log()))), [("a", "Error: no network")]);
    }

    #[test]
    fn whoever_goes_on_gives_the_failures_to_the_model() {
        let batch = running(go_on(&paused_after(), Decision::Proceed));
        assert!(batch.is_complete());
        let result = finished(batch.finish(&log()));
        let expected = [
            ("a", "1.10"),
            ("b", "Error: not logged in"),
            ("c", "Error: no such file"),
            ("d", "Error: the disk is full"),
        ];
        assert_eq!(told(&result), expected);
        assert_eq!(result.errors.iter().map(|error| error.id.as_str()).collect::<Vec<_>>(), ["b", "c", "d"]);
        assert_eq!(result.context.get("log"), Some(&json!(["a"])));
        assert_eq!(result.records.len(), 5);
    }

    #[test]
    fn a_pause_that_nobody_resumes_is_answered_without_running_anything() {
        let batch = running(go_on(&paused_before(), Decision::Cancel));
        assert!(batch.is_complete());
        let result = finished(batch.finish(&log()));
        let not_run = "not run: it was cancelled before it was started; ask again if it is still needed";
        let expected = [("a", not_run), ("b", not_run), ("c", "rejected: not now"), ("d", "as \u{e4}lways")];
        assert_eq!(told(&result), expected);
        let batch = running(go_on(&paused_after(), Decision::Cancel));
        assert_eq!(told(&finished(batch.finish(&log())))[1], ("b", "Error: not logged in"));
    }

    #[test]
    fn a_decision_of_the_other_kind_is_refused() {
        let refused = |state: &PauseState, decision| resume(state, decision, OnError::Proceed, known).map(drop);
        assert_eq!(refused(&paused_before(), Decision::Retry), Err(ResumeError::NotRunYet));
        assert_eq!(refused(&paused_before(), Decision::Proceed), Err(ResumeError::NotRunYet));
        assert_eq!(refused(&paused_after(), Decision::Judged(Verdict::Proceed)), Err(ResumeError::RunAlready));
    }
}
