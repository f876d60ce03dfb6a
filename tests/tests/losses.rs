//! Zygotes and workers that somebody else kills: their calls are lost, and no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolexec_tests::bound::{GONE, PATIENCE, assert_gone, assert_within};
use toolexec_tests::house::{
    House, LONG, await_sleeps, each_strength, is_of_toolexec, two_sleeps, workers_above, zygote_above,
};
use toolexec_tests::marker::Marker;
use toolexec_tests::mix::Planned;
use toolexec_tests::process::{self, Process};
use toolexec_tests::random::Random;
use toolexec_tests::shell;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn killed_zygote_loses_the_calls_in_flight_and_no_other() {
    for builder in each_strength(PROGRAM, 2) {
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

#[test]
fn zygote_killed_while_idle_costs_no_call() {
    for builder in each_strength(PROGRAM, 2) {
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
fn worker_killed_from_outside_loses_its_call_and_no_other() {
    for which in [0, 1] {
        for builder in each_strength(PROGRAM, 2) {
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

#[test]
fn zygotes_and_workers_killed_again_and_again_cost_calls_and_leave_nothing() {
    let mut random = Random::for_test("zygotes_and_workers_killed_again_and_again_cost_calls_and_leave_nothing");
    for builder in each_strength(PROGRAM, 4) {
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

#[track_caller]
fn assert_reaped(zygote: &Process) {
    assert_gone(GONE, "the killed zygote", || {
        Some(zygote).filter(|zygote| zygote.is_still_there()).into_iter().collect()
    });
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
    line.retain(is_of_toolexec);
    if line.is_empty() {
        return false;
    }
    let victim = line.swap_remove(usize::try_from(random.below(line.len() as u64)).unwrap());
    std::panic::catch_unwind(|| victim.kill()).is_ok()
}
