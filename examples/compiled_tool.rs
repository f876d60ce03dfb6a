//! Tools that are compiled into this program and still run isolated: in a worker that is forked from it.
//!
//! `count` shows what the kind of worker means: a fresh worker knows nothing of earlier calls, a reused one does.
//! `spin` never returns, and `abort` takes its process along; both cost their own call and no other.

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use toolexec::Executor;
use toolexec::call::{Outcome, Policy, Status, ToolCall, WorkerPolicy};
use toolexec::catalogue::{Body, ToolSpec, ToolTable};
use toolexec::worker::{ErrorClass, Failure, Toolbox, become_zygote_if_asked};
use toolexec_protocol::id::ToolName;

fn main() -> Result<(), Box<dyn Error>> {
    // The tools' code is in the worker program, which is this one...
    become_zygote_if_asked(&toolbox()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

/// What the tools do.
fn toolbox() -> Result<Toolbox, Box<dyn Error>> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let count = |_: &[u8]| Ok(format!("{}", CALLS.fetch_add(1, Ordering::Relaxed) + 1).into_bytes());
    let mut toolbox = Toolbox::new();
    toolbox.add("count_fresh", count)?;
    toolbox.add("count_reused", count)?;
    toolbox.add("add", add)?;
    toolbox.add("spin", spin)?;
    toolbox.add("abort", |_: &[u8]| -> Result<Vec<u8>, Failure> { std::process::abort() })?;
    Ok(toolbox)
}

fn spin(_: &[u8]) -> Result<Vec<u8>, Failure> {
    loop {
        std::hint::spin_loop();
    }
}

/// Arguments and results are JSON texts. What the model has to change is a semantic failure.
fn add(arguments: &[u8]) -> Result<Vec<u8>, Failure> {
    let semantic = |text: String| Failure::new(ErrorClass::Semantic, text);
    let arguments: serde_json::Value =
        serde_json::from_slice(arguments).map_err(|error| semantic(error.to_string()))?;
    let number = |name: &str| arguments[name].as_i64().ok_or_else(|| semantic(format!("`{name}` is no whole number")));
    match number("a")?.checked_add(number("b")?) {
        Some(sum) => Ok(sum.to_string().into_bytes()),
        None => Err(semantic("the sum has more than 64 bits".into())),
    }
}

/// ... and what they declare is in the table of the executor.
fn tools() -> Result<ToolTable, Box<dyn Error>> {
    let limit = Some(Duration::from_millis(500));
    let three_calls = WorkerPolicy::Reuse { max_calls: NonZeroU32::MIN.saturating_add(2) };
    let tool = |name: &str, worker| -> Result<ToolSpec, Box<dyn Error>> {
        Ok(ToolSpec {
            name: ToolName::new(name)?,
            description: String::new(),
            body: Body::Compiled,
            policy: Policy { timeout: limit, worker, ..Policy::default() },
            input: None,
        })
    };
    let fresh = ["count_fresh", "add", "spin", "abort"].map(|name| tool(name, WorkerPolicy::Fresh));
    let reused = [tool("count_reused", three_calls)];
    Ok(ToolTable::new(fresh.into_iter().chain(reused).collect::<Result<_, _>>()?)?)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder().tools(tools()?).start().await?;

    let sum = call(&executor, "add", r#"{"a": 40, "b": 2}"#).await;
    assert_eq!(result(&sum), Some("42"));
    let refused = call(&executor, "add", r#"{"a": 40}"#).await;
    assert_eq!((refused.status, refused.class), (Status::Error, Some(ErrorClass::Semantic)));

    let mut fresh = Vec::new();
    let mut reused = Vec::new();
    for _ in 0..4 {
        fresh.extend(result(&call(&executor, "count_fresh", "").await).map(str::to_owned));
        reused.extend(result(&call(&executor, "count_reused", "").await).map(str::to_owned));
    }
    assert_eq!(fresh, ["1", "1", "1", "1"]);
    // Its worker ends after the third call.
    assert_eq!(reused, ["1", "2", "3", "1"]);

    assert_eq!(call(&executor, "spin", "").await.status, Status::TimedOut);
    assert_eq!(call(&executor, "abort", "").await.status, Status::Crashed);
    assert_eq!(result(&call(&executor, "add", r#"{"a": 1, "b": 1}"#).await), Some("2"));

    assert_eq!(executor.close().await.unconfirmed, 0);
    Ok(())
}

async fn call(executor: &Executor, tool: &str, arguments: &str) -> Outcome {
    let outcome = executor.call(ToolCall::new(tool, arguments)).await;
    let told = outcome.message.as_deref().or(result(&outcome)).unwrap_or_default();
    println!("{tool}({arguments}) {:?}: {told}", outcome.status);
    outcome
}

fn result(outcome: &Outcome) -> Option<&str> {
    outcome.result.as_ref().map(|json| json.get())
}
