//! What an isolated tool sees of the slots that calls have in common.

use crate::call::{Context, Writes};
use serde_json::Value;
use std::collections::BTreeMap;
use toolexec_protocol::failure::{ErrorClass, Failure};

/// The slots, as an isolated tool sees them: a copy from when the batch began. What it writes takes effect when the whole batch is
/// over, together with what the other calls have written, and only if this call succeeds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IsolatedContext {
    context: Context,
    writes: Writes,
}

impl IsolatedContext {
    pub(super) fn read(json: &[u8]) -> Result<Self, Failure> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let slots: BTreeMap<String, Value> = serde_json::from_slice(json)
            .map_err(|error| Failure::new(ErrorClass::Semantic, format!("the context cannot be read: {error}")))?;
        Ok(Self { context: slots.into(), writes: Writes::default() })
    }

    /// The slots as they were when the batch began.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Wants this value written into a slot. The last of several values for one slot counts.
    pub fn write(&mut self, slot: impl Into<String>, value: impl Into<Value>) {
        self.writes = std::mem::take(&mut self.writes).with(slot, value);
    }

    pub(super) fn into_writes(self) -> Vec<u8> {
        self.writes.to_json().map(String::into_bytes).unwrap_or_default()
    }
}
