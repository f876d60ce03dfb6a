//! Engines: the same batch gives the same result on each of them, whatever becomes of its calls.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolexec::batch::{Append, Context, Settled, Slots, ToolExecutionResult, ToolRecord, Verdict};
use toolexec::call::{Code, Policy, RequestedCall, Status, Termination};
use toolexec::catalogue::{Body, CommandTemplate, Declared, HostBody, ToolSpec, ToolTable};
use toolexec::engine::{
    BatchOptions, Bounded, Concurrent, Executing, Pending, Sequential, ToolCallingManager, ToolResultObserver,
};
use toolexec::filter::Chain;
use toolexec::{Executor, PoolSettings, ToolName, WorkerProgram};
use toolexec_tests::house::runtime;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

type Engine = Arc<dyn ToolCallingManager>;

fn engines(executor: &Arc<Executor>) -> Vec<(&'static str, Engine)> {
    let chain = Chain::new(Arc::clone(executor));
    vec![
        ("sequential", Arc::new(Sequential::new(chain.clone()))),
        ("concurrent", Arc::new(Concurrent::new(chain.clone()))),
        ("bounded", Arc::new(Bounded::new(chain, NonZeroUsize::new(3).unwrap()))),
    ]
}

fn spec(name: &str, body: Body) -> ToolSpec {
    ToolSpec::new(ToolName::new(name).unwrap(), "", body)
}

fn limited(milliseconds: u64, spec: ToolSpec) -> ToolSpec {
    ToolSpec { policy: Policy { timeout: Some(Duration::from_millis(milliseconds)), ..spec.policy }, ..spec }
}

fn serial(spec: ToolSpec) -> ToolSpec {
    ToolSpec { declared: Declared { serial: true, ..spec.declared }, ..spec }
}

/// A command that runs a script of the shell with one argument, `$1`.
fn shell(name: &str, script: &str) -> ToolSpec {
    spec(name, Body::Command(CommandTemplate::new("sh", ["-c", script, "sh", "{x}"]).unwrap()))
}

fn host(name: &str, body: HostBody) -> ToolSpec {
    spec(name, Body::Host(body))
}

fn call(id: &str, name: &str, x: &str) -> RequestedCall {
    let arguments = serde_json::json!({ "x": x }).to_string();
    RequestedCall { id: id.into(), name: name.into(), arguments }
}

/// Runs `test` with an executor of these tools.
fn with<F: Future<Output = ()>>(tools: Vec<ToolSpec>, test: impl FnOnce(Arc<Executor>) -> F) {
    runtime().block_on(async {
        let pool = PoolSettings { workers: NonZeroUsize::new(8).unwrap(), ..PoolSettings::default() };
        let builder = Executor::builder().program(WorkerProgram::at(PROGRAM)).pool(pool);
        let executor = Arc::new(builder.tools(ToolTable::new(tools).unwrap()).start().await.unwrap());
        test(Arc::clone(&executor)).await;
        assert_eq!(executor.close().await.unconfirmed, 0);
    });
}

async fn execute(engine: &Engine, calls: Vec<RequestedCall>, options: BatchOptions) -> ToolExecutionResult {
    match engine.execute_tool_calls(calls.into(), options).await.unwrap().settled {
        Settled::Finished(result) => result,
        Settled::Paused(state) => panic!("{state:?}"),
    }
}

fn contents(result: &ToolExecutionResult) -> Vec<(&str, &str)> {
    let messages = result.messages.iter();
    messages.map(|message| (message.tool_return.id.as_str(), message.tool_return.content.as_str())).collect()
}

fn record<'r>(result: &'r ToolExecutionResult, id: &str) -> &'r ToolRecord {
    result.records.iter().find(|record| record.id == id).unwrap()
}

/// Of 32 calls one hangs, one crashes, one floods, one panics and one is unknown.
#[test]
fn what_five_calls_do_costs_the_other_27_nothing() {
    let panics = HostBody::blocking(|_, _| panic!("of this call"));
    let here = HostBody::blocking(|arguments, _| {
        let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        Ok(serde_json::json!(format!("here {}", arguments["x"].as_str().unwrap())).to_string())
    });
    let tools = vec![
        shell("isolated", "printf 'isolated %s' \"$1\""),
        host("here", here),
        limited(300, shell("hangs", "sleep 1000")),
        shell("crashes", "kill -SEGV $$"),
        limited(2000, shell("floods", "yes & yes >&2 & sleep 0.3; kill %1 %2; exit 3")),
        host("panics", panics),
    ];
    with(tools, async |executor| {
        for (name, engine) in engines(&executor) {
            let calls = (0..32).map(|number| {
                let tool = match number {
                    3 => "hangs",
                    7 => "crashes",
                    12 => "floods",
                    20 => "panics",
                    29 => "no_such_tool",
                    number if number % 2 == 0 => "isolated",
                    _ => "here",
                };
                call(&format!("id{number}"), tool, &number.to_string())
            });
            let result = execute(&engine, calls.collect(), BatchOptions::default()).await;
            assert_eq!(result.messages.len(), 32, "{name}");
            let mut intact = 0;
            for (number, message) in result.messages.iter().enumerate() {
                let returned = &message.tool_return;
                assert_eq!(returned.id, format!("id{number}"), "{name}");
                if !returned.is_error {
                    assert_eq!(returned.content, format!("{} {number}", returned.name), "{name}");
                    intact += 1;
                }
            }
            assert_eq!(intact, 27, "{name}: {:?}", contents(&result));
            let ends = ["id3", "id7", "id12", "id20", "id29"].map(|id| {
                let record = record(&result, id);
                (record.status, record.code.unwrap())
            });
            let expected = [
                (Status::TimedOut, Code::ToolTimeout),
                (Status::Crashed, Code::ToolCrashed),
                (Status::Error, Code::ToolError),
                (Status::Error, Code::ToolError),
                (Status::Rejected, Code::UnknownTool),
            ];
            assert_eq!(ends, expected, "{name}");
            assert_eq!(record(&result, "id3").termination, Some(Termination::Killed));
            let errors: Vec<&str> = result.errors.iter().map(|error| error.id.as_str()).collect();
            assert_eq!(errors, ["id3", "id7", "id12", "id20", "id29"], "{name}");
        }
    });
}

/// Calls that wait for each other: they end only if they are under way at once.
fn meeting(people: usize) -> HostBody {
    let there = Arc::new(AtomicUsize::new(0));
    HostBody::asynchronous(move |_, _| {
        let there = Arc::clone(&there);
        async move {
            there.fetch_add(1, Ordering::SeqCst);
            while there.load(Ordering::SeqCst) < people {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok("\"met\"".into())
        }
    })
}

#[test]
fn only_the_engines_for_that_run_calls_at_once() {
    let expected = [("sequential", false), ("concurrent", true), ("bounded", true)];
    for (position, (name, meet)) in expected.into_iter().enumerate() {
        with(vec![limited(500, host("meets", meeting(3)))], async |executor| {
            let (found, engine) = engines(&executor).swap_remove(position);
            assert_eq!(found, name);
            let calls = ["a", "b", "c"].map(|id| call(id, "meets", "")).to_vec();
            let result = execute(&engine, calls, BatchOptions::default()).await;
            assert_eq!(result.messages.iter().all(|message| !message.tool_return.is_error), meet, "{name}");
        });
    }
}

/// What is under way at most, and in which order calls began.
fn watched() -> (HostBody, Arc<AtomicUsize>, Arc<Mutex<Vec<String>>>) {
    let (now, most, order) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::default());
    let (largest, begun) = (Arc::clone(&most), Arc::<Mutex<Vec<String>>>::clone(&order));
    let body = HostBody::blocking(move |_, call| {
        begun.lock().unwrap().push(call.id().to_string());
        largest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        now.fetch_sub(1, Ordering::SeqCst);
        Ok("1".into())
    });
    (body, most, order)
}

#[test]
fn one_serial_tool_puts_the_whole_batch_in_order_on_every_engine() {
    for position in 0..3 {
        let (body, most, order) = watched();
        with(vec![host("free", body.clone()), serial(host("serial", body))], async |executor| {
            let (name, engine) = engines(&executor).swap_remove(position);
            let ids = ["a", "b", "c", "d", "e"];
            let calls = ids.map(|id| call(id, if id == "d" { "serial" } else { "free" }, "")).to_vec();
            execute(&engine, calls, BatchOptions::default()).await;
            assert_eq!(most.load(Ordering::SeqCst), 1, "{name}");
            assert_eq!(*order.lock().unwrap(), ids, "{name}");
        });
    }
}

#[test]
fn bulkhead_bounds_all_its_batches_together() {
    let (body, most, order) = watched();
    with(vec![host("free", body)], async |executor| {
        let engine: Engine = Arc::new(Bounded::new(Chain::new(executor), NonZeroUsize::new(2).unwrap()));
        let batch = |prefix: &str| {
            let calls = (0..4).map(|number| call(&format!("{prefix}{number}"), "free", "")).collect();
            let engine = Arc::clone(&engine);
            async move { execute(&engine, calls, BatchOptions::default()).await }
        };
        tokio::join!(batch("a"), batch("b"), batch("c"));
    });
    assert_eq!((most.load(Ordering::SeqCst), order.lock().unwrap().len()), (2, 12));
}

/// Contract C4: a longer declaration is honoured, a tighter one fires earlier, and without one the default holds.
#[test]
fn declared_limit_yields_to_nothing_and_the_default_is_for_the_rest() {
    let tools = vec![
        limited(5000, shell("longer", "sleep 0.6; echo done")),
        limited(100, shell("tighter", "sleep 5")),
        shell("undeclared", "sleep 5"),
    ];
    with(tools, async |executor| {
        let chain = Chain::new(executor);
        let engine: Engine = Arc::new(Concurrent::new(chain).default_timeout(Duration::from_millis(300)));
        let calls = vec![call("l", "longer", ""), call("t", "tighter", ""), call("u", "undeclared", "")];
        let result = execute(&engine, calls, BatchOptions::default()).await;
        let expected = [
            ("l", "done"),
            ("t", "Error: tool call timed out after 100ms"),
            ("u", "Error: tool call timed out after 300ms"),
        ];
        assert_eq!(contents(&result), expected);
    });
}

/// An engine around another one, as somebody would write it to count batches.
struct Wrapped(Engine, AtomicUsize);

impl ToolCallingManager for Wrapped {
    fn execute_tool_calls<'a>(&'a self, pending: Pending, options: BatchOptions) -> Executing<'a> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.execute_tool_calls(pending, options)
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.0.default_timeout()
    }
}

/// Contract C20 and C88.
#[test]
fn engine_around_another_keeps_its_default_limit() {
    with(vec![shell("undeclared", "sleep 5")], async |executor| {
        let inner = Sequential::new(Chain::new(executor)).default_timeout(Duration::from_millis(100));
        let engine: Engine = Arc::new(Wrapped(Arc::new(inner), AtomicUsize::new(0)));
        assert_eq!(engine.default_timeout(), Some(Duration::from_millis(100)));
        let result = execute(&engine, vec![call("u", "undeclared", "")], BatchOptions::default()).await;
        assert_eq!(contents(&result), [("u", "Error: tool call timed out after 100ms")]);
    });
}

#[test]
fn withdrawn_batch_answers_every_call_and_leaves_nothing_running() {
    with(vec![shell("sleeps", "sleep 1000"), shell("quick", "echo quick")], async |executor| {
        for (name, engine) in engines(&executor) {
            let token = CancellationToken::new();
            let first = token.clone();
            let observer: ToolResultObserver = Arc::new(move |record: &ToolRecord| {
                if record.id == "a" {
                    first.cancel();
                }
            });
            let options = BatchOptions { cancel: Some(token), on_tool_result: Some(observer), ..Default::default() };
            let tools = [("a", "quick"), ("b", "sleeps"), ("c", "sleeps"), ("d", "sleeps"), ("e", "sleeps")];
            let calls = tools.map(|(id, tool)| call(id, tool, "")).to_vec();
            let begun = Instant::now();
            let result = execute(&engine, calls, options).await;
            assert!(begun.elapsed() < Duration::from_secs(100), "{name}");
            assert_eq!(result.messages.len(), 5, "{name}");
            assert_eq!(record(&result, "a").status, Status::Ok, "{name}");
            for id in ["b", "c", "d", "e"] {
                let record = record(&result, id);
                assert_eq!((record.status, record.code), (Status::Cancelled, Some(Code::Cancelled)), "{name} {id}");
                assert_eq!(record.confirmed, record.termination.map(|_| true), "{name} {id}");
            }
        }
    });
}

#[test]
fn closed_engine_runs_nothing_and_answers_all() {
    with(vec![shell("quick", "echo quick"), shell("sleeps", "sleep 1000")], async |executor| {
        for (name, engine) in engines(&executor) {
            let closing = Arc::clone(&engine);
            let observer: ToolResultObserver = Arc::new(move |_: &ToolRecord| closing.close());
            let options = BatchOptions { on_tool_result: Some(observer), ..Default::default() };
            let calls = || vec![call("a", "quick", ""), call("b", "sleeps", ""), call("c", "sleeps", "")];
            let result = execute(&engine, calls(), options).await;
            assert_eq!(contents(&result)[0], ("a", "quick"), "{name}");
            assert!(result.errors.iter().map(|error| error.id.as_str()).eq(["b", "c"]), "{name}");
            let result = execute(&engine, calls(), BatchOptions::default()).await;
            for message in &result.messages {
                assert_eq!(record(&result, &message.tool_return.id).code, Some(Code::Closed), "{name}");
            }
        }
    });
}

#[test]
fn observer_hears_of_each_executed_call_once_and_may_panic() {
    with(vec![shell("quick", "echo \"$1\"")], async |executor| {
        for (name, engine) in engines(&executor) {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let hearing = Arc::clone(&heard);
            let observer: ToolResultObserver = Arc::new(move |record: &ToolRecord| {
                hearing.lock().unwrap().push(record.id.clone());
                if record.id == "b" {
                    panic!("an observer's own affair");
                }
            });
            let gate = |call: &RequestedCall, _: &Context| match call.id.as_str() {
                "c" => Verdict::RejectBecause("not now".into()),
                "d" => Verdict::Reply("by hand".into()),
                _ => Verdict::Proceed,
            };
            let options =
                BatchOptions { on_tool_result: Some(observer), gate: Some(Arc::new(gate)), ..Default::default() };
            let calls = ["a", "b", "c", "d", "e"].map(|id| call(id, "quick", id)).to_vec();
            let result = execute(&engine, calls, options).await;
            let told = contents(&result);
            assert_eq!(told[0], ("a", "a"), "{name}");
            assert_eq!((told[1], told[3], told[4]), (("b", "b"), ("d", "by hand"), ("e", "e")), "{name}");
            assert!(told[2].1.ends_with("rejected: not now"), "{told:?}");
            let mut heard = heard.lock().unwrap().clone();
            heard.sort();
            assert_eq!(heard, ["a", "b", "e"], "{name}");
        }
    });
}

#[test]
fn writes_come_together_at_the_end_and_none_from_a_call_that_failed() {
    let notes = HostBody::asynchronous(|arguments, call| async move {
        let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        let x = arguments["x"].as_str().unwrap().to_owned();
        call.write("notes", format!("dropped {x}"));
        call.write("notes", x.clone());
        let seen = call.context().get("notes").cloned().unwrap_or_default();
        match x.as_str() {
            "fails" => Err("no".into()),
            "hangs" => std::future::pending().await,
            // The last of the call order is the first to end.
            "slow" => {
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok(seen.to_string())
            }
            _ => Ok(seen.to_string()),
        }
    });
    let reads = |spec: ToolSpec| ToolSpec { declared: Declared { context: true, ..spec.declared }, ..spec };
    let tools = vec![reads(limited(100, host("note", notes.clone()))), host("blind", notes)];
    with(tools, async |executor| {
        for (name, engine) in engines(&executor) {
            let slots = Slots::default().declare("notes", Append).unwrap();
            let context = Context::default().with("notes", serde_json::json!(["before"]));
            let options = BatchOptions { context, slots: Arc::new(slots), ..Default::default() };
            let calls = [("a", "slow"), ("b", "fails"), ("c", "quick"), ("d", "hangs")];
            let mut calls = calls.map(|(id, x)| call(id, "note", x)).to_vec();
            calls.push(call("e", "blind", "unseen"));
            let result = execute(&engine, calls, options).await;
            let told: Vec<&str> = contents(&result).into_iter().map(|(_, content)| content).collect();
            let snapshot = r#"["before"]"#;
            let timed_out = "Error: tool call timed out after 100ms";
            assert_eq!(told, [snapshot, "Error: no", snapshot, timed_out, "null"], "{name}");
            let expected = serde_json::json!(["before", "slow", "quick", "unseen"]);
            assert_eq!(result.context.get("notes"), Some(&expected), "{name}");
        }
    });
}
