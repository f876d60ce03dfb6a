//! A call to a worker of its own that was ready, beside the start of a program.

use super::Figure;
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::flavor::Flavor;
use crate::pair::{in_turns, since};
use crate::table::{Aim, Entry, Row, Unit};
use crate::tools::{ECHO_FRESH, echo, executor};
use crate::workers::Zygote;
use anyhow::ensure;
use std::process::Command;
use std::time::Instant;
use toolexec::PoolSettings;

const ROUNDS: usize = 400;

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    Flavor::ALL.into_iter().map(|flavor| flavor.run(with(flavor, cpus, effort))).collect()
}

async fn with(flavor: Flavor, cpus: Cpus, effort: Effort) -> anyhow::Result<Entry> {
    let executor = executor(PoolSettings::default()).await?;
    let mut context = (executor, Zygote::find()?);
    let paired = in_turns(
        effort.of(ROUNDS),
        &mut context,
        async |(executor, zygote)| {
            zygote.idle_workers(PoolSettings::DEFAULT_SPARES).await?;
            Ok(vec![echo(executor, ECHO_FRESH).await?])
        },
        async |(_, zygote)| {
            // In the same quiet, so that the processors are as much asleep as before a call.
            zygote.idle_workers(PoolSettings::DEFAULT_SPARES).await?;
            Ok(vec![start_and_wait()?])
        },
    )
    .await?;
    context.0.close().await;
    let what = format!("spare ready, {}", flavor.as_str());
    let baseline = "posix_spawn of /bin/true and wait";
    Ok(Row::paired(Figure::FreshWorker, &what, cpus, Unit::Microseconds, &paired, baseline).aiming(Aim::AtMost(0.1)))
}

fn start_and_wait() -> anyhow::Result<f64> {
    let mut command = Command::new("/bin/true");
    let begun = Instant::now();
    let status = command.status()?;
    let took = since(begun);
    ensure!(status.success(), "/bin/true ended with {status}");
    Ok(took)
}
