//! Reading one table of a catalogue: its keys, their types, and words for what does not fit.

use super::problem::{Noted, Problems};
use crate::catalogue::duration::{self, DurationError};
use crate::catalogue::excerpt::excerpt;
use crate::catalogue::nearest::nearest;
use crate::catalogue::{kill, size};
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};
use toolexec_protocol::strength::KillStrength;

/// The most bytes of a key or of a value that a problem repeats.
const EXCERPT: usize = 64;

/// What a time is.
const TIME: &str = "a time such as \"500ms\", \"2s\" or \"1m\", or a number of seconds";

/// A value that was declared, and where.
pub(super) struct Placed<T> {
    /// The value.
    pub(super) value: T,
    /// Where it stands in the text.
    pub(super) at: Range<usize>,
}

/// What was read of one key: its value where it is declared, or that a problem was noted.
pub(super) type Read<T> = Result<Option<Placed<T>>, Noted>;

/// What keys a table may have.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    /// Those that are read.
    pub(super) known: &'static [&'static str],
    /// Those that have a meaning, but not in this version: they are refused, since a limit that is not applied must
    /// not be accepted.
    pub(super) unsupported: &'static [&'static str],
    /// Those that have a meaning in another place, and why not in this one.
    pub(super) elsewhere: &'static [(&'static str, &'static str)],
}

/// One table of a catalogue.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    /// What problems write before a key: `limits.` for the keys of a tool's limits.
    prefix: &'static str,
}

impl<'a> Section<'a> {
    /// A table whose keys are called `prefix` and their name. Keys that it may not have are noted.
    pub(super) fn new(table: &'a DeTable<'a>, prefix: &'static str, keys: Keys, problems: &mut Problems<'_>) -> Self {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            let shown = excerpt(format_args!("{prefix}{name}"), EXCERPT);
            if keys.unsupported.contains(&name) {
                let message = format!("`{shown}` is not supported by this version of toolexec; remove it");
                problems.note(&key.span(), message);
            } else if let Some((_, why)) = keys.elsewhere.iter().find(|(known, _)| *known == name) {
                problems.note(&key.span(), format!("`{shown}` {why}"));
            } else if !keys.known.contains(&name) {
                let hint = match nearest(name, keys.known.iter().copied()) {
                    Some(meant) => format!("did you mean `{prefix}{meant}`?"),
                    None => format!("known are {}", keys.known.join(", ")),
                };
                problems.note(&key.span(), format!("unknown key `{shown}`; {hint}"));
            }
        }
        Self { table, prefix }
    }

    /// A key's value, where it is declared.
    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.iter().find(|(known, _)| known.get_ref().as_ref() == key).map(|(_, value)| value)
    }

    /// Notes a problem with a key's value.
    pub(super) fn note(
        &self,
        key: &str,
        at: &Range<usize>,
        message: impl Display,
        problems: &mut Problems<'_>,
    ) -> Noted {
        problems.note(at, format!("`{}{key}` {message}", self.prefix))
    }

    /// A string.
    pub(super) fn text(&self, key: &str, what: &str, problems: &mut Problems<'_>) -> Read<&'a str> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(Placed { value: text, at: value.span() })),
            other => Err(self.mistyped(key, value, other, what, problems)),
        }
    }

    /// A string that `parse` reads.
    pub(super) fn parsed<T, E: Display>(
        &self,
        key: &str,
        what: &str,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
        problems: &mut Problems<'_>,
    ) -> Read<T> {
        let Some(Placed { value: text, at }) = self.text(key, what, problems)? else { return Ok(None) };
        match parse(text) {
            Ok(value) => Ok(Some(Placed { value, at })),
            Err(error) => Err(self.note(key, &at, format_args!("is {:?}: {error}", excerpt(text, EXCERPT)), problems)),
        }
    }

    /// A time limit: a string, or a number of seconds.
    pub(super) fn duration(&self, key: &str, problems: &mut Problems<'_>) -> Read<Duration> {
        self.quantity(key, TIME, duration::parse, problems)
    }

    /// How long something waits; `otherwise` is what holds where it is left out.
    pub(super) fn wait(&self, key: &str, otherwise: &str, problems: &mut Problems<'_>) -> Read<Duration> {
        let parse = |text: &str| {
            duration::parse(text).map_err(|error| match error {
                DurationError::Zero | DurationError::Negative => {
                    format!("nothing waits for zero time or less; leave it out for {otherwise}")
                }
                DurationError::TooLong => format!("longer than 100 years; leave it out for {otherwise}"),
                DurationError::NotADuration | DurationError::TooShort => error.to_string(),
            })
        };
        self.quantity(key, TIME, parse, problems)
    }

    /// A size: a string, or a number of bytes.
    pub(super) fn size(&self, key: &str, problems: &mut Problems<'_>) -> Read<usize> {
        self.quantity(key, "a size such as \"1MiB\" or \"64KiB\", or a number of bytes", size::parse, problems)
    }

    /// Yes or no.
    pub(super) fn boolean(&self, key: &str, problems: &mut Problems<'_>) -> Read<bool> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(boolean) => Ok(Some(Placed { value: *boolean, at: value.span() })),
            other => Err(self.mistyped(key, value, other, "true or false", problems)),
        }
    }

    /// The weakest kill that is accepted.
    pub(super) fn kill(&self, key: &str, problems: &mut Problems<'_>) -> Read<KillStrength> {
        self.parsed(key, "a kill strength such as \"tree\"", kill::parse, problems)
    }

    /// A whole number within bounds.
    pub(super) fn number(&self, key: &str, bounds: RangeInclusive<usize>, problems: &mut Problems<'_>) -> Read<usize> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let what = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        match value.get_ref() {
            DeValue::Integer(written) => {
                let number = integer(written).and_then(|number| usize::try_from(number).ok());
                match number.filter(|number| bounds.contains(number)) {
                    Some(number) => Ok(Some(Placed { value: number, at: value.span() })),
                    None => {
                        let written = excerpt(written, EXCERPT);
                        let message = format!("is {written}, and has to be {what}");
                        Err(self.note(key, &value.span(), message, problems))
                    }
                }
            }
            other => Err(self.mistyped(key, value, other, &what, problems)),
        }
    }

    /// A table.
    pub(super) fn section(
        &self,
        key: &str,
        prefix: &'static str,
        keys: Keys,
        problems: &mut Problems<'_>,
    ) -> Result<Option<Section<'a>>, Noted> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some(Section::new(table, prefix, keys, problems))),
            other => Err(self.mistyped(key, value, other, "a table", problems)),
        }
    }

    /// An array of strings, each with its place.
    pub(super) fn texts(&self, key: &str, what: &str, problems: &mut Problems<'_>) -> Read<Vec<Placed<&'a str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(array) = value.get_ref() else {
            return Err(self.mistyped(key, value, value.get_ref(), what, problems));
        };
        let mut texts = Vec::with_capacity(array.len());
        let mut noted = None;
        for element in array {
            match element.get_ref() {
                DeValue::String(text) => texts.push(Placed { value: text.as_ref(), at: element.span() }),
                other => noted = Some(self.mistyped(key, element, other, what, problems)),
            }
        }
        noted.map_or(Ok(Some(Placed { value: texts, at: value.span() })), Err)
    }

    /// A string, or a number that reads like one.
    fn quantity<T, E: Display>(
        &self,
        key: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
        problems: &mut Problems<'_>,
    ) -> Read<T> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let (parsed, shown) = match value.get_ref() {
            DeValue::String(text) => (parse(text), format!("{:?}", excerpt(text, EXCERPT))),
            DeValue::Integer(number) => {
                // What is beyond 128 bits is in decimal already, or beyond every bound whatever its radix.
                let decimal = integer(number).map_or_else(|| number.as_str().to_owned(), |number| number.to_string());
                (parse(&decimal), excerpt(number, EXCERPT))
            }
            DeValue::Float(number) => (parse(number.as_str()), excerpt(number, EXCERPT)),
            other => return Err(self.mistyped(key, value, other, what, problems)),
        };
        match parsed {
            Ok(parsed) => Ok(Some(Placed { value: parsed, at: value.span() })),
            Err(error) => Err(self.note(key, &value.span(), format_args!("is {shown}: {error}"), problems)),
        }
    }

    /// Notes that a value is of another type than it has to be.
    pub(super) fn mistyped(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        found: &DeValue<'_>,
        what: &str,
        problems: &mut Problems<'_>,
    ) -> Noted {
        let message = format!("has {}, and has to be {what}", kind(found));
        self.note(key, &value.span(), message, problems)
    }
}

/// A whole number of TOML, in whatever radix it is written.
pub(super) fn integer(written: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(written.as_str(), written.radix()).ok()
}

/// What a value is.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
