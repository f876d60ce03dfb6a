//! Tools that are written in Rust, isolated and in this very process: what a deadline does to each, and what a hostile author
//! cannot do to the others.

use std::cell::Cell;
use std::fs;
use std::future::{Future, pending};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolexec::call::{CallContext, StopReason, ToolCall};
use toolexec::catalogue::ToolTable;
use toolexec::{Executor, ExecutorBuilder, Failure, HostSettings, Tool, Tools};
use toolexec_tests::bodies::bodies;
use toolexec_tests::bound::{PATIENCE, assert_in_time, assert_within, with_growing_limit};
use toolexec_tests::house::{self, House, LONG};
use toolexec_tests::kinds::{self, KINDS, Nothing};
use toolexec_tests::room::Room;
use toolexec_tests::told::Told;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rust_tools_under_test");

/// A time limit for what is to reach it.
const SHORT: Duration = Duration::from_millis(100);

/// The shared tools, and some of the test's own.
fn builder(own: impl IntoIterator<Item = Tool>) -> ExecutorBuilder {
    let mut specs = kinds::tools().into_specs();
    specs.extend(own.into_iter().fold(Tools::new(), Tools::with).into_specs());
    house::builder(PROGRAM, 2).tools(ToolTable::new(specs).expect("a table"))
}

fn threads(threads: usize, queue: usize, abandoned: Option<usize>) -> HostSettings {
    HostSettings { threads: NonZeroUsize::new(threads).expect("a thread"), queue, abandoned }
}

fn blocking(name: &str, body: impl Fn(CallContext) -> Result<u64, Failure> + Send + Sync + 'static) -> Tool {
    Tool::blocking(name, "", move |_: Nothing, call| body(call)).expect("a tool")
}

fn asynchronous<F>(name: &str, body: impl Fn(CallContext) -> F + Send + Sync + 'static) -> Tool
where
    F: Future<Output = Result<u64, Failure>> + Send + 'static,
{
    Tool::asynchronous(name, "", move |_: Nothing, call| body(call)).expect("a tool")
}

fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, "{}").timeout(Duration::from_millis(LONG))
}

#[track_caller]
fn assert_abandoned(house: &House, count: usize) {
    assert_within(PATIENCE, "the count of abandoned calls", || house.executor().abandoned() == count);
}

// What a deadline does.

/// The test of honesty (C78).
#[test]
fn abandoned_loop_goes_on_and_nobody_says_that_it_ended() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let house = House::new(builder([blocking("loop", move |_| of_tool.spin())]));
    let told = house.call(call("loop").timeout(SHORT));
    told.assert_end("timed_out TOOL_TIMEOUT abandoned").assert_at("/class", "transient");
    told.assert_at("/receipt", ()).assert_at("/exit", ()).assert_at("/side_effects_possible", true);
    let message = told.text("/message");
    for lie in ["stopped", "terminated", "cancelled", "killed"] {
        assert!(!message.contains(lie), "{message}");
    }
    assert_eq!(house.executor().abandoned(), 1);
    let then = bodies.state().rounds.load(Ordering::Relaxed);
    assert_within(PATIENCE, "another round of the loop", || bodies.state().rounds.load(Ordering::Relaxed) > then);
    assert_eq!(house.executor().abandoned(), 1);
    bodies.end();
    assert_abandoned(&house, 0);
}

/// Its mirror.
#[test]
fn isolated_loop_does_nothing_more_once_its_outcome_is_there() {
    let house = House::new(builder([]));
    let room = Room::new();
    let mut seen = Vec::new();
    with_growing_limit(|limit| {
        let file = room.file(&format!("{}", limit.as_secs()));
        let arguments = serde_json::json!({ "path": file }).to_string();
        let told = house.call(ToolCall::new("append", arguments).timeout(limit));
        let length = || fs::metadata(&file).map_or(0, |metadata| metadata.len());
        let then = length();
        told.assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline").assert_kills_trees();
        seen.push((file.clone(), then));
        then > 0
    });
    // The next call forks, runs and ends: time enough for a writer that were still there.
    for _ in 0..20 {
        house.call(ToolCall::new("end_isolated", r#"{"how": "ok"}"#)).assert_end("ok - returned");
    }
    for (file, then) in seen {
        assert_eq!(fs::metadata(&file).map_or(0, |metadata| metadata.len()), then, "it grew after its outcome");
    }
}

#[test]
fn future_that_waits_is_dropped_before_the_outcome_comes() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let wait = asynchronous("wait_here", move |_| {
        let running = of_tool.enter();
        async move {
            let _running = running;
            pending().await
        }
    });
    let house = House::new(builder([wait]));
    house.call(call("wait_here").timeout(SHORT)).assert_end("timed_out TOOL_TIMEOUT stopped").assert_at("/receipt", ());
    assert_eq!((bodies.running(), bodies.dropped()), (0, 1));

    let token = CancellationToken::new();
    let withdrawn = house.begin(call("wait_here").cancelled_by(token.clone()));
    bodies.await_begun(2);
    token.cancel();
    house.end(withdrawn).assert_end("cancelled CANCELLED stopped").assert_at("/class", ());
    assert_eq!((bodies.running(), bodies.dropped()), (0, 2));

    let closed = house.begin(call("wait_here"));
    bodies.await_begun(3);
    let executor = house.executor();
    let report = house.runtime.block_on(async { tokio::time::timeout(PATIENCE, executor.close()).await }).unwrap();
    assert_eq!((report.unconfirmed, report.abandoned), (0, 0));
    house.end(closed).assert_end("failed CLOSED stopped");
    assert_eq!((bodies.running(), bodies.dropped()), (0, 3));
    house.call(call("wait_here")).assert_end("failed CLOSED -").assert_at("/started", false);
    assert_eq!(executor.abandoned(), 0);
}

#[test]
fn dropped_call_drops_its_tools_future() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let wait = asynchronous("wait_here", move |_| {
        let running = of_tool.enter();
        async move {
            let _running = running;
            pending().await
        }
    });
    let house = House::new(builder([wait]));
    let dropped = house.begin(call("wait_here"));
    bodies.await_begun(1);
    dropped.abort();
    assert_within(PATIENCE, "the end of the future", || bodies.dropped() == 1);
    assert_abandoned(&house, 0);
}

#[test]
fn dropped_call_of_a_deaf_tool_is_counted_until_it_ends() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let house = House::new(builder([blocking("deaf", move |_| of_tool.sleep())]));
    let dropped = house.begin(call("deaf"));
    bodies.await_begun(1);
    assert_eq!(house.executor().abandoned(), 0);
    dropped.abort();
    assert_abandoned(&house, 1);
    bodies.end();
    assert_abandoned(&house, 0);
}

#[test]
fn tool_is_told_why_it_has_to_stop() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&reasons);
    let listen = blocking("listen_here", move |call| {
        let _running = of_tool.enter();
        while !call.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
        told.lock().unwrap().push(call.reason());
        Ok(0)
    });
    let house = House::new(builder([listen]));
    let timeout = Duration::from_millis(120);
    house.call(call("listen_here").timeout(timeout)).assert_end("timed_out TOOL_TIMEOUT stopped");
    let token = CancellationToken::new();
    let withdrawn = house.begin(call("listen_here").cancelled_by(token.clone()));
    bodies.await_begun(2);
    token.cancel();
    house.end(withdrawn).assert_end("cancelled CANCELLED stopped");
    let dropped = house.begin(call("listen_here"));
    bodies.await_begun(3);
    dropped.abort();
    assert_within(PATIENCE, "the end of a dropped call's tool", || bodies.dropped() == 3);
    let closed = house.begin(call("listen_here"));
    bodies.await_begun(4);
    assert_eq!(house.runtime.block_on(house.executor().close()).abandoned, 0);
    house.end(closed).assert_end("failed CLOSED stopped");
    let expected =
        [StopReason::Deadline { timeout }, StopReason::Cancelled, StopReason::Cancelled, StopReason::Closed].map(Some);
    assert_eq!(*reasons.lock().unwrap(), expected);
}

#[test]
fn first_reason_to_stop_is_the_one_that_counts() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let timeout = Duration::from_millis(LONG);
    let asked = blocking("asked", move |call| {
        let _running = of_tool.enter();
        while !of_tool.state().end.load(Ordering::Relaxed) {
            if let Some(reason) = call.reason() {
                // The first that was seen; whatever comes later has to be the same.
                assert_eq!(of_tool.state().reason.get_or_init(|| reason), &reason);
            }
            thread::sleep(Duration::from_millis(1));
        }
        of_tool
            .state()
            .rounds
            .store(u64::from(call.reason() == of_tool.state().reason.get().copied()), Ordering::SeqCst);
        Ok(0)
    });
    let grace = timeout - Duration::from_millis(50);
    let house = House::new(builder([asked.timeout(timeout).grace(grace)]));
    let token = CancellationToken::new();
    let withdrawn = house.begin(ToolCall::new("asked", "").cancelled_by(token.clone()));
    assert_within(PATIENCE, "the beginning of the grace period", || bodies.state().reason.get().is_some());
    token.cancel();
    // The tool goes on listening to nobody, so it is given up for the withdrawal; what it was told first stays.
    house.end(withdrawn).assert_end("cancelled CANCELLED abandoned");
    bodies.end();
    assert_eq!(bodies.state().reason.get(), Some(&StopReason::Deadline { timeout }));
    assert_eq!(bodies.state().rounds.load(Ordering::SeqCst), 1, "another reason came later");
}

#[test]
fn grace_period_asks_before_the_limit_and_what_returns_well_then_is_ok() {
    let until_asked = |call: &CallContext| {
        while !call.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
    };
    let timeout = Duration::from_millis(LONG);
    let grace = timeout - SHORT;
    let tools = [
        blocking("ends_well", move |call| {
            until_asked(&call);
            Ok(7)
        }),
        blocking("fails", move |call| {
            until_asked(&call);
            Err("interrupted".into())
        }),
        blocking("panics", move |call| {
            until_asked(&call);
            panic!("asked")
        }),
        asynchronous("selects", |call| async move {
            tokio::select! {
                reason = call.stopped() => Ok(u64::from(matches!(reason, StopReason::Deadline { .. }))),
                () = pending() => Ok(9),
            }
        }),
    ];
    let house = House::new(builder(tools.map(|tool| tool.timeout(timeout).grace(grace))));
    let begun = Instant::now();
    let plain = |tool: &str| house.call(ToolCall::new(tool, ""));
    plain("ends_well").assert_end("ok - returned").assert_at("/result", 7);
    plain("selects").assert_end("ok - returned").assert_at("/result", 1);
    // As a command that ends at its SIGTERM.
    plain("fails").assert_end("timed_out TOOL_TIMEOUT stopped").assert_at("/class", "transient");
    plain("panics").assert_end("error TOOL_ERROR returned").assert_at("/message", "the tool panicked: asked");
    assert_in_time("four calls that were asked early", 4 * SHORT, begun.elapsed());
}

// Late results.

#[test]
fn late_result_never_becomes_another_calls() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let number = Tool::blocking("number", "", move |Number { number, after_us }: Number, _| {
        let _running = of_tool.enter();
        thread::sleep(Duration::from_micros(after_us));
        Ok::<_, Failure>(number)
    });
    let house = House::new(builder([number.unwrap()]).host(threads(2, 10, None)));
    let mut ends = [0, 0];
    for round in 0..24_u64 {
        // Around the limit and what a stop may take: either answer may come, but never another's.
        let after = 100_000 + round * 2_500;
        let arguments = |number: u64, after_us: u64| format!(r#"{{"number": {number}, "after_us": {after_us}}}"#);
        let late = ToolCall::new("number", arguments(round, after)).timeout(Duration::from_millis(130));
        let told = house.call(late);
        match told.end().as_str() {
            "timed_out TOOL_TIMEOUT stopped" => ends[0] += 1,
            _ => {
                told.assert_end("ok - returned").assert_at("/result", round);
                ends[1] += 1;
            }
        }
        let next = house.call(ToolCall::new("number", arguments(1000 + round, 0)));
        next.assert_end("ok - returned").assert_at("/result", 1000 + round);
    }
    assert!(ends[0] > 0 && ends[1] > 0, "one of the two never happened: {ends:?}");
    assert_abandoned(&house, 0);
}

#[test]
fn result_of_an_abandoned_call_is_dropped_while_the_next_one_of_its_tool_runs() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let gates: Arc<[AtomicBool; 2]> = Arc::default();
    let of_gates = Arc::clone(&gates);
    let number = Tool::blocking("number", "", move |Number { number, .. }: Number, _| {
        let _running = of_tool.enter();
        while !of_gates[number as usize].load(Ordering::SeqCst) && !of_tool.state().end.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok::<_, Failure>(number)
    });
    let house = House::new(builder([number.unwrap()]));
    let of_number = |number: u64| ToolCall::new("number", format!(r#"{{"number": {number}, "after_us": 0}}"#));
    house.call(of_number(0).timeout(SHORT)).assert_end("timed_out TOOL_TIMEOUT abandoned").assert_at("/result", ());
    let next = house.begin(of_number(1));
    bodies.await_begun(2);
    gates[0].store(true, Ordering::SeqCst);
    assert_within(PATIENCE, "the late end", || bodies.running() == 1);
    assert_abandoned(&house, 0);
    assert!(!next.is_finished(), "it got the other's result: {:?}", house.end(next));
    gates[1].store(true, Ordering::SeqCst);
    house.end(next).assert_end("ok - returned").assert_at("/result", 1);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    number: u64,
    after_us: u64,
}

#[test]
fn result_that_was_there_in_time_counts_though_its_caller_comes_late() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let limit = Duration::from_millis(300);
    let quick = blocking("quick", move |_| {
        drop(of_tool.enter());
        Ok(7)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let executor = builder([quick]).start().await.expect("an executor starts");
        let begun = Instant::now();
        let token = CancellationToken::new();
        let late_caller = async {
            // Blocks the only thread of the caller's runtime until the result is there and the limit is over.
            bodies.await_begun(1);
            while begun.elapsed() <= limit + Duration::from_millis(50) {
                thread::sleep(Duration::from_millis(5));
            }
            token.cancel();
        };
        let call = call("quick").timeout(limit).cancelled_by(token.clone());
        let (outcome, ()) = tokio::join!(executor.call(call), late_caller);
        Told::of(&outcome).assert_end("ok - returned").assert_at("/result", 7);
        executor.close().await;
    });
}

// How many run.

#[test]
fn cap_on_abandoned_calls_refuses_until_one_of_them_ends() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let tools = [blocking("deaf", move |_| of_tool.sleep()), blocking("quick", |_| Ok(1))];
    let house = House::new(builder(tools).host(threads(8, 10, Some(2))));
    for count in 1..=2 {
        house.call(call("quick")).assert_end("ok - returned");
        house.call(call("deaf").timeout(SHORT)).assert_end("timed_out TOOL_TIMEOUT abandoned");
        assert_eq!(house.executor().abandoned(), count);
    }
    let told = house.call(call("quick"));
    told.assert_end("rejected QUEUE_FULL -").assert_at("/class", "transient").assert_at("/started", false);
    told.assert_at("/side_effects_possible", false);
    // What is killed needs no such cap.
    house.call(ToolCall::new("end_isolated", r#"{"how": "ok"}"#)).assert_end("ok - returned");
    bodies.end();
    assert_abandoned(&house, 0);
    house.call(call("quick")).assert_end("ok - returned");
}

#[test]
fn call_that_waited_for_a_thread_is_refused_too_when_the_cap_was_reached_meanwhile() {
    let (deaf, _deaf_ends) = bodies();
    let (other, _other_ends) = bodies();
    let (of_deaf, of_other) = (deaf.clone(), other.clone());
    let tools = [
        blocking("deaf", move |_| of_deaf.sleep()),
        blocking("other", move |_| of_other.sleep()),
        blocking("quick", |_| Ok(1)),
    ];
    let house = House::new(builder(tools).host(threads(2, 10, Some(1))));
    let token = CancellationToken::new();
    let abandoned = house.begin(call("deaf").cancelled_by(token.clone()));
    let beside = house.begin(call("other"));
    deaf.await_begun(1);
    other.await_begun(1);
    let waiting = house.begin(call("quick"));
    // It waits: a queue timeout of its own would tell, and there is no other sign of it.
    assert!(!is_finished_after(&waiting, SHORT));
    token.cancel();
    house.end(abandoned).assert_end("cancelled CANCELLED abandoned");
    other.end();
    house.end(beside).assert_end("ok - returned");
    house.end(waiting).assert_end("rejected QUEUE_FULL -").assert_at("/class", "transient");
    deaf.end();
    assert_abandoned(&house, 0);
    house.call(call("quick")).assert_end("ok - returned");
}

fn is_finished_after(call: &JoinHandle<Told>, bound: Duration) -> bool {
    toolexec_tests::bound::wait_until(bound, || call.is_finished())
}

#[test]
fn wait_for_a_thread_is_bounded_in_number_and_in_time() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let bound = Duration::from_millis(200);
    let tools = [
        blocking("deaf", move |_| of_tool.sleep()),
        blocking("quick", |_| Ok(1)),
        blocking("impatient", |_| Ok(2)).with_policy(|policy| policy.queue_timeout = Some(bound)),
    ];
    let house = House::new(builder(tools).host(threads(1, 2, None)));
    let first = house.begin(call("deaf"));
    bodies.await_begun(1);
    let begun = Instant::now();
    let told = house.call(call("impatient"));
    told.assert_end("rejected QUEUE_TIMEOUT -").assert_at("/class", "transient").assert_at("/started", false);
    assert!(begun.elapsed() >= bound);
    assert_in_time("the wait for a thread", bound, begun.elapsed());

    let mut waiting: Vec<_> = (0..7).map(|_| house.begin(call("quick"))).collect();
    assert_within(PATIENCE, "five refusals", || waiting.iter().filter(|call| call.is_finished()).count() == 5);
    let (refused, accepted): (Vec<_>, Vec<_>) = waiting.drain(..).partition(JoinHandle::is_finished);
    for call in refused {
        house
            .end(call)
            .assert_end("rejected QUEUE_FULL -")
            .assert_at("/class", "transient")
            .assert_at("/started", false);
    }
    // Who leaves the queue makes room.
    for accepted in accepted {
        accepted.abort();
        assert_within(PATIENCE, "the end of an aborted task", || accepted.is_finished());
    }
    let token = CancellationToken::new();
    let withdrawn = house.begin(call("quick").cancelled_by(token.clone()));
    let waiting = house.begin(call("quick"));
    assert!(!is_finished_after(&withdrawn, SHORT) && !waiting.is_finished());
    token.cancel();
    house.end(withdrawn).assert_end("cancelled CANCELLED -").assert_at("/started", false);
    bodies.end();
    house.end(first).assert_end("ok - returned");
    house.end(waiting).assert_end("ok - returned");
}

// Panics and other ends.

#[test]
fn panic_is_its_own_calls_error_and_the_next_call_works() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }
    let tools = [
        asynchronous("panics_in_its_drop", |_| async {
            let _panics = PanicsWhenDropped;
            pending().await
        }),
        asynchronous("panics_at_its_end", |_| async {
            let _panics = PanicsWhenDropped;
            Ok(1)
        }),
        asynchronous("panics_where_it_waits", |_| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            panic!("later")
        }),
    ];
    let house = House::new(builder(tools).host(threads(1, 10, None)));
    for kind in KINDS {
        let works = || {
            let told = house.call(ToolCall::new(format!("end_{kind}"), r#"{"how": "ok"}"#));
            told.assert_end("ok - returned");
        };
        for (how, text) in [
            ("panic_str", "a text"),
            ("panic_string", "a text with a number"),
            ("panic_other", "without a text"),
            ("panic_bomb", "without a text"),
        ] {
            let told = house.call(ToolCall::new(format!("end_{kind}"), format!(r#"{{"how": "{how}"}}"#)));
            told.assert_end("error TOOL_ERROR returned").assert_at("/class", "semantic");
            told.assert_at("/message", format!("the tool panicked: {text}"));
            works();
        }
        let told = house.call(ToolCall::new(format!("trap_{kind}"), "{}"));
        told.assert_end("error TOOL_ERROR returned").assert_at("/message", "the tool panicked: sprung");
        works();
    }
    house.call(call("panics_in_its_drop").timeout(SHORT)).assert_end("timed_out TOOL_TIMEOUT stopped");
    let told = house.call(call("panics_at_its_end"));
    told.assert_end("error TOOL_ERROR returned").assert_at("/message", "the tool panicked: in the drop");
    let told = house.call(call("panics_where_it_waits"));
    told.assert_end("error TOOL_ERROR returned").assert_at("/message", "the tool panicked: later");
    house.call(ToolCall::new("end_blocking", r#"{"how": "ok"}"#)).assert_end("ok - returned");
    assert_abandoned(&house, 0);
}

/// A payload that panics once more when it is dropped, from a tool that nobody waits for any more.
#[test]
fn late_panic_takes_nothing_along() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("once more");
        }
    }
    let late = blocking("late", move |_| {
        of_tool.sleep()?;
        std::panic::panic_any(Bomb)
    });
    let house = House::new(builder([late]).host(threads(1, 10, None)));
    house.call(call("late").timeout(SHORT)).assert_end("timed_out TOOL_TIMEOUT abandoned");
    bodies.end();
    assert_abandoned(&house, 0);
    house.call(ToolCall::new("end_blocking", r#"{"how": "ok"}"#)).assert_end("ok - returned");
}

// What a tool cannot do to others.

#[test]
fn tool_may_use_the_async_runtime_though_all_threads_are_taken() {
    let tools = [
        // Files and name look-ups of tokio are such blocking work.
        asynchronous("uses_blocking_threads", |_| async {
            Ok(tokio::task::spawn_blocking(|| 1).await.expect("a blocking task"))
        }),
        blocking("spawns", |_| {
            let handle = tokio::runtime::Handle::current();
            let task = tokio::spawn(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                2
            });
            Ok(handle.block_on(task).expect("a task"))
        }),
        asynchronous("blocks_in_place", |_| async { Ok(tokio::task::block_in_place(|| 3)) }),
    ];
    let house = House::new(builder(tools).host(threads(1, 10, None)));
    for (name, result) in [("uses_blocking_threads", 1), ("spawns", 2), ("blocks_in_place", 3)] {
        house.call(call(name)).assert_end("ok - returned").assert_at("/result", result);
    }
}

#[test]
fn call_finds_nothing_that_an_earlier_one_left_on_its_thread() {
    thread_local! {
        static CALLS: Cell<u64> = const { Cell::new(0) };
    }
    fn count() -> Result<u64, Failure> {
        CALLS.set(CALLS.get() + 1);
        Ok(CALLS.get())
    }
    let tools = [blocking("count", |_| count()), asynchronous("count_later", |_| async { count() })];
    let house = House::new(builder(tools).host(threads(1, 10, None)));
    for name in ["count", "count_later", "count", "count_later"] {
        house.call(call(name)).assert_end("ok - returned").assert_at("/result", 1);
    }
}

#[test]
fn tool_may_make_calls_of_its_own() {
    let executor: Arc<OnceLock<std::sync::Weak<Executor>>> = Arc::default();
    let (of_future, of_thread) = (Arc::clone(&executor), Arc::clone(&executor));
    let ok = || ToolCall::new("end_isolated", r#"{"how": "ok"}"#);
    let kill = || ToolCall::new("spin_isolated", "").timeout(SHORT);
    let get =
        |executor: &OnceLock<std::sync::Weak<Executor>>| executor.get().and_then(std::sync::Weak::upgrade).unwrap();
    let tools = [
        asynchronous("nests", move |_| {
            let executor = get(&of_future);
            async move {
                Told::of(&executor.call(ok()).await).assert_end("ok - returned");
                Told::of(&executor.call(kill()).await).assert_end("timed_out TOOL_TIMEOUT killed");
                Ok(1)
            }
        }),
        blocking("nests_and_blocks", move |_| {
            let executor = get(&of_thread);
            let handle = tokio::runtime::Handle::current();
            Told::of(&handle.block_on(executor.call(ok()))).assert_end("ok - returned");
            Told::of(&handle.block_on(executor.call(kill()))).assert_end("timed_out TOOL_TIMEOUT killed");
            Ok(2)
        }),
    ];
    let house = House::new(builder(tools).host(threads(2, 10, None)));
    executor.set(Arc::downgrade(&house.executor())).unwrap();
    for _ in 0..3 {
        let calls = ["nests", "nests_and_blocks"].map(|name| house.begin(call(name)));
        for (call, result) in calls.into_iter().zip([1, 2]) {
            house.end(call).assert_end("ok - returned").assert_at("/result", result);
        }
    }
}

// The end of an executor.

#[test]
fn close_reports_a_deaf_tool_and_does_not_wait_for_it() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let house = House::new(builder([blocking("deaf", move |_| of_tool.sleep())]));
    let abandoned = house.begin(call("deaf").timeout(SHORT));
    house.end(abandoned).assert_end("timed_out TOOL_TIMEOUT abandoned");
    let running = house.begin(call("deaf"));
    bodies.await_begun(2);
    let begun = Instant::now();
    let report =
        house.runtime.block_on(async { tokio::time::timeout(PATIENCE, house.executor().close()).await }).unwrap();
    assert_eq!((report.unconfirmed, report.abandoned), (0, 2));
    assert_in_time("the close", Duration::from_secs(2), begun.elapsed());
    house.end(running).assert_end("failed CLOSED abandoned");
    assert_eq!(bodies.running(), 2);
    bodies.end();
    assert_abandoned(&house, 0);
    assert_eq!(house.runtime.block_on(house.executor().close()).abandoned, 0);
}

#[test]
fn executor_may_be_dropped_in_async_code_while_tools_run() {
    let (bodies, _ends) = bodies();
    let (of_loop, of_future) = (bodies.clone(), bodies.clone());
    let tools = [
        blocking("deaf", move |_| of_loop.sleep()),
        asynchronous("wait_here", move |_| {
            let running = of_future.enter();
            async move {
                let _running = running;
                tokio::time::sleep(PATIENCE * 10).await;
                Ok(1)
            }
        }),
    ];
    let runtime = house::runtime();
    runtime.block_on(async {
        let executor = Arc::new(builder(tools).start().await.unwrap());
        let calls = ["deaf", "wait_here"].map(|name| {
            let executor = Arc::clone(&executor);
            tokio::spawn(async move { executor.call(call(name)).await })
        });
        while bodies.state().begun.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for call in calls {
            call.abort();
            assert!(call.await.is_err_and(|error| error.is_cancelled()));
        }
        // The last owner, inside the runtime.
        drop(Arc::into_inner(executor).expect("the last owner"));
    });
    assert_within(PATIENCE, "the end of the future", || bodies.running() == 1);
    bodies.end();
}

#[test]
fn runtime_that_is_shut_down_asks_the_tools_to_stop() {
    let (bodies, _ends) = bodies();
    let of_tool = bodies.clone();
    let listen = blocking("listen_here", move |call| {
        let _running = of_tool.enter();
        while !call.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(0)
    });
    let mut house = House::new(builder([listen]));
    drop(house.begin(call("listen_here")));
    bodies.await_begun(1);
    house.drop_executor();
    assert_eq!(bodies.running(), 1);
    drop(house);
    assert_within(PATIENCE, "the end of the tool", || bodies.running() == 0);
}
