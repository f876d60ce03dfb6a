//! How the writes of a batch become the next context: slot by slot, in the order of the calls and not of their ends.

use super::{Context, Writes};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How one slot takes a write.
pub trait Reducer: fmt::Debug + Send + Sync {
    /// What the slot holds before anything was written.
    fn init(&self) -> Value;

    /// What the slot holds after `write`, or why it cannot be taken.
    fn reduce(&self, held: Value, write: &Value) -> Result<Value, String>;
}

/// The last write in call order stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastWriter;

impl Reducer for LastWriter {
    fn init(&self) -> Value {
        Value::Null
    }

    fn reduce(&self, _: Value, write: &Value) -> Result<Value, String> {
        Ok(write.clone())
    }
}

/// Each write becomes one more element of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Append;

impl Reducer for Append {
    fn init(&self) -> Value {
        Value::Array(Vec::new())
    }

    fn reduce(&self, held: Value, write: &Value) -> Result<Value, String> {
        let Value::Array(mut elements) = held else {
            return Err(format!("the slot holds {} and not an array", kind(&held)));
        };
        elements.push(write.clone());
        Ok(Value::Array(elements))
    }
}

/// The writes are added up: whole numbers exactly, as far as 128 bits go; others as floating-point numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sum;

impl Reducer for Sum {
    fn init(&self) -> Value {
        Value::from(0)
    }

    fn reduce(&self, held: Value, write: &Value) -> Result<Value, String> {
        let Value::Number(held) = &held else {
            return Err(format!("the slot holds {} and not a number", kind(&held)));
        };
        let Value::Number(write) = write else {
            return Err(format!("{} cannot be added", kind(write)));
        };
        let sum = match (held.as_i128(), write.as_i128()) {
            (Some(held), Some(write)) => held.checked_add(write).and_then(Number::from_i128),
            _ => match (held.as_f64(), write.as_f64()) {
                (Some(held), Some(write)) => Number::from_f64(held + write),
                _ => None,
            },
        };
        sum.map(Value::Number).ok_or_else(|| format!("the sum of {held} and {write} is too large"))
    }
}

/// Each write is an object whose keys replace those of the slot's object; others stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Merge;

impl Reducer for Merge {
    fn init(&self) -> Value {
        Value::Object(Map::new())
    }

    fn reduce(&self, held: Value, write: &Value) -> Result<Value, String> {
        let Value::Object(mut keys) = held else {
            return Err(format!("the slot holds {} and not an object", kind(&held)));
        };
        let Value::Object(write) = write else {
            return Err(format!("{} cannot be merged", kind(write)));
        };
        keys.extend(write.iter().map(|(key, value)| (key.clone(), value.clone())));
        Ok(Value::Object(keys))
    }
}

/// The declared slots.
#[derive(Clone, Debug, Default)]
pub struct Slots(BTreeMap<String, Arc<dyn Reducer>>);

/// A slot was declared twice: no winner is picked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("slot {0:?} is declared already")]
pub struct AlreadyDeclared(pub String);

/// What a batch's writes have come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folded {
    /// The next context.
    pub context: Context,
    /// Where the result depends on the order of the calls and nobody has said that it may.
    pub conflicts: Vec<Conflict>,
}

/// Several calls of one batch have written one slot that nobody has declared; the last of them has won.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The slot.
    pub slot: String,
    /// The ids of the calls, in call order.
    pub calls: Vec<String>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slot, calls } = self;
        write!(f, "calls {} have written the undeclared slot {slot:?}; the last one counts", calls.join(", "))
    }
}

/// A write that its slot's reducer does not take. Nothing of the batch was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("slot {slot:?} cannot take what call {call} has written: {reason}")]
pub struct FoldError {
    /// The slot.
    pub slot: String,
    /// The call's id.
    pub call: String,
    /// The reducer's own words.
    pub reason: String,
}

impl Slots {
    /// The same, and one more slot.
    pub fn declare(
        mut self,
        slot: impl Into<String>,
        reducer: impl Reducer + 'static,
    ) -> Result<Self, AlreadyDeclared> {
        let slot = slot.into();
        if self.0.contains_key(&slot) {
            return Err(AlreadyDeclared(slot));
        }
        self.0.insert(slot, Arc::new(reducer));
        Ok(self)
    }

    /// A context in which each declared slot holds what it begins with.
    pub fn initial(&self) -> Context {
        self.0.iter().map(|(slot, reducer)| (slot.clone(), reducer.init())).collect::<BTreeMap<_, _>>().into()
    }

    /// Folds what the calls, named by their ids, have written; `writes` is in call order. All of it or nothing.
    pub fn fold<'a>(
        &self,
        context: &Context,
        writes: impl IntoIterator<Item = (&'a str, &'a Writes)>,
    ) -> Result<Folded, FoldError> {
        let mut slots = BTreeMap::from(context.clone());
        let mut undeclared = BTreeMap::<&str, Vec<&str>>::new();
        for (call, writes) in writes {
            for (slot, write) in writes.slots() {
                let next = match self.0.get(slot) {
                    Some(reducer) => {
                        let held = slots.remove(slot).unwrap_or_else(|| reducer.init());
                        reducer.reduce(held, write).map_err(|reason| FoldError {
                            slot: slot.to_owned(),
                            call: call.to_owned(),
                            reason,
                        })?
                    }
                    None => {
                        undeclared.entry(slot).or_default().push(call);
                        write.clone()
                    }
                };
                slots.insert(slot.to_owned(), next);
            }
        }
        let conflicts = undeclared
            .into_iter()
            .filter(|(_, calls)| calls.len() > 1)
            .map(|(slot, calls)| Conflict {
                slot: slot.to_owned(),
                calls: calls.into_iter().map(str::to_owned).collect(),
            })
            .collect();
        Ok(Folded { context: slots.into(), conflicts })
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slots() -> Slots {
        Slots::default()
            .declare("log", Append)
            .and_then(|slots| slots.declare("total", Sum))
            .and_then(|slots| slots.declare("facts", Merge))
            .and_then(|slots| slots.declare("mood", LastWriter))
            .unwrap()
    }

    #[test]
    fn declared_slots_take_their_writes_in_call_order() {
        let one = Writes::default().with("log", "a").with("total", 2).with("facts", json!({"x": 1, "y": 1}));
        let two =
            Writes::default().with("log", "b").with("total", 40).with("facts", json!({"y": 2})).with("mood", "ok");
        let folded = slots().fold(&Context::default(), [("1", &one), ("2", &two)]).unwrap();
        let expected = json!({"log": ["a", "b"], "total": 42, "facts": {"x": 1, "y": 2}, "mood": "ok"});
        assert_eq!(serde_json::to_value(&folded.context).unwrap(), expected);
        assert_eq!(folded.conflicts, []);
    }

    #[test]
    fn an_undeclared_slot_takes_the_last_write_and_the_conflict_is_told() {
        let one = Writes::default().with("x", 1).with("y", 1);
        let two = Writes::default().with("x", 2);
        let folded = slots().fold(&Context::default(), [("first", &one), ("second", &two)]).unwrap();
        assert_eq!(folded.context.get("x"), Some(&json!(2)));
        let [conflict] = folded.conflicts.as_slice() else { panic!("{:?}", folded.conflicts) };
        assert_eq!(conflict, &Conflict { slot: "x".into(), calls: vec!["first".into(), "second".into()] });
        let text = r#"calls first, second have written the undeclared slot "x"; the last one counts"#;
        assert_eq!(conflict.to_string(), text);
    }

    #[test]
    fn one_write_that_is_not_taken_leaves_everything_as_it_was() {
        let before = Context::default().with("total", 1);
        let one = Writes::default().with("log", "a").with("total", 2);
        let two = Writes::default().with("total", "three");
        let error = slots().fold(&before, [("one", &one), ("two", &two)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"slot "total" cannot take what call two has written: a string cannot be added"#
        );
        assert_eq!(before, Context::default().with("total", 1));
    }

    #[test]
    fn a_slot_that_holds_something_else_is_named() {
        let before = Context::default().with("log", 1);
        let error = slots().fold(&before, [("one", &Writes::default().with("log", "a"))]).unwrap_err();
        assert_eq!(error.reason, "the slot holds a number and not an array");
    }

    #[test]
    fn sums_of_whole_numbers_are_exact_and_never_wrap() {
        let sum = |held: &str, write: &str| {
            let [held, write] = [held, write].map(|text| serde_json::from_str::<Value>(text).unwrap());
            Sum.reduce(held, &write).map(|sum| sum.to_string())
        };
        assert_eq!(sum("9007199254740993", "18446744073709551615"), Ok("18455751272964292608".into()));
        assert_eq!(sum("0.5", "1"), Ok("1.5".into()));
        assert!(sum(&i128::MAX.to_string(), "1").unwrap_err().ends_with("is too large"));
        assert!(sum("1e308", "1e308").unwrap_err().ends_with("is too large"));
    }

    #[test]
    fn a_slot_is_declared_once() {
        assert_eq!(slots().declare("log", Sum).unwrap_err(), AlreadyDeclared("log".into()));
    }

    #[test]
    fn declared_slots_begin_with_what_their_reducer_says() {
        let expected = json!({"log": [], "total": 0, "facts": {}, "mood": null});
        assert_eq!(serde_json::to_value(slots().initial()).unwrap(), expected);
    }
}
