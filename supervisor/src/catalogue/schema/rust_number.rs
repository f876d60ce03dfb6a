//! The `format` of a number in a schema that was made from a Rust type: whether that type has the number at all.
//!
//! Read into its type, an integer that is too long would be refused without saying which argument it was, and one that a float does
//! not have would be rounded without a word (case O32).

use super::compiled::VALUE_EXCERPT;
use crate::catalogue::excerpt::excerpt;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Number, Value};
use std::ops::RangeInclusive;

/// What a number is read into.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum RustNumber {
    /// An integer of at most 64 bits, or a signed one of 128.
    Integer(RangeInclusive<i128>),
    /// A `u128`.
    Unsigned128,
    /// A `f32`.
    Float32,
    /// A `f64`.
    Float64,
    /// Something that is not a number; all numbers are taken.
    Other,
}

impl RustNumber {
    /// What `schemars` means by a format.
    pub(super) fn of_format(format: &Value) -> Self {
        match format.as_str().unwrap_or_default() {
            "int8" => Self::Integer(i8::MIN.into()..=i8::MAX.into()),
            "int16" => Self::Integer(i16::MIN.into()..=i16::MAX.into()),
            "int32" => Self::Integer(i32::MIN.into()..=i32::MAX.into()),
            // toolexec runs where a pointer has 64 bits.
            "int64" | "int" => Self::Integer(i64::MIN.into()..=i64::MAX.into()),
            "int128" => Self::Integer(i128::MIN..=i128::MAX),
            "uint8" => Self::Integer(0..=u8::MAX.into()),
            "uint16" => Self::Integer(0..=u16::MAX.into()),
            "uint32" => Self::Integer(0..=u32::MAX.into()),
            "uint64" | "uint" => Self::Integer(0..=u64::MAX.into()),
            "uint128" => Self::Unsigned128,
            "float" => Self::Float32,
            "double" => Self::Float64,
            _ => Self::Other,
        }
    }

    /// What is wrong with a number, where the type does not have it.
    fn problem(&self, number: &Number) -> Option<String> {
        let text = number.as_str();
        let (has, what) = match self {
            Self::Integer(range) => {
                let has = text != "-0" && text.parse().is_ok_and(|number: i128| range.contains(&number));
                (has, format!("is not a whole number from {} to {}", range.start(), range.end()))
            }
            Self::Unsigned128 => {
                (text.parse::<u128>().is_ok(), format!("is not a whole number from 0 to {}", u128::MAX))
            }
            Self::Float32 => {
                let number: f32 = text.parse().ok()?;
                (is_kept(text, f64::from(number)), "is not kept by a float of 32 bits".to_owned())
            }
            Self::Float64 => (is_kept(text, text.parse().ok()?), "is not kept by a float of 64 bits".to_owned()),
            Self::Other => return None,
        };
        (!has).then(|| format!("{} {what}", excerpt(text, VALUE_EXCERPT)))
    }
}

/// Whether a float has a number. Of a fraction the nearest float is meant, as everywhere; a whole number is an id as often as not,
/// and each digit counts.
fn is_kept(text: &str, float: f64) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    float.is_finite() && (float != 0.0 || is_zero) && (!is_whole || format!("{float:.0}") == text)
}

impl<'i> Keyword<'i> for RustNumber {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match instance {
            Value::Number(number) => self.problem(number).map_or(Ok(()), |text| Err(ValidationError::custom(text))),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Ok(()),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.validate(instance).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_taken_as_it_is_or_refused() {
        let (i64_range, u64_range) = (
            "a whole number from -9223372036854775808 to 9223372036854775807",
            "a whole number from 0 to 18446744073709551615",
        );
        let no = |range: &str| Some(format!("is not {range}"));
        let float = || Some("is not kept by a float of 64 bits".to_owned());
        let long = "123456789012345678901234567890";
        let cases = [
            ("int64", "9007199254740993", None),
            ("int64", "-9223372036854775808", None),
            ("int64", "-9223372036854775809", no(i64_range)),
            ("int64", "18446744073709551615", no(i64_range)),
            ("int", "1.0", no(i64_range)),
            ("int64", "1e2", no(i64_range)),
            ("uint64", "18446744073709551615", None),
            ("uint64", "18446744073709551616", no(u64_range)),
            ("uint", "-1", no(u64_range)),
            ("uint64", "-0", no(u64_range)),
            ("uint8", "256", no("a whole number from 0 to 255")),
            ("int8", "-128", None),
            ("int16", "-32769", no("a whole number from -32768 to 32767")),
            ("uint16", "65535", None),
            ("int32", "2147483648", no("a whole number from -2147483648 to 2147483647")),
            ("uint32", "4294967295", None),
            ("int128", long, None),
            ("uint128", long, None),
            ("uint128", "-1", no("a whole number from 0 to 340282366920938463463374607431768211455")),
            ("double", "9007199254740992", None),
            ("double", "9007199254740993", float()),
            ("double", long, float()),
            ("double", "100000000000000000000000", float()),
            ("double", "-0", None),
            ("double", "0.1", None),
            ("double", "3.14159265358979323846264338327950288", None),
            ("double", "1e-320", None),
            ("double", "1e-400", float()),
            ("double", "0e-400", None),
            ("double", "1e400", float()),
            ("float", "16777217", Some("is not kept by a float of 32 bits".to_owned())),
            ("float", "1e300", Some("is not kept by a float of 32 bits".to_owned())),
            ("float", "0.1", None),
            ("date-time", "1e400", None),
        ];
        for (format, number, expected) in cases {
            let value: Number = serde_json::from_str(number).unwrap();
            let problem = RustNumber::of_format(&format.into()).problem(&value);
            assert_eq!(problem, expected.map(|expected| format!("{value} {expected}")), "{format} {number}");
        }
    }
}
