//! A worker that breaks the protocol costs its own call and nothing else.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;
use toolexec::call::{Policy, ToolCall, WorkerPolicy};
use toolexec::{Executor, PoolSettings, WorkerProgram};
use toolexec_tests::shell;
use toolexec_tests::told::Told;

const LOST: &[&str] = &["failed WORKER_LOST killed"];
const TIMED_OUT: &[&str] = &["timed_out TOOL_TIMEOUT killed"];

/// An executor of two workers that all are `rogue_worker`s.
async fn executor() -> Executor {
    let pool = PoolSettings { workers: NonZeroUsize::new(2).unwrap(), spares: 2, ..PoolSettings::default() };
    let program = WorkerProgram::at(env!("CARGO_BIN_EXE_rogue_worker"));
    Executor::builder().program(program).pool(pool).start().await.expect("an executor starts")
}

async fn call(executor: &Executor, behaviour: &str, number: i32, worker: WorkerPolicy) -> Told {
    // Always the same command: workers that serve several calls serve one tool only.
    let command = shell::program("rogue", &[behaviour, &number.to_string()]);
    let policy = Policy { timeout: Some(Duration::from_secs(2)), worker, ..Policy::default() };
    Told::of(&executor.call(ToolCall::command(command, policy)).await)
}

/// A worker that does this ends like that; a call beside it and the calls after it have their own right answers. With
/// fresh workers, and with workers that serve several calls.
#[track_caller]
fn check(behaviour: &str, expected: &[&str]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for worker in [WorkerPolicy::Fresh, WorkerPolicy::Reuse { max_calls: NonZeroU32::new(100).unwrap() }] {
            let executor = executor().await;
            call(&executor, "honest", 3, worker)
                .await
                .assert_end("error TOOL_ERROR returned")
                .assert_at("/exit/code", 3);
            let (beside, told) =
                tokio::join!(call(&executor, "slow", 4, worker), call(&executor, behaviour, 5, worker));
            assert!(expected.contains(&&*told.end()), "{:#}", told.0);
            beside.assert_end("error TOOL_ERROR returned").assert_at("/exit/code", 4);
            for number in 6..10 {
                let next = call(&executor, "honest", number, worker).await;
                next.assert_end("error TOOL_ERROR returned").assert_at("/exit/code", number);
            }
            assert_eq!(executor.close().await.unconfirmed, 0);
        }
    });
}

#[test]
fn message_that_cannot_be_decoded_loses_the_worker() {
    check("garbage", LOST);
}

#[test]
fn text_instead_of_a_frame_loses_the_worker() {
    check("babble", LOST);
}

#[test]
fn frame_of_four_gibibytes_loses_the_worker() {
    check("huge-frame", LOST);
}

#[test]
fn frame_that_ends_too_early_loses_the_worker() {
    check("truncated-frame", LOST);
}

#[test]
fn frame_that_never_ends_runs_into_the_deadline() {
    check("unfinished-frame", TIMED_OUT);
}

#[test]
fn bytes_after_the_message_lose_the_worker() {
    check("trailing-bytes", LOST);
}

#[test]
fn reply_to_another_call_loses_the_worker() {
    check("wrong-nonce", LOST);
}

#[test]
fn worker_that_ends_without_a_reply_is_lost() {
    // It ends by itself, unless the kill that follows the loss comes first.
    check("exit", &["failed WORKER_LOST returned", "failed WORKER_LOST killed"]);
}

#[test]
fn worker_that_says_nothing_runs_into_the_deadline() {
    check("silence", TIMED_OUT);
}

#[test]
fn second_reply_reaches_no_other_call() {
    check_extra_reply("two-replies");
}

#[test]
fn reply_to_a_call_that_is_yet_to_come_is_not_taken() {
    check_extra_reply("prophecy");
}

/// The first reply is a right one, and whether it still counts is left open: what comes after it must not.
#[track_caller]
fn check_extra_reply(behaviour: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for worker in [WorkerPolicy::Fresh, WorkerPolicy::Reuse { max_calls: NonZeroU32::new(100).unwrap() }] {
            let executor = executor().await;
            for round in 0..20 {
                let told = call(&executor, behaviour, 5, worker).await;
                if !LOST.contains(&&*told.end()) {
                    told.assert_end("error TOOL_ERROR returned").assert_at("/exit/code", 5);
                }
                let next = call(&executor, "honest", round, worker).await;
                let end = if round == 0 { "ok - returned" } else { "error TOOL_ERROR returned" };
                next.assert_end(end).assert_at("/exit/code", round);
            }
            assert_eq!(executor.close().await.unconfirmed, 0);
        }
    });
}
