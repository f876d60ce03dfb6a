//! The JSON Schema of a tool's result.

use super::compiled::{Compiled, Mismatch, SchemaError};
use crate::catalogue::json::{MAX_DEPTH, Object, ObjectError};
use serde_json::Value;
use std::sync::Arc;

/// The JSON Schema of a tool's result, of whatever type that is. Cheap to clone.
///
/// The rules are those of [`InputSchema`](super::InputSchema): other documents are never fetched, and patterns are matched in
/// linear time.
#[derive(Clone, Debug)]
pub struct OutputSchema(Arc<Compiled>);

impl OutputSchema {
    /// Compiles a schema. `true`, which every result fits, is one too.
    ///
    /// # Errors
    /// [`SchemaError`] when it is no schema, and when it refers to other documents.
    pub fn new(json: Value) -> Result<Self, SchemaError> {
        match json {
            Value::Object(_) | Value::Bool(_) => Ok(Self(Arc::new(Compiled::new(json)?))),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(SchemaError::NotAnObject),
        }
    }

    /// The schema, as the model should see it.
    pub fn as_json(&self) -> &Value {
        self.0.as_json()
    }

    /// Checks the text of a result. Numbers are looked at as they are written, whatever their length.
    ///
    /// # Errors
    /// What does not fit, with the JSON pointers of the places.
    pub fn check(&self, result: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(result).map_err(|error| format!("the result is not JSON: {error}"))?;
        // The check sees one value of a key that stands twice, and a reader may take the other.
        Object::compact(result).map_err(|error| unreadable(&error))?;
        self.0.check(&value, result.len()).map_err(|Mismatch { problems, complete }| {
            let more = if complete { "" } else { "; and perhaps more" };
            format!("the result does not fit the tool's output schema: {}{more}", problems.join("; "))
        })
    }
}

fn unreadable(error: &ObjectError) -> String {
    match error {
        ObjectError::DuplicateKey { key, .. } => format!("the result has the key {key:?} twice in one object"),
        ObjectError::ReservedKey(key) => format!("the key {key:?} of the result is reserved"),
        ObjectError::TooDeep => format!("the result is nested deeper than {MAX_DEPTH} levels"),
        ObjectError::UnreadableKey => {
            "a key of the result is not Unicode text: it has one half of a surrogate pair".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, result: &str) -> Result<(), String> {
        OutputSchema::new(schema).unwrap().check(result)
    }

    #[test]
    fn a_result_of_any_type_is_checked() {
        for (schema, fits, misfit) in [
            (json!({ "type": "integer" }), "7", "\"7\""),
            (json!({ "type": "string", "pattern": "^a+$" }), "\"aa\"", "\"ab\""),
            (json!({ "type": ["array", "null"], "maxItems": 1 }), "[1]", "[1,2]"),
            (json!({ "type": "object", "required": ["a"] }), r#"{"a":1}"#, "{}"),
            (json!(true), "null", "{"),
        ] {
            assert_eq!(check(schema.clone(), fits), Ok(()), "{schema}");
            assert!(check(schema.clone(), misfit).is_err(), "{schema}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({ "properties": { "a": { "items": { "type": "integer" } } } });
        let cases = [
            (
                r#"{"a":[1,"x"]}"#,
                r#"the result does not fit the tool's output schema: /a/1: "x" is not of type "integer""#,
            ),
            ("{", "the result is not JSON: EOF while parsing an object at line 1 column 1"),
            (r#"{"a":[{"b":1,"b":2}]}"#, "the result has the key \"b\" twice in one object"),
            (
                r#"{"a":{"$serde_json::private::Number":"5"}}"#,
                "the key \"$serde_json::private::Number\" of the result is reserved",
            ),
        ];
        for (result, expected) in cases {
            assert_eq!(check(schema.clone(), result), Err(expected.into()), "{result}");
        }
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert!(check(json!(true), &deep).unwrap_err().starts_with("the result is not JSON: recursion limit"));
    }

    #[test]
    fn the_rules_are_those_of_arguments() {
        let refused = |schema| OutputSchema::new(schema).unwrap_err();
        for schema in [json!(null), json!([]), json!("string")] {
            assert_eq!(refused(schema), SchemaError::NotAnObject);
        }
        assert_eq!(refused(json!({ "$ref": "other.json" })), SchemaError::Reference("other.json".into()));
        assert!(matches!(refused(json!({ "pattern": "(?=x)" })), SchemaError::Invalid(_)));
    }
}
