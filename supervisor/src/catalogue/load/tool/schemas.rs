//! The JSON Schemas of a tool's arguments and of its result.

use super::read::Tool;
use crate::catalogue::load::problem::{Noted, Problems};
use crate::catalogue::load::schema_value::json;
use crate::catalogue::{InputSchema, OutputSchema, SchemaError};
use serde_json::Value;
use toml::de::DeValue;

impl Tool<'_> {
    pub(super) fn input(&self, problems: &mut Problems<'_>) -> Result<Option<InputSchema>, Noted> {
        self.schema("input", "a table, the JSON Schema of the arguments", InputSchema::new, problems)
    }

    pub(super) fn output(&self, problems: &mut Problems<'_>) -> Result<Option<OutputSchema>, Noted> {
        let what = "a table, the JSON Schema of the result; how much output is kept is `limits.output`";
        self.schema("output", what, OutputSchema::new, problems)
    }

    fn schema<S>(
        &self,
        key: &str,
        what: &str,
        compile: impl FnOnce(Value) -> Result<S, SchemaError>,
        problems: &mut Problems<'_>,
    ) -> Result<Option<S>, Noted> {
        let Some(value) = self.section.get(key) else { return Ok(None) };
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            return Err(self.section.mistyped(key, value, value.get_ref(), what, problems));
        }
        let schema = compile(json(key, value, problems)?);
        schema.map(Some).map_err(|error| self.section.note(key, &value.span(), format_args!("is {error}"), problems))
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::load::sample::{ARGUMENTS, refused, with_tool};

    #[test]
    fn input_is_what_arguments_are_checked_against() {
        let schema = "input = { properties = { text = { type = 'integer' } } }";
        let error = with_tool(schema, |tool| tool.prepare(ARGUMENTS).unwrap_err().to_string());
        assert_eq!(error, r#"the arguments do not fit: /text: "hello" is not of type "integer""#);
        with_tool("", |tool| assert!(tool.input.is_none()));
    }

    #[test]
    fn output_is_what_a_result_is_checked_against() {
        let check = |lines| with_tool(lines, |tool| tool.output.as_ref().map(|schema| schema.check("{\"n\": 1}")));
        assert_eq!(check(""), None);
        assert_eq!(check("output = { required = ['n'] }"), Some(Ok(())));
        let misfit = "the result does not fit the tool's output schema: {\"n\":1} is not of type \"array\"";
        assert_eq!(check("output = { type = 'array' }"), Some(Err(misfit.into())));
    }

    #[test]
    fn numbers_of_a_schema_keep_their_digits() {
        let lines = "input = { properties = { text = { enum = [18446744073709551615, 0x10, -9223372036854775808, 0.10, +1.5, 1e-320] } } }";
        let json = with_tool(lines, |tool| tool.input.as_ref().unwrap().as_json().to_string());
        let expected = r#"{"properties":{"text":{"enum":[18446744073709551615,16,-9223372036854775808,0.10,1.5,1e-320]}},"type":"object"}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn what_is_wrong_with_a_schema_is_told_in_words() {
        let cases = [
            (
                "input = true",
                "4:9: tool \"a\": `input` has a boolean, and has to be a table, the JSON Schema of the arguments",
            ),
            (
                "input = { type = 'string' }",
                "4:9: tool \"a\": `input` is the schema of something else than an object: `type` has to be \"object\" or left out",
            ),
            (
                "input = { properties = { text = { type = 'strin' } } }",
                "4:9: tool \"a\": `input` is not a JSON Schema: /properties/text/type: \"strin\" is not valid under any of the \
                 schemas listed in the 'anyOf' keyword",
            ),
            (
                "input = { properties = { text = { '$ref' = 'https://example.com/a' } } }",
                "4:9: tool \"a\": `input` is a reference to \"https://example.com/a\": other documents are never fetched; put \
                 what it needs under `$defs`",
            ),
            (
                "input = { properties = { text = { const = 2026-01-01 } } }",
                "4:43: tool \"a\": `input` has a date or time, which JSON cannot express; put quotes around it",
            ),
            (
                "input = { properties = { text = { const = inf } } }",
                "4:43: tool \"a\": `input` has inf, which JSON cannot express",
            ),
            (
                "output = 1024",
                "4:10: tool \"a\": `output` has a whole number, and has to be a table, the JSON Schema of the result; how much \
                 output is kept is `limits.output`",
            ),
            (
                "output = { type = 'strin' }",
                "4:10: tool \"a\": `output` is not a JSON Schema: /type: \"strin\" is not valid under any of the schemas listed \
                 in the 'anyOf' keyword",
            ),
            (
                "output = { '$ref' = 'other.json' }",
                "4:10: tool \"a\": `output` is a reference to \"other.json\": other documents are never fetched; put what it \
                 needs under `$defs`",
            ),
            ("output = { const = nan }", "4:20: tool \"a\": `output` has nan, which JSON cannot express"),
        ];
        for (lines, expected) in cases {
            assert_eq!(refused(lines), expected, "{lines}");
        }
    }
}
