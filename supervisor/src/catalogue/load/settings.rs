//! What holds for a catalogue as a whole: `[defaults]` and `[pool]`.

use super::problem::{Noted, Problems};
use super::section::{Keys, Section};
use crate::PoolSettings;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

const DEFAULTS: Keys = Keys { known: &["timeout", "queue_timeout"], unsupported: &[], elsewhere: &[] };
const POOL: Keys = Keys { known: &["workers", "spares", "queue"], unsupported: &[], elsewhere: &[] };

/// How many workers a pool may have, and how many spares. More is a slip of the keyboard: each is a process.
const WORKERS: RangeInclusive<usize> = 1..=10_000;
const SPARES: RangeInclusive<usize> = 0..=10_000;

/// How many calls may be allowed to wait. Each holds its arguments in memory.
const QUEUE: RangeInclusive<usize> = 0..=1_000_000;

/// What holds for the tools of a catalogue that do not say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Defaults {
    /// The time limit; `None` is no limit.
    pub timeout: Option<Duration>,
    /// How long a call may wait for a worker; `None` is no limit.
    pub queue_timeout: Option<Duration>,
}

pub(super) fn defaults(root: Section<'_>, problems: &mut Problems<'_>) -> Result<Defaults, Noted> {
    let Some(section) = root.section("defaults", "defaults.", DEFAULTS, problems)? else {
        return Ok(Defaults::default());
    };
    let timeout = section.duration("timeout", problems);
    let queue_timeout = section.duration("queue_timeout", problems);
    Ok(Defaults {
        timeout: timeout?.map(|declared| declared.value),
        queue_timeout: queue_timeout?.map(|declared| declared.value),
    })
}

pub(super) fn pool(root: Section<'_>, problems: &mut Problems<'_>) -> Result<PoolSettings, Noted> {
    let mut pool = PoolSettings::default();
    let Some(section) = root.section("pool", "pool.", POOL, problems)? else { return Ok(pool) };
    let workers = section.number("workers", WORKERS, problems);
    let spares = section.number("spares", SPARES, problems);
    let queue = section.number("queue", QUEUE, problems);
    if let Some(workers) = workers?.and_then(|declared| NonZeroUsize::new(declared.value)) {
        pool.workers = workers;
    }
    if let Some(spares) = spares? {
        pool.spares = spares.value;
    }
    if let Some(queue) = queue? {
        pool.queue = queue.value;
    }
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Policy;
    use crate::catalogue::load::sample::{TOOL, complaint, parse};

    #[test]
    fn every_key_of_the_pool_changes_the_pool() {
        let number = |number| NonZeroUsize::new(number).unwrap();
        let default = PoolSettings::default();
        let cases = [
            ("workers = 7", PoolSettings { workers: number(7), ..default }),
            ("spares = 0", PoolSettings { spares: 0, ..default }),
            ("spares = 9", PoolSettings { spares: 9, ..default }),
            ("queue = 0", PoolSettings { queue: 0, ..default }),
            ("queue = 5", PoolSettings { queue: 5, ..default }),
            ("workers = 0x10", PoolSettings { workers: number(16), ..default }),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(&format!("[pool]\n{line}")).unwrap().pool, expected, "{line}");
        }
    }

    #[test]
    fn every_default_changes_the_tools_that_do_not_say_otherwise() {
        let policy = |defaults: &str, own: &str| {
            let catalogue = parse(&format!("[defaults]\n{defaults}\n{TOOL}{own}\n")).unwrap();
            let tool = catalogue.tools.get("a").unwrap();
            (catalogue.defaults, tool.policy.clone())
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));

        let (defaults, tool) = policy("", "");
        assert_eq!((defaults, tool), (Defaults::default(), Policy::default()), "nothing is limited");

        let (defaults, tool) = policy("timeout = '30s'", "");
        assert_eq!(defaults, Defaults { timeout: seconds(30), queue_timeout: None });
        assert_eq!(tool, Policy { timeout: seconds(30), ..Policy::default() });

        let (_, tool) = policy("timeout = '30s'", "timeout = '2s'");
        assert_eq!(tool.timeout, seconds(2), "a tighter limit of the tool's own holds");

        let (_, tool) = policy("timeout = '30s'", "timeout = '10m'");
        assert_eq!(tool.timeout, seconds(600), "and so does a wider one");

        let (defaults, tool) = policy("queue_timeout = 5", "");
        assert_eq!(defaults, Defaults { timeout: None, queue_timeout: seconds(5) });
        assert_eq!(tool, Policy { queue_timeout: seconds(5), ..Policy::default() });
    }

    #[test]
    fn what_is_wrong_with_the_sections_is_told_in_words() {
        let cases = [
            ("[pool]\nworkers = 0", "2:11: `pool.workers` is 0, and has to be a whole number from 1 to 10000"),
            ("[pool]\nworkers = -1", "2:11: `pool.workers` is -1, and has to be a whole number from 1 to 10000"),
            (
                "[pool]\nworkers = '4'",
                "2:11: `pool.workers` has a string, and has to be a whole number from 1 to 10000",
            ),
            ("[pool]\nspares = -2", "2:10: `pool.spares` is -2, and has to be a whole number from 0 to 10000"),
            (
                "[pool]\nqueue = 99999999999999999999",
                "2:9: `pool.queue` is 99999999999999999999, and has to be a whole number from 0 to 1000000",
            ),
            ("[pool]\nworker = 1", "2:1: unknown key `pool.worker`; did you mean `pool.workers`?"),
            ("pool = 1", "1:8: `pool` has a whole number, and has to be a table"),
            (
                "[defaults]\ntimeout = 0",
                "2:11: `defaults.timeout` is 0: zero is not a limit; leave it out for no limit",
            ),
            (
                "[defaults]\ntimeout = -1.5",
                "2:11: `defaults.timeout` is -1.5: a negative time is not a limit; leave it out for no limit",
            ),
            (
                "[defaults]\ntimeout = nan",
                "2:11: `defaults.timeout` is nan: not a time; write 500ms, 2s, 1m or 1h, or a number of seconds",
            ),
            (
                "[defaults]\nqueue_timeout = 0xffffffffffffffffffffffffffffffffffff",
                "2:17: `defaults.queue_timeout` is 0xffffffffffffffffffffffffffffffffffff: not a time; write 500ms, 2s, \
                 1m or 1h, or a number of seconds",
            ),
            (
                "[defaults]\ntimeout = true",
                "2:11: `defaults.timeout` has a boolean, and has to be a time such as \"500ms\", \"2s\" or \"1m\", or a \
                 number of seconds",
            ),
            ("[defaults]\ngrace = 1", "2:1: unknown key `defaults.grace`; known are timeout, queue_timeout"),
            ("[tools.a]", "1:2: unknown key `tools`; did you mean `tool`?"),
            ("[server]", "1:2: unknown key `server`; known are defaults, pool, tool"),
            ("tool = 'x'", "1:8: `tool` is a string; a tool is declared as [tool.NAME]"),
            ("[[tool]]", "1:1: `tool` is an array; a tool is declared as [tool.NAME]"),
        ];
        for (text, expected) in cases {
            assert_eq!(complaint(text), expected, "{text}");
        }
    }
}
