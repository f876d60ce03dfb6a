//! The promises of the library: one outcome a call, and what a caller may do meanwhile.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolexec::KillStrength;
use toolexec::call::{CallId, Policy, ToolCall};
use toolexec_tests::bound::{GONE, PATIENCE, assert_gone, assert_in_time};
use toolexec_tests::house::{House, LONG, await_sleeps, builder, each_strength, runtime, two_sleeps, zygote_above};
use toolexec_tests::marker::Marker;
use toolexec_tests::process::Process;
use toolexec_tests::room::Room;
use toolexec_tests::shell::{self, limit, script};
use toolexec_tests::told::Told;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn each_way_to_end_has_its_outcome() {
    let house = House::new(builder(PROGRAM, 2));
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
    let house = House::new(builder(PROGRAM, 1));
    let mut call = shell::call("true", LONG);
    call.id = CallId::new("call_17");
    house.call(call).assert_at("/call_id", "call_17");
    let first = house.call(shell::call("true", LONG));
    let second = house.call(shell::call("true", LONG));
    assert_ne!(first.text("/call_id"), second.text("/call_id"));
}

#[test]
fn time_limit_of_zero_is_refused_and_starts_nothing() {
    let house = House::new(builder(PROGRAM, 1));
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
fn kill_weaker_than_demanded_is_refused() {
    let house = House::new(builder(PROGRAM, 1).strength(KillStrength::Subreaper));
    let strength = house.runtime.block_on(house.executor().kill_strength()).unwrap();
    assert_eq!(strength, KillStrength::Subreaper);
    let policy = |kill| Policy { kill, ..limit(LONG) };
    let told = house.call(ToolCall::command(script("true"), policy(KillStrength::PidNamespace)));
    told.assert_end("failed CONTAINMENT_UNAVAILABLE -").assert_at("/started", false).assert_at("/class", "environment");
    let told = house.call(ToolCall::command(script("true"), policy(KillStrength::Subreaper)));
    told.assert_end("ok - returned").assert_at("/receipt/strength", "subreaper");
}

#[test]
fn cancelled_call_takes_its_tree_with_it() {
    let house = House::new(builder(PROGRAM, 1));
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
    let house = House::new(builder(PROGRAM, 1));
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
fn dropped_call_takes_its_tree_with_it() {
    let house = House::new(builder(PROGRAM, 1));
    let marker = Marker::new(40632);
    let call = house.begin(shell::call(&two_sleeps(&marker), LONG));
    await_sleeps(&marker, 2);
    call.abort();
    assert_gone(GONE, "the dropped call's tree", || marker.anywhere());
    // Its only worker is free again.
    house.assert_next_call_works();
}

#[test]
fn each_call_has_a_session_of_its_own() {
    for builder in each_strength(PROGRAM, 2) {
        let house = House::new(builder);
        let marker = Marker::new(40654);
        let token = CancellationToken::new();
        let text = format!("sleep {marker}");
        let calls = [(); 2].map(|()| house.begin(shell::call(&text, LONG).cancelled_by(token.clone())));
        let tools = await_sleeps(&marker, 2);
        let sessions = [tools[0].session, tools[1].session, zygote_above(&tools[0]).session];
        let own = Process::of(std::process::id()).unwrap().session;
        let distinct: HashSet<_> = sessions.iter().chain([&own]).collect();
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
    for builder in each_strength(PROGRAM, 2) {
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
fn single_threaded_runtime_will_do() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let executor = builder(PROGRAM, 2).start().await.expect("an executor starts");
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

#[test]
fn many_executors_start_and_live_side_by_side() {
    let runtime = runtime();
    runtime.block_on(async {
        for _ in 0..15 {
            let mut calls = JoinSet::new();
            for number in 0..8 {
                calls.spawn(async move {
                    let executor = builder(PROGRAM, 1).start().await.expect("an executor starts");
                    let told = Told::of(&executor.call(shell::call(&format!("echo {number}"), LONG)).await);
                    told.assert_end("ok - returned").assert_at("/stdout/text", format!("{number}\n"));
                    assert_eq!(executor.close().await.unconfirmed, 0);
                });
            }
            calls.join_all().await;
        }
    });
}
