//! Approval of sensitive tools before they run.

use super::chain::{Answer, call_once};
use crate::Executor;
use crate::call::{CallId, Code, Outcome, ToolCall, Work};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// How many answers are remembered: 4096, the newest ones. A call id is asked about once as long as its answer is among them.
const REMEMBERED: usize = 4096;

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

/// Asks before a tool that is declared `sensitive` runs. The answer may take its time: the tool's limit begins later. One call id
/// is asked about once, so that a retry never asks again.
#[derive(Clone)]
pub struct ApprovalLayer<A> {
    executor: Arc<Executor>,
    ask: A,
    answers: Arc<Mutex<Answers>>,
}

impl<A, F> ApprovalLayer<A>
where
    A: Fn(ApprovalRequest) -> F,
    F: Future<Output = Approval>,
{
    /// For the tools of this executor; `ask` answers.
    pub fn new(executor: Arc<Executor>, ask: A) -> Self {
        Self { executor, ask, answers: Arc::default() }
    }
}

impl<S, A: Clone> Layer<S> for ApprovalLayer<A> {
    type Service = ApprovalService<S, A>;

    fn layer(&self, inner: S) -> ApprovalService<S, A> {
        let Self { executor, ask, answers } = self;
        let (executor, answers) = (Arc::clone(executor), Arc::clone(answers));
        ApprovalService { inner, executor, ask: ask.clone(), answers }
    }
}

/// See [`ApprovalLayer`].
#[derive(Clone)]
pub struct ApprovalService<S, A> {
    inner: S,
    executor: Arc<Executor>,
    ask: A,
    answers: Arc<Mutex<Answers>>,
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
        let known = lock(&self.answers).get(&request.id);
        let answer = known.is_none().then(|| (self.ask)(request.clone()));
        let answers = Arc::clone(&self.answers);
        Box::pin(async move {
            let answer = match (known, answer) {
                (Some(known), _) => known,
                (None, Some(answer)) => {
                    let answer = tokio::select! {
                        biased;
                        answer = answer => answer,
                        () = withdrawn(&call) => {
                            return Ok(Outcome::withdrawn(call.id, &request.tool));
                        }
                    };
                    lock(&answers).remember(request.id.clone(), answer.clone());
                    answer
                }
                (None, None) => Approval::Refused("nobody was asked".into()),
            };
            Ok(match answer {
                Approval::Granted => call_once(inner, call).await,
                Approval::Refused(why) => {
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

fn lock(answers: &Mutex<Answers>) -> std::sync::MutexGuard<'_, Answers> {
    // Nothing under this lock can panic half-way through a change.
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The newest answers.
#[derive(Default)]
struct Answers {
    by_call: HashMap<CallId, Approval>,
    order: VecDeque<CallId>,
}

impl Answers {
    fn get(&self, call: &CallId) -> Option<Approval> {
        self.by_call.get(call).cloned()
    }

    fn remember(&mut self, call: CallId, answer: Approval) {
        if self.by_call.insert(call.clone(), answer).is_none() {
            self.order.push_back(call);
        }
        while self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_call.remove(&oldest);
        }
    }
}
