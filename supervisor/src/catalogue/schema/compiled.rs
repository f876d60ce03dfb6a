//! What the schemas of a tool have in common: how they are compiled, and words for what does not fit.

use super::rust_number::RustNumber;
use crate::catalogue::excerpt::excerpt;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, ValidationOptions, Validator};
use serde_json::Value;

/// The most problems that one error lists.
pub(super) const MAX_PROBLEMS: usize = 10;

/// Of a value longer than this only the first problem is told: the validator collects problems before it hands
/// them out, and a large array of wrong items would make as many as it has items.
pub(super) const MAX_LENGTH_FOR_ALL: usize = 256 * 1024;

/// The most bytes of a problem's text.
const PROBLEM_EXCERPT: usize = 400;

/// The most bytes of a wrong value, or of its place, in a problem's text.
pub(super) const VALUE_EXCERPT: usize = 80;

/// A compiled schema.
///
/// Schemas are of draft 2020-12 unless `$schema` says otherwise, never refer to other documents, and their patterns are of
/// the kind that is matched in linear time: what a model or a tool sends cannot make the check of it run away.
#[derive(Debug)]
pub(super) struct Compiled {
    json: Value,
    validator: Validator,
}

/// What does not fit a schema.
pub(super) struct Mismatch {
    /// Each with the JSON pointer of the value.
    pub(super) problems: Vec<String>,
    /// Whether these are all.
    pub(super) complete: bool,
}

/// Why a JSON value is not a schema that a tool can have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not an object.
    #[error("not a JSON Schema: it has to be an object")]
    NotAnObject,
    /// It describes something else than an object.
    #[error("the schema of something else than an object: `type` has to be \"object\" or left out")]
    NotOfAnObject,
    /// It is no valid schema.
    #[error("not a JSON Schema: {0}")]
    Invalid(String),
    /// It refers to another document.
    #[error("a reference to {0:?}: other documents are never fetched; put what it needs under `$defs`")]
    Reference(String),
    /// A default does not fit the property's own schema.
    #[error("the default of `{property}` does not fit: {problem}")]
    Default {
        /// The property.
        property: String,
        /// Why.
        problem: String,
    },
}

impl Compiled {
    /// Compiles a schema.
    pub(super) fn new(json: Value) -> Result<Self, SchemaError> {
        Self::with(options(), json)
    }

    /// Compiles a schema that was made from a Rust type: a number has to be one that the type has.
    pub(super) fn of_type(json: Value) -> Result<Self, SchemaError> {
        // Of other formats nothing is checked in a schema of draft 2020-12, which those of types are.
        let options = options().with_keyword("format", |_, format, _| Ok(Box::new(RustNumber::of_format(format))));
        Self::with(options, json)
    }

    fn with(options: ValidationOptions<'_>, json: Value) -> Result<Self, SchemaError> {
        let validator = options.build(&json).map_err(|error| invalid(&error))?;
        Ok(Self { json, validator })
    }

    /// The schema itself.
    pub(super) fn as_json(&self) -> &Value {
        &self.json
    }

    /// Everything in which a value does not fit.
    pub(super) fn errors<'v>(&'v self, value: &'v Value) -> impl Iterator<Item = ValidationError<'v>> {
        self.validator.iter_errors(value)
    }

    /// Checks a value whose text has `length` bytes.
    pub(super) fn check(&self, value: &Value, length: usize) -> Result<(), Mismatch> {
        let Err(first) = self.validator.validate(value) else { return Ok(()) };
        if length > MAX_LENGTH_FOR_ALL {
            return Err(Mismatch { problems: vec![problem(&first)], complete: false });
        }
        let mut errors = self.validator.iter_errors(value);
        let mut problems: Vec<String> = errors.by_ref().take(MAX_PROBLEMS).map(|error| problem(&error)).collect();
        if problems.is_empty() {
            problems.push(problem(&first));
        }
        Err(Mismatch { problems, complete: errors.next().is_none() })
    }
}

fn options() -> ValidationOptions<'static> {
    jsonschema::options().offline().with_pattern_options(PatternOptions::regex())
}

/// What is wrong with a schema.
fn invalid(error: &ValidationError<'_>) -> SchemaError {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            SchemaError::Reference(excerpt(uri, VALUE_EXCERPT))
        }
        ValidationErrorKind::Format { format } if format == "regex" => SchemaError::Invalid(format!(
            "{}: {} is not a regular expression of the kind that is matched in linear time, without look-around and \
             back-references",
            excerpt(error.instance_path(), VALUE_EXCERPT),
            excerpt(error.instance(), VALUE_EXCERPT),
        )),
        _ => SchemaError::Invalid(problem(error)),
    }
}

/// One problem in words: the JSON pointer of the value, where it is not the whole, and what is wrong with it.
pub(super) fn problem(error: &ValidationError<'_>) -> String {
    let value = excerpt(error.instance(), VALUE_EXCERPT);
    let reason = excerpt(error.masked_with(value), PROBLEM_EXCERPT);
    let place = error.instance_path();
    if place.is_empty() { reason } else { format!("{}: {reason}", excerpt(place, VALUE_EXCERPT)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case O32: numbers are looked at as they are written, however long.
    #[test]
    fn numbers_are_checked_to_the_last_digit() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                r#"{"type":"integer"}"#,
                &[
                    "9007199254740993",
                    "18446744073709551615",
                    "-9223372036854775808",
                    "0e-400",
                    "1e400",
                    "150e-1",
                    "123456789012345678901234567890",
                    "123456789012345678901234567890.0",
                ],
                &["1e-320", "1e-400", "15e-1", "123456789012345678901234567890.5", "9007199254740992.5"],
            ),
            (r#"{"type":"number"}"#, &["1e400"], &[]),
            (r#"{"type":"string"}"#, &[], &["1e400"]),
            (r#"{"minimum":9007199254740993}"#, &["9007199254740993"], &["9007199254740992", "9007199254740992.5"]),
            (r#"{"maximum":9007199254740992}"#, &[], &["9007199254740992.5", "9007199254740993"]),
            (
                r#"{"maximum":18446744073709551615}"#,
                &["18446744073709551615"],
                &["18446744073709551616", "18446744073709551615.5"],
            ),
            (r#"{"maximum":18446744073709551614}"#, &[], &["18446744073709551615"]),
            (r#"{"minimum":-9223372036854775808}"#, &["-9223372036854775808"], &["-9223372036854775809"]),
            (r#"{"minimum":1e-320}"#, &["1e-320"], &["9e-321", "1e-321"]),
            (r#"{"exclusiveMinimum":0}"#, &["1e-320", "1e-400"], &[]),
            (r#"{"exclusiveMaximum":0}"#, &["-1e-400"], &[]),
            (r#"{"maximum":0}"#, &[], &["1e-400"]),
            (r#"{"maximum":1e300}"#, &[], &["1e400"]),
            (r#"{"minimum":1e300}"#, &["1e400"], &["-1e400"]),
            (r#"{"maximum":1e400}"#, &["1e400"], &["2e400"]),
            (r#"{"minimum":1e400}"#, &[], &["1e399", "1"]),
            (r#"{"minimum":0.1}"#, &[], &["0.09999999999999999999999"]),
            (r#"{"maximum":0.1}"#, &["0.1"], &["0.1000000000000000000000001"]),
            (
                r#"{"minimum":123456789012345678901234567890}"#,
                &["123456789012345678901234567890"],
                &["123456789012345678901234567889"],
            ),
            (r#"{"maximum":123456789012345678901234567890}"#, &[], &["123456789012345678901234567891"]),
            (r#"{"maximum":0.1000000000000000000000001}"#, &[], &["0.10000000000000000000000011"]),
            (
                r#"{"multipleOf":2}"#,
                &["9007199254740994", "-9223372036854775808", "1e400"],
                &["9007199254740993", "123456789012345678901234567891"],
            ),
            (r#"{"multipleOf":3}"#, &["18446744073709551615"], &["-9223372036854775808", "1e400"]),
            (r#"{"multipleOf":10}"#, &["123456789012345678901234567890"], &[]),
            (r#"{"multipleOf":9007199254740993}"#, &["9007199254740993", "18014398509481986"], &["9007199254740992"]),
            (r#"{"multipleOf":18446744073709551615}"#, &["18446744073709551615"], &["18446744073709551614"]),
            (r#"{"multipleOf":1e400}"#, &["1e400"], &[]),
            (r#"{"multipleOf":1}"#, &[], &["1e-320"]),
            (r#"{"multipleOf":1e-320}"#, &["2e-320"], &[]),
            (r#"{"multipleOf":0.1}"#, &["0.3"], &["0.30000000000000000000001"]),
            (r#"{"multipleOf":0.01}"#, &["1070468.14"], &[]),
            (
                r#"{"multipleOf":123456789012345678901234567890}"#,
                &["246913578024691357802469135780"],
                &["246913578024691357802469135781"],
            ),
            (r#"{"enum":[9007199254740993]}"#, &["9007199254740993", "9007199254740993.0"], &["9007199254740992"]),
            (r#"{"const":9007199254740992}"#, &[], &["9007199254740992.5"]),
            (r#"{"const":9007199254740993}"#, &[], &["9007199254740992", "9007199254740992.0"]),
            (r#"{"const":18446744073709551615}"#, &["18446744073709551615"], &["18446744073709551616"]),
            (r#"{"const":1e400}"#, &["1e400"], &["2e400"]),
            (r#"{"const":1e-320}"#, &["1e-320"], &[]),
            (r#"{"const":1e-400}"#, &[], &["0"]),
            (r#"{"const":0}"#, &[], &["1e-400"]),
            (r#"{"enum":[1e-400]}"#, &[], &["2e-400"]),
            (r#"{"enum":[0.1]}"#, &[], &["0.10000000000000000000001"]),
            (
                r#"{"const":123456789012345678901234567890}"#,
                &["123456789012345678901234567890"],
                &["123456789012345678901234567891"],
            ),
            (
                r#"{"enum":["a",123456789012345678901234567890]}"#,
                &["123456789012345678901234567890"],
                &["123456789012345678901234567891"],
            ),
            (
                r#"{"uniqueItems":true}"#,
                &[
                    "[9007199254740993,9007199254740992]",
                    "[123456789012345678901234567890,123456789012345678901234567891]",
                    "[1e400,2e400]",
                ],
                &["[123456789012345678901234567890,123456789012345678901234567890]", "[1,1.0]"],
            ),
        ];
        for (schema, fitting, misfitting) in cases {
            let schema = Compiled::new(serde_json::from_str(schema).unwrap()).unwrap();
            let fits = |value: &str| schema.check(&serde_json::from_str(value).unwrap(), value.len()).is_ok();
            let wrong: Vec<_> = fitting.iter().filter(|value| !fits(value)).collect();
            assert!(wrong.is_empty(), "{} fits {wrong:?}", schema.as_json());
            let wrong: Vec<_> = misfitting.iter().filter(|value| fits(value)).collect();
            assert!(wrong.is_empty(), "{} does not fit {wrong:?}", schema.as_json());
        }
    }

    /// A short text can stand for a number of a billion digits, which must not be written out.
    #[test]
    fn number_of_many_digits_cannot_make_the_check_run_away() {
        let long = "7".repeat(100_000);
        let numbers = ["1e1000000000", "1e-1000000000", "1e99999999999999999999", "-1e-99999999999999999999", &long];
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "multipleOf", "const"] {
            for limit in ["5", "0.1", "123456789012345678901234567890", "1e400"] {
                let schema: Value = serde_json::from_str(&format!("{{\"{keyword}\":{limit}}}")).unwrap();
                let schema = Compiled::new(schema).unwrap();
                for number in numbers {
                    let begun = std::time::Instant::now();
                    let _ = schema.check(&serde_json::from_str(number).unwrap(), number.len());
                    assert!(begun.elapsed().as_secs() < 5, "{keyword} {limit} {}", &number[..10]);
                }
            }
        }
    }
}
