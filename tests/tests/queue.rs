//! Waiting for a worker: bounded in number and in time, and no part of the tool's own time.

use std::num::NonZeroUsize;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolexec::PoolSettings;
use toolexec::call::{Policy, ToolCall};
use toolexec_tests::bound::{GONE, PATIENCE, assert_in_time, assert_within};
use toolexec_tests::house::{House, LONG, await_sleeps, builder, two_sleeps};
use toolexec_tests::marker::Marker;
use toolexec_tests::room::Room;
use toolexec_tests::shell::{self, limit, script};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn queue_has_a_bound() {
    let pool = PoolSettings { workers: NonZeroUsize::MIN, spares: 1, queue: 2 };
    let house = House::new(builder(PROGRAM, 1).pool(pool));
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
    let house = House::new(builder(PROGRAM, 1));
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
    let house = House::new(builder(PROGRAM, 1));
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
fn call_that_is_cancelled_in_the_queue_never_starts() {
    let house = House::new(builder(PROGRAM, 1));
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
fn call_that_is_dropped_in_the_queue_leaves_the_queue() {
    let pool = PoolSettings { workers: NonZeroUsize::MIN, spares: 0, queue: 1 };
    let house = House::new(builder(PROGRAM, 1).pool(pool));
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
