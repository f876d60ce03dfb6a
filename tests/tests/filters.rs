//! Filters around calls: what each sees, in which order, and what a retry does.

use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolexec::call::{CallId, Code, Outcome, Policy, Status, Termination, ToolCall};
use toolexec::catalogue::{Body, Declared, HostBody, InputSchema, RetryPolicy, ToolSpec, ToolTable};
use toolexec::filter::{Approval, ApprovalLayer, ApprovalRequest, CallService, Chain, RedactLayer, TraceLayer};
use toolexec::{ErrorClass, Executor, Failure, ToolName, WorkerProgram};
use toolexec_tests::house::runtime;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

/// A filter that counts the calls and the outcomes that pass it.
#[derive(Clone, Default)]
struct Seen {
    calls: Arc<AtomicU32>,
    statuses: Arc<Mutex<Vec<Status>>>,
}

#[derive(Clone)]
struct Counting {
    inner: CallService,
    seen: Seen,
}

impl tower::Layer<CallService> for Seen {
    type Service = Counting;

    fn layer(&self, inner: CallService) -> Counting {
        Counting { inner, seen: self.clone() }
    }
}

impl tower::Service<ToolCall> for Counting {
    type Response = Outcome;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let (seen, answer) = (self.seen.clone(), self.inner.call(call));
        seen.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let outcome = answer.await?;
            seen.statuses.lock().unwrap().push(outcome.status);
            Ok(outcome)
        })
    }
}

impl Seen {
    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

fn tool(name: &str, body: HostBody, declared: Declared) -> ToolSpec {
    ToolSpec { declared, ..ToolSpec::new(ToolName::new(name).unwrap(), "", Body::Host(body)) }
}

fn retry(max: u32) -> Declared {
    let retry = RetryPolicy { max: NonZeroU32::new(max).unwrap(), initial: Duration::from_millis(5) };
    Declared { retry: Some(retry), ..Declared::default() }
}

/// Fails this often with this class, and returns how often it was called then.
fn failing(times: u32, class: ErrorClass) -> (HostBody, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let body = HostBody::blocking(move |_, _| {
        let call = counter.fetch_add(1, Ordering::Relaxed) + 1;
        if call > times { Ok(call.to_string()) } else { Err(Failure::new(class, format!("failure {call}"))) }
    });
    (body, calls)
}

/// Runs `test` with an executor of these tools.
fn with<F: Future<Output = ()>>(tools: Vec<ToolSpec>, test: impl FnOnce(Arc<Executor>) -> F) {
    runtime().block_on(async {
        let builder = Executor::builder().program(WorkerProgram::at(PROGRAM)).tools(ToolTable::new(tools).unwrap());
        let executor = Arc::new(builder.start().await.unwrap());
        test(Arc::clone(&executor)).await;
        assert_eq!(executor.close().await.unconfirmed, 0);
    });
}

fn value(outcome: &Outcome) -> Option<&str> {
    outcome.result.as_ref().map(|value| value.get())
}

#[test]
fn transient_failure_is_tried_again_and_told_once() {
    let (body, calls) = failing(2, ErrorClass::Transient);
    with(vec![tool("t", body, retry(2))], async |executor| {
        let outcome = Chain::new(executor).call(ToolCall::new("t", "")).await;
        assert_eq!((outcome.status, value(&outcome), outcome.attempts), (Status::Ok, Some("3"), 3));
    });
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn attempts_are_one_and_what_was_declared_and_no_more() {
    let (body, calls) = failing(u32::MAX, ErrorClass::Transient);
    with(vec![tool("t", body, retry(3))], async |executor| {
        let outcome = Chain::new(executor).call(ToolCall::new("t", "")).await;
        assert_eq!((outcome.status, outcome.attempts), (Status::Error, 4));
        assert_eq!(outcome.message.as_deref(), Some("failure 4"));
    });
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[test]
fn what_is_not_declared_or_not_transient_is_tried_once() {
    let (undeclared, first) = failing(u32::MAX, ErrorClass::Transient);
    let (semantic, second) = failing(u32::MAX, ErrorClass::Semantic);
    let (environment, third) = failing(u32::MAX, ErrorClass::Environment);
    let tools = vec![
        tool("undeclared", undeclared, Declared::default()),
        tool("semantic", semantic, retry(3)),
        tool("environment", environment, retry(3)),
    ];
    with(tools, async |executor| {
        let chain = Chain::new(executor);
        for name in ["undeclared", "semantic", "environment"] {
            assert_eq!(chain.call(ToolCall::new(name, "")).await.attempts, 1, "{name}");
        }
    });
    assert_eq!([first, second, third].map(|calls| calls.load(Ordering::Relaxed)), [1, 1, 1]);
}

/// A timeout is transient, and each attempt has the whole limit (contract C75); but not after an attempt that may still run.
#[test]
fn timeout_is_tried_again_only_when_the_attempt_has_ended() {
    let end = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let until = Arc::clone(&end);
    let policy = Policy { timeout: Some(Duration::from_millis(50)), ..Policy::default() };
    let waits = HostBody::asynchronous(|_, _| std::future::pending());
    let deaf = HostBody::blocking(move |_, _| {
        while !until.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok("1".into())
    });
    let tools = vec![
        ToolSpec { policy: policy.clone(), ..tool("waits", waits, retry(2)) },
        ToolSpec { policy, ..tool("deaf", deaf, retry(2)) },
    ];
    with(tools, async |executor| {
        let chain = Chain::new(Arc::clone(&executor));
        let waits = chain.call(ToolCall::new("waits", "")).await;
        assert_eq!(
            (waits.status, waits.termination, waits.attempts),
            (Status::TimedOut, Some(Termination::Stopped), 3)
        );
        let deaf = chain.call(ToolCall::new("deaf", "")).await;
        assert_eq!((deaf.status, deaf.termination, deaf.attempts), (Status::TimedOut, Some(Termination::Abandoned), 1));
        assert_eq!(executor.abandoned(), 1);
        end.store(true, Ordering::Relaxed);
    });
}

#[test]
fn filter_inside_the_retry_sees_each_attempt_and_one_outside_sees_one_call() {
    for (outside, expected) in [(false, 3), (true, 1)] {
        let (body, _) = failing(2, ErrorClass::Transient);
        let seen = Seen::default();
        with(vec![tool("t", body, retry(2))], async |executor| {
            let chain = Chain::builder(executor);
            let chain = if outside { chain.retry() } else { chain };
            let outcome = chain.layer(seen.clone()).build().call(ToolCall::new("t", "")).await;
            assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 3));
        });
        assert_eq!(seen.calls(), expected, "outside: {outside}");
    }
}

#[test]
fn timeout_is_an_ordinary_outcome_for_the_filters() {
    let policy = Policy { timeout: Some(Duration::from_millis(20)), ..Policy::default() };
    let body = HostBody::asynchronous(|_, _| std::future::pending());
    let seen = Seen::default();
    with(vec![ToolSpec { policy, ..tool("t", body, Declared::default()) }], async |executor| {
        let chain = Chain::builder(executor).layer(seen.clone()).build();
        chain.call(ToolCall::new("t", "")).await;
    });
    assert_eq!(*seen.statuses.lock().unwrap(), [Status::TimedOut]);
}

#[test]
fn withdrawn_call_is_not_tried_again() {
    let (body, calls) = failing(u32::MAX, ErrorClass::Transient);
    let retry = RetryPolicy { max: NonZeroU32::MIN, initial: Duration::from_secs(60) };
    let declared = Declared { retry: Some(retry), ..Declared::default() };
    with(vec![tool("t", body, declared)], async |executor| {
        let token = CancellationToken::new();
        let chain = Chain::new(executor);
        let call = chain.call(ToolCall::new("t", "").cancelled_by(token.clone()));
        let withdraw = async {
            while calls.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            token.cancel();
        };
        let (outcome, ()) = tokio::join!(call, withdraw);
        assert_eq!((outcome.status, outcome.code, outcome.attempts), (Status::Cancelled, Some(Code::Cancelled), 1));
    });
}

fn sensitive() -> Declared {
    Declared { sensitive: true, ..Declared::default() }
}

#[test]
fn sensitive_tool_runs_only_when_it_was_approved() {
    let (body, calls) = failing(0, ErrorClass::Semantic);
    let (free, _) = failing(0, ErrorClass::Semantic);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let tools = vec![tool("sensitive", body, sensitive()), tool("free", free, Declared::default())];
    with(tools, async |executor| {
        let requests = Arc::clone(&asked);
        let ask = move |request: ApprovalRequest| {
            requests.lock().unwrap().push(request.clone());
            std::future::ready(match request.arguments.as_str() {
                "{}" => Approval::Granted,
                _ => Approval::Refused("not today".into()),
            })
        };
        let chain = Chain::builder(Arc::clone(&executor)).layer(ApprovalLayer::new(executor, ask)).build();
        assert_eq!(chain.call(ToolCall::new("free", "")).await.status, Status::Ok);
        assert_eq!(chain.call(ToolCall::new("sensitive", "{}")).await.status, Status::Ok);
        let refused = chain.call(ToolCall::new("sensitive", r#"{"all":true}"#)).await;
        assert_eq!((refused.status, refused.code, refused.started), (Status::Rejected, Some(Code::NotApproved), false));
        assert_eq!(refused.message.as_deref(), Some("rejected: not today"));
    });
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(asked.lock().unwrap().len(), 2);
}

/// Contract C43: asking again is a bug.
#[test]
fn retry_never_asks_for_approval_again() {
    let (body, calls) = failing(2, ErrorClass::Transient);
    let asked = Arc::new(AtomicU32::new(0));
    let declared = Declared { sensitive: true, ..retry(2) };
    with(vec![tool("t", body, declared)], async |executor| {
        let counter = Arc::clone(&asked);
        let ask = move |_: ApprovalRequest| {
            counter.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Approval::Granted)
        };
        // Inside of the retry, so that every attempt comes by.
        let chain = Chain::builder(Arc::clone(&executor)).layer(ApprovalLayer::new(executor, ask)).build();
        let call = ToolCall { id: CallId::new("one"), ..ToolCall::new("t", "") };
        assert_eq!(chain.call(call).await.attempts, 3);
    });
    assert_eq!((asked.load(Ordering::Relaxed), calls.load(Ordering::Relaxed)), (1, 3));
}

#[test]
fn approval_takes_nothing_of_the_tools_time_and_can_be_withdrawn() {
    let (body, calls) = failing(0, ErrorClass::Semantic);
    let policy = Policy { timeout: Some(Duration::from_millis(100)), ..Policy::default() };
    with(vec![ToolSpec { policy, ..tool("t", body, sensitive()) }], async |executor| {
        let slowly = |request: ApprovalRequest| async move {
            match request.id.as_str() {
                "slow" => tokio::time::sleep(Duration::from_millis(300)).await,
                _ => std::future::pending().await,
            }
            Approval::Granted
        };
        let chain = Chain::builder(Arc::clone(&executor)).layer(ApprovalLayer::new(executor, slowly)).build();
        let call = |id: &str| ToolCall { id: CallId::new(id), ..ToolCall::new("t", "") };
        assert_eq!(chain.call(call("slow")).await.status, Status::Ok);
        let token = CancellationToken::new();
        token.cancel();
        let withdrawn = chain.call(call("never").cancelled_by(token)).await;
        assert_eq!((withdrawn.status, withdrawn.started), (Status::Cancelled, false));
    });
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn secret_arguments_reach_the_tool_and_nobody_else() {
    let schema = serde_json::json!({ "properties": { "password": { "type": "string", "writeOnly": true } } });
    let input = Some(InputSchema::new(schema).unwrap());
    let echo = HostBody::blocking(|arguments, _| Ok(arguments));
    with(vec![ToolSpec { input, ..tool("echo", echo, Declared::default()) }], async |executor| {
        let arguments = r#"{"password":"correct horse"}"#;
        let bare = Chain::new(Arc::clone(&executor)).call(ToolCall::new("echo", arguments)).await;
        assert_eq!(value(&bare), Some(arguments));
        let chain = Chain::builder(Arc::clone(&executor));
        let chain = chain.layer(RedactLayer::new(Arc::clone(&executor))).layer(TraceLayer::new(executor)).build();
        let hidden = chain.call(ToolCall::new("echo", arguments)).await;
        assert_eq!(value(&hidden), Some(r#"{"password":"[redacted]"}"#));
    });
}

/// A filter with a budget of time of its own: it withdraws the call when that is used up, by a token below the caller's.
#[derive(Clone)]
struct Budget(Duration);

#[derive(Clone)]
struct Budgeted {
    inner: CallService,
    budget: Duration,
}

impl tower::Layer<CallService> for Budget {
    type Service = Budgeted;

    fn layer(&self, inner: CallService) -> Budgeted {
        Budgeted { inner, budget: self.0 }
    }
}

impl tower::Service<ToolCall> for Budgeted {
    type Response = Outcome;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let token = call.options.cancel.as_ref().map_or_else(CancellationToken::new, CancellationToken::child_token);
        call.options.cancel = Some(token.clone());
        let (answer, budget) = (self.inner.call(call), self.budget);
        Box::pin(async move {
            tokio::pin!(answer);
            tokio::select! {
                biased;
                outcome = &mut answer => return outcome,
                () = tokio::time::sleep(budget) => token.cancel(),
            }
            answer.await
        })
    }
}

/// Contract C29: outside of the retry a budget bounds the whole, inside it bounds each attempt.
#[test]
fn budget_outside_the_retry_is_for_all_attempts_and_one_inside_is_for_each() {
    for outside in [true, false] {
        let policy = Policy { timeout: Some(Duration::from_millis(50)), ..Policy::default() };
        let body = HostBody::asynchronous(|_, _| std::future::pending());
        with(vec![ToolSpec { policy, ..tool("t", body, retry(100)) }], async |executor| {
            // Some attempts come to their end within it, a hundred of them, with their pauses, do not.
            let budget = Budget(Duration::from_millis(2000));
            let chain = Chain::builder(executor);
            let chain =
                if outside { chain.retry().layer(budget) } else { chain.layer(Budget(Duration::from_millis(10))) };
            let outcome = chain.build().call(ToolCall::new("t", "")).await;
            if outside {
                assert_eq!(outcome.status, Status::Cancelled);
                assert!((2..=99).contains(&outcome.attempts), "{}", outcome.attempts);
            } else {
                // Cut in its first attempt, and what was withdrawn is not tried again.
                assert_eq!((outcome.status, outcome.attempts), (Status::Cancelled, 1));
            }
        });
    }
}

/// Contract C23: a tool's own deadline withdraws nothing outside of it.
#[test]
fn callers_token_is_untouched_by_a_deadline_inside() {
    let policy = Policy { timeout: Some(Duration::from_millis(20)), ..Policy::default() };
    let body = HostBody::asynchronous(|_, _| std::future::pending());
    with(vec![ToolSpec { policy, ..tool("t", body, Declared::default()) }], async |executor| {
        let token = CancellationToken::new();
        let chain = Chain::builder(executor).layer(Budget(Duration::from_secs(60))).build();
        let outcome = chain.call(ToolCall::new("t", "").cancelled_by(token.clone())).await;
        assert_eq!(outcome.status, Status::TimedOut);
        assert!(!token.is_cancelled());
    });
}
