//! Where all processes of a measurement run.

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Where all processes of a measurement run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cpus {
    /// All on one CPU.
    Pinned,
    /// Where the kernel puts them.
    Free,
}

impl Cpus {
    /// Both, in the order in which they are measured.
    pub(crate) const ALL: [Self; 2] = [Self::Pinned, Self::Free];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Free => "free",
        }
    }

    /// Places this process, and with it every thread and process that it starts later.
    pub(crate) fn place_this_process(self) -> anyhow::Result<()> {
        match self {
            Self::Free => Ok(()),
            Self::Pinned => {
                let allowed = sched_getaffinity(None).context("cannot ask where this process may run")?;
                // The last one: interrupts are mostly served by the first.
                let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).context("no CPU is allowed")?;
                let mut only = CpuSet::new();
                only.set(last);
                sched_setaffinity(None, &only).context("cannot pin this process to one CPU")
            }
        }
    }
}
