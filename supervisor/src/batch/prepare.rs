//! From what a model has asked for to what is to be run: each call judged, or the whole batch paused.

use super::assemble::{Assembly, Place};
use super::finished::Finished;
use super::pause::{BeforeExecution, OnError, PauseState};
use super::{Context, Gate, ToolRecord, Verdict, Verdicts};
use crate::call::RequestedCall;
use std::collections::BTreeSet;

/// What a tool's declaration says to a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Declared {
    /// There is such a tool.
    Known {
        /// Whether a batch with a call of it is run one call after the other.
        serial: bool,
        /// Whether its result may be the answer to the user.
        return_direct: bool,
    },
    /// There is none: nobody is asked, nothing is run, and the model reads this.
    Unknown {
        /// Such as which tools there are.
        message: String,
    },
}

/// The calls of one answer of a model, each with an id of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    calls: Vec<(RequestedCall, Declared)>,
}

/// What a batch begins with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// What each call of the batch sees.
    pub context: Context,
    /// The records so far; those of the batch come behind them.
    pub records: Vec<ToolRecord>,
    /// How many more rounds there may be after this batch; kept for the caller over a pause.
    pub remaining: Option<u32>,
    /// What becomes of failures of class environment.
    pub on_error: OnError,
}

/// Why calls cannot be a batch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BatchError {
    /// Each call has to get its own answer, and an answer names its call by the id alone.
    #[error("several calls have the same id: {}", .0.join(", "))]
    DuplicateIds(Vec<String>),
}

/// A batch that can be run, or waits for somebody.
#[derive(Debug)]
pub enum Prepared {
    /// To be run, as [`Assembly::plan`] says.
    Ready(Assembly),
    /// A verdict is missing.
    Paused(PauseState),
}

impl Batch {
    /// A batch of these calls, with what their tools declare.
    pub fn new(
        calls: Vec<RequestedCall>,
        mut declared: impl FnMut(&RequestedCall) -> Declared,
    ) -> Result<Self, BatchError> {
        let duplicates = duplicates(calls.iter().map(|call| call.id.as_str()));
        if !duplicates.is_empty() {
            return Err(BatchError::DuplicateIds(duplicates));
        }
        let calls = calls
            .into_iter()
            .map(|call| {
                let declared = declared(&call);
                (call, declared)
            })
            .collect();
        Ok(Self { calls })
    }

    /// The calls that somebody has to be asked about, in order: those of tools that there are.
    pub fn to_be_judged(&self) -> impl Iterator<Item = &RequestedCall> {
        self.calls.iter().filter_map(|(call, declared)| match declared {
            Declared::Known { .. } => Some(call),
            Declared::Unknown { .. } => None,
        })
    }

    /// Asks the gate about each call, in order; without a gate all proceed.
    pub fn prepare(self, gate: Option<&dyn Gate>, round: Round) -> Prepared {
        let mut verdicts = Verdicts::default();
        for call in self.to_be_judged() {
            match gate {
                Some(gate) => {
                    verdicts.judge(call, &round.context, gate);
                }
                None => {
                    verdicts.give(&call.id, Verdict::Proceed);
                }
            }
        }
        self.prepare_judged(verdicts, round)
    }

    /// The same where the verdicts were given in another way, such as by somebody who had to be awaited. A call without
    /// one is rejected: what was not judged is not run.
    pub fn prepare_judged(self, verdicts: Verdicts, round: Round) -> Prepared {
        let pending = self.calls.iter().find_map(|(call, declared)| match declared {
            Declared::Known { .. } if verdicts.get(&call.id) == Some(&Verdict::Pause) => Some(call.clone()),
            Declared::Known { .. } | Declared::Unknown { .. } => None,
        });
        if let Some(pending) = pending {
            let calls = self.calls.into_iter().map(|(call, _)| call).collect();
            return Prepared::Paused(PauseState::BeforeExecution(BeforeExecution::new(
                calls, verdicts, pending, round,
            )));
        }
        let lane = self.calls.iter().any(|(_, declared)| matches!(declared, Declared::Known { serial: true, .. }));
        let places = self.calls.into_iter().map(|(call, declared)| place(call, declared, &verdicts)).collect();
        Prepared::Ready(Assembly::new(places, lane, round))
    }
}

fn place(call: RequestedCall, declared: Declared, verdicts: &Verdicts) -> Place {
    let return_direct = match declared {
        Declared::Known { return_direct, .. } => return_direct,
        Declared::Unknown { .. } => return Place::run(call, declared),
    };
    let finished = match verdicts.get(&call.id) {
        Some(Verdict::Proceed) => return Place::run(call, declared),
        Some(Verdict::Reject) => Finished::rejected(&call, None),
        Some(Verdict::RejectBecause(reason)) => Finished::rejected(&call, Some(reason)),
        Some(Verdict::Reply(value)) => Finished::replied(&call, value),
        // Also a tool that was not known when the batch was paused, and is now.
        None | Some(Verdict::Pause) => Finished::rejected(&call, Some("nobody was asked about it")),
    };
    Place::answered(call, finished, return_direct)
}

/// The ids that are there more than once.
pub(super) fn duplicates<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let duplicates: BTreeSet<_> = ids.filter(|id| !seen.insert(*id)).collect();
    duplicates.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::script::{call, known, ready};
    use super::*;
    use crate::batch::Plan;
    use std::sync::Mutex;

    #[test]
    fn two_calls_of_one_id_are_no_batch() {
        let error = Batch::new(vec![call("1", "a"), call("2", "a"), call("1", "b")], known).unwrap_err();
        assert_eq!(error.to_string(), "several calls have the same id: 1");
    }

    #[test]
    fn the_gate_is_asked_once_about_each_known_tool_and_in_order() {
        let asked = Mutex::new(Vec::new());
        let gate = |call: &RequestedCall, context: &Context| {
            assert_eq!(context.get("user"), Some(&"ada".into()));
            asked.lock().unwrap().push(call.id.clone());
            if call.id == "2" { Verdict::Pause } else { Verdict::Proceed }
        };
        let calls = ["1", "2", "3", "4"].map(|id| call(id, if id == "3" { "unknown" } else { "tool" }));
        let round = Round { context: Context::default().with("user", "ada"), ..Round::default() };
        let prepared = Batch::new(calls.to_vec(), known).unwrap().prepare(Some(&gate), round);
        assert!(matches!(prepared, Prepared::Paused(_)));
        assert_eq!(*asked.lock().unwrap(), ["1", "2", "4"]);
    }

    #[test]
    fn one_serial_call_makes_the_whole_batch_a_lane() {
        let calls = || vec![call("1", "tool"), call("2", "tool")];
        assert_eq!(ready(calls()).plan(), Plan::Free(vec![0, 1]));
        let calls = vec![call("1", "tool"), call("2", "serial")];
        assert_eq!(ready(calls).plan(), Plan::Lane(vec![0, 1]));
    }
}
