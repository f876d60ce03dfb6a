//! How long after its deadline a call gets SIGKILL, and how long after that its death is confirmed.

use super::Figure;
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::flavor::Flavor;
use crate::pair::Samples;
use crate::spinners::Spinners;
use crate::table::{Aim, Entry, Row, Unit};
use crate::tools::{HANG, SPIN, executor, killed};
use anyhow::{Context as _, ensure};
use std::time::Duration;
use toolexec::PoolSettings;

const KILLS: usize = 400;

/// How many processes spin beside the tool in the second half.
const SPINNERS: usize = 8;

/// Short enough for many kills, and long enough for the tool to run and the watchdog to sleep.
const TIMEOUT: Duration = Duration::from_millis(10);

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    let kills = effort.of(KILLS);
    let flavor = Flavor::ManyThreads;
    let row = |what: &str, samples: &Samples, percent| {
        Row::alone(Figure::Kill, what, cpus, Unit::Microseconds, samples, percent)
    };
    let mut entries = Vec::new();
    for (tool, of_tool) in [(SPIN, "a tool that spins"), (HANG, "a tool that hangs")] {
        let Delays { sent, dead } = flavor.run(delays(tool, kills))?;
        entries.push(row(&format!("{of_tool}, signal sent, p50"), &sent, 50).aiming(Aim::AtMost(200.0)));
        entries.push(row(&format!("{of_tool}, signal sent, p99"), &sent, 99).aiming(Aim::AtMost(2_000.0)));
        entries.push(row(&format!("{of_tool}, confirmed dead, p50"), &dead, 50).aiming(Aim::AtMost(400.0)));
        entries.push(row(&format!("{of_tool}, confirmed dead, p99"), &dead, 99).for_comparison());
    }
    let load = Spinners::start(SPINNERS)?;
    let Delays { sent, dead } = flavor.run(delays(SPIN, kills))?;
    drop(load);
    let beside = format!("beside {SPINNERS} that spin");
    entries.push(row(&format!("{beside}, signal sent, p50"), &sent, 50).aiming(Aim::AtMost(200.0)));
    entries.push(row(&format!("{beside}, signal sent, p99"), &sent, 99).for_comparison());
    entries.push(row(&format!("{beside}, confirmed dead, p50"), &dead, 50).for_comparison());
    Ok(entries)
}

/// What receipts say of many kills, in microseconds after the deadline.
struct Delays {
    sent: Samples,
    dead: Samples,
}

async fn delays(tool: &'static str, kills: usize) -> anyhow::Result<Delays> {
    let executor = executor(PoolSettings::default()).await?;
    let (mut sent, mut dead) = (Vec::new(), Vec::new());
    for _ in 0..kills {
        let outcome = killed(&executor, tool, TIMEOUT).await?;
        let receipt = outcome.receipt.context("a kill without a receipt")?;
        ensure!(receipt.confirmed, "a death was not confirmed: {receipt:?}");
        sent.push(receipt.signalled_after_us.context("a kill without a signal")? as f64);
        dead.push(receipt.dead_after_us.context("a confirmed death without a time")? as f64);
    }
    executor.close().await;
    let delays = |samples| Samples::new(samples).context("nothing was killed");
    Ok(Delays { sent: delays(sent)?, dead: delays(dead)? })
}
