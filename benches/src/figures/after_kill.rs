//! The call after a kill, beside the call after one that ended by itself.

use super::Figure;
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::flavor::Flavor;
use crate::pair::in_turns;
use crate::table::{Aim, Entry, Row, Unit};
use crate::tools::{ECHO_FRESH, SPIN, echo, executor, killed};
use crate::workers::Zygote;
use std::time::Duration;
use toolexec::PoolSettings;

const ROUNDS: usize = 200;

const TIMEOUT: Duration = Duration::from_millis(5);

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    Flavor::ALL.into_iter().map(|flavor| flavor.run(with(flavor, cpus, effort))).collect()
}

async fn with(flavor: Flavor, cpus: Cpus, effort: Effort) -> anyhow::Result<Entry> {
    let executor = executor(PoolSettings::default()).await?;
    let mut context = (executor, Zygote::find()?);
    // Both begin with all spares ready, so that they differ in how the call before has ended and in nothing else.
    let paired = in_turns(
        effort.of(ROUNDS),
        &mut context,
        async |(executor, zygote)| {
            zygote.idle_workers(PoolSettings::DEFAULT_SPARES).await?;
            killed(executor, SPIN, TIMEOUT).await?;
            Ok(vec![echo(executor, ECHO_FRESH).await?])
        },
        async |(executor, zygote)| {
            zygote.idle_workers(PoolSettings::DEFAULT_SPARES).await?;
            echo(executor, ECHO_FRESH).await?;
            Ok(vec![echo(executor, ECHO_FRESH).await?])
        },
    )
    .await?;
    context.0.close().await;
    let what = format!("fresh worker, {}", flavor.as_str());
    let baseline = "the call after one that ended by itself";
    Ok(Row::paired(Figure::AfterKill, &what, cpus, Unit::Microseconds, &paired, baseline).aiming(Aim::AtMost(2.0)))
}
