//! How much a turn may do. Looked at between batches: what has run is never taken back, and what runs is not cut off.

use super::ToolRecord;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// The limits of one turn: from what a user has said to the answer. All are off unless set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// How many calls of one tool.
    pub calls_per_tool: Option<NonZeroU32>,
    /// How many calls in all.
    pub calls_per_turn: Option<NonZeroU32>,
    /// How many batches.
    pub rounds: Option<NonZeroU32>,
}

/// A limit that is reached: there is no next batch in this turn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitReached {
    /// [`Limits::calls_per_tool`].
    #[error("tool {tool:?} has been called {limit} times or more in this turn")]
    CallsPerTool {
        /// The tool.
        tool: String,
        /// The limit.
        limit: NonZeroU32,
    },
    /// [`Limits::calls_per_turn`].
    #[error("{0} calls or more have been made in this turn")]
    CallsPerTurn(NonZeroU32),
    /// [`Limits::rounds`].
    #[error("the turn has had its {0} rounds of calls")]
    Rounds(NonZeroU32),
}

impl Limits {
    /// What [`super::Round::remaining`] is counted down from; `None` is no limit.
    pub fn first_remaining(&self) -> Option<u32> {
        self.rounds.map(NonZeroU32::get)
    }

    /// Whether there may be another batch, after the batches of this turn that `records` tell of. Calls that were not
    /// run do not count. `remaining` is how many rounds there may still be, this one included; [`super::Round::remaining`] is
    /// then one less.
    pub fn check(&self, remaining: Option<u32>, records: &[ToolRecord]) -> Result<(), LimitReached> {
        if let (Some(limit), Some(0)) = (self.rounds, remaining) {
            return Err(LimitReached::Rounds(limit));
        }
        let executed = || records.iter().filter(|record| record.executed);
        if let Some(limit) = self.calls_per_turn
            && reached(executed().count(), limit)
        {
            return Err(LimitReached::CallsPerTurn(limit));
        }
        if let Some(limit) = self.calls_per_tool {
            let mut calls = BTreeMap::<&str, usize>::new();
            for record in executed() {
                *calls.entry(&record.name).or_default() += 1;
            }
            if let Some((tool, _)) = calls.into_iter().find(|(_, count)| reached(*count, limit)) {
                return Err(LimitReached::CallsPerTool { tool: tool.to_owned(), limit });
            }
        }
        Ok(())
    }
}

fn reached(count: usize, limit: NonZeroU32) -> bool {
    u32::try_from(count).map_or(true, |count| count >= limit.get())
}

#[cfg(test)]
mod tests {
    use super::super::script::{call, returned};
    use super::*;

    /// Records of calls of these tools; one whose name begins with `!` was not run.
    fn records(names: &[&str]) -> Vec<ToolRecord> {
        let calls = names.iter().enumerate().map(|(index, name)| call(&index.to_string(), name)).collect();
        let mut batch = super::super::script::ready(calls);
        for (index, name) in names.iter().enumerate() {
            if !name.starts_with('!') {
                batch.on_outcome(index, returned("done"));
            }
        }
        super::super::script::finish(batch).records
    }

    #[test]
    fn without_limits_nothing_is_too_much() {
        assert_eq!(Limits::default().check(Some(0), &records(&["a"; 50])), Ok(()));
        assert_eq!(Limits::default().first_remaining(), None);
    }

    #[test]
    fn a_tool_is_called_so_often_and_no_more() {
        let limit = NonZeroU32::new(2).unwrap();
        let limits = Limits { calls_per_tool: Some(limit), ..Limits::default() };
        assert_eq!(limits.check(None, &records(&["a", "b", "!a", "c"])), Ok(()));
        let error = limits.check(None, &records(&["a", "b", "a"])).unwrap_err();
        assert_eq!(error, LimitReached::CallsPerTool { tool: "a".into(), limit });
        assert_eq!(error.to_string(), r#"tool "a" has been called 2 times or more in this turn"#);
    }

    #[test]
    fn a_turn_has_so_many_calls_and_rounds() {
        let limit = NonZeroU32::new(2).unwrap();
        let limits = Limits { calls_per_turn: Some(limit), rounds: Some(limit), ..Limits::default() };
        assert_eq!(limits.first_remaining(), Some(2));
        assert_eq!(limits.check(Some(2), &records(&["a"])), Ok(()));
        assert_eq!(limits.check(Some(1), &records(&["a", "b", "c"])), Err(LimitReached::CallsPerTurn(limit)));
        assert_eq!(limits.check(Some(0), &[]), Err(LimitReached::Rounds(limit)));
    }
}
