//! What the zygote below this process has forked, as `/proc` shows it; see proc(5).

use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::time::{Duration, Instant};

/// How often it is looked whether the spares are ready. The pause lets the executor's own task hear of them.
const LOOKS_EVERY: Duration = Duration::from_micros(500);

/// How long spares may take: 10 s, which no machine needs.
const READY_BOUND: Duration = Duration::from_secs(10);

/// The zygote of the one executor that this process has at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Zygote {
    pid: u32,
}

impl Zygote {
    /// Finds it.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let children = children(std::process::id())?;
        let mut zygotes =
            children.into_iter().filter(|pid| look(*pid).is_some_and(|seen| seen.name == "toolexec-zygote"));
        let pid = zygotes.next().context("no zygote is there")?;
        ensure!(zygotes.next().is_none(), "more than one zygote is there");
        Ok(Self { pid })
    }

    /// Waits until exactly `count` workers are there and have nothing to do, nor the zygote; gives back their numbers.
    pub(crate) async fn idle_workers(self, count: usize) -> anyhow::Result<Vec<u32>> {
        let begun = Instant::now();
        let mut seen_before = None;
        while begun.elapsed() < READY_BOUND {
            let seen = self.look(count)?;
            // Twice the same: a worker that only waits for something in its set-up goes on, and what the zygote has
            // said was heard meanwhile.
            if seen.is_some() && seen == seen_before {
                return Ok(seen.unwrap_or_default());
            }
            seen_before = seen;
            tokio::time::sleep(LOOKS_EVERY).await;
        }
        bail!("{count} idle workers were not seen within {READY_BOUND:?}")
    }

    fn look(self, count: usize) -> anyhow::Result<Option<Vec<u32>>> {
        let idle = |pid: u32, name: &str| look(pid).is_some_and(|seen| seen.name == name && seen.state == 'S');
        let children = children(self.pid)?;
        let all_idle = children.len() == count && children.iter().all(|pid| idle(*pid, "toolexec-worker"));
        Ok((all_idle && idle(self.pid, "toolexec-zygote")).then_some(children))
    }
}

/// The memory of a process in KiB, where a page that several processes share counts as that part of a page (PSS).
pub(crate) fn proportional_kib(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).with_context(|| format!("{path} has no Pss"))?;
    let kib = line.trim().strip_suffix("kB").with_context(|| format!("{path} has another unit"))?;
    Ok(kib.trim().parse()?)
}

struct Seen {
    name: String,
    state: char,
}

fn look(pid: u32) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    Some(Seen { name: head.split_once('(')?.1.to_owned(), state: tail.chars().next()? })
}

fn children(parent: u32) -> anyhow::Result<Vec<u32>> {
    let path = format!("/proc/{parent}/task");
    let threads = fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?;
    let mut children = Vec::new();
    for thread in threads.flatten() {
        // A thread that has ended has none.
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(children)
}
