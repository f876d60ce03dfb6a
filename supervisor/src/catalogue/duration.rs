//! How a time limit is written, in the catalogue and on the command line alike.

use std::time::Duration;

/// The shortest time that may be declared. Below it a limit could not be told from zero.
pub const SHORTEST: Duration = Duration::from_micros(1);

/// The longest time that may be declared: 100 years. It fits into the kernel's signed 64-bit nanoseconds,
/// so that no deadline made of it can overflow.
pub const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Why a text is not a time limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DurationError {
    /// It is not a number with a unit.
    #[error("not a time; write 500ms, 2s, 1m or 1h, or a number of seconds")]
    NotADuration,
    /// It is zero.
    #[error("zero is not a limit; leave it out for no limit")]
    Zero,
    /// It is below zero.
    #[error("a negative time is not a limit; leave it out for no limit")]
    Negative,
    /// It is under [`SHORTEST`].
    #[error("shorter than a microsecond, the shortest time that can be declared")]
    TooShort,
    /// It is over [`LONGEST`].
    #[error("longer than 100 years; leave it out for no limit")]
    TooLong,
}

/// Reads `500ms`, `2s`, `1m`, `1h`, or a bare number of seconds, each also with a decimal fraction.
///
/// Digits behind the ninth of a second (the nanosecond) are cut off.
///
/// # Errors
/// [`DurationError`] for everything else, for zero and less, and for what is too short or too long.
///
/// ```
/// use std::time::Duration;
/// use toolexec::catalogue::duration::{self, DurationError};
///
/// assert_eq!(duration::parse("1.5s"), Ok(Duration::from_millis(1500)));
/// assert_eq!(duration::parse("2"), Ok(Duration::from_secs(2)));
/// assert_eq!(duration::parse("0"), Err(DurationError::Zero));
/// ```
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit {
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 60 * 60 * 1_000_000_000,
        _ => return Err(DurationError::NotADuration),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(DurationError::NotADuration);
    }
    let is_zero = [whole, fraction].iter().all(|digits| digits.bytes().all(|digit| digit == b'0'));
    if is_zero {
        return Err(DurationError::Zero);
    }
    if negative {
        return Err(DurationError::Negative);
    }
    let nanoseconds = nanoseconds(whole, fraction, unit).ok_or(DurationError::TooLong)?;
    let duration = u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| DurationError::TooLong)?;
    if duration < SHORTEST {
        Err(DurationError::TooShort)
    } else if duration > LONGEST {
        Err(DurationError::TooLong)
    } else {
        Ok(duration)
    }
}

/// `whole.fraction` times `unit` nanoseconds, or `None` where that is over all bounds.
fn nanoseconds(whole: &str, fraction: &str, unit: u128) -> Option<u128> {
    // Nine digits behind the point are nanoseconds of a second; four more are what an hour makes of them.
    const DIGITS: usize = 13;
    let kept = &fraction[..fraction.len().min(DIGITS)];
    let scale = 10_u128.pow(u32::try_from(kept.len()).ok()?);
    let part = kept.parse::<u128>().ok()? * unit / scale;
    whole.parse::<u128>().ok()?.checked_mul(unit)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_exactly_or_refused() {
        use DurationError::{Negative, NotADuration, TooLong, TooShort, Zero};
        let nanos = |nanos| Ok(Duration::from_nanos(nanos));
        let cases: &[(&str, Result<Duration, DurationError>)] = &[
            ("500ms", nanos(500_000_000)),
            ("2s", nanos(2_000_000_000)),
            ("1m", nanos(60_000_000_000)),
            ("1h", nanos(3_600_000_000_000)),
            ("2", nanos(2_000_000_000)),
            ("007", nanos(7_000_000_000)),
            ("1.5s", nanos(1_500_000_000)),
            ("0.5", nanos(500_000_000)),
            ("0.0001", nanos(100_000)),
            ("0.001ms", nanos(1000)),
            ("0.000001", nanos(1000)),
            ("1.0000000019", nanos(1_000_000_001)),
            ("0.5m", nanos(30_000_000_000)),
            ("0.0000000003h", nanos(1080)),
            ("1.123456789123456789123456789123456789123456789s", nanos(1_123_456_789)),
            ("876000h", Ok(LONGEST)),
            ("3153600000", Ok(LONGEST)),
            ("0", Err(Zero)),
            ("0s", Err(Zero)),
            ("0.000ms", Err(Zero)),
            ("-0", Err(Zero)),
            ("-1", Err(Negative)),
            ("-1.5ms", Err(Negative)),
            ("-99999999999999999999999999h", Err(Negative)),
            ("0.0000001", Err(TooShort)),
            ("0.0000000000000000000000000000000000000000001", Err(TooShort)),
            ("3153600000.000000001", Err(TooLong)),
            ("876001h", Err(TooLong)),
            ("18446744073709551616", Err(TooLong)),
            ("340282366920938463463374607431768211455h", Err(TooLong)),
            ("99999999999999999999999999999999999999999999", Err(TooLong)),
            ("", Err(NotADuration)),
            ("-", Err(NotADuration)),
            ("s", Err(NotADuration)),
            (".5s", Err(NotADuration)),
            ("5.s", Err(NotADuration)),
            (".", Err(NotADuration)),
            ("1.2.3s", Err(NotADuration)),
            ("2 s", Err(NotADuration)),
            (" 2s", Err(NotADuration)),
            ("2s ", Err(NotADuration)),
            ("+2s", Err(NotADuration)),
            ("--2s", Err(NotADuration)),
            ("2S", Err(NotADuration)),
            ("2sec", Err(NotADuration)),
            ("1m30s", Err(NotADuration)),
            ("1d", Err(NotADuration)),
            ("1e3", Err(NotADuration)),
            ("1_000ms", Err(NotADuration)),
            ("1,5s", Err(NotADuration)),
            ("nan", Err(NotADuration)),
            ("NaN", Err(NotADuration)),
            ("inf", Err(NotADuration)),
            ("-inf", Err(NotADuration)),
            ("٣s", Err(NotADuration)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), *expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_durations_panic(text in r"-?[0-9.]{0,45}(ms|s|m|h|\PC{0,3})") {
            if let Ok(duration) = parse(&text) {
                prop_assert!((SHORTEST..=LONGEST).contains(&duration));
            }
        }

        #[test]
        fn whole_milliseconds_are_read_as_written(ms in 1_u64..=3_153_600_000_000) {
            let expected = Ok(Duration::from_millis(ms));
            prop_assert_eq!(parse(&format!("{ms}ms")), expected);
            prop_assert_eq!(parse(&format!("{}.{:03}", ms / 1000, ms % 1000)), expected);
        }
    }
}
