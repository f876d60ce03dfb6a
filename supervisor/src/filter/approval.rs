//! Approval of sensitive tools before they run.

use super::chain::{Answer, call_once};
use crate::Executor;
use crate::call::{CallId, Code, Outcome, ToolCall, Work};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// A call that waits for an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApprovalRequest {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
}

/// Whether a call may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Approval {
    /// It may.
    Granted,
    /// It may not, and this is why; the model reads it.
    Refused(String),
}

/// Asks before a tool that is declared `sensitive` runs. The answer may take its time: the tool's limit begins later. A call is asked
/// about once, however often it is tried.
#[derive(Clone)]
pub struct ApprovalLayer<A> {
    executor: Arc<Executor>,
    ask: A,
}

impl<A, F> ApprovalLayer<A>
where
    A: Fn(ApprovalRequest) -> F,
    F: Future<Output = Approval>,
{
    /// For the tools of this executor; `ask` answers.
    pub fn new(executor: Arc<Executor>, ask: A) -> Self {
        Self { executor, ask }
    }
}

impl<S, A: Clone> Layer<S> for ApprovalLayer<A> {
    type Service = ApprovalService<S, A>;

    fn layer(&self, inner: S) -> ApprovalService<S, A> {
        ApprovalService { inner, executor: Arc::clone(&self.executor), ask: self.ask.clone() }
    }
}

/// See [`ApprovalLayer`].
#[derive(Clone)]
pub struct ApprovalService<S, A> {
    inner: S,
    executor: Arc<Executor>,
    ask: A,
}

impl<S, A, F> Service<ToolCall> for ApprovalService<S, A>
where
    S: Service<ToolCall, Response = Outcome, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    A: Fn(ApprovalRequest) -> F + Clone + Send + 'static,
    F: Future<Output = Approval> + Send + 'static,
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
        let request = match &call.work {
            Work::Tool { name, arguments }
                if self.executor.tools().get(name).is_some_and(|tool| tool.declared.sensitive) =>
            {
                ApprovalRequest { id: call.id.clone(), tool: name.clone(), arguments: arguments.clone() }
            }
            Work::Tool { .. } | Work::Command { .. } => {
                return Box::pin(async move { Ok(call_once(inner, call).await) });
            }
        };
        let remembered = call.options.answer.clone();
        let known = remembered.as_ref().and_then(|answer| answer.get().cloned());
        let asked = known.is_none().then(|| (self.ask)(request.clone()));
        Box::pin(async move {
            let answer = match (known, asked) {
                (Some(known), _) => known,
                (None, Some(asked)) => {
                    let answer = tokio::select! {
                        biased;
                        answer = asked => answer,
                        () = withdrawn(&call) => return Ok(Outcome::withdrawn(call.id, &request.tool)),
                    };
                    let answer = match answer {
                        Approval::Granted => Ok(()),
                        Approval::Refused(why) => Err(why),
                    };
                    // The first answer counts; there is no second, since attempts never overlap.
                    remembered.map(|remembered| remembered.set(answer.clone()));
                    answer
                }
                (None, None) => Err(String::new()),
            };
            Ok(match answer {
                Ok(()) => call_once(inner, call).await,
                Err(why) => {
                    let text = if why.is_empty() { "rejected".to_owned() } else { format!("rejected: {why}") };
                    Outcome::rejected(request.id, &request.tool, Code::NotApproved, text)
                }
            })
        })
    }
}

async fn withdrawn(call: &ToolCall) {
    match &call.options.cancel {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}
