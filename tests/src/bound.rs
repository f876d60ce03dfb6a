//! Waiting for a state with a bound, never for a time; and the bounds that the promises name.

use std::fmt::Debug;
use std::fs;
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

/// How late an answer may be. On an idle machine it is a few milliseconds; tests run side by side on a loaded one.
pub const LATENESS: Duration = Duration::from_millis(1500);

/// How late an answer may be on a machine that has far more to run than processors: there the start of a program alone
/// may take seconds.
pub const LATENESS_WHEN_OVERLOADED: Duration = Duration::from_secs(10);

/// How long after an answer something of the call may still be seen in `/proc`.
pub const GONE: Duration = Duration::from_millis(500);

/// How long after the supervisor's death by SIGKILL something of it may still be seen in `/proc`.
pub const ORPHANS_GONE: Duration = Duration::from_secs(2);

/// The bound of everything that has no bound of its own: whoever needs longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether the condition came true within the bound. It is looked at once more at the very end.
pub fn wait_until(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(PAUSE);
    }
}

/// As [`wait_until`], with ten times the bound on an overloaded machine, where that is needed.
pub fn wait_in_time(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) -> bool {
    if wait_until(bound, &mut condition) {
        return true;
    }
    let late = is_overloaded() && wait_until(bound * 10, condition);
    if late {
        eprintln!("LATE, on an overloaded machine: waited longer than {bound:?} for {what}");
    }
    late
}

/// Waits until the condition is true.
///
/// # Panics
/// When it does not come true within the bound; `what` completes "waited … for".
#[track_caller]
pub fn assert_within(bound: Duration, what: &str, condition: impl FnMut() -> bool) {
    assert!(wait_in_time(bound, what, condition), "waited {bound:?} in vain for {what}");
}

/// Something that had a time limit took no longer than that, and what may be late: rule R1.
///
/// # Panics
/// When it did.
#[track_caller]
pub fn assert_in_time(what: &str, limit: Duration, took: Duration) {
    if took > limit + LATENESS && is_overloaded() {
        eprintln!("LATE, on an overloaded machine: {what} took {took:?} with a limit of {limit:?}");
        assert!(took <= limit + LATENESS_WHEN_OVERLOADED, "{what} took {took:?} with a limit of {limit:?}");
    } else {
        assert!(took <= limit + LATENESS, "{what} took {took:?} with a limit of {limit:?}");
    }
}

/// Makes an attempt with a time limit of a second, and with longer ones while the attempt says that what was to be killed
/// at the limit had not even begun by then.
///
/// # Panics
/// When no limit is long enough: the test would prove nothing.
#[track_caller]
pub fn with_growing_limit(mut attempt: impl FnMut(Duration) -> bool) {
    let began = [1, 3, 9].into_iter().any(|seconds| attempt(Duration::from_secs(seconds)));
    assert!(began, "what was to be killed did not begin within nine seconds");
}

/// Whether there is far more to run than there are processors.
fn is_overloaded() -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    // The share of the last ten seconds in which somebody waited for a processor, in percent.
    let waited = fs::read_to_string("/proc/pressure/cpu").ok();
    let waited = waited.and_then(|text| number(text.split_once("avg10=")?.1.split_whitespace().next()?));
    let load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| number(text.split_whitespace().next()?));
    let processors = available_parallelism().map_or(1, usize::from) as f64;
    waited.is_some_and(|percent| percent > 60.0) || load.is_some_and(|load| load > 2.0 * processors)
}

/// Waits until nothing is left of what `look` sees.
///
/// # Panics
/// When something is still there at the bound; it is printed.
#[track_caller]
pub fn assert_gone<T: Debug>(bound: Duration, what: &str, mut look: impl FnMut() -> Vec<T>) {
    let mut left = Vec::new();
    let gone = wait_in_time(bound, &format!("the end of {what}"), || {
        left = look();
        left.is_empty()
    });
    assert!(gone, "{what}: still there after {bound:?}: {left:#?}");
}

/// Waits until `look` sees something, and gives it back.
///
/// # Panics
/// When there is nothing within the bound.
#[track_caller]
pub fn await_some<T>(bound: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut seen = None;
    wait_until(bound, || {
        seen = look();
        seen.is_some()
    });
    seen.unwrap_or_else(|| panic!("waited {bound:?} in vain for {what}"))
}
