//! Calls to workers of their own, one after the other and four at a time, beside bare forks into the same namespaces.

use super::Figure;
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::flavor::Flavor;
use crate::pair::in_turns;
use crate::role::Role;
use crate::table::{Aim, Entry, Row, Unit};
use crate::tools::{ECHO_FRESH, echo, executor};
use anyhow::{Context as _, ensure};
use std::io::{BufRead as _, BufReader, Write as _, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::Instant;
use toolexec::worker::sys::clone::{Namespaces, Side, clone3};
use toolexec::worker::sys::exit;
use toolexec::worker::sys::wait::{Wait, wait_any};
use toolexec::{Executor, PoolSettings};

/// How many callers call at once.
const CALLERS: usize = 4;

/// How many calls a caller makes in a turn.
const CALLS: usize = 50;

const ROUNDS: usize = 30;

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    Flavor::ALL.into_iter().map(|flavor| flavor.run(with(flavor, cpus, effort))).collect()
}

async fn with(flavor: Flavor, cpus: Cpus, effort: Effort) -> anyhow::Result<Entry> {
    let mut context = (executor(PoolSettings::default()).await?, Forker::start()?);
    let paired = in_turns(
        effort.of(ROUNDS),
        &mut context,
        async |(executor, _)| ours(executor).await,
        async |(_, forker)| forker.turn(),
    )
    .await?;
    let (executor, forker) = context;
    executor.close().await;
    forker.end()?;
    let what = format!("{CALLERS} callers, {}", flavor.as_str());
    let baseline = "clone3 with a PID and a user namespace, exit and wait";
    Ok(Row::paired(Figure::FreshRate, &what, cpus, Unit::PerSecond, &paired, baseline).aiming(Aim::AtLeast(0.4)))
}

async fn ours(executor: &Arc<Executor>) -> anyhow::Result<Vec<f64>> {
    let begun = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let executor = Arc::clone(executor);
            tokio::spawn(async move {
                for _ in 0..CALLS {
                    echo(&executor, ECHO_FRESH).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(vec![rate(CALLERS * CALLS, begun.elapsed().as_secs_f64())])
}

fn rate(count: usize, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// A process with one thread that forks on demand.
struct Forker {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Forker {
    fn start() -> anyhow::Result<Self> {
        let mut child = Role::Clone.command()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, requests, answers })
    }

    fn turn(&mut self) -> anyhow::Result<Vec<f64>> {
        let count = CALLERS * CALLS;
        writeln!(self.requests, "{count}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let seconds: f64 = answer.trim().parse().context("the forking process has ended")?;
        Ok(vec![rate(count, seconds)])
    }

    fn end(self) -> anyhow::Result<()> {
        let Self { mut child, requests, .. } = self;
        drop(requests);
        let status = child.wait()?;
        ensure!(status.success(), "the forking process ended with {status}");
        Ok(())
    }
}

/// The forking process: for each line of its standard input, forks and reaps so many, one after the other, and prints
/// how many seconds that took.
pub(crate) fn clone_on_demand() -> anyhow::Result<()> {
    for line in stdin().lines() {
        let count: usize = line?.trim().parse()?;
        let begun = Instant::now();
        for _ in 0..count {
            match clone3(Namespaces::PidAndUser)? {
                Side::Child => exit::now(0),
                Side::Parent { pid, pidfd: _ } => {
                    let waited = wait_any(true)?;
                    ensure!(matches!(waited, Wait::Reaped(reaped) if reaped.pid == pid), "another child was reaped");
                }
            }
        }
        println!("{}", begun.elapsed().as_secs_f64());
    }
    Ok(())
}
