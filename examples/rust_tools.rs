//! Tools that are written in Rust, of both kinds: in a worker process that is forked from this program, and in this process.
//!
//! `spin` shows the difference. It never returns. Isolated, its process is killed at the limit and the outcome proves it; in this
//! process it can only be asked to stop, and since it does not listen the outcome says that it may still be running.
//!
//! `count` shows what the kind of worker means: a fresh worker knows nothing of earlier calls, a reused one does. And `abort`
//! takes its process along, which costs its own call and no other. In this process it would end everything. `debt` returns
//! something else than it declares, and nobody gets to read it.

use schemars::JsonSchema;
use serde::Deserialize;
use std::error::Error;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use toolexec::call::{CallContext, Outcome, Status, Termination, ToolCall};
use toolexec::worker::become_zygote_if_asked;
use toolexec::{ErrorClass, Executor, Tool, Tools};

const LIMIT: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let tools = tools()?;
    // This program is its own worker program, and here is where it becomes one. No thread may exist yet.
    become_zygote_if_asked(&tools.toolbox()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(tools))
}

/// Numbers to add; the model sees the JSON Schema of this type.
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// How long to wait.
#[derive(Deserialize, JsonSchema)]
struct Wait {
    milliseconds: u64,
}

fn tools() -> Result<Tools, Box<dyn Error>> {
    let three_calls = NonZeroU32::MIN.saturating_add(2);
    Ok(Tools::new()
        .with(Tool::isolated("add", "Adds two numbers", add)?.timeout(LIMIT).output::<i64>()?.tags(["numbers"]))
        .with(Tool::isolated("count_fresh", "Counts its own calls", count)?.timeout(LIMIT))
        .with(Tool::isolated("count_reused", "Counts its own calls", count)?.timeout(LIMIT).reuse(three_calls))
        .with(Tool::isolated("debt", "Breaks its promise", debt)?.timeout(LIMIT).output::<u32>()?)
        .with(Tool::blocking("debt_here", "Breaks it here", |nothing, _| debt(nothing))?.output::<u32>()?)
        .with(Tool::isolated("abort", "Ends its process", |_: Nothing| -> Result<(), &str> { std::process::abort() })?)
        .with(Tool::isolated("spin_isolated", "Never returns", |_: Nothing| spin(|| false))?.timeout(LIMIT))
        .with(Tool::blocking("spin_here", "Never returns", |_: Nothing, _| spin(told_to_end))?.timeout(LIMIT))
        .with(Tool::blocking("spin_politely", "Returns when it is asked to", polite)?.timeout(LIMIT).cooperative())
        .with(Tool::asynchronous("wait", "Waits", wait)?.timeout(LIMIT)))
}

/// What the model has to change is a semantic failure, which a text without a class is.
fn add(Add { a, b }: Add) -> Result<i64, &'static str> {
    a.checked_add(b).ok_or("the sum has more than 64 bits")
}

/// It is declared to return a `u32`.
fn debt(_: Nothing) -> Result<i32, &'static str> {
    Ok(-1)
}

fn count(_: Nothing) -> Result<u32, &'static str> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    Ok(CALLS.fetch_add(1, Ordering::Relaxed) + 1)
}

fn spin(end: impl Fn() -> bool) -> Result<(), &'static str> {
    while !end() {
        std::hint::spin_loop();
    }
    Ok(())
}

/// A thread that nobody can end would keep a processor busy until this program ends.
static END: AtomicBool = AtomicBool::new(false);

fn told_to_end() -> bool {
    END.load(Ordering::Relaxed)
}

fn polite(_: Nothing, call: CallContext) -> Result<(), &'static str> {
    spin(|| call.is_stopped())
}

/// A future is dropped where it waits.
async fn wait(Wait { milliseconds }: Wait, _: CallContext) -> Result<&'static str, &'static str> {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    Ok("waited")
}

async fn run(tools: Tools) -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder().tools(tools.into_table()?).start().await?;

    let sum = call(&executor, "add", r#"{"a": 40, "b": 2}"#).await;
    assert_eq!(result(&sum), Some("42"));
    let refused = call(&executor, "add", r#"{"a": 40}"#).await;
    assert_eq!((refused.status, refused.class), (Status::Rejected, Some(ErrorClass::Semantic)));

    // What does not fit the declared type is not passed on.
    for tool in ["debt", "debt_here"] {
        let broken = call(&executor, tool, "").await;
        assert_eq!((broken.status, broken.class, result(&broken)), (Status::Error, Some(ErrorClass::Semantic), None));
        assert!(broken.message.is_some_and(|message| message.contains("-1 is less than the minimum of 0")));
    }

    let mut fresh = Vec::new();
    let mut reused = Vec::new();
    for _ in 0..4 {
        fresh.extend(result(&call(&executor, "count_fresh", "").await).map(str::to_owned));
        reused.extend(result(&call(&executor, "count_reused", "").await).map(str::to_owned));
    }
    assert_eq!(fresh, ["1", "1", "1", "1"]);
    // Its worker ends after the third call.
    assert_eq!(reused, ["1", "2", "3", "1"]);
    assert_eq!(call(&executor, "abort", "").await.status, Status::Crashed);

    // The same loop, the same limit.
    let isolated = call(&executor, "spin_isolated", "").await;
    assert_eq!((isolated.status, isolated.termination), (Status::TimedOut, Some(Termination::Killed)));
    assert!(isolated.receipt.is_some_and(|receipt| receipt.confirmed));
    let here = call(&executor, "spin_here", "").await;
    assert_eq!((here.status, here.termination), (Status::TimedOut, Some(Termination::Abandoned)));
    assert!(here.receipt.is_none());
    assert_eq!(executor.abandoned(), 1);
    END.store(true, Ordering::Relaxed);

    // Those who listen are stopped.
    let polite = call(&executor, "spin_politely", "").await;
    assert_eq!((polite.status, polite.termination), (Status::TimedOut, Some(Termination::Stopped)));
    let long = call(&executor, "wait", r#"{"milliseconds": 60000}"#).await;
    assert_eq!((long.status, long.termination), (Status::TimedOut, Some(Termination::Stopped)));
    let short = call(&executor, "wait", r#"{"milliseconds": 1}"#).await;
    assert_eq!(result(&short), Some("\"waited\""));

    assert_eq!(executor.close().await.unconfirmed, 0);
    Ok(())
}

async fn call(executor: &Executor, tool: &str, arguments: &str) -> Outcome {
    let outcome = executor.call(ToolCall::new(tool, arguments)).await;
    let told = outcome.message.as_deref().or(result(&outcome)).unwrap_or_default();
    println!("{tool}({arguments}) {:?} {:?}: {told}", outcome.status, outcome.termination);
    outcome
}

fn result(outcome: &Outcome) -> Option<&str> {
    outcome.result.as_ref().map(|json| json.get())
}
