//! The JSON Schema of a tool's arguments.

use super::compiled::{Compiled, Mismatch, SchemaError, problem};
use crate::catalogue::ArgumentError;
use serde_json::Value;
use std::collections::BTreeSet;

/// The JSON Schema of a tool's arguments.
///
/// It always describes an object. Schemas are of draft 2020-12 unless `$schema` says otherwise, never refer to other
/// documents, and their patterns are of the kind that is matched in linear time: what a model sends cannot make the
/// check of it run away.
#[derive(Debug)]
pub struct InputSchema {
    compiled: Compiled,
    properties: BTreeSet<String>,
    required: BTreeSet<String>,
    defaults: Vec<Default>,
}

/// The default of a top-level property.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::catalogue) struct Default {
    pub(in crate::catalogue) name: String,
    pub(in crate::catalogue) value: Value,
    /// The text of `value`.
    pub(in crate::catalogue) json: String,
}

impl InputSchema {
    /// Compiles a schema. Where it does not say so itself, `type = "object"` is added.
    ///
    /// # Errors
    /// [`SchemaError`] when it is no schema of an object, when it refers to other documents, and when a default of a
    /// top-level property does not fit.
    pub fn new(json: Value) -> Result<Self, SchemaError> {
        Self::compiled(json, Compiled::new)
    }

    /// The same for a schema that was made from a Rust type: a number has to be one that the type has.
    pub(crate) fn of_type(json: Value) -> Result<Self, SchemaError> {
        Self::compiled(json, Compiled::of_type)
    }

    fn compiled(
        mut json: Value,
        compile: impl FnOnce(Value) -> Result<Compiled, SchemaError>,
    ) -> Result<Self, SchemaError> {
        let schema = json.as_object_mut().ok_or(SchemaError::NotAnObject)?;
        if schema.entry("type").or_insert_with(|| "object".into()) != "object" {
            return Err(SchemaError::NotOfAnObject);
        }
        let compiled = compile(json)?;
        let json = compiled.as_json();
        let properties = json["properties"].as_object();
        let defaults: Vec<Default> = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name, property.get("default")?)))
            .map(|(name, value)| Default { name: name.clone(), value: value.clone(), json: value.to_string() })
            .collect();
        check_defaults(&compiled, &defaults)?;
        let properties = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let required = json["required"].as_array();
        let required = required.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Ok(Self { compiled, properties, required, defaults })
    }

    /// The schema, as the model should see it.
    pub fn as_json(&self) -> &Value {
        self.compiled.as_json()
    }

    /// The names of its top-level properties.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(String::as_str)
    }

    /// Whether it has a top-level property of that name.
    pub fn has(&self, property: &str) -> bool {
        self.properties.contains(property)
    }

    /// Whether it demands a top-level property of that name.
    pub fn requires(&self, property: &str) -> bool {
        self.required.contains(property)
    }

    /// The defaults of its top-level properties.
    pub(in crate::catalogue) fn defaults(&self) -> &[Default] {
        &self.defaults
    }

    /// Checks arguments whose text has `length` bytes.
    pub(in crate::catalogue) fn check(&self, arguments: &Value, length: usize) -> Result<(), ArgumentError> {
        self.compiled
            .check(arguments, length)
            .map_err(|Mismatch { problems, complete }| ArgumentError::Mismatch { problems, complete })
    }
}

fn check_defaults(compiled: &Compiled, defaults: &[Default]) -> Result<(), SchemaError> {
    let all = defaults.iter().map(|default| (default.name.clone(), default.value.clone())).collect();
    let all = Value::Object(all);
    for error in compiled.errors(&all) {
        // What is wrong with the object as a whole, such as a missing property, is for the call's arguments to mend.
        let path = error.instance_path().to_string();
        let property = path.split('/').nth(1).map(|property| property.replace("~1", "/").replace("~0", "~"));
        if let Some(property) = property {
            return Err(SchemaError::Default { property, problem: problem(&error) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::schema::compiled::{MAX_LENGTH_FOR_ALL, MAX_PROBLEMS};
    use proptest::prelude::*;
    use serde_json::json;

    fn check(schema: Value, arguments: Value) -> Result<(), String> {
        let length = arguments.to_string().len();
        InputSchema::new(schema).unwrap().check(&arguments, length).map_err(|error| error.to_string())
    }

    #[test]
    fn a_schema_is_always_of_an_object() {
        let schema = InputSchema::new(json!({ "properties": { "b": {}, "a": {} }, "required": ["a"] })).unwrap();
        assert_eq!(schema.as_json()["type"], "object");
        assert_eq!(schema.properties().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((schema.has("a"), schema.has("c")), (true, false));
        assert_eq!((schema.requires("a"), schema.requires("b")), (true, false));
        for other in [json!({ "type": "string" }), json!({ "type": ["object", "null"] }), json!({ "type": 1 })] {
            assert_eq!(InputSchema::new(other).unwrap_err(), SchemaError::NotOfAnObject);
        }
        for other in [json!(true), json!([]), json!(null)] {
            assert_eq!(InputSchema::new(other).unwrap_err(), SchemaError::NotAnObject);
        }
    }

    #[test]
    fn what_is_no_schema_is_refused_in_words() {
        let property = |schema: Value| json!({ "properties": { "a": schema } });
        let linear = "is not a regular expression of the kind that is matched in linear time, without look-around and \
                      back-references";
        let fetched = "other documents are never fetched; put what it needs under `$defs`";
        let cases = [
            (
                property(json!({ "minimum": "1" })),
                "not a JSON Schema: /properties/a/minimum: \"1\" is not of type \"number\"".into(),
            ),
            (
                property(json!({ "pattern": "(?=x)" })),
                format!("not a JSON Schema: /properties/a/pattern: \"(?=x)\" {linear}"),
            ),
            (property(json!({ "pattern": "(" })), format!("not a JSON Schema: /properties/a/pattern: \"(\" {linear}")),
            (property(json!({ "$ref": "#/nope" })), "not a JSON Schema: Pointer '/nope' does not exist".into()),
            (
                property(json!({ "$ref": "file:///etc/passwd" })),
                format!("a reference to \"file:///etc/passwd\": {fetched}"),
            ),
            (property(json!({ "$ref": "other.json" })), format!("a reference to \"other.json\": {fetched}")),
            (
                property(json!({ "type": "integer", "default": "1" })),
                "the default of `a` does not fit: /a: \"1\" is not of type \"integer\"".into(),
            ),
            (
                json!({ "properties": { "a/b~c": { "type": "array", "items": { "type": "null" }, "default": [1] } } }),
                "the default of `a/b~c` does not fit: /a~1b~0c/0: 1 is not of type \"null\"".into(),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(InputSchema::new(schema.clone()).unwrap_err().to_string(), expected, "{schema}");
        }
    }

    #[test]
    fn a_reference_within_the_schema_is_followed() {
        let schema = json!({
            "$defs": { "word": { "type": "string", "pattern": "^[a-z]+$" } },
            "properties": { "a": { "$ref": "#/$defs/word" } },
        });
        assert_eq!(check(schema.clone(), json!({ "a": "abc" })), Ok(()));
        assert_eq!(
            check(schema, json!({ "a": "ABC" })),
            Err(r#"the arguments do not fit: /a: "ABC" does not match "^[a-z]+$""#.into())
        );
    }

    #[test]
    fn all_problems_are_told_up_to_a_bound() {
        let schema = json!({
            "required": ["a", "b"],
            "properties": { "a": { "type": "string" }, "list": { "items": { "type": "integer" } } },
            "additionalProperties": false,
        });
        let error = check(schema.clone(), json!({ "a": 1, "list": [1, "x"], "zzz": 0 })).unwrap_err();
        let (start, problems) = error.split_once(": ").unwrap();
        assert_eq!(start, "the arguments do not fit");
        let mut problems: Vec<&str> = problems.split("; ").collect();
        problems.sort_unstable();
        let expected = [
            r#""b" is a required property"#,
            r#"/a: 1 is not of type "string""#,
            r#"/list/1: "x" is not of type "integer""#,
            "Additional properties are not allowed ('zzz' was unexpected)",
        ];
        assert_eq!(problems, expected);

        let error = check(schema.clone(), json!({ "a": "", "b": 1, "list": vec!["x"; 50] })).unwrap_err();
        assert!(error.ends_with("; and perhaps more"), "{error}");
        assert_eq!(error.matches("is not of type").count(), MAX_PROBLEMS);

        let error = check(schema, json!({ "a": "", "b": 1, "list": vec!["x"; MAX_LENGTH_FOR_ALL] })).unwrap_err();
        assert!(error.ends_with("; and perhaps more"), "{error}");
        assert!(error.len() < 1000, "only the first of very many");
    }

    #[test]
    fn a_wrong_value_is_cut_at_a_character() {
        let schema = json!({ "properties": { "a": { "type": "integer" } } });
        let expected = format!("the arguments do not fit: /a: \"{}… is not of type \"integer\"", "🦀".repeat(19));
        assert_eq!(check(schema, json!({ "a": "🦀".repeat(1000) })), Err(expected));
    }

    #[test]
    fn a_pattern_cannot_run_away() {
        let schema = json!({ "properties": { "a": { "pattern": "^(a+)+$" } } });
        assert!(check(schema, json!({ "a": format!("{}!", "a".repeat(100_000)) })).is_err());
    }

    proptest! {
        #[test]
        fn no_schema_makes_the_compiler_panic(
            keyword in prop::sample::select(vec![
                "type", "properties", "required", "$ref", "$schema", "$id", "pattern", "items", "enum", "const", "default",
                "multipleOf", "minimum", "allOf", "anyOf", "not", "additionalProperties", "patternProperties", "$defs",
                "dependentRequired", "if", "contains", "uniqueItems", "format", "$dynamicRef", "$anchor",
            ]),
            value in prop::sample::select(vec![
                "null", "true", "1e400", "-1", "0", "\"object\"", "\"#\"", "\"#/x\"", "\"#a\"", "\"http://[\"", "[]", "{}",
                "[\"a\"]", "[{}]", "{\"a\":{}}", "{\"a\":{\"default\":1,\"type\":\"string\"}}", "{\"(\":{}}", "\"(\"",
                "18446744073709551616", "1e-400", "{\"$ref\":\"#\"}",
            ]),
        ) {
            let value: Value = serde_json::from_str(value).unwrap();
            for schema in [json!({ keyword: value }), json!({ "properties": { "a": { keyword: value } } })] {
                if let Ok(schema) = InputSchema::new(schema) {
                    for arguments in [json!({}), json!({ "a": 1 }), json!({ "a": [1, 1] }), json!({ "a": "x" })] {
                        let _ = schema.check(&arguments, 0);
                    }
                }
            }
        }
    }
}
