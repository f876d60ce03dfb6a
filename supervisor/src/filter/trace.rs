//! A span and an event for every call.

use super::chain::{Answer, call_once};
use super::redact::shown_arguments;
use crate::Executor;
use crate::call::{Outcome, Status, ToolCall, Work};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};
use tracing::{Instrument as _, field};

/// Puts every call into a span `execute_tool` and ends it with an event. The fields have the names of OpenTelemetry's conventions for
/// generative AI. Arguments are told at the level `debug`, and what their schema calls `writeOnly` never is.
#[derive(Clone, Debug)]
pub struct TraceLayer {
    executor: Arc<Executor>,
}

impl TraceLayer {
    /// For the tools of this executor.
    pub fn new(executor: Arc<Executor>) -> Self {
        Self { executor }
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = TraceService<S>;

    fn layer(&self, inner: S) -> TraceService<S> {
        TraceService { inner, executor: Arc::clone(&self.executor) }
    }
}

/// See [`TraceLayer`].
#[derive(Clone, Debug)]
pub struct TraceService<S> {
    inner: S,
    executor: Arc<Executor>,
}

impl<S> Service<ToolCall> for TraceService<S>
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

    fn call(&mut self, call: ToolCall) -> Answer {
        let again = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, again);
        let span = tracing::info_span!(
            "execute_tool",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.call.id = %call.id,
            gen_ai.tool.name = field::Empty,
            error.r#type = field::Empty,
        );
        match &call.work {
            Work::Tool { name, arguments } => {
                span.record("gen_ai.tool.name", name.as_str());
                if tracing::enabled!(tracing::Level::DEBUG) {
                    let schema = self.executor.tools().get(name).and_then(|tool| tool.input.as_ref());
                    let arguments = shown_arguments(arguments, schema);
                    tracing::debug!(parent: &span, %arguments, "a tool is called");
                }
            }
            Work::Command { command, .. } => {
                span.record("gen_ai.tool.name", field::display(command.program.display()));
            }
        }
        let of_outcome = span.clone();
        let answer = async move {
            let outcome = call_once(inner, call).await;
            if outcome.status != Status::Ok {
                of_outcome.record("error.type", field::debug(outcome.code));
            }
            let Outcome { status, code, attempts, termination, timing, .. } = &outcome;
            tracing::info!(?status, ?code, ?termination, attempts, total_us = timing.total_us, "a call is over");
            Ok(outcome)
        };
        Box::pin(answer.instrument(span))
    }
}
