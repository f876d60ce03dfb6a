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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Body, InputSchema, Prepared, ToolSpec};
    use toolexec_protocol::id::ToolName;

    #[derive(serde::Deserialize, PartialEq, Debug, JsonSchema)]
    struct Numbers {
        i64: Option<i64>,
        u64: Option<u64>,
        i128: Option<i128>,
        f64: Option<f64>,
        any: Option<serde_json::Number>,
        list: Option<Vec<u8>>,
    }

    /// What a tool with such arguments gets, or what the model is told.
    fn given(arguments: &str) -> Result<Numbers, String> {
        let input = InputSchema::of_type(schema_of::<Numbers>()).unwrap();
        let tool = ToolSpec { input: Some(input), ..ToolSpec::new(ToolName::new("a").unwrap(), "", Body::Compiled) };
        match tool.prepare(arguments).map_err(|error| error.to_string())? {
            Prepared::Tool { arguments } => read(arguments.as_bytes()).map_err(|failure| failure.message),
            other => panic!("{other:?}"),
        }
    }

    /// Case O32.
    #[test]
    fn numbers_arrive_whole_in_a_rust_type_or_are_refused_by_name() {
        let number = |text: &str| Some(text.parse().unwrap());
        let none = || Numbers { i64: None, u64: None, i128: None, f64: None, any: None, list: None };
        let cases = [
            (r#"{"i64":9007199254740993}"#, Ok(Numbers { i64: Some(9_007_199_254_740_993), ..none() })),
            (r#"{"i64":-9223372036854775808}"#, Ok(Numbers { i64: Some(i64::MIN), ..none() })),
            (r#"{"u64":18446744073709551615}"#, Ok(Numbers { u64: Some(u64::MAX), ..none() })),
            (
                r#"{"i128":123456789012345678901234567890}"#,
                Ok(Numbers { i128: Some(123_456_789_012_345_678_901_234_567_890), ..none() }),
            ),
            (r#"{"f64":1e-320}"#, Ok(Numbers { f64: Some(1e-320), ..none() })),
            (r#"{"any":1e400}"#, Ok(Numbers { any: number("1e400"), ..none() })),
            (
                r#"{"any":123456789012345678901234567890.10}"#,
                Ok(Numbers { any: number("123456789012345678901234567890.10"), ..none() }),
            ),
            (
                r#"{"i64":18446744073709551615}"#,
                Err(
                    "/i64: 18446744073709551615 is not a whole number from -9223372036854775808 to 9223372036854775807",
                ),
            ),
            (
                r#"{"u64":18446744073709551616}"#,
                Err("/u64: 18446744073709551616 is not a whole number from 0 to 18446744073709551615"),
            ),
            (r#"{"f64":9007199254740993}"#, Err("/f64: 9007199254740993 is not kept by a float of 64 bits")),
            (r#"{"f64":1e400}"#, Err("/f64: 1e+400 is not kept by a float of 64 bits")),
            (r#"{"list":[1,2.0]}"#, Err("/list/1: 2.0 is not a whole number from 0 to 255")),
        ];
        for (arguments, expected) in cases {
            let expected = expected.map_err(|problem| format!("the arguments do not fit: {problem}"));
            assert_eq!(given(arguments), expected, "{arguments}");
        }
    }
}
