//! How a number of bytes is written, in the catalogue and on the command line alike.

/// Why a text is not a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    /// It is not a whole number with a unit.
    #[error("not a size; write 1MiB, 64KiB or 1MB, or a number of bytes")]
    NotASize,
    /// It is zero.
    #[error("zero is not a limit; leave it out for the default")]
    Zero,
    /// It is below zero.
    #[error("a negative size is not a limit; leave it out for the default")]
    Negative,
    /// It is more than this machine can count.
    #[error("more bytes than this machine can count")]
    TooLarge,
}

/// Reads `1MiB`, `64KiB`, `1MB`, or a bare number of bytes. Units are `B`, `kB`, `KB`, `MB`, `GB` and `TB` for
/// powers of 1000, and `KiB`, `MiB`, `GiB` and `TiB` for powers of 1024.
///
/// # Errors
/// [`SizeError`] for everything else, for zero and less, and for what does not fit into a `usize`.
///
/// ```
/// use toolexec::catalogue::size::{self, SizeError};
///
/// assert_eq!(size::parse("64KiB"), Ok(65_536));
/// assert_eq!(size::parse("0"), Err(SizeError::Zero));
/// ```
pub fn parse(text: &str) -> Result<usize, SizeError> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit: usize = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1000_usize.pow(2),
        "GB" => 1000_usize.pow(3),
        "TB" => 1000_usize.pow(4),
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(SizeError::NotASize),
    };
    if number.is_empty() {
        return Err(SizeError::NotASize);
    }
    if number.bytes().all(|digit| digit == b'0') {
        return Err(SizeError::Zero);
    }
    if negative {
        return Err(SizeError::Negative);
    }
    number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit)).ok_or(SizeError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_exactly_or_refused() {
        use SizeError::{Negative, NotASize, TooLarge, Zero};
        let cases: &[(&str, Result<usize, SizeError>)] = &[
            ("1", Ok(1)),
            ("1B", Ok(1)),
            ("64KiB", Ok(65_536)),
            ("1MiB", Ok(1_048_576)),
            ("2GiB", Ok(2_147_483_648)),
            ("1TiB", Ok(1_099_511_627_776)),
            ("1kB", Ok(1000)),
            ("1KB", Ok(1000)),
            ("1MB", Ok(1_000_000)),
            ("3GB", Ok(3_000_000_000)),
            ("1TB", Ok(1_000_000_000_000)),
            ("007", Ok(7)),
            ("18446744073709551615", Ok(usize::MAX)),
            ("0", Err(Zero)),
            ("00MiB", Err(Zero)),
            ("-0", Err(Zero)),
            ("-1", Err(Negative)),
            ("-5MiB", Err(Negative)),
            ("18446744073709551616", Err(TooLarge)),
            ("18446744073709551615KiB", Err(TooLarge)),
            ("99999999999999999999999999999999999999999", Err(TooLarge)),
            ("", Err(NotASize)),
            ("-", Err(NotASize)),
            ("MiB", Err(NotASize)),
            ("1.5MiB", Err(NotASize)),
            ("1 MiB", Err(NotASize)),
            (" 1", Err(NotASize)),
            ("1mib", Err(NotASize)),
            ("1M", Err(NotASize)),
            ("+1", Err(NotASize)),
            ("1_000", Err(NotASize)),
            ("0x10", Err(NotASize)),
            ("nan", Err(NotASize)),
            ("inf", Err(NotASize)),
            ("١", Err(NotASize)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), *expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_sizes_panic(text in r"-?[0-9.]{0,45}(B|[kKMGT]i?B|\PC{0,3})") {
            if let Ok(bytes) = parse(&text) {
                prop_assert!(bytes >= 1);
            }
        }
    }
}
