//! Who is asked before a call, and what was said. Nobody is asked twice about one call, and never about two at once.

use super::Context;
use crate::call::RequestedCall;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What becomes of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is run.
    Proceed,
    /// It is not run, and the model reads `rejected`.
    Reject,
    /// It is not run, and the model reads why: `rejected: reason`.
    RejectBecause(String),
    /// It is not run: this is its result. A string is read as it is, any other value as JSON.
    Reply(Value),
    /// Nothing of the batch is run until a human has said what becomes of it.
    Pause,
}

/// Asked before a batch is run, about one call after the other.
pub trait Gate: Send + Sync {
    /// What becomes of this call, in this context.
    fn judge(&self, call: &RequestedCall, context: &Context) -> Verdict;
}

impl<F: Fn(&RequestedCall, &Context) -> Verdict + Send + Sync> Gate for F {
    fn judge(&self, call: &RequestedCall, context: &Context) -> Verdict {
        self(call, context)
    }
}

/// The verdicts so far, by the ids of the calls. They outlive a pause, so that a resumed batch asks nobody again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdicts(BTreeMap<String, Verdict>);

impl Verdicts {
    /// The verdict on a call: the one that was given, else the gate's.
    pub fn judge(&mut self, call: &RequestedCall, context: &Context, gate: &dyn Gate) -> &Verdict {
        self.0.entry(call.id.clone()).or_insert_with(|| gate.judge(call, context))
    }

    /// The verdict that was given on this call.
    pub fn get(&self, id: &str) -> Option<&Verdict> {
        self.0.get(id)
    }

    /// Gives a verdict, unless there is one: the first stands, and `false` says so.
    pub fn give(&mut self, id: &str, verdict: Verdict) -> bool {
        let given = self.0.contains_key(id);
        if !given {
            self.decide(id, verdict);
        }
        !given
    }

    /// Puts this verdict in the place of any that was given.
    pub(super) fn decide(&mut self, id: &str, verdict: Verdict) {
        self.0.insert(id.to_owned(), verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_call_is_judged_once() {
        let asked = AtomicUsize::new(0);
        let gate = |_: &RequestedCall, _: &Context| {
            asked.fetch_add(1, Ordering::Relaxed);
            Verdict::Reject
        };
        let call = RequestedCall { id: "1".into(), name: "a".into(), arguments: String::new() };
        let mut verdicts = Verdicts::default();
        for _ in 0..3 {
            assert_eq!(verdicts.judge(&call, &Context::default(), &gate), &Verdict::Reject);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(!verdicts.give("1", Verdict::Proceed));
        assert!(verdicts.give("2", Verdict::Proceed));
        assert_eq!(verdicts.get("1"), Some(&Verdict::Reject));
    }

    #[test]
    fn verdicts_have_a_stable_form() {
        let mut verdicts = Verdicts::default();
        verdicts.decide("1", Verdict::Proceed);
        verdicts.decide("2", Verdict::RejectBecause("too late".into()));
        verdicts.decide("3", Verdict::Reply(Value::from("yes")));
        let text = r#"{"1":"proceed","2":{"reject_because":"too late"},"3":{"reply":"yes"}}"#;
        assert_eq!(serde_json::to_string(&verdicts).unwrap(), text);
        assert_eq!(serde_json::from_str::<Verdicts>(text).unwrap(), verdicts);
    }
}
