//! The JSON Schemas of a tool, which a catalogue writes in TOML.

use super::problem::{Noted, Problems};
use super::section::integer;
use crate::catalogue::excerpt::excerpt;
use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::DeValue;

/// A value of TOML as JSON. Numbers keep their digits. `key` is what the whole is declared by.
pub(super) fn json(key: &str, value: &Spanned<DeValue<'_>>, problems: &mut Problems<'_>) -> Result<Value, Noted> {
    match value.get_ref() {
        DeValue::String(text) => Ok(Value::String(text.to_string())),
        DeValue::Boolean(boolean) => Ok(Value::Bool(*boolean)),
        DeValue::Integer(written) => match integer(written).and_then(Number::from_i128) {
            Some(number) => Ok(Value::Number(number)),
            None => {
                Err(problems.note(&value.span(), format!("`{key}` has {}, which is too large", excerpt(written, 64))))
            }
        },
        DeValue::Float(written) => match written.as_str().trim_start_matches('+').parse() {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => {
                let message = format!("`{key}` has {}, which JSON cannot express", excerpt(written, 64));
                Err(problems.note(&value.span(), message))
            }
        },
        DeValue::Datetime(_) => {
            let message = format!("`{key}` has a date or time, which JSON cannot express; put quotes around it");
            Err(problems.note(&value.span(), message))
        }
        DeValue::Array(array) => {
            let elements: Vec<Result<Value, Noted>> =
                array.iter().map(|element| json(key, element, problems)).collect();
            Ok(Value::Array(elements.into_iter().collect::<Result<_, _>>()?))
        }
        DeValue::Table(table) => {
            let members: Vec<Result<(String, Value), Noted>> = table
                .iter()
                .map(|(name, value)| Ok((name.get_ref().to_string(), json(key, value, problems)?)))
                .collect();
            Ok(Value::Object(members.into_iter().collect::<Result<_, _>>()?))
        }
    }
}
