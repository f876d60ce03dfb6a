//! The end of an executor, orderly or not: nothing of it is left.

use std::path::PathBuf;
use toolexec_tests::bound::{GONE, PATIENCE, assert_gone, assert_within};
use toolexec_tests::house::{House, LONG, await_sleeps, builder, two_sleeps, zygote_above};
use toolexec_tests::marker::Marker;
use toolexec_tests::process;
use toolexec_tests::room::{Room, scratch_left};
use toolexec_tests::shell;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn closed_executor_kills_what_runs_and_refuses_what_comes() {
    let house = House::new(builder(PROGRAM, 2));
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
    assert_eq!(scratch_left(scratch.text("/stdout/text").trim_end().as_ref()), Vec::<PathBuf>::new());
}

#[test]
fn dropped_executor_leaves_nothing() {
    let mut house = House::new(builder(PROGRAM, 2));
    let marker = Marker::new(40645);
    let scratch = house.call(shell::call("pwd -P", LONG));
    let running = house.begin(shell::call(&two_sleeps(&marker), LONG));
    let tools = await_sleeps(&marker, 2);
    let zygote = zygote_above(&tools[0]);
    let below = process::descendants(zygote.pid);
    running.abort();
    assert_within(PATIENCE, "the end of an aborted task", || running.is_finished());
    house.drop_executor();
    assert_gone(GONE, "the dropped executor's processes", || {
        below.iter().chain([&zygote]).filter(|process| process.is_still_there()).cloned().collect()
    });
    let scratch = scratch.text("/stdout/text").trim_end();
    assert_gone(GONE, "the dropped executor's directories", || scratch_left(scratch.as_ref()));
}

#[test]
fn runtime_that_is_shut_down_takes_the_tools_along() {
    let marker = Marker::new(40646);
    let mut house = House::new(builder(PROGRAM, 2));
    drop(house.begin(shell::call(&two_sleeps(&marker), LONG)));
    let tools = await_sleeps(&marker, 2);
    let zygote = zygote_above(&tools[0]);
    house.drop_executor();
    drop(house);
    assert_gone(GONE, "tools of a runtime that is gone", || marker.anywhere());
    assert_gone(GONE, "the zygote of a runtime that is gone", || {
        Some(&zygote).filter(|zygote| zygote.is_still_there()).into_iter().collect()
    });
}
