//! The executor: wires the parts, and gives every call exactly one outcome.

use crate::call::{Outcome, ToolCall};
use crate::catalogue::ToolTable;
use crate::{KillStrength, PoolSettings, Scheduling, WorkerProgram};
use std::time::Duration;

/// Runs tool calls. Cheap to share behind an `Arc`; dropping it kills whatever still runs.
pub struct Executor {}

/// How an executor is to be made.
pub struct ExecutorBuilder {
    program: WorkerProgram,
    tools: ToolTable,
    pool: PoolSettings,
    strength: Option<KillStrength>,
    kill_bound: Duration,
}

/// Why an executor could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {}

/// What closing an executor found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CloseReport {
    /// Workers whose death could not be confirmed within the bound.
    pub unconfirmed: usize,
}

impl ExecutorBuilder {
    /// The declared tools that calls may name.
    #[must_use]
    pub fn tools(mut self, tools: ToolTable) -> Self { self.tools = tools; self }
    /// How many workers run and wait.
    #[must_use]
    pub fn pool(mut self, pool: PoolSettings) -> Self { self.pool = pool; self }
    /// The program that becomes the zygote; [`WorkerProgram::this_program`] unless told.
    #[must_use]
    pub fn program(mut self, program: WorkerProgram) -> Self { self.program = program; self }
    /// The kill mechanism to use instead of the strongest that works here.
    #[must_use]
    pub fn strength(mut self, strength: KillStrength) -> Self { self.strength = Some(strength); self }
    /// How long a death may take before the call is answered as `unkillable`. Default 5 s.
    #[must_use]
    pub fn kill_bound(mut self, bound: Duration) -> Self { self.kill_bound = bound; self }
    /// Starts the watchdog, the zygote and the spares.
    pub async fn start(self) -> Result<Executor, StartError> { todo!() }
}

impl Executor {
    /// A builder with the defaults.
    pub fn builder() -> ExecutorBuilder { todo!() }
    /// Runs one call.
    pub async fn call(&self, call: ToolCall) -> Outcome { todo!() }
    /// How surely this executor kills: the mechanism that its workers really got.
    pub async fn kill_strength(&self) -> Result<KillStrength, StartError> { todo!() }
    /// The watchdog thread's scheduling class.
    pub fn watchdog_scheduling(&self) -> Scheduling { todo!() }
    /// The declared tools.
    pub fn tools(&self) -> &ToolTable { todo!() }
    /// Refuses new calls, kills what runs, and waits until all of it is gone.
    pub async fn close(&self) -> CloseReport { todo!() }
}
