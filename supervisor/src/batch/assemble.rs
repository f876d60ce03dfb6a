//! The assembly of a batch: pure. It is told what came of each call, in whatever order, and gives one result in which
//! each call is answered once, in the order in which the model asked. It runs nothing and waits for nothing.

use super::finished::{Finished, Withdrawal};
use super::pause::{AfterExecution, OnError, PauseState};
use super::{
    CallError, Conflict, Context, Declared, FoldError, Folded, Round, Slots, ToolExecutionResult, ToolMessage,
    ToolRecord,
};
use crate::call::RequestedCall;
use toolexec_protocol::failure::ErrorClass;

/// Which calls are to be run, by their places in the batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// One after the other, in this order.
    Lane(Vec<usize>),
    /// In any order, or at once.
    Free(Vec<usize>),
}

/// A batch that is being run.
#[derive(Debug)]
pub struct Assembly {
    places: Vec<Place>,
    lane: bool,
    round: Round,
    withdrawn: Option<Withdrawal>,
}

/// What a batch has come to.
#[derive(Debug)]
pub struct Assembled {
    /// The result, or what has to be decided before there is one.
    pub settled: Settled,
    /// Writes to undeclared slots that depend on the order of the calls; to be told to the operator.
    pub conflicts: Vec<Conflict>,
    /// Why none of the batch's writes is in the context, where a reducer has failed. The answers stand all the same: the
    /// calls were run.
    pub fold_error: Option<FoldError>,
    /// The ids of the calls that were started and of which no outcome came: an observer has not heard of them yet.
    pub lost: Vec<String>,
}

/// How a batch goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Back to the model, or to the user.
    Finished(ToolExecutionResult),
    /// Somebody has to look after the environment first.
    Paused(PauseState),
}

/// A call's place in the batch.
#[derive(Debug)]
pub(super) struct Place {
    return_direct: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// To be run.
    Waiting(RequestedCall),
    /// Handed out.
    Started(RequestedCall),
    /// Answered in this run of the batch.
    Answered { message: ToolMessage, record: Box<ToolRecord> },
    /// Answered before the batch was paused; its record is among those that the round began with.
    Kept { message: ToolMessage, error: Option<CallError> },
}

impl Assembly {
    pub(super) fn new(places: Vec<Place>, lane: bool, round: Round) -> Self {
        Self { places, lane, round, withdrawn: None }
    }

    /// What is to be run and was not started yet. A call is to be run only if [`Assembly::on_started`] says so too.
    pub fn plan(&self) -> Plan {
        let waiting = self
            .places
            .iter()
            .enumerate()
            .filter(|(_, place)| matches!(place.state, State::Waiting(_)))
            .map(|(index, _)| index)
            .collect();
        if self.lane { Plan::Lane(waiting) } else { Plan::Free(waiting) }
    }

    /// The call at this place, as long as it is not answered.
    pub fn call(&self, index: usize) -> Option<&RequestedCall> {
        match &self.places.get(index)?.state {
            State::Waiting(call) | State::Started(call) => Some(call),
            State::Answered { .. } | State::Kept { .. } => None,
        }
    }

    /// What every call of the batch sees, whatever the others write.
    pub fn context(&self) -> &Context {
        &self.round.context
    }

    /// A call is about to be handed out. `false`: it must not be, since it is answered, was withdrawn or is out already.
    pub fn on_started(&mut self, index: usize) -> bool {
        let Some(place) = self.places.get_mut(index) else {
            return false;
        };
        let State::Waiting(call) = &place.state else {
            return false;
        };
        place.state = State::Started(call.clone());
        true
    }

    /// A call that was handed out is over. The record is for an observer, who so hears of each executed call once;
    /// `None`: the call has its answer already, and this one is dropped.
    pub fn on_outcome(&mut self, index: usize, finished: Finished) -> Option<&ToolRecord> {
        let place = self.places.get_mut(index)?;
        place.answer(finished, true)
    }

    /// Whoever ran this call is gone and has left no outcome.
    pub fn on_lost(&mut self, index: usize) -> Option<&ToolRecord> {
        let place = self.places.get_mut(index)?;
        let State::Started(call) = &place.state else {
            return None;
        };
        let finished = Finished::lost(call);
        place.answer(finished, true)
    }

    /// The caller has withdrawn the batch: what was not started is answered and never will be. What was started is to be
    /// ended by the engine, and its outcome is awaited.
    pub fn on_cancelled(&mut self) {
        self.withdraw(Withdrawal::Cancelled);
    }

    /// The same for an engine that is closed.
    pub fn on_closed(&mut self) {
        self.withdraw(Withdrawal::Closed);
    }

    /// Whether each call has its answer.
    pub fn is_complete(&self) -> bool {
        self.places.iter().all(|place| matches!(place.state, State::Answered { .. } | State::Kept { .. }))
    }

    /// Ends the batch. A call that has no answer by now gets one that says what is known: that it was not run, or that
    /// its outcome is not known.
    pub fn finish(mut self, slots: &Slots) -> Assembled {
        let mut lost = Vec::new();
        for index in 0..self.places.len() {
            if let Some(record) = self.on_lost(index) {
                lost.push(record.id.clone());
            }
        }
        self.answer_waiting(self.withdrawn.unwrap_or(Withdrawal::Cancelled));
        let failed = self.to_be_mended();
        let return_direct = self.direct();
        let remaining = self.round.remaining;
        let Answers { messages, records, errors, context } = self.into_answers();
        if !failed.is_empty() {
            let pause = AfterExecution::new(messages, failed, errors, remaining, records, context);
            let settled = Settled::Paused(PauseState::AfterExecution(pause));
            return Assembled { settled, conflicts: Vec::new(), fold_error: None, lost };
        }
        let written = messages
            .iter()
            .filter(|message| !message.tool_return.is_error)
            .map(|message| (message.tool_return.id.as_str(), &message.writes));
        let (context, conflicts, fold_error) = match slots.fold(&context, written) {
            Ok(Folded { context, conflicts }) => (context, conflicts, None),
            Err(error) => (context, Vec::new(), Some(error)),
        };
        let result = ToolExecutionResult { messages, records, context, errors, return_direct };
        Assembled { settled: Settled::Finished(result), conflicts, fold_error, lost }
    }

    fn withdraw(&mut self, withdrawal: Withdrawal) {
        let first = *self.withdrawn.get_or_insert(withdrawal);
        self.answer_waiting(first);
    }

    fn answer_waiting(&mut self, withdrawal: Withdrawal) {
        for place in &mut self.places {
            if let State::Waiting(call) = &place.state {
                let finished = Finished::not_run(call, withdrawal);
                place.answer(finished, false);
            }
        }
    }

    /// The calls that the environment has failed, if the policy is to pause for them. Who has cancelled a batch does not
    /// wait for it any more.
    fn to_be_mended(&self) -> Vec<RequestedCall> {
        match (self.round.on_error, self.withdrawn) {
            (OnError::Proceed, _) | (OnError::Pause, Some(Withdrawal::Cancelled)) => return Vec::new(),
            (OnError::Pause, Some(Withdrawal::Closed) | None) => {}
        }
        self.places
            .iter()
            .filter_map(|place| match &place.state {
                State::Answered { record, .. } if record.class == Some(ErrorClass::Environment) => Some(record.call()),
                State::Answered { .. } | State::Kept { .. } | State::Waiting(_) | State::Started(_) => None,
            })
            .collect()
    }

    fn direct(&self) -> Option<String> {
        let mut texts = Vec::with_capacity(self.places.len());
        for place in &self.places {
            match &place.state {
                State::Answered { message, .. } | State::Kept { message, .. }
                    if place.return_direct && !message.tool_return.is_error =>
                {
                    texts.push(message.tool_return.content.as_str());
                }
                State::Answered { .. } | State::Kept { .. } | State::Waiting(_) | State::Started(_) => return None,
            }
        }
        if texts.is_empty() { None } else { Some(texts.join("\n")) }
    }

    fn into_answers(self) -> Answers {
        let Round { context, mut records, .. } = self.round;
        let mut messages = Vec::with_capacity(self.places.len());
        let mut errors = Vec::new();
        for place in self.places {
            match place.state {
                State::Answered { message, record } => {
                    messages.push(message);
                    errors.extend(record.error());
                    records.push(*record);
                }
                State::Kept { message, error } => {
                    messages.push(message);
                    errors.extend(error);
                }
                // `finish` has answered all.
                State::Waiting(_) | State::Started(_) => {}
            }
        }
        Answers { messages, records, errors, context }
    }
}

struct Answers {
    messages: Vec<ToolMessage>,
    records: Vec<ToolRecord>,
    errors: Vec<CallError>,
    context: Context,
}

impl Place {
    pub(super) fn waiting(call: RequestedCall, return_direct: bool) -> Self {
        Self { return_direct, state: State::Waiting(call) }
    }

    /// A call that nothing keeps from being run, if its tool is still known.
    pub(super) fn run(call: RequestedCall, declared: Declared) -> Self {
        match declared {
            Declared::Known { return_direct, .. } => Self::waiting(call, return_direct),
            Declared::Unknown { message } => {
                let finished = Finished::unknown(&call, message);
                Self::answered(call, finished, false)
            }
        }
    }

    /// A call that is answered without being run.
    pub(super) fn answered(call: RequestedCall, finished: Finished, return_direct: bool) -> Self {
        let mut place = Self::waiting(call, return_direct);
        place.answer(finished, false);
        place
    }

    /// A call that was answered before the batch was paused.
    pub(super) fn kept(message: ToolMessage, error: Option<CallError>, return_direct: bool) -> Self {
        Self { return_direct, state: State::Kept { message, error } }
    }

    fn answer(&mut self, finished: Finished, executed: bool) -> Option<&ToolRecord> {
        let (State::Waiting(call) | State::Started(call)) = &self.state else {
            return None;
        };
        let (message, record) = finished.answer(call, executed, self.return_direct);
        self.state = State::Answered { message, record: Box::new(record) };
        match &self.state {
            State::Answered { record, .. } => Some(record),
            State::Waiting(_) | State::Started(_) | State::Kept { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{call, failed, finish, finished, known, ready, ready_in, returned, running, told};
    use super::*;
    use crate::batch::{Append, Batch, Prepared, Sum, Verdict, Writes};
    use crate::call::{Code, Status};
    use proptest::prelude::*;
    use serde_json::json;

    fn executed(record: Option<&ToolRecord>) -> Option<&str> {
        record.map(|record| record.id.as_str())
    }

    #[test]
    fn messages_and_records_are_in_the_order_of_the_calls_whoever_ends_first() {
        let mut batch = ready(vec![call("a", "tool"), call("b", "tool"), call("c", "tool")]);
        for (index, id) in [(2, "c"), (0, "a"), (1, "b")] {
            assert!(batch.on_started(index));
            assert!(!batch.is_complete());
            assert_eq!(executed(batch.on_outcome(index, returned(format!("of {id}")))), Some(id));
        }
        assert!(batch.is_complete());
        let result = finish(batch);
        assert_eq!(told(&result), [("a", "of a"), ("b", "of b"), ("c", "of c")]);
        let records: Vec<_> = result.records.iter().map(|record| (record.id.as_str(), record.executed)).collect();
        assert_eq!(records, [("a", true), ("b", true), ("c", true)]);
        assert_eq!(result.errors, []);
    }

    #[test]
    fn a_second_outcome_is_dropped_and_told_to_nobody() {
        let mut batch = ready(vec![call("a", "tool")]);
        assert_eq!(executed(batch.on_outcome(0, failed(ErrorClass::Transient, "first"))), Some("a"));
        assert_eq!(batch.on_outcome(0, returned("late").with_writes(Writes::default().with("x", 1))), None);
        assert_eq!(batch.on_lost(0), None);
        assert_eq!(batch.on_outcome(7, returned("of nobody")), None);
        let result = finish(batch);
        assert_eq!(told(&result), [("a", "Error: first")]);
        assert_eq!(result.context, Context::default());
    }

    #[test]
    fn what_a_verdict_answers_is_not_run_and_not_observed() {
        let gate = |call: &RequestedCall, _: &Context| match call.id.as_str() {
            "no" => Verdict::Reject,
            "why" => Verdict::RejectBecause("the file is mine".into()),
            "text" => Verdict::Reply("as you like".into()),
            "json" => Verdict::Reply(json!({"n": 1})),
            _ => Verdict::Proceed,
        };
        let mut calls: Vec<_> = ["no", "why", "text", "json", "run"].map(|id| call(id, "tool")).into();
        calls.push(call("new", "unknown"));
        let mut batch = running(Batch::new(calls, known).unwrap().prepare(Some(&gate), Round::default()));
        assert_eq!(batch.plan(), Plan::Free(vec![4]));
        for index in [0, 1, 2, 3, 5] {
            assert!(!batch.on_started(index));
            assert_eq!(batch.on_outcome(index, returned("run all the same")), None);
        }
        assert_eq!(executed(batch.on_outcome(4, returned("done"))), Some("run"));
        let result = finish(batch);
        let expected = [
            ("no", "rejected"),
            ("why", "rejected: the file is mine"),
            ("text", "as you like"),
            ("json", r#"{"n":1}"#),
            ("run", "done"),
            ("new", "Error: there is no tool \"unknown\""),
        ];
        assert_eq!(told(&result), expected);
        let executed: Vec<_> =
            result.records.iter().filter(|record| record.executed).map(|record| &record.id).collect();
        assert_eq!(executed, ["run"]);
        let is_error: Vec<_> = result.messages.iter().map(|message| message.tool_return.is_error).collect();
        assert_eq!(is_error, [true, true, false, false, false, true]);
        // A rejection is a decision and not a failure.
        let errors: Vec<_> = result.errors.iter().map(|error| (error.id.as_str(), error.code)).collect();
        assert_eq!(errors, [("new", Some(Code::UnknownTool))]);
        let rejected = &result.records[0];
        assert_eq!((rejected.status, rejected.code), (Status::Rejected, Some(Code::NotApproved)));
    }

    #[test]
    fn a_cancelled_batch_answers_what_was_not_started_and_waits_for_what_was() {
        let mut batch = ready(vec![call("a", "tool"), call("b", "tool"), call("c", "tool")]);
        assert!(batch.on_started(1));
        batch.on_cancelled();
        assert_eq!(batch.plan(), Plan::Free(vec![]));
        assert!(!batch.on_started(0));
        assert!(!batch.is_complete());
        assert_eq!(executed(batch.on_outcome(1, returned("just in time"))), Some("b"));
        let result = finish(batch);
        let not_run = "not run: it was cancelled before it was started; ask again if it is still needed";
        assert_eq!(told(&result), [("a", not_run), ("b", "just in time"), ("c", not_run)]);
        assert_eq!(result.errors.iter().map(|error| error.code).collect::<Vec<_>>(), [Some(Code::Cancelled); 2]);
        assert!(!result.records[0].executed && !result.records[0].side_effects_possible);
    }

    #[test]
    fn a_closed_engine_says_so_in_the_place_of_what_it_did_not_run() {
        let mut batch = ready(vec![call("a", "tool")]);
        batch.on_closed();
        // The first word counts.
        batch.on_cancelled();
        let result = finish(batch);
        assert_eq!(told(&result), [("a", "not run: tool execution was closed before it was started")]);
        assert_eq!(result.errors[0].class, Some(ErrorClass::Environment));
    }

    #[test]
    fn of_a_call_without_an_outcome_nothing_is_claimed() {
        let mut batch = ready(vec![call("a", "tool"), call("b", "tool"), call("c", "tool")]);
        assert!(batch.on_started(0) && batch.on_started(1));
        assert_eq!(executed(batch.on_lost(0)), Some("a"));
        assert_eq!(batch.on_lost(2), None);
        let assembled = batch.finish(&Slots::default());
        assert_eq!(assembled.lost, ["b"]);
        let result = finished(assembled);
        for message in &result.messages[..2] {
            let content = &message.tool_return.content;
            assert!(content.starts_with("outcome unknown: "), "{content}");
            for claim in ["killed", "stopped", "terminated", "cancelled", "failed"] {
                assert!(!content.contains(claim), "{content}");
            }
        }
        assert!(result.messages[2].tool_return.content.starts_with("not run: "));
        assert_eq!(result.records.iter().map(|record| record.executed).collect::<Vec<_>>(), [true, true, false]);
        assert!(result.records[0].side_effects_possible);
    }

    #[test]
    fn only_what_succeeds_has_writes_and_all_of_them_start_from_one_context() {
        let slots = Slots::default().declare("log", Append).unwrap();
        let context = Context::default().with("log", json!(["before"]));
        let round = Round { context: context.clone(), ..Round::default() };
        let mut batch = ready_in(vec![call("a", "tool"), call("b", "tool"), call("c", "tool")], round);
        let write = |text: &str| Writes::default().with("log", text);
        batch.on_outcome(2, returned("").with_writes(write("c")));
        assert_eq!(batch.context(), &context);
        batch.on_outcome(1, failed(ErrorClass::Semantic, "no").with_writes(write("b")));
        batch.on_outcome(0, returned("").with_writes(write("a")));
        let assembled = batch.finish(&slots);
        assert_eq!(assembled.fold_error, None);
        let result = finished(assembled);
        assert_eq!(result.context.get("log"), Some(&json!(["before", "a", "c"])));
        let writes: Vec<_> = result.messages.iter().map(|message| message.writes.is_empty()).collect();
        assert_eq!(writes, [false, true, false]);
    }

    #[test]
    fn a_reducer_that_fails_takes_no_answer_away() {
        let slots = Slots::default().declare("total", Sum).unwrap();
        let mut batch = ready(vec![call("a", "tool"), call("b", "tool")]);
        batch.on_outcome(0, returned("one").with_writes(Writes::default().with("total", 1)));
        batch.on_outcome(1, returned("two").with_writes(Writes::default().with("total", "two")));
        let assembled = batch.finish(&slots);
        assert_eq!(assembled.fold_error.as_ref().map(|error| error.call.as_str()), Some("b"));
        let result = finished(assembled);
        assert_eq!(told(&result), [("a", "one"), ("b", "two")]);
        assert_eq!(result.context, Context::default());
    }

    #[test]
    fn results_go_to_the_user_only_if_all_calls_say_so_and_none_fails() {
        let run = |names: &[&str], outcomes: Vec<Finished>| {
            let calls = names.iter().enumerate().map(|(index, name)| call(&index.to_string(), name)).collect();
            let mut batch = ready(calls);
            for (index, outcome) in outcomes.into_iter().enumerate() {
                batch.on_outcome(index, outcome);
            }
            finish(batch).return_direct
        };
        assert_eq!(run(&["direct", "direct"], vec![returned("a"), returned("b")]).as_deref(), Some("a\nb"));
        assert_eq!(run(&["direct", "tool"], vec![returned("a"), returned("b")]), None);
        assert_eq!(run(&["direct", "direct"], vec![returned("a"), failed(ErrorClass::Semantic, "b")]), None);
        assert_eq!(run(&["direct", "direct"], vec![returned("a")]), None);
        assert_eq!(run(&[], vec![]), None);
        let gate = |_: &RequestedCall, _: &Context| Verdict::Reject;
        let batch = Batch::new(vec![call("a", "direct")], known).unwrap().prepare(Some(&gate), Round::default());
        assert_eq!(finish(running(batch)).return_direct, None);
    }

    /// What may happen to a batch, in any order.
    #[derive(Clone, Debug)]
    enum Event {
        Started(usize),
        Returned(usize),
        Failed(usize),
        Lost(usize),
        Cancelled,
        Closed,
    }

    fn event() -> impl Strategy<Value = Event> {
        let index = 0..9_usize;
        prop_oneof![
            4 => index.clone().prop_map(Event::Started),
            4 => index.clone().prop_map(Event::Returned),
            2 => index.clone().prop_map(Event::Failed),
            1 => index.prop_map(Event::Lost),
            1 => Just(Event::Cancelled),
            1 => Just(Event::Closed),
        ]
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            4 => Just(Verdict::Proceed),
            1 => Just(Verdict::Reject),
            1 => Just(Verdict::Reply("replied".into())),
        ]
    }

    fn calls(names: &[&str]) -> Vec<RequestedCall> {
        // In an order that is not the ids' own.
        names.iter().enumerate().map(|(index, name)| call(&format!("{}", (index * 5) % 7), name)).collect()
    }

    proptest! {
        #[test]
        fn each_id_is_answered_once_and_in_order_whatever_happens(
            names in prop::collection::vec(prop::sample::select(vec!["tool", "serial", "direct", "unknown"]), 0..7),
            verdicts in prop::collection::vec(verdict(), 7),
            events in prop::collection::vec(event(), 0..40),
        ) {
            let calls = calls(&names);
            let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
            let places = ids.clone();
            let gate = move |call: &RequestedCall, _: &Context| {
                let place = places.iter().position(|id| *id == call.id).unwrap();
                verdicts[place].clone()
            };
            let Prepared::Ready(mut batch) = Batch::new(calls, known).unwrap().prepare(Some(&gate), Round::default())
            else {
                panic!("paused");
            };
            let mut observed = Vec::new();
            for event in events {
                let record = match event {
                    Event::Started(index) => {
                        batch.on_started(index);
                        None
                    }
                    Event::Returned(index) => batch.on_outcome(index, returned("yes")),
                    Event::Failed(index) => batch.on_outcome(index, failed(ErrorClass::Environment, "no")),
                    Event::Lost(index) => batch.on_lost(index),
                    Event::Cancelled => {
                        batch.on_cancelled();
                        None
                    }
                    Event::Closed => {
                        batch.on_closed();
                        None
                    }
                };
                observed.extend(record.map(|record| record.id.clone()));
            }
            let assembled = batch.finish(&Slots::default());
            observed.extend(assembled.lost.clone());
            let result = finished(assembled);
            let answered: Vec<_> = result.messages.iter().map(|message| message.tool_return.id.clone()).collect();
            prop_assert_eq!(&answered, &ids);
            let recorded: Vec<_> = result.records.iter().map(|record| record.id.clone()).collect();
            prop_assert_eq!(&recorded, &ids);
            let mut executed: Vec<_> =
                result.records.iter().filter(|record| record.executed).map(|record| record.id.clone()).collect();
            executed.sort();
            observed.sort();
            prop_assert_eq!(observed, executed);
            for (message, record) in result.messages.iter().zip(&result.records) {
                prop_assert_eq!(message.tool_return.is_error, record.status != Status::Ok);
            }
        }

        #[test]
        fn writes_come_to_the_same_in_whatever_order_the_calls_end(
            order in Just((0..7_usize).collect::<Vec<_>>()).prop_shuffle(),
            fails in prop::collection::vec(any::<bool>(), 7),
        ) {
            let slots = Slots::default().declare("log", Append).unwrap();
            let run = |order: &[usize]| {
                let mut batch = ready(calls(&["tool"; 7]));
                for index in order {
                    let writes = Writes::default().with("log", *index).with("last", *index);
                    let outcome = if fails[*index] { failed(ErrorClass::Transient, "no") } else { returned("yes") };
                    batch.on_outcome(*index, outcome.with_writes(writes));
                }
                let assembled = batch.finish(&slots);
                (assembled.conflicts.clone(), finished(assembled))
            };
            prop_assert_eq!(run(&order), run(&[0, 1, 2, 3, 4, 5, 6]));
        }
    }
}
