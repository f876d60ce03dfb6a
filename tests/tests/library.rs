//! The promises of the library: one outcome a call, whatever becomes of the call, its worker, or its zygote.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use toolexec::call::{CallId, OutputMode, OutputStream, Policy, ToolCall, WorkerPolicy};
use toolexec::{Executor, ExecutorBuilder, KillStrength, PoolSettings, WorkerProgram};
use toolexec_tests::bound::{
    GONE, LATENESS, PATIENCE, assert_gone, assert_in_time, assert_within, await_some, wait_until, with_growing_limit,
};
use toolexec_tests::marker::Marker;
use toolexec_tests::mix::Planned;
use toolexec_tests::process::{self, Process};
use toolexec_tests::random::Random;
use toolexec_tests::room::{Room, scratch_left};
use toolexec_tests::shell::{self, limit, script};
use toolexec_tests::told::Told;

/// Long enough for everything that is to end by itself.
const LONG: u64 = 20_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn builder(workers: usize) -> ExecutorBuilder {
    let pool = PoolSettings { workers: NonZeroUsize::new(workers).unwrap(), ..PoolSettings::default() };
    Executor::builder().program(WorkerProgram::at(env!("CARGO_BIN_EXE_toolexec_under_test"))).pool(pool)
}

/// An executor, the runtime that it was started in, and calls that go on by themselves while a test looks at `/proc`.
struct House {
    executor: Option<Arc<Executor>>,
    runtime: Runtime,
}

impl House {
    fn new(builder: ExecutorBuilder) -> Self {
        let runtime = runtime();
        let executor = runtime.block_on(builder.start()).expect("an executor starts");
        Self { executor: Some(Arc::new(executor)), runtime }
    }

    fn with_workers(workers: usize) -> Self {
        Self::new(builder(workers))
    }

    fn executor(&self) -> Arc<Executor> {
        Arc::clone(self.executor.as_ref().expect("not closed yet"))
    }

    /// Starts a call.
    fn begin(&self, call: ToolCall) -> JoinHandle<Told> {
        let executor = self.executor();
        self.runtime.spawn(async move { Told::of(&executor.call(call).await) })
    }

    /// Waits for a call that was begun.
    #[track_caller]
    fn end(&self, call: JoinHandle<Told>) -> Told {
        let ended = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await });
        ended.expect("the call has an outcome").expect("the call does not panic")
    }

    /// Makes a call.
    #[track_caller]
    fn call(&self, call: ToolCall) -> Told {
        self.end(self.begin(call))
    }

    #[track_caller]
    fn assert_next_call_works(&self) {
        self.call(shell::call("echo next", LONG)).assert_end("ok - returned").assert_at("/stdout/text", "next\n");
    }
}

/// Waits until `count` sleeps with the marker run.
#[track_caller]
fn await_sleeps(marker: &Marker, count: usize) -> Vec<Process> {
    await_some(PATIENCE, "sleeping tools", || Some(marker.sleeping()).filter(|sleeping| sleeping.len() == count))
}

/// A sleep in a session of its own, and one beside it.
fn two_sleeps(marker: &Marker) -> String {
    format!("setsid -f sleep {marker}; sleep {marker}")
}

/// The zygote above a tool's process.
#[track_caller]
fn zygote_above(tool: &Process) -> Process {
    let zygote = tool.line_up_to(std::process::id()).expect("a tool of this test").pop().expect("a zygote");
    assert_eq!(zygote.arguments.first().map(String::as_str), Some("toolexec-zygote"), "{zygote:?}");
    zygote
}

/// What stands between a tool's process and the zygote, the tool's own processes left out: the worker, and a guard of
/// it where there is one.
#[track_caller]
fn workers_above(tool: &Process) -> Vec<Process> {
    let mut line = tool.line_up_to(std::process::id()).expect("a tool of this test");
    line.pop();
    line.retain(|process| process.arguments.first().is_some_and(|name| name == "toolexec-zygote"));
    assert!(!line.is_empty(), "no worker above {tool:?}");
    line
}

/// A builder for each mechanism that kills trees.
fn each_strength(workers: usize) -> [ExecutorBuilder; 2] {
    [builder(workers), builder(workers).strength(KillStrength::Subreaper)]
}

#[test]
fn each_way_to_end_has_its_outcome() {
    let house = House::with_workers(2);
    for (text, end) in [
        ("exit 0", "ok - returned"),
        ("exit 9", "error TOOL_ERROR returned"),
        ("kill -SEGV $$", "crashed TOOL_CRASHED returned"),
        ("kill -KILL $$", "crashed TOOL_CRASHED returned"),
    ] {
        house.call(shell::call(text, LONG)).assert_end(end).assert_at("/started", true);
    }
    house.call(shell::call("sleep 20", 100)).assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
    let missing = ToolCall::command(shell::program("no-such-program", &[]), Policy::default());
    house.call(missing).assert_end("failed SPAWN_FAILED -").assert_at("/side_effects_possible", false);
    house.call(ToolCall::new("no_such_tool", "{}")).assert_end("rejected UNKNOWN_TOOL -").assert_at("/started", false);
}

#[test]
fn call_keeps_the_id_that_its_caller_gave_it() {
    let house = House::with_workers(1);
    let mut call = shell::call("true", LONG);
    call.id = CallId::new("call_17");
    house.call(call).assert_at("/call_id", "call_17");
    let first = house.call(shell::call("true", LONG));
    let second = house.call(shell::call("true", LONG));
    assert_ne!(first.text("/call_id"), second.text("/call_id"));
}

#[test]
fn time_limit_of_zero_is_refused_and_starts_nothing() {
    let house = House::with_workers(1);
    let room = Room::new();
    let touch = || script(&format!("touch {}", room.file("touched").display()));
    let zero = Some(Duration::ZERO);
    for policy in [
        Policy { timeout: zero, ..Policy::default() },
        Policy { queue_timeout: zero, ..Policy::default() },
        Policy { timeout: Some(Duration::from_secs(5)), grace: zero, ..Policy::default() },
        Policy { timeout: Some(Duration::from_secs(5)), grace: Some(Duration::from_secs(5)), ..Policy::default() },
        Policy { grace: Some(Duration::from_secs(5)), ..Policy::default() },
        Policy { output: Some(0), ..Policy::default() },
    ] {
        let told = house.call(ToolCall::command(touch(), policy));
        told.assert_end("rejected INVALID_ARGUMENTS -").assert_at("/started", false);
    }
    let told = house.call(ToolCall::command(touch(), limit(LONG)).timeout(Duration::ZERO));
    told.assert_end("rejected INVALID_ARGUMENTS -").assert_at("/started", false);
    assert!(!room.file("touched").exists());
    house.call(ToolCall::command(touch(), limit(LONG))).assert_end("ok - returned");
    assert!(room.file("touched").exists());
}

#[test]
fn cancelled_call_takes_its_tree_with_it() {
    let house = House::with_workers(1);
    let marker = Marker::new(40630);
    let token = CancellationToken::new();
    let call =
        house.begin(shell::call(&format!("echo begun; {}", two_sleeps(&marker)), LONG).cancelled_by(token.clone()));
    await_sleeps(&marker, 2);
    let withdrawn = Instant::now();
    token.cancel();
    let told = house.end(call);
    assert_in_time("the answer to a withdrawal", Duration::ZERO, withdrawn.elapsed());
    assert_eq!(marker.sleeping(), [], "answered before the death");
    told.assert_end("cancelled CANCELLED killed").assert_killed_for("cancelled").assert_kills_trees();
    told.assert_at("/stdout/text", "begun\n").assert_at("/class", ());
    house.assert_next_call_works();
}

#[test]
fn call_that_is_cancelled_before_it_starts_never_starts() {
    let house = House::with_workers(1);
    let room = Room::new();
    let token = CancellationToken::new();
    token.cancel();
    let touch = format!("touch {}", room.file("touched").display());
    let told = house.call(shell::call(&touch, LONG).cancelled_by(token));
    told.assert_end("cancelled CANCELLED -").assert_at("/started", false).assert_at("/side_effects_possible", false);
    house.assert_next_call_works();
    assert!(!room.file("touched").exists());
}

#[test]
fn call_that_is_cancelled_in_the_queue_never_starts() {
    let house = House::with_workers(1);
    let room = Room::new();
    let marker = Marker::new(40631);
    let first_token = CancellationToken::new();
    let first = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(first_token.clone()));
    await_sleeps(&marker, 2);
    let token = CancellationToken::new();
    let touch = format!("touch {}", room.file("touched").display());
    let waiting = house.begin(shell::call(&touch, LONG).cancelled_by(token.clone()));
    sleep(Duration::from_millis(100));
    token.cancel();
    let told = house.end(waiting);
    told.assert_end("cancelled CANCELLED -").assert_at("/started", false);
    assert_eq!(marker.sleeping().len(), 2, "the call before it was touched");
    first_token.cancel();
    house.end(first).assert_end("cancelled CANCELLED killed");
    house.assert_next_call_works();
    assert!(!room.file("touched").exists());
}

#[test]
fn dropped_call_takes_its_tree_with_it() {
    let house = House::with_workers(1);
    let marker = Marker::new(40632);
    let call = house.begin(shell::call(&two_sleeps(&marker), LONG));
    await_sleeps(&marker, 2);
    call.abort();
    assert_gone(GONE, "the dropped call's tree", || marker.anywhere());
    // Its only worker is free again.
    house.assert_next_call_works();
}

#[test]
fn call_that_is_dropped_in_the_queue_leaves_the_queue() {
    let pool = PoolSettings { workers: NonZeroUsize::MIN, spares: 0, queue: 1 };
    let house = House::new(builder(1).pool(pool));
    let marker = Marker::new(40633);
    let token = CancellationToken::new();
    let first = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(token.clone()));
    await_sleeps(&marker, 2);
    for _ in 0..5 {
        let waiting = house.begin(shell::call("true", LONG));
        sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished(), "{:?}", house.end(waiting));
        waiting.abort();
        assert_within(GONE, "the end of an aborted task", || waiting.is_finished());
    }
    token.cancel();
    house.end(first).assert_end("cancelled CANCELLED killed");
    house.assert_next_call_works();
}

#[test]
fn queue_has_a_bound() {
    let pool = PoolSettings { workers: NonZeroUsize::MIN, spares: 1, queue: 2 };
    let house = House::new(builder(1).pool(pool));
    let marker = Marker::new(40634);
    let token = CancellationToken::new();
    let first = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(token.clone()));
    await_sleeps(&marker, 2);
    let mut waiting: Vec<_> = (0..7).map(|number| house.begin(shell::call(&format!("echo {number}"), LONG))).collect();
    assert_within(PATIENCE, "five refusals", || waiting.iter().filter(|call| call.is_finished()).count() == 5);
    let (refused, accepted) = waiting.drain(..).partition::<Vec<_>, _>(JoinHandle::is_finished);
    for call in refused {
        let told = house.end(call);
        told.assert_end("rejected QUEUE_FULL -").assert_at("/started", false).assert_at("/class", "transient");
        told.assert_at("/side_effects_possible", false).assert_at("/receipt", ());
    }
    token.cancel();
    house.end(first).assert_end("cancelled CANCELLED killed");
    for call in accepted {
        house.end(call).assert_end("ok - returned");
    }
}

#[test]
fn wait_in_the_queue_has_a_bound() {
    let house = House::with_workers(1);
    let marker = Marker::new(40635);
    let token = CancellationToken::new();
    let first = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(token.clone()));
    await_sleeps(&marker, 2);
    let begun = Instant::now();
    let policy = Policy { queue_timeout: Some(Duration::from_millis(300)), ..limit(LONG) };
    let told = house.call(ToolCall::command(script("true"), policy));
    let waited = begun.elapsed();
    told.assert_end("rejected QUEUE_TIMEOUT -").assert_at("/started", false).assert_at("/class", "transient");
    told.assert_at("/side_effects_possible", false).assert_at("/receipt", ());
    assert!(waited >= Duration::from_millis(300), "{waited:?}");
    assert_in_time("the wait in the queue", Duration::from_millis(300), waited);
    token.cancel();
    house.end(first).assert_end("cancelled CANCELLED killed");
    house.assert_next_call_works();
}

#[test]
fn wait_in_the_queue_is_not_taken_from_the_tools_time() {
    let house = House::with_workers(1);
    let marker = Marker::new(40636);
    let token = CancellationToken::new();
    let first = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(token.clone()));
    await_sleeps(&marker, 2);
    let second = house.begin(shell::call("echo done", 3000));
    sleep(Duration::from_millis(3200));
    token.cancel();
    let told = house.end(second);
    told.assert_end("ok - returned").assert_at("/stdout/text", "done\n");
    assert!(told.number("/timing/queue_us") > 3_000_000, "it did not wait: {}", told.number("/timing/queue_us"));
    house.end(first).assert_end("cancelled CANCELLED killed");
}

#[test]
fn deadline_is_kept_when_every_thread_of_the_runtime_is_blocked() {
    let house = House::with_workers(1);
    with_growing_limit(|limit| {
        let marker = Marker::new(40637);
        let begun = Instant::now();
        let call = house.begin(ToolCall::command(
            script(&two_sleeps(&marker)),
            Policy { timeout: Some(limit), ..Policy::default() },
        ));
        if !wait_until(limit / 2, || marker.sleeping().len() == 2) {
            house.end(call).assert_end("timed_out TOOL_TIMEOUT killed");
            return false;
        }
        // Two threads, both blocked; a third task shows that nothing gets through.
        let release = Arc::new(AtomicBool::new(false));
        let blocked = Arc::new(AtomicU64::new(0));
        for _ in 0..2 {
            let (release, blocked) = (Arc::clone(&release), Arc::clone(&blocked));
            house.runtime.spawn(async move {
                blocked.fetch_add(1, Ordering::SeqCst);
                wait_until(PATIENCE, || release.load(Ordering::SeqCst));
            });
        }
        assert_within(PATIENCE, "two blocked threads", || blocked.load(Ordering::SeqCst) == 2);
        let canary = house.runtime.spawn(async {});
        let in_time = begun.elapsed() < limit && marker.sleeping().len() == 2;
        assert_within(limit + LATENESS, "the death of the tools", || marker.sleeping().is_empty());
        let dead = begun.elapsed();
        let runtime_was_blocked = !canary.is_finished() && !call.is_finished();
        release.store(true, Ordering::SeqCst);
        let told = house.end(call);
        told.assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
        if in_time {
            assert!(runtime_was_blocked, "the runtime was not blocked");
            assert!(dead >= limit, "dead before its time: {dead:?}");
            assert_in_time("the death of the tools", limit, dead);
        }
        house.assert_next_call_works();
        in_time
    });
}

/// The outcome comes after the death, not before it and not together with it.
#[test]
fn nothing_is_alive_any_more_when_the_outcome_is_there() {
    for builder in each_strength(2) {
        let house = House::new(builder);
        for round in 0..10 {
            with_growing_limit(|limit| {
                let marker = Marker::new(40653);
                let daemon = format!("setsid -f sh -c 'while :; do :; done' {marker} >/dev/null 2>&1");
                let text = format!("for i in 1 2 3 4 5 6 7 8; do ({daemon} &); {daemon}; done; sleep {marker}");
                let token = CancellationToken::new();
                let executor = house.executor();
                let (withdrawn, limit) = (round % 2 == 1, limit / 2);
                let call = ToolCall::command(
                    script(&text),
                    Policy { timeout: (!withdrawn).then_some(limit), ..Policy::default() },
                );
                let (call, watched) = (call.cancelled_by(token.clone()), marker.clone());
                let call = house.runtime.spawn(async move {
                    let outcome = executor.call(call).await;
                    (Told::of(&outcome), watched.anywhere())
                });
                let seen = wait_until(limit * 2, || call.is_finished() || marker.anywhere().len() >= 17);
                let seen = seen && !call.is_finished();
                if withdrawn {
                    token.cancel();
                }
                let ended = house.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await });
                let (told, alive) = ended.expect("the call has an outcome").unwrap();
                told.assert_at("/termination", "killed").assert_at("/receipt/confirmed", true);
                let alive: Vec<_> = alive.iter().filter(|process| !process.is_zombie()).collect();
                assert!(alive.is_empty(), "alive when the outcome was there: {alive:#?}");
                seen
            });
        }
    }
}

#[test]
fn each_call_has_a_session_of_its_own() {
    for builder in each_strength(2) {
        let house = House::new(builder);
        let marker = Marker::new(40654);
        let token = CancellationToken::new();
        let text = format!("sleep {marker}");
        let calls = [(); 2].map(|()| house.begin(shell::call(&text, LONG).cancelled_by(token.clone())));
        let tools = await_sleeps(&marker, 2);
        let sessions = [tools[0].session, tools[1].session, zygote_above(&tools[0]).session];
        let own = Process::of(std::process::id()).unwrap().session;
        let distinct: std::collections::HashSet<_> = sessions.iter().chain([&own]).collect();
        assert_eq!(distinct.len(), 4, "two tools, the zygote, this process: {sessions:?} {own}");
        token.cancel();
        for call in calls {
            house.end(call).assert_end("cancelled CANCELLED killed");
        }
    }
}

/// A tool may signal the whole of its process group; that is not more than its own call.
#[test]
fn tool_that_kills_its_process_group_harms_no_other_call() {
    for builder in each_strength(2) {
        let house = House::new(builder);
        let marker = Marker::new(40655);
        let token = CancellationToken::new();
        let beside = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(token.clone()));
        await_sleeps(&marker, 2);
        let told = house.call(shell::call("printf half; kill -KILL 0; sleep 20", LONG));
        assert!(["crashed TOOL_CRASHED returned", "failed WORKER_LOST killed"].contains(&&*told.end()), "{:#}", told.0);
        told.assert_at("/stdout/text", "half");
        assert_eq!(marker.sleeping().len(), 2, "another call was touched");
        token.cancel();
        house.end(beside).assert_end("cancelled CANCELLED killed");
        house.assert_next_call_works();
    }
}

#[test]
fn killed_zygote_loses_the_calls_in_flight_and_no_other() {
    for builder in each_strength(2) {
        let house = House::new(builder);
        let marker = Marker::new(40638);
        let calls = [(); 2].map(|()| house.begin(shell::call(&two_sleeps(&marker), LONG)));
        let tools = await_sleeps(&marker, 4);
        let waiting = house.begin(shell::call("echo waited", LONG));
        let zygote = zygote_above(&tools[0]);
        let below = process::descendants(zygote.pid);
        assert!(below.len() >= 6, "{below:#?}");
        zygote.kill();
        for call in calls {
            let told = house.end(call);
            told.assert_end("failed WORKER_LOST killed").assert_at("/class", "transient");
            told.assert_at("/started", true).assert_at("/side_effects_possible", true);
            told.assert_at("/receipt/confirmed", true).assert_at("/receipt/survivors", 0);
        }
        assert_eq!(marker.sleeping(), [], "answered before the death");
        assert_gone(GONE, "tools of the killed zygote", || marker.anywhere());
        assert_gone(GONE, "all below the killed zygote", || {
            below.iter().filter(|process| process.is_alive()).cloned().collect()
        });
        assert_reaped(&zygote);
        // A call that had no worker yet has lost nothing.
        house.end(waiting).assert_end("ok - returned").assert_at("/stdout/text", "waited\n");
        house.assert_next_call_works();
    }
}

#[track_caller]
fn assert_reaped(zygote: &Process) {
    assert_gone(GONE, "the killed zygote", || {
        Some(zygote).filter(|zygote| zygote.is_still_there()).into_iter().collect()
    });
}

#[test]
fn zygote_killed_while_idle_costs_no_call() {
    for builder in each_strength(2) {
        let house = House::new(builder);
        let marker = Marker::new(40639);
        for _ in 0..5 {
            let token = CancellationToken::new();
            let call = house.begin(shell::call(&format!("sleep {marker}"), LONG).cancelled_by(token.clone()));
            let zygote = zygote_above(&await_sleeps(&marker, 1)[0]);
            token.cancel();
            house.end(call).assert_end("cancelled CANCELLED killed");
            zygote.kill();
            assert_reaped(&zygote);
            // At most a call that is handed to one of its workers just now is lost.
            assert_within(GONE, "a call that is not lost", || {
                let told = house.call(shell::call("echo next", LONG));
                let lost = told.at("/code") == "WORKER_LOST";
                if !lost {
                    told.assert_end("ok - returned").assert_at("/stdout/text", "next\n");
                }
                !lost
            });
        }
    }
}

#[test]
fn zygotes_and_workers_killed_again_and_again_cost_calls_and_leave_nothing() {
    let mut random = Random::for_test("zygotes_and_workers_killed_again_and_again_cost_calls_and_leave_nothing");
    for builder in each_strength(4) {
        let house = House::new(builder);
        let marker = Marker::new(40652);
        let enough = Arc::new(AtomicBool::new(false));
        let lanes: Vec<_> = (0..6)
            .map(|lane| {
                let (executor, enough, marker) = (house.executor(), Arc::clone(&enough), marker.clone());
                let mut random = Random::seeded(random.next());
                house.runtime.spawn(async move {
                    let mut lost = 0;
                    for number in 0.. {
                        if enough.load(Ordering::SeqCst) {
                            break;
                        }
                        let planned = Planned::draw(&mut random, 1000 * lane + number, &marker);
                        lost += usize::from(planned.run_among_losses(&executor).await?);
                    }
                    Ok::<_, String>(lost)
                })
            })
            .collect();
        for _ in 0..15 {
            // One at a time: a guard and its zygote killed together is more than a machine without namespaces can bear.
            sleep(Duration::from_millis(50) + random.milliseconds_below(60));
            assert_within(PATIENCE, "somebody to kill, or a wrong outcome", || {
                lanes.iter().any(JoinHandle::is_finished) || kill_above(&marker, &mut random)
            });
        }
        enough.store(true, Ordering::SeqCst);
        let ended = house.runtime.block_on(async { tokio::time::timeout(PATIENCE, futures_in_order(lanes)).await });
        let lost: usize = ended
            .expect("each call has an outcome")
            .into_iter()
            .map(|lost| lost.unwrap_or_else(|wrong| panic!("{wrong}")))
            .sum();
        assert!(lost > 0, "no call was lost");
        assert_gone(GONE, "tools", || marker.anywhere());
        house.assert_next_call_works();
        let report = house.runtime.block_on(async { tokio::time::timeout(PATIENCE, house.executor().close()).await });
        assert_eq!(report.unwrap().unconfirmed, 0);
    }
}

async fn futures_in_order<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("a task does not panic"));
    }
    results
}

/// Kills the zygote, a worker, or a guard above one of the tools that sleep now. False when there was none any more.
fn kill_above(marker: &Marker, random: &mut Random) -> bool {
    let Some(tool) = marker.sleeping().pop() else { return false };
    let Some(mut line) = tool.line_up_to(std::process::id()) else { return false };
    line.retain(|process| process.arguments.first().is_some_and(|name| name == "toolexec-zygote"));
    if line.is_empty() {
        return false;
    }
    let victim = line.swap_remove(usize::try_from(random.below(line.len() as u64)).unwrap());
    std::panic::catch_unwind(|| victim.kill()).is_ok()
}

#[test]
fn worker_killed_from_outside_loses_its_call_and_no_other() {
    for which in [0, 1] {
        for builder in each_strength(2) {
            let house = House::new(builder);
            let (lost, kept) = (Marker::new(40640), Marker::new(40641));
            let token = CancellationToken::new();
            let beside = house.begin(shell::call(&two_sleeps(&kept), LONG).cancelled_by(token.clone()));
            let call = house.begin(shell::call(&format!("echo begun; {}", two_sleeps(&lost)), LONG));
            let tools = await_sleeps(&lost, 2);
            await_sleeps(&kept, 2);
            // The worker itself, and its guard where there is one.
            if let Some(victim) = workers_above(&tools[0]).get(which) {
                victim.kill();
                let told = house.end(call);
                told.assert_end("failed WORKER_LOST killed").assert_at("/class", "transient");
                told.assert_at("/stdout/text", "begun\n").assert_at("/receipt/confirmed", true);
                assert_eq!(lost.sleeping(), [], "answered before the death");
            } else {
                call.abort();
            }
            assert_gone(GONE, "the killed worker's tools", || lost.anywhere());
            assert_eq!(kept.sleeping().len(), 2, "another call was touched");
            token.cancel();
            house.end(beside).assert_end("cancelled CANCELLED killed");
            house.assert_next_call_works();
        }
    }
}

/// Case O05.
#[test]
fn many_timeouts_leave_no_zombie_and_need_no_further_call() {
    for builder in each_strength(4) {
        let house = House::new(builder);
        let marker = Marker::new(40605);
        let token = CancellationToken::new();
        let first = house.begin(shell::call(&two_sleeps(&marker), LONG).cancelled_by(token.clone()));
        let zygote = zygote_above(&await_sleeps(&marker, 2)[0]);
        token.cancel();
        house.end(first).assert_end("cancelled CANCELLED killed");
        let base = settled_descendants(zygote.pid);
        let room = Room::new();
        let text = format!("printf . >>{}; {}", room.file("footprints").display(), two_sleeps(&marker));
        let calls: Vec<_> = (0..50).map(|_| house.begin(shell::call(&text, 300))).collect();
        for call in calls {
            house.end(call).assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
        }
        let begun = std::fs::metadata(room.file("footprints")).map_or(0, |metadata| metadata.len());
        assert!(begun > 10, "only {begun} tools of 50 had begun");
        assert_gone(GONE, "tools", || marker.anywhere());
        assert_gone(GONE, "zombies", || {
            process::descendants(zygote.pid).into_iter().filter(Process::is_zombie).collect()
        });
        assert_within(PATIENCE, &format!("{base} processes"), || process::descendants(zygote.pid).len() == base);
    }
}

/// The number of a process's descendants, once it has stopped changing.
fn settled_descendants(pid: u32) -> usize {
    await_some(PATIENCE, "a number of processes that stays", || {
        let before = process::descendants(pid);
        sleep(GONE / 2);
        (process::descendants(pid) == before).then_some(before.len())
    })
}

/// Case O13, first half.
#[test]
fn tool_that_removes_its_working_directory_harms_no_later_call() {
    let house = House::with_workers(1);
    for worker in [WorkerPolicy::Fresh, WorkerPolicy::Reuse { max_calls: NonZeroU32::new(10).unwrap() }] {
        let call = |text: &str| ToolCall::command(script(text), Policy { worker, ..limit(LONG) });
        for _ in 0..3 {
            let told = house.call(call(r#"rm -r "$PWD"; echo gone"#));
            told.assert_end("ok - returned").assert_at("/stdout/text", "gone\n");
            let told = house.call(call(r#"echo again; cd "$PWD" && pwd >file && cat file >/dev/null"#));
            told.assert_end("ok - returned").assert_at("/stdout/text", "again\n");
        }
    }
}

#[test]
fn scratch_directory_is_the_calls_own_and_is_removed() {
    let house = House::with_workers(2);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let text =
            "pwd -P; ls -A; touch file .hidden; mkdir -p deep/er locked; touch locked/in; chmod 0 locked; ln -s / link";
        let told = house.call(shell::call(text, LONG));
        told.assert_end("ok - returned");
        let lines: Vec<_> = told.text("/stdout/text").lines().collect();
        let [directory] = lines[..] else { panic!("the scratch directory is not empty: {lines:?}") };
        assert!(!seen.contains(&directory.to_owned()), "{directory} was given twice");
        assert_gone(GONE, "scratch directories", || {
            Some(directory).filter(|path| Path::new(path).exists()).into_iter().collect()
        });
        seen.push(directory.to_owned());
    }
}

#[test]
fn reused_worker_serves_its_calls_and_no_more() {
    let house = House::with_workers(1);
    let worker = WorkerPolicy::Reuse { max_calls: NonZeroU32::new(3).unwrap() };
    let directories: Vec<String> = (0..7)
        .map(|_| {
            let told = house.call(ToolCall::command(script("pwd -P"), Policy { worker, ..limit(LONG) }));
            told.assert_end("ok - returned").text("/stdout/text").to_owned()
        })
        .collect();
    // A worker has one scratch directory: three calls, three calls, and one more.
    let runs: Vec<usize> = directories.chunk_by(|left, right| left == right).map(<[_]>::len).collect();
    assert_eq!(runs, [3, 3, 1], "{directories:#?}");
}

#[test]
fn reused_worker_hands_nothing_on_from_call_to_call() {
    let house = House::with_workers(1);
    let marker = Marker::new(40642);
    let worker = WorkerPolicy::Reuse { max_calls: NonZeroU32::new(10).unwrap() };
    let call = |text: &str| house.call(ToolCall::command(script(text), Policy { worker, ..limit(LONG) }));
    let told = call(&format!(
        "echo left >file; echo in $PWD; (sleep {marker} &); setsid -f sleep {marker}; export LEAK=1; umask 0; cd /"
    ));
    told.assert_end("ok - returned").assert_at("/receipt/background_killed", 2);
    assert_gone(GONE, "what the first call had left", || marker.anywhere());
    let told = call("ls -A; echo \"leak $LEAK\"; umask; pwd");
    told.assert_end("ok - returned");
    let lines: Vec<&str> = told.text("/stdout/text").lines().collect();
    let [leak, umask, directory] = lines[..] else { panic!("a file was handed on: {lines:?}") };
    assert_eq!(leak, "leak ");
    assert_ne!(umask, "0000");
    assert_ne!(directory, "/");
}

#[test]
fn reused_worker_is_not_used_again_after_a_timeout_or_a_withdrawal() {
    let house = House::with_workers(1);
    let worker = WorkerPolicy::Reuse { max_calls: NonZeroU32::new(100).unwrap() };
    let policy = |milliseconds| Policy { worker, ..limit(milliseconds) };
    let here = || house.call(ToolCall::command(script("pwd -P"), policy(LONG))).text("/stdout/text").to_owned();
    let first = here();
    assert_eq!(here(), first, "the worker was not used again");
    house.call(ToolCall::command(script("sleep 20"), policy(100))).assert_end("timed_out TOOL_TIMEOUT killed");
    let second = here();
    assert_ne!(second, first);
    let marker = Marker::new(40643);
    let token = CancellationToken::new();
    let call = ToolCall::command(script(&format!("sleep {marker}")), policy(LONG)).cancelled_by(token.clone());
    let call = house.begin(call);
    await_sleeps(&marker, 1);
    token.cancel();
    house.end(call).assert_end("cancelled CANCELLED killed");
    assert!(![first, second].contains(&here()));
}

/// Case O22 for commands: with a time limit that is as long as the work, either answer may come, but never another's.
#[test]
fn late_answer_never_reaches_the_next_call() {
    let house = House::with_workers(1);
    let worker = WorkerPolicy::Reuse { max_calls: NonZeroU32::new(1000).unwrap() };
    let mut ends = [0, 0];
    for round in 0..60_u64 {
        let policy = Policy { worker, ..limit(70 + round) };
        let late = house.call(ToolCall::command(script(&format!("sleep 0.1; echo late {round}")), policy));
        match late.end().as_str() {
            "timed_out TOOL_TIMEOUT killed" => ends[0] += 1,
            _ => {
                late.assert_end("ok - returned").assert_at("/stdout/text", format!("late {round}\n"));
                ends[1] += 1;
            }
        }
        let next =
            house.call(ToolCall::command(script(&format!("echo next {round}")), Policy { worker, ..limit(LONG) }));
        next.assert_end("ok - returned").assert_at("/stdout/text", format!("next {round}\n"));
    }
    assert!(ends[0] > 0, "no call was late: {ends:?}");
}

#[test]
fn closed_executor_kills_what_runs_and_refuses_what_comes() {
    let house = House::with_workers(2);
    let marker = Marker::new(40644);
    let room = Room::new();
    let scratch = house.call(shell::call("pwd -P", LONG));
    let running = house.begin(shell::call(&two_sleeps(&marker), LONG));
    let tools = await_sleeps(&marker, 2);
    let zygote = zygote_above(&tools[0]);
    let below = process::descendants(zygote.pid);
    let executor = house.executor();
    let report = house.runtime.block_on(async { tokio::time::timeout(PATIENCE, executor.close()).await }).unwrap();
    assert_eq!(report.unconfirmed, 0);
    let told = house.end(running);
    told.assert_at("/status", "failed").assert_at("/code", "CLOSED").assert_killed_for("closed");
    assert_gone(GONE, "the closed executor's processes", || {
        below.iter().chain([&zygote]).filter(|process| process.is_still_there()).cloned().collect()
    });
    let touch = format!("touch {}", room.file("touched").display());
    let told = house.call(shell::call(&touch, LONG));
    told.assert_end("failed CLOSED -").assert_at("/started", false).assert_at("/class", "environment");
    assert!(!room.file("touched").exists());
    assert_eq!(scratch_left(scratch.text("/stdout/text").trim_end().as_ref()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn dropped_executor_leaves_nothing() {
    let mut house = House::with_workers(2);
    let marker = Marker::new(40645);
    let scratch = house.call(shell::call("pwd -P", LONG));
    let running = house.begin(shell::call(&two_sleeps(&marker), LONG));
    let tools = await_sleeps(&marker, 2);
    let zygote = zygote_above(&tools[0]);
    let below = process::descendants(zygote.pid);
    running.abort();
    assert_within(PATIENCE, "the end of an aborted task", || running.is_finished());
    house.executor = None;
    assert_gone(GONE, "the dropped executor's processes", || {
        below.iter().chain([&zygote]).filter(|process| process.is_still_there()).cloned().collect()
    });
    let scratch = scratch.text("/stdout/text").trim_end();
    assert_gone(GONE, "the dropped executor's directories", || scratch_left(scratch.as_ref()));
}

#[test]
fn runtime_that_is_shut_down_takes_the_tools_along() {
    let marker = Marker::new(40646);
    let mut house = House::with_workers(2);
    drop(house.begin(shell::call(&two_sleeps(&marker), LONG)));
    let tools = await_sleeps(&marker, 2);
    let zygote = zygote_above(&tools[0]);
    house.executor = None;
    drop(house);
    assert_gone(GONE, "tools of a runtime that is gone", || marker.anywhere());
    assert_gone(GONE, "the zygote of a runtime that is gone", || {
        Some(&zygote).filter(|zygote| zygote.is_still_there()).into_iter().collect()
    });
}

/// A kill bound that no kernel can keep stands for a process that does not die.
#[test]
fn death_that_is_not_confirmed_in_time_is_called_unkillable() {
    let house = House::new(builder(2).kill_bound(Duration::from_nanos(1)));
    // A tree of some size takes its time to die; but the watchdog itself may be held up, and then it is dead in time.
    for _ in 0..20 {
        let marker = Marker::new(40647);
        let text =
            format!("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep {marker} & done; wait");
        let token = CancellationToken::new();
        let call = house.begin(shell::call(&text, LONG).cancelled_by(token.clone()));
        await_sleeps(&marker, 20);
        token.cancel();
        let told = house.end(call);
        assert_gone(GONE, "what was called unkillable", || marker.anywhere());
        // The pool goes on, with that worker or without it.
        house.assert_next_call_works();
        if told.at("/status") == "cancelled" {
            told.assert_end("cancelled CANCELLED killed");
            continue;
        }
        told.assert_end("unkillable UNKILLABLE -")
            .assert_at("/receipt/confirmed", false)
            .assert_at("/class", "environment");
        told.assert_at("/side_effects_possible", true).assert_at("/started", true);
        let said = told.0.to_string();
        assert!(
            !said.replace("background_killed", "").contains("killed"),
            "an unconfirmed death is called one: {said}"
        );
        return;
    }
    panic!("each death was confirmed within a nanosecond");
}

#[test]
fn kill_weaker_than_demanded_is_refused() {
    let house = House::new(builder(1).strength(KillStrength::Subreaper));
    let strength = house.runtime.block_on(house.executor().kill_strength()).unwrap();
    assert_eq!(strength, KillStrength::Subreaper);
    let policy = |kill| Policy { kill, ..limit(LONG) };
    let told = house.call(ToolCall::command(script("true"), policy(KillStrength::PidNamespace)));
    told.assert_end("failed CONTAINMENT_UNAVAILABLE -").assert_at("/started", false).assert_at("/class", "environment");
    let told = house.call(ToolCall::command(script("true"), policy(KillStrength::Subreaper)));
    told.assert_end("ok - returned").assert_at("/receipt/strength", "subreaper");
}

#[test]
fn streamed_output_comes_while_the_tool_runs_and_is_whole() {
    let house = House::with_workers(1);
    let marker = Marker::new(40648);
    let token = CancellationToken::new();
    let (sender, mut chunks) = mpsc::channel(1);
    let mut call = shell::call(&format!("echo one; echo two >&2; sleep {marker}"), LONG).cancelled_by(token.clone());
    call.options.output = OutputMode::Stream(sender);
    let call = house.begin(call);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    house.runtime.block_on(async {
        while stdout != b"one\n" || stderr != b"two\n" {
            let chunk = tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap().unwrap();
            match chunk.stream {
                OutputStream::Stdout => stdout.extend_from_slice(&chunk.bytes),
                OutputStream::Stderr => stderr.extend_from_slice(&chunk.bytes),
            }
        }
    });
    await_sleeps(&marker, 1);
    token.cancel();
    house.end(call).assert_end("cancelled CANCELLED killed");
    assert!(house.runtime.block_on(chunks.recv()).is_none(), "the stream has no end");
}

#[test]
fn reader_that_is_dropped_ends_the_call() {
    let house = House::with_workers(1);
    let marker = Marker::new(40649);
    let (sender, chunks) = mpsc::channel(1);
    let mut call = shell::call(&format!("setsid -f sleep {marker}; yes"), LONG);
    call.options.output = OutputMode::Stream(sender);
    let call = house.begin(call);
    await_sleeps(&marker, 1);
    drop(chunks);
    let told = house.end(call);
    told.assert_end("cancelled CANCELLED killed").assert_killed_for("reader_gone");
    assert_gone(GONE, "the call whose reader is gone", || marker.anywhere());
    house.assert_next_call_works();
}

#[test]
fn reader_that_does_not_read_delays_no_kill() {
    let house = House::with_workers(1);
    let marker = Marker::new(40651);
    let (sender, mut chunks) = mpsc::channel(1);
    let limit = Duration::from_secs(3);
    let mut call = shell::call(&format!("setsid -f sleep {marker}; yes"), 3000);
    call.options.output = OutputMode::Stream(sender);
    let begun = Instant::now();
    let call = house.begin(call);
    await_sleeps(&marker, 1);
    assert_within(limit + LATENESS, "the tool's end while nobody reads", || marker.anywhere().is_empty());
    assert!(begun.elapsed() >= limit, "dead before its time: {:?}", begun.elapsed());
    assert_in_time("the tool's end", limit, begun.elapsed());
    // Now somebody reads: what was on its way, and then the end.
    let bytes = house.runtime.block_on(async {
        let mut bytes = 0;
        while let Some(chunk) = tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap() {
            bytes += chunk.bytes.len();
        }
        bytes
    });
    assert!(bytes > 0 && bytes < 16 * 1024 * 1024, "{bytes} bytes were kept for the reader");
    house.end(call).assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
}

#[test]
fn many_executors_start_and_live_side_by_side() {
    let runtime = runtime();
    runtime.block_on(async {
        for _ in 0..15 {
            let mut calls = JoinSet::new();
            for number in 0..8 {
                calls.spawn(async move {
                    let executor = builder(1).start().await.expect("an executor starts");
                    let told = Told::of(&executor.call(shell::call(&format!("echo {number}"), LONG)).await);
                    told.assert_end("ok - returned").assert_at("/stdout/text", format!("{number}\n"));
                    assert_eq!(executor.close().await.unconfirmed, 0);
                });
            }
            calls.join_all().await;
        }
    });
}

#[test]
fn single_threaded_runtime_will_do() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let executor = builder(2).start().await.expect("an executor starts");
        let calls = async {
            tokio::join!(
                executor.call(shell::call("sleep 20", 300)),
                executor.call(shell::call("echo quick", LONG)),
                executor.call(shell::call("exit 4", LONG)),
            )
        };
        let (late, quick, failed) = tokio::time::timeout(PATIENCE, calls).await.expect("three outcomes");
        Told::of(&late).assert_end("timed_out TOOL_TIMEOUT killed");
        Told::of(&quick).assert_end("ok - returned").assert_at("/stdout/text", "quick\n");
        Told::of(&failed).assert_end("error TOOL_ERROR returned");
        assert_eq!(executor.close().await.unconfirmed, 0);
    });
}
