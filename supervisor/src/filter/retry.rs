//! The retry of tools that declare one.

use super::chain::{Answer, call_once};
use crate::Executor;
use crate::call::{Code, Outcome, Status, ToolCall, Work};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

/// The longest pause between two attempts: 30 s.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Tries a call again where its tool declares it, after a failure that may pass ([`Outcome::may_be_tried_again`]), and only when the
/// attempt before is known to have ended: two attempts never overlap.
///
/// The pauses double from the declared one on, up to 30 s, and a random part is added to each so that many callers do not come back
/// together. A call whose output is passed on as it comes is tried once, since what was passed on cannot be taken back.
#[derive(Clone, Debug)]
pub struct RetryLayer {
    executor: Arc<Executor>,
}

impl RetryLayer {
    /// For the tools of this executor.
    pub fn new(executor: Arc<Executor>) -> Self {
        Self { executor }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        RetryService { inner, executor: Arc::clone(&self.executor) }
    }
}

/// See [`RetryLayer`].
#[derive(Clone, Debug)]
pub struct RetryService<S> {
    inner: S,
    executor: Arc<Executor>,
}

impl<S> Service<ToolCall> for RetryService<S>
where
    S: Service<ToolCall, Response = Outcome, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut call: ToolCall) -> Answer {
        let policy = match &call.work {
            Work::Tool { name, .. } => self.executor.tools().get(name).and_then(|tool| tool.declared.retry),
            Work::Command { .. } => None,
        };
        // The one that is ready is the one to be called; see `tower::Service`.
        let again = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, again.clone());
        let Some(policy) = policy else {
            return Box::pin(async move { Ok(call_once(inner, call).await) });
        };
        let mut pauses = ExponentialBuilder::new()
            .with_min_delay(policy.initial)
            .with_max_delay(LONGEST_PAUSE.max(policy.initial))
            .with_factor(2.0)
            .with_jitter()
            .with_max_times(usize::try_from(policy.max.get()).unwrap_or(usize::MAX))
            .build();
        // What is answered for one attempt is answered for all.
        call.options.answer.get_or_insert_default();
        Box::pin(async move {
            let mut next = call.again();
            let mut outcome = call_once(inner, call).await;
            let mut attempts = outcome.attempts;
            while outcome.may_be_tried_again()
                && let Some(call) = next.take()
                && let Some(pause) = pauses.next()
            {
                tracing::debug!(call = %call.id, tool = %outcome.tool, attempts, ?pause, "a call is tried again");
                if is_withdrawn_within(pause, call.options.cancel.as_ref()).await {
                    outcome.status = Status::Cancelled;
                    outcome.code = Some(Code::Cancelled);
                    outcome.class = None;
                    outcome.message = Some("the call was cancelled between two attempts".into());
                    break;
                }
                next = call.again();
                outcome = call_once(again.clone(), call).await;
                attempts = attempts.saturating_add(outcome.attempts);
            }
            outcome.attempts = attempts;
            Ok(outcome)
        })
    }
}

async fn is_withdrawn_within(pause: Duration, cancel: Option<&CancellationToken>) -> bool {
    match cancel {
        None => {
            tokio::time::sleep(pause).await;
            false
        }
        Some(token) => tokio::time::timeout(pause, token.cancelled()).await.is_ok(),
    }
}
