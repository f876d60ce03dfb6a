//! Nothing that a tool does lands after its outcome was returned.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolexec::call::ToolCall;
use toolexec::{Executor, KillStrength, WorkerProgram};
use toolexec_tests::random::Random;
use toolexec_tests::room::Room;
use toolexec_tests::{shell, told::Told};

/// How many tools are killed in the middle of their writing.
const KILLS: u64 = 200;

/// Calls at once; each tool consists of three processes that write as fast as they can.
const AT_ONCE: u64 = 4;

#[test]
fn file_never_grows_after_the_outcome() {
    check("file_never_grows_after_the_outcome", None);
}

#[test]
fn file_never_grows_after_the_outcome_with_a_subreaper() {
    check("file_never_grows_after_the_outcome_with_a_subreaper", Some(KillStrength::Subreaper));
}

#[track_caller]
fn check(name: &str, strength: Option<KillStrength>) {
    let mut random = Random::for_test(name);
    let room = Arc::new(Room::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut builder = Executor::builder().program(WorkerProgram::at(env!("CARGO_BIN_EXE_toolexec_under_test")));
        if let Some(strength) = strength {
            builder = builder.strength(strength);
        }
        let executor = Arc::new(builder.start().await.unwrap());
        let mut lanes = Vec::new();
        for lane in 0..AT_ONCE {
            let executor = Arc::clone(&executor);
            let room = Arc::clone(&room);
            let mut random = Random::seeded(random.next());
            lanes.push(tokio::spawn(async move {
                let mut files = Vec::new();
                for round in 0..KILLS / AT_ONCE {
                    let file = room.file(&format!("{lane}-{round}"));
                    let withdrawn = round % 2 == 1;
                    let length = kill_a_writer(&executor, &file, withdrawn, &mut random).await;
                    files.push((file, length));
                }
                files
            }));
        }
        let mut written = 0;
        for lane in lanes {
            for (file, length) in lane.await.unwrap() {
                let later = fs::metadata(&file).map_or(0, |metadata| metadata.len());
                assert_eq!(later, length, "{} grew after its outcome", file.display());
                written += u64::from(length > 0);
            }
        }
        // A tool that is killed before it begins proves nothing. Half of them are withdrawn, and only when they write.
        assert!(written >= KILLS / 2, "only {written} of {KILLS} tools wrote anything");
        assert_eq!(executor.close().await.unconfirmed, 0);
    });
}

/// Starts three writers in three sessions, has them killed in the middle, and gives the file's length at the moment of
/// the outcome.
async fn kill_a_writer(executor: &Executor, file: &PathBuf, withdrawn: bool, random: &mut Random) -> u64 {
    let writer = format!("{} {}", env!("CARGO_BIN_EXE_append_forever"), file.display());
    let script = shell::script(&format!("setsid -f {writer}; (setsid {writer} &); {writer}"));
    let after = Duration::from_millis(20) + random.milliseconds_below(80);
    let outcome = if withdrawn {
        let token = CancellationToken::new();
        let call = ToolCall::command(script, shell::limit(20_000)).cancelled_by(token.clone());
        // In the middle of its writing, whenever that is.
        let withdrawal = async {
            while !fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(after).await;
            token.cancel();
            std::future::pending().await
        };
        tokio::select! {
            outcome = executor.call(call) => outcome,
            outcome = withdrawal => outcome,
        }
    } else {
        executor.call(ToolCall::command(script, shell::limit(20_000)).timeout(after * 2)).await
    };
    let length = fs::metadata(file).map_or(0, |metadata| metadata.len());
    let end = if withdrawn { "cancelled CANCELLED killed" } else { "timed_out TOOL_TIMEOUT killed" };
    Told::of(&outcome).assert_end(end).assert_at("/receipt/confirmed", true);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let later = fs::metadata(file).map_or(0, |metadata| metadata.len());
    assert_eq!(later, length, "{} grew after its outcome", file.display());
    length
}
