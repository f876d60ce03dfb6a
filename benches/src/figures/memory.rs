//! What an idle worker of the `toolexec` command holds in memory.

use super::Figure;
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::flavor::Flavor;
use crate::pair::Samples;
use crate::table::{Aim, Entry, Row, Unit};
use crate::workers::{Zygote, proportional_kib};
use anyhow::{Context as _, ensure};
use toolexec::{Executor, PoolSettings, WorkerProgram};

const EXECUTORS: usize = 10;

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    let samples = Flavor::OneThread.run(idle_workers(effort.of(EXECUTORS)))?;
    let row = Row::alone(Figure::Memory, "PSS of an idle spare", cpus, Unit::Kibibytes, &samples, 50);
    Ok(vec![row.aiming(Aim::AtMost(300.0))])
}

async fn idle_workers(executors: usize) -> anyhow::Result<Samples> {
    let program = WorkerProgram::for_commands();
    let found = program != WorkerProgram::this_program();
    ensure!(found, "toolexec-worker is missing beside this program: cargo build --release -p toolexec");
    // Only this one: a substitute would be measured without a word.
    let program = WorkerProgram { substitute: None, ..program };
    let mut samples = Vec::new();
    for _ in 0..executors {
        let executor = Executor::builder().program(program.clone()).start().await?;
        for pid in Zygote::find()?.idle_workers(PoolSettings::DEFAULT_SPARES).await? {
            samples.push(proportional_kib(pid)?);
        }
        executor.close().await;
    }
    Samples::new(samples).context("no worker was seen")
}
