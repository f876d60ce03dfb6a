//! All calls at once.

use super::run::{Engine, Width};
use super::{BatchOptions, Executing, Pending, ToolCallingManager};
use crate::filter::Chain;
use std::time::Duration;

/// Runs the calls of a batch at once, unless one of them is of a tool that is declared `serial`: then they run one after the other. How many
/// really run is bounded by the executor's pool and threads.
///
/// | tool | who runs its body |
/// |---|---|
/// | isolated | a worker process |
/// | in process | a thread of the executor's own, with and without a time limit |
#[derive(Debug)]
pub struct Concurrent(Engine);

impl Concurrent {
    /// An engine for the tools of this chain's executor.
    pub fn new(chain: Chain) -> Self {
        Self(Engine::new(chain, Width::All))
    }

    /// The time limit of tools that declare none; zero makes every such call invalid.
    #[must_use]
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.0.default_timeout = Some(timeout);
        self
    }
}

impl ToolCallingManager for Concurrent {
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
