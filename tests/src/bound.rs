//! Waiting for a state with a bound, never for a time; and the bounds that the promises name.

use std::fmt::Debug;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How late an answer may be. On an idle machine it is a few milliseconds; tests run side by side on a loaded one.
pub const LATENESS: Duration = Duration::from_millis(1500);

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

/// Waits until the condition is true.
///
/// # Panics
/// When it does not come true within the bound; `what` completes "waited … for".
#[track_caller]
pub fn assert_within(bound: Duration, what: &str, condition: impl FnMut() -> bool) {
    assert!(wait_until(bound, condition), "waited {bound:?} in vain for {what}");
}

/// Waits until nothing is left of what `look` sees.
///
/// # Panics
/// When something is still there at the bound; it is printed.
#[track_caller]
pub fn assert_gone<T: Debug>(bound: Duration, what: &str, mut look: impl FnMut() -> Vec<T>) {
    let mut left = Vec::new();
    let gone = wait_until(bound, || {
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
