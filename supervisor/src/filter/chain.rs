//! The filters around an executor, put together once.

use super::retry::RetryLayer;
use crate::Executor;
use crate::call::{Outcome, ToolCall};
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service};

/// What a filter is a layer around. It never fails: whatever goes wrong with a call is its outcome.
pub type CallService = BoxCloneSyncService<ToolCall, Outcome, Infallible>;

/// A future that a filter returns.
pub(super) type Answer = Pin<Box<dyn Future<Output = Result<Outcome, Infallible>> + Send>>;

/// An executor with its filters. Cheap to clone.
#[derive(Clone)]
pub struct Chain {
    executor: Arc<Executor>,
    service: CallService,
}

impl Chain {
    /// The executor with what tools can declare about themselves and nothing else: a retry where one is declared.
    pub fn new(executor: Arc<Executor>) -> Self {
        Self::builder(executor).build()
    }

    /// An executor to put filters around, from the innermost to the outermost.
    pub fn builder(executor: Arc<Executor>) -> ChainBuilder {
        let service = BoxCloneSyncService::new(Innermost(Arc::clone(&executor)));
        ChainBuilder { executor, service, retries: false }
    }

    /// Runs one call through the filters.
    pub async fn call(&self, call: ToolCall) -> Outcome {
        call_once(self.service.clone(), call).await
    }

    /// The executor inside.
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("executor", &self.executor).finish_non_exhaustive()
    }
}

/// Filters that are being put around an executor.
pub struct ChainBuilder {
    executor: Arc<Executor>,
    service: CallService,
    retries: bool,
}

impl ChainBuilder {
    /// Puts a filter around what is there.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<CallService>,
        L::Service: Service<ToolCall, Response = Outcome, Error = Infallible> + Clone + Send + Sync + 'static,
        <L::Service as Service<ToolCall>>::Future: Send + 'static,
    {
        self.service = BoxCloneSyncService::new(layer.layer(self.service));
        self
    }

    /// Puts the retry here, so that what comes after it sees a call once. Left out, it is the outermost of all: then each
    /// attempt passes every filter.
    #[must_use]
    pub fn retry(mut self) -> Self {
        let layer = RetryLayer::new(Arc::clone(&self.executor));
        self.retries = true;
        self.layer(layer)
    }

    /// The chain.
    pub fn build(self) -> Chain {
        let Self { executor, service, .. } = if self.retries { self } else { self.retry() };
        Chain { executor, service }
    }
}

impl fmt::Debug for ChainBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainBuilder").field("retries", &self.retries).finish_non_exhaustive()
    }
}

/// Calls a service when it is ready, as tower asks for.
pub(super) async fn call_once<S>(mut service: S, call: ToolCall) -> Outcome
where
    S: Service<ToolCall, Response = Outcome, Error = Infallible>,
{
    match poll_fn(|context| service.poll_ready(context)).await {
        Ok(()) => match service.call(call).await {
            Ok(outcome) => outcome,
            Err(never) => match never {},
        },
        Err(never) => match never {},
    }
}

/// The executor itself.
#[derive(Clone)]
struct Innermost(Arc<Executor>);

impl Service<ToolCall> for Innermost {
    type Response = Outcome;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Whoever has no place waits in the pool's own queue, which is bounded.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Answer {
        let executor = Arc::clone(&self.0);
        Box::pin(async move { Ok(executor.call(call).await) })
    }
}
