//! A call to a worker that serves many, beside the bare exchange of two processes over a socket.

use super::Figure;
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::flavor::Flavor;
use crate::pair::{in_turns, since};
use crate::role::Role;
use crate::table::{Aim, Entry, Row, Unit};
use crate::tools::{ARGUMENTS, ECHO_REUSED, echo, executor};
use anyhow::ensure;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Instant;
use toolexec::{Executor, PoolSettings};

/// How many exchanges a turn has: enough that the first, which finds the caches as the other side left them, does not
/// count.
const A_TURN: usize = 200;

const ROUNDS: usize = 60;

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    Flavor::ALL.into_iter().map(|flavor| flavor.run(with(flavor, cpus, effort))).collect()
}

async fn with(flavor: Flavor, cpus: Cpus, effort: Effort) -> anyhow::Result<Entry> {
    let executor = executor(PoolSettings::default()).await?;
    let mut context = (executor, PingPong::start()?);
    let paired = in_turns(effort.of(ROUNDS), &mut context, ours, async |(_, baseline)| baseline.turn()).await?;
    let (executor, baseline) = context;
    executor.close().await;
    baseline.end()?;
    let what = format!("reused worker, {}", flavor.as_str());
    let baseline = "64 bytes there and back over a blocking socket pair between two processes";
    Ok(Row::paired(Figure::RoundTrip, &what, cpus, Unit::Microseconds, &paired, baseline).aiming(Aim::AtMost(1.8)))
}

async fn ours((executor, _): &mut (std::sync::Arc<Executor>, PingPong)) -> anyhow::Result<Vec<f64>> {
    // The first may meet a worker that was not used for a while.
    echo(executor, ECHO_REUSED).await?;
    let mut samples = Vec::with_capacity(A_TURN);
    for _ in 0..A_TURN {
        samples.push(echo(executor, ECHO_REUSED).await?);
    }
    Ok(samples)
}

/// Another process that sends back what it gets.
struct PingPong {
    socket: UnixStream,
    child: Child,
}

impl PingPong {
    fn start() -> anyhow::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Role::Answer.command()?.stdin(OwnedFd::from(theirs)).spawn()?;
        Ok(Self { socket, child })
    }

    fn turn(&mut self) -> anyhow::Result<Vec<f64>> {
        self.exchange()?;
        let mut samples = Vec::with_capacity(A_TURN);
        for _ in 0..A_TURN {
            samples.push(self.exchange()?);
        }
        Ok(samples)
    }

    fn exchange(&mut self) -> anyhow::Result<f64> {
        let mut answer = [0; ARGUMENTS.len()];
        let begun = Instant::now();
        self.socket.write_all(ARGUMENTS.as_bytes())?;
        self.socket.read_exact(&mut answer)?;
        let took = since(begun);
        ensure!(answer == ARGUMENTS.as_bytes(), "something else was sent back");
        Ok(took)
    }

    fn end(self) -> anyhow::Result<()> {
        let Self { socket, mut child } = self;
        drop(socket);
        let status = child.wait()?;
        ensure!(status.success(), "the other process ended with {status}");
        Ok(())
    }
}

/// The other process: sends back what comes on the socket that is its standard input, until that is closed.
pub(crate) fn answer() -> anyhow::Result<()> {
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut bytes = [0; 1024];
    loop {
        match socket.read(&mut bytes)? {
            0 => return Ok(()),
            count => socket.write_all(&bytes[..count])?,
        }
    }
}
