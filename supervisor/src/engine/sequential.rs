//! One call after the other.

use super::run::{Engine, Width};
use super::{BatchOptions, Executing, Pending, ToolCallingManager};
use crate::filter::Chain;
use std::time::Duration;

/// Runs the calls of a batch one after the other, in the order in which the model asked. The one to take where nothing is known: only
/// the caller can know that two calls do not depend on each other's effects.
///
/// | tool | who runs its body |
/// |---|---|
/// | isolated | a worker process |
/// | in process | a thread of the executor's own, with and without a time limit |
#[derive(Debug)]
pub struct Sequential(Engine);

impl Sequential {
    /// An engine for the tools of this chain's executor.
    pub fn new(chain: Chain) -> Self {
        Self(Engine::new(chain, Width::One))
    }

    /// The time limit of tools that declare none; zero makes every such call invalid.
    #[must_use]
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.0.default_timeout = Some(timeout);
        self
    }
}

impl ToolCallingManager for Sequential {
    fn execute_tool_calls<'a>(&'a self, pending: Pending, options: BatchOptions) -> Executing<'a> {
        Box::pin(self.0.execute(pending, options))
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.0.default_timeout
    }

    fn close(&self) {
        self.0.closing.cancel();
    }
}
