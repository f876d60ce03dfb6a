//! The tools that are called, and the executor that calls them.

use anyhow::{Context as _, bail};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolexec::call::{Outcome, Policy, Status, ToolCall, WorkerPolicy};
use toolexec::catalogue::{Body, ToolSpec, ToolTable};
use toolexec::worker::{Failure, Toolbox};
use toolexec::{Executor, PoolSettings};
use toolexec_protocol::id::ToolName;

/// Returns its arguments, from a worker that serves many calls.
pub(crate) const ECHO_REUSED: &str = "echo_reused";

/// Returns its arguments, from a worker of its own.
pub(crate) const ECHO_FRESH: &str = "echo_fresh";

/// Uses a CPU until it is killed.
pub(crate) const SPIN: &str = "spin";

/// Waits until it is killed.
pub(crate) const HANG: &str = "hang";

/// 64 bytes of JSON.
pub(crate) const ARGUMENTS: &str = r#"{"text":"sixty-four bytes of JSON, as an agent would send them"}"#;

/// What the workers of this program can do.
pub(crate) fn toolbox() -> anyhow::Result<Toolbox> {
    let mut toolbox = Toolbox::new();
    for name in [ECHO_REUSED, ECHO_FRESH] {
        toolbox.add(name, |arguments: &[u8]| Ok(arguments.to_vec()))?;
    }
    toolbox.add(SPIN, |_: &[u8]| -> Result<Vec<u8>, Failure> {
        loop {
            std::hint::spin_loop();
        }
    })?;
    toolbox.add(HANG, |_: &[u8]| -> Result<Vec<u8>, Failure> {
        loop {
            std::thread::park();
        }
    })?;
    Ok(toolbox)
}

/// An executor whose workers are forks of this program.
pub(crate) async fn executor(pool: PoolSettings) -> anyhow::Result<Arc<Executor>> {
    let reuse = WorkerPolicy::Reuse { max_calls: NonZeroU32::MAX };
    let tools = [
        (ECHO_REUSED, reuse),
        (ECHO_FRESH, WorkerPolicy::Fresh),
        (SPIN, WorkerPolicy::Fresh),
        (HANG, WorkerPolicy::Fresh),
    ];
    let specs = tools.into_iter().map(|(name, worker)| {
        let policy = Policy { worker, ..Policy::default() };
        Ok(ToolSpec { policy, ..ToolSpec::new(ToolName::new(name)?, "", Body::Compiled) })
    });
    let tools = ToolTable::new(specs.collect::<anyhow::Result<_>>()?)?;
    let executor = Executor::builder().tools(tools).pool(pool).start().await.context("no executor could be started")?;
    Ok(Arc::new(executor))
}

/// Calls `tool`, one of the echoes, and gives back how long that took for the caller, in microseconds.
pub(crate) async fn echo(executor: &Executor, tool: &str) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let outcome = executor.call(ToolCall::new(tool, ARGUMENTS)).await;
    let took = crate::pair::since(begun);
    match outcome.status {
        Status::Ok => Ok(took),
        _ => bail!("{tool} was answered with {outcome:?}"),
    }
}

/// Calls `tool`, which does not end by itself, and gives back its outcome, which is that it was killed in time.
pub(crate) async fn killed(executor: &Executor, tool: &str, timeout: Duration) -> anyhow::Result<Outcome> {
    let outcome = executor.call(ToolCall::new(tool, ARGUMENTS).timeout(timeout)).await;
    match outcome.status {
        Status::TimedOut => Ok(outcome),
        _ => bail!("{tool} was answered with {outcome:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_as_long_as_the_figures_say() {
        assert_eq!(ARGUMENTS.len(), 64);
    }
}
