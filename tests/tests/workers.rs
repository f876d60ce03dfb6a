//! Fresh and reused workers: a directory of their own, and nothing that one call hands on to the next.

use std::num::NonZeroU32;
use std::path::Path;
use tokio_util::sync::CancellationToken;
use toolexec::call::{Policy, ToolCall, WorkerPolicy};
use toolexec_tests::bound::{GONE, assert_gone};
use toolexec_tests::house::{House, LONG, await_sleeps, builder};
use toolexec_tests::marker::Marker;
use toolexec_tests::shell::{self, limit, script};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn scratch_directory_is_the_calls_own_and_is_removed() {
    let house = House::new(builder(PROGRAM, 2));
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

/// Case O13, first half.
#[test]
fn tool_that_removes_its_working_directory_harms_no_later_call() {
    let house = House::new(builder(PROGRAM, 1));
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
fn reused_worker_serves_its_calls_and_no_more() {
    let house = House::new(builder(PROGRAM, 1));
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
    let house = House::new(builder(PROGRAM, 1));
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
    let house = House::new(builder(PROGRAM, 1));
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
    let house = House::new(builder(PROGRAM, 1));
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
