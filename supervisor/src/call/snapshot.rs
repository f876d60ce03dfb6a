//! What the calls of a conversation know in common: named slots, as they were when the round began.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The slots as they were at one moment. Whoever holds a context sees it unchanged, whatever others write; a clone
/// costs a counter.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Value>", into = "BTreeMap<String, Value>")]
pub struct Context(Arc<BTreeMap<String, Value>>);

impl Context {
    /// A slot's value.
    pub fn get(&self, slot: &str) -> Option<&Value> {
        self.0.get(slot)
    }

    /// All slots in the order of their names.
    pub fn slots(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(slot, value)| (slot.as_str(), value))
    }

    /// The slots as the text of a JSON object; `None` where there are none.
    pub(crate) fn to_json(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        // Values that were read from JSON can be written as JSON.
        serde_json::to_string(&*self.0).ok()
    }

    /// A context like this one but for one slot.
    #[must_use]
    pub fn with(&self, slot: impl Into<String>, value: impl Into<Value>) -> Self {
        let mut slots = BTreeMap::clone(&self.0);
        slots.insert(slot.into(), value.into());
        Self(Arc::new(slots))
    }
}

impl From<BTreeMap<String, Value>> for Context {
    fn from(slots: BTreeMap<String, Value>) -> Self {
        Self(Arc::new(slots))
    }
}

impl From<Context> for BTreeMap<String, Value> {
    fn from(context: Context) -> Self {
        Arc::unwrap_or_clone(context.0)
    }
}

/// What one call wants written into the slots. It takes effect only when the whole batch is over, and only if the call
/// succeeded.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Writes(BTreeMap<String, Value>);

impl Writes {
    /// The same, and one more slot; a slot that was there is replaced.
    #[must_use]
    pub fn with(mut self, slot: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(slot.into(), value.into());
        self
    }

    /// As [`Context::to_json`].
    pub(crate) fn to_json(&self) -> Option<String> {
        if self.0.is_empty() { None } else { serde_json::to_string(&self.0).ok() }
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is written, in the order of the slots' names.
    pub fn slots(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(slot, value)| (slot.as_str(), value))
    }
}

impl From<BTreeMap<String, Value>> for Writes {
    fn from(slots: BTreeMap<String, Value>) -> Self {
        Self(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_keeps_its_values_whatever_is_made_of_it() {
        let before = Context::default().with("a", 1);
        let after = before.with("a", 2).with("b", "new");
        assert_eq!(before.get("a"), Some(&Value::from(1)));
        assert_eq!(before.get("b"), None);
        assert_eq!(after.get("a"), Some(&Value::from(2)));
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"big":123456789012345678901234567890,"money":1.10}"#;
        let context: Context = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&context).unwrap(), text);
        let writes: Writes = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&writes).unwrap(), text);
    }
}
