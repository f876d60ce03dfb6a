//! Times and counts as people read them.

use std::time::Duration;

/// A limit as somebody would have typed it: `1s`, `500ms`, `1m 30s`.
pub(crate) fn limit(duration: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let seconds = duration.as_secs();
    if seconds >= MINUTE && duration.subsec_nanos() == 0 {
        let parts = [(seconds / HOUR, "h"), (seconds % HOUR / MINUTE, "m"), (seconds % MINUTE, "s")];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
        return parts.join(" ");
    }
    let nanoseconds = duration.as_nanos();
    let (unit, name) = match nanoseconds {
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "µs"),
        _ => (1, "ns"),
    };
    let fraction = format!("{:09}", nanoseconds % unit * (1_000_000_000 / unit));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}{name}", nanoseconds / unit)
}

/// A measured time: `63 µs`, `0.3 ms`, `12.0 ms`, `1.2 s`.
pub(crate) fn measured(microseconds: u64) -> String {
    match microseconds {
        0..100 => format!("{microseconds} µs"),
        // The numbers are small enough for an f64 to be exact to the printed digit.
        100..1_000_000 => format!("{:.1} ms", microseconds as f64 / 1e3),
        _ => format!("{:.1} s", microseconds as f64 / 1e6),
    }
}

/// A running time: `1.2 s`, from a minute on `1:15`, from an hour on `1:02:03`.
pub(crate) fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60),
    }
}

/// A count with its noun: `1 process`, `2 processes`.
pub(crate) fn count(number: impl Into<u64>, one: &str, many: &str) -> String {
    match number.into() {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_as_they_are_typed() {
        let cases = [
            (1_000_000_000, "1s"),
            (1_500_000_000, "1.5s"),
            (59_999_000_000, "59.999s"),
            (500_000_000, "500ms"),
            (1_234_567, "1.234567ms"),
            (100_000, "100µs"),
            (100_500, "100.5µs"),
            (7, "7ns"),
            (0, "0ns"),
            (60_000_000_000, "1m"),
            (90_000_000_000, "1m 30s"),
            (90_500_000_000, "90.5s"),
            (3_600_000_000_000, "1h"),
            (7_203_000_000_000, "2h 3s"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(limit(Duration::from_nanos(nanoseconds)), text);
        }
        assert_eq!(limit(Duration::from_secs(u64::MAX)), "5124095576030431h 15s");
    }

    #[test]
    fn measured_times_have_the_digits_that_matter() {
        let cases = [
            (0, "0 µs"),
            (63, "63 µs"),
            (263, "0.3 ms"),
            (12_000, "12.0 ms"),
            (999_000, "999.0 ms"),
            (1_234_567, "1.2 s"),
        ];
        for (microseconds, text) in cases {
            assert_eq!(measured(microseconds), text);
        }
    }

    #[test]
    fn running_times_have_a_clock() {
        let cases = [(0, "0.0 s"), (59_900, "59.9 s"), (60_000, "1:00"), (3_723_000, "1:02:03")];
        for (milliseconds, text) in cases {
            assert_eq!(clock(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(count(1_u32, "process", "processes"), "1 process");
        assert_eq!(count(0_u32, "process", "processes"), "0 processes");
        assert_eq!(count(2_u64, "process", "processes"), "2 processes");
    }
}
