//! So many calls at once.

use super::run::{Engine, Width};
use super::{BatchOptions, Executing, Pending, ToolCallingManager};
use crate::filter::Chain;
use std::num::NonZeroUsize;
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Runs at most so many calls at once, of all its batches together: a bulkhead, which its owner closes. A batch with a tool that is declared
/// `serial` runs one call after the other.
///
/// An in-process tool without a time limit that hangs keeps its place for ever. So a bulkhead wants a default time limit.
///
/// | tool | who runs its body |
/// |---|---|
/// | isolated | a worker process |
/// | in process | a thread of the executor's own, with and without a time limit |
#[derive(Debug)]
pub struct Bounded {
    engine: Engine,
    /// Whether it was said that there is no default time limit.
    warned: Once,
}

impl Bounded {
    /// An engine for the tools of this chain's executor.
    pub fn new(chain: Chain, places: NonZeroUsize) -> Self {
        let places = Arc::new(Semaphore::new(places.get().min(Semaphore::MAX_PERMITS)));
        Self { engine: Engine::new(chain, Width::Places(places)), warned: Once::new() }
    }

    /// The time limit of tools that declare none; zero makes every such call invalid.
    #[must_use]
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.engine.default_timeout = Some(timeout);
        self
    }
}

impl ToolCallingManager for Bounded {
    fn execute_tool_calls<'a>(&'a self, pending: Pending, options: BatchOptions) -> Executing<'a> {
        if self.engine.default_timeout.is_none() {
            self.warned.call_once(|| {
                tracing::warn!(
                    "a bounded engine has no default time limit: a tool that hangs without one keeps its place for ever"
                );
            });
        }
        Box::pin(self.engine.execute(pending, options))
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.engine.default_timeout
    }

    fn close(&self) {
        self.engine.closing.cancel();
    }
}
