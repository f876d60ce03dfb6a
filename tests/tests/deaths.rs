//! A kill and its confirmation: on time whatever the runtime does, before the outcome, and never claimed without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolexec::call::{Policy, ToolCall};
use toolexec_tests::bound::{
    GONE, LATENESS, PATIENCE, assert_gone, assert_in_time, assert_within, await_some, wait_until, with_growing_limit,
};
use toolexec_tests::house::{House, LONG, await_sleeps, builder, each_strength, two_sleeps, zygote_above};
use toolexec_tests::marker::Marker;
use toolexec_tests::process::{self, Process};
use toolexec_tests::room::Room;
use toolexec_tests::shell::{self, script};
use toolexec_tests::told::Told;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn deadline_is_kept_when_every_thread_of_the_runtime_is_blocked() {
    let house = House::new(builder(PROGRAM, 1));
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
    for builder in each_strength(PROGRAM, 2) {
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

/// A kill bound that no kernel can keep stands for a process that does not die.
#[test]
fn death_that_is_not_confirmed_in_time_is_called_unkillable() {
    let house = House::new(builder(PROGRAM, 2).kill_bound(Duration::from_nanos(1)));
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

/// Case O05.
#[test]
fn many_timeouts_leave_no_zombie_and_need_no_further_call() {
    for builder in each_strength(PROGRAM, 4) {
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
