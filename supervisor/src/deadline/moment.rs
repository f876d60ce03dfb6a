//! Points in time that go on while the host sleeps.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A reading of `CLOCK_BOOTTIME` in nanoseconds. Unlike [`std::time::Instant`] it counts the time that the host
/// was suspended, as the watchdog's timer does: a deadline is not put off by closing a laptop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        // The clock starts at 0 when the kernel does, and nanoseconds are below one second.
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }

    /// This much later, or the end of time, some 584 years after the start of the kernel.
    #[must_use]
    pub(crate) fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to this moment; none if it is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The same in whole microseconds, as outcomes tell it.
    pub(crate) fn us_since(self, earlier: Self) -> u64 {
        u64::try_from(self.since(earlier).as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward() {
        let before = Moment::now();
        let after = Moment::now();
        assert!(before > Moment(0) && after >= before);
    }

    #[test]
    fn the_clock_is_the_one_that_counts_sleep() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let now = Moment::now().since(Moment(0)).as_secs_f64();
        // The file has hundredths of a second, and was read before the clock was.
        assert!(now >= seconds - 0.01 && now < seconds + 60.0, "{now} and {seconds}");
    }

    #[test]
    fn sums_and_differences_stop_at_the_ends() {
        let moment = Moment(1_000);
        assert_eq!(moment.saturating_add(Duration::from_micros(1)), Moment(2_000));
        assert_eq!(moment.saturating_add(Duration::MAX), Moment(u64::MAX));
        assert_eq!(Moment(u64::MAX).saturating_add(Duration::from_nanos(1)), Moment(u64::MAX));
        assert_eq!(Moment(2_500).since(moment), Duration::from_nanos(1_500));
        assert_eq!(moment.since(Moment(2_500)), Duration::ZERO);
    }
}
