//! What the schemas of a tool have in common: how they are compiled, and words for what does not fit.

use crate::catalogue::excerpt::excerpt;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;

/// The most problems that one error lists.
pub(super) const MAX_PROBLEMS: usize = 10;

/// Of a value longer than this only the first problem is told: the validator collects problems before it hands
/// them out, and a large array of wrong items would make as many as it has items.
pub(super) const MAX_LENGTH_FOR_ALL: usize = 256 * 1024;

/// The most bytes of a problem's text.
const PROBLEM_EXCERPT: usize = 400;

/// The most bytes of a wrong value, or of its place, in a problem's text.
const VALUE_EXCERPT: usize = 80;

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
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex())
            .build(&json)
            .map_err(|error| invalid(&error))?;
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
