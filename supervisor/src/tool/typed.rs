//! From a function with typed arguments to one that takes and returns JSON texts.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolexec_protocol::failure::{ErrorClass, Failure};

/// The arguments as the function takes them. They have passed the schema that was made from the same type; what the type
/// refuses beyond that is for the model to mend.
pub(super) fn read<A: DeserializeOwned>(arguments: &[u8]) -> Result<A, Failure> {
    serde_json::from_slice(arguments)
        .or_else(|error| by_value(arguments).ok_or(error))
        .map_err(|error| Failure::new(ErrorClass::Semantic, format!("the arguments do not fit: {error}")))
}

/// The other way, for types that serde reads into a buffer first (`flatten`, `untagged`, `tag`): reading text that keeps every
/// number's digits, serde_json shows a buffer no numbers; a [`Value`] does.
fn by_value<A: DeserializeOwned>(arguments: &[u8]) -> Option<A> {
    let value: Value = serde_json::from_slice(arguments).ok()?;
    A::deserialize(value).ok()
}

/// What the function has returned, as JSON text.
pub(super) fn write<R: Serialize>(value: &R) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| {
        Failure::new(ErrorClass::Semantic, format!("the tool returned something that is not JSON: {error}"))
    })
}

/// The JSON Schema of a type.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}
