//! A tool's limits.

use super::read::Tool;
use crate::call::{Policy, WorkerPolicy};
use crate::catalogue::load::problem::{Noted, Problems};
use crate::catalogue::load::section::{Keys, Placed};
use crate::catalogue::load::settings::Defaults;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

const LIMITS: Keys = Keys {
    known: &["output"],
    unsupported: &["memory", "cpu", "processes", "file_size", "open_files"],
    elsewhere: &[],
};

/// The calls of a reused worker where the catalogue does not say how many.
const DEFAULT_MAX_CALLS: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

const MAX_CALLS: RangeInclusive<usize> = 1..=1_000_000;

impl Tool<'_> {
    pub(super) fn policy(&self, defaults: Defaults, problems: &mut Problems<'_>) -> Result<Policy, Noted> {
        let timeout = self.section.duration("timeout", problems);
        let grace = self.grace(&timeout, defaults, problems);
        let worker = self.worker(problems);
        let kill = self.section.kill("kill", problems);
        let output = self.output_bound(problems);
        let undeclared = Policy::default();
        Ok(Policy {
            timeout: timeout?.map(|declared| declared.value).or(defaults.timeout),
            grace: grace?,
            queue_timeout: defaults.queue_timeout,
            output: output?,
            kill: kill?.map_or(undeclared.kill, |declared| declared.value),
            worker: worker?,
        })
    }

    /// The grace period lies inside the time limit, so it has to be the shorter of the two.
    fn grace(
        &self,
        timeout: &Result<Option<Placed<Duration>>, Noted>,
        defaults: Defaults,
        problems: &mut Problems<'_>,
    ) -> Result<Option<Duration>, Noted> {
        let Some(grace) = self.section.duration("grace", problems)? else { return Ok(None) };
        let (limit, whose) = match (timeout, defaults.timeout) {
            // What is wrong with the limit was noted; there is nothing to compare with.
            (Err(Noted), _) => return Err(Noted),
            (Ok(Some(own)), _) => (own.value, "its `timeout`"),
            (Ok(None), Some(default)) => (default, "the `timeout` of [defaults]"),
            (Ok(None), None) => {
                let message = "needs a time limit; declare `timeout` here or in [defaults]";
                return Err(self.section.note("grace", &grace.at, message, problems));
            }
        };
        if grace.value < limit {
            return Ok(Some(grace.value));
        }
        let message = format!("is {:?}, and has to be shorter than {whose}, {limit:?}", grace.value);
        Err(self.section.note("grace", &grace.at, message, problems))
    }

    fn worker(&self, problems: &mut Problems<'_>) -> Result<WorkerPolicy, Noted> {
        let parse = |text: &str| match text {
            "fresh" => Ok(false),
            "reuse" => Ok(true),
            _ => Err("not a kind of worker; write \"fresh\" or \"reuse\""),
        };
        let reuse = self.section.parsed("worker", "\"fresh\" or \"reuse\"", parse, problems);
        let max_calls = self.section.number("max_calls", MAX_CALLS, problems);
        let reuse = reuse?.is_some_and(|declared| declared.value);
        match (reuse, max_calls?) {
            (false, None) => Ok(WorkerPolicy::Fresh),
            (false, Some(declared)) => {
                let message = "needs worker = \"reuse\"; a fresh worker serves one call";
                Err(self.section.note("max_calls", &declared.at, message, problems))
            }
            (true, declared) => {
                let declared = declared.and_then(|declared| u32::try_from(declared.value).ok());
                let max_calls = declared.and_then(NonZeroU32::new).unwrap_or(DEFAULT_MAX_CALLS);
                Ok(WorkerPolicy::Reuse { max_calls })
            }
        }
    }

    fn output_bound(&self, problems: &mut Problems<'_>) -> Result<Option<usize>, Noted> {
        match self.section.section("limits", "limits.", LIMITS, problems)? {
            Some(limits) => Ok(limits.size("output", problems)?.map(|declared| declared.value)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::call::{Policy, WorkerPolicy};
    use crate::catalogue::Catalogue;
    use crate::catalogue::load::sample::{refused, with_tool};
    use std::num::NonZeroU32;
    use std::path::Path;
    use std::time::Duration;
    use toolexec_protocol::strength::KillStrength;

    #[test]
    fn timeout_grace_worker_kill_and_output_make_the_policy() {
        let milliseconds = |milliseconds| Some(Duration::from_millis(milliseconds));
        let reuse = |calls| WorkerPolicy::Reuse { max_calls: NonZeroU32::new(calls).unwrap() };
        let default = Policy::default();
        let cases = [
            ("", default.clone()),
            ("timeout = '2s'", Policy { timeout: milliseconds(2000), ..default.clone() }),
            ("timeout = 2", Policy { timeout: milliseconds(2000), ..default.clone() }),
            ("timeout = 0.25", Policy { timeout: milliseconds(250), ..default.clone() }),
            (
                "timeout = '2s'\ngrace = '200ms'",
                Policy { timeout: milliseconds(2000), grace: milliseconds(200), ..default.clone() },
            ),
            ("worker = 'fresh'", default.clone()),
            ("worker = 'reuse'", Policy { worker: reuse(100), ..default.clone() }),
            ("worker = 'reuse'\nmax_calls = 3", Policy { worker: reuse(3), ..default.clone() }),
            ("kill = 'tree'", Policy { kill: KillStrength::Subreaper, ..default.clone() }),
            ("kill = 'pid-namespace'", Policy { kill: KillStrength::PidNamespace, ..default.clone() }),
            ("limits = { output = '64KiB' }", Policy { output: Some(65_536), ..default.clone() }),
            ("limits = { output = 5 }", Policy { output: Some(5), ..default.clone() }),
            ("limits = {}", default.clone()),
            ("isolation = 'isolated'", default),
        ];
        for (lines, expected) in cases {
            assert_eq!(with_tool(lines, |tool| tool.policy.clone()), expected, "{lines}");
        }
    }

    #[test]
    fn grace_is_compared_with_the_limit_that_holds() {
        let parse = |defaults: &str, own: &str| {
            let text = format!("[defaults]\n{defaults}\n[tool.a]\ndescription = 'x'\ncommand = ['true']\n{own}\n");
            let catalogue = Catalogue::parse(&text, Path::new("/c.toml")).map_err(|error| error.to_string())?;
            Ok::<_, String>(catalogue.tools.get("a").and_then(|tool| tool.policy.grace))
        };
        let second = Ok(Some(Duration::from_secs(1)));
        assert_eq!(parse("timeout = 2", "grace = 1"), second);
        assert_eq!(parse("timeout = 1", "grace = 1\ntimeout = 2"), second);
        let check = |defaults: &str, own: &str, expected: &str| {
            assert_eq!(parse(defaults, own), Err(format!("/c.toml:6:9: tool \"a\": `grace` {expected}")));
        };
        check("", "grace = 1", "needs a time limit; declare `timeout` here or in [defaults]");
        check("timeout = 1", "grace = 1", "is 1s, and has to be shorter than the `timeout` of [defaults], 1s");
        check("timeout = 9", "grace = 1\ntimeout = '500ms'", "is 1s, and has to be shorter than its `timeout`, 500ms");
        // An illegal limit is told once; nothing is said of a comparison with it.
        assert_eq!(
            parse("", "grace = 1\ntimeout = 0"),
            Err("/c.toml:7:11: tool \"a\": `timeout` is 0: zero is not a limit; leave it out for no limit".into())
        );
    }

    #[test]
    fn what_is_wrong_with_a_limit_is_told_in_words() {
        let cases = [
            (
                "limits = { outputs = 1 }",
                "4:12: tool \"a\": unknown key `limits.outputs`; did you mean `limits.output`?",
            ),
            ("limits = { pids = 1 }", "4:12: tool \"a\": unknown key `limits.pids`; known are output"),
            ("limits = 1", "4:10: tool \"a\": `limits` has a whole number, and has to be a table"),
            (
                "limits = { output = 0 }",
                "4:21: tool \"a\": `limits.output` is 0: zero is not a limit; leave it out for the default",
            ),
            (
                "limits = { output = '1.5MiB' }",
                "4:21: tool \"a\": `limits.output` is \"1.5MiB\": not a size; write 1MiB, 64KiB or 1MB, or a number of bytes",
            ),
            (
                "limits = { output = 1.0 }",
                "4:21: tool \"a\": `limits.output` is 1.0: not a size; write 1MiB, 64KiB or 1MB, or a number of bytes",
            ),
            ("timeout = '0s'", "4:11: tool \"a\": `timeout` is \"0s\": zero is not a limit; leave it out for no limit"),
            (
                "timeout = -1",
                "4:11: tool \"a\": `timeout` is -1: a negative time is not a limit; leave it out for no limit",
            ),
            (
                "timeout = 1e20",
                "4:11: tool \"a\": `timeout` is 1e20: not a time; write 500ms, 2s, 1m or 1h, or a number of seconds",
            ),
            (
                "timeout = 99999999999",
                "4:11: tool \"a\": `timeout` is 99999999999: longer than 100 years; leave it out for no limit",
            ),
            (
                "timeout = ['2s']",
                "4:11: tool \"a\": `timeout` has an array, and has to be a time such as \"500ms\", \"2s\" or \"1m\", or a \
                 number of seconds",
            ),
            (
                "timeout = 2026-01-01",
                "4:11: tool \"a\": `timeout` has a date or time, and has to be a time such as \"500ms\", \"2s\" or \"1m\", or \
                 a number of seconds",
            ),
            (
                "kill = 'tre'",
                "4:8: tool \"a\": `kill` is \"tre\": not a kill strength; write tree, pid-namespace, cgroup, subreaper or \
                 process-group",
            ),
            ("kill = true", "4:8: tool \"a\": `kill` has a boolean, and has to be a kill strength such as \"tree\""),
            (
                "worker = 'warm'",
                "4:10: tool \"a\": `worker` is \"warm\": not a kind of worker; write \"fresh\" or \"reuse\"",
            ),
            ("max_calls = 5", "4:13: tool \"a\": `max_calls` needs worker = \"reuse\"; a fresh worker serves one call"),
            (
                "worker = 'fresh'\nmax_calls = 5",
                "5:13: tool \"a\": `max_calls` needs worker = \"reuse\"; a fresh worker serves one call",
            ),
            (
                "worker = 'reuse'\nmax_calls = 0",
                "5:13: tool \"a\": `max_calls` is 0, and has to be a whole number from 1 to 1000000",
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(refused(lines), expected, "{lines}");
        }
    }
}
