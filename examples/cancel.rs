//! Withdrawing a call: by a token, and by dropping its future.

use std::error::Error;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolexec::Executor;
use toolexec::call::{Policy, Status, Termination, ToolCall};
use toolexec::worker::{Toolbox, become_zygote_if_asked};
use toolexec_examples::command;

const SHORT: Duration = Duration::from_millis(300);

fn main() -> Result<(), Box<dyn Error>> {
    become_zygote_if_asked(&Toolbox::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder().start().await?;
    let sleep = || ToolCall::command(command("sleep", &["100"]), Policy::default());

    // A token gives an outcome: it is there when the whole tree is confirmed to be dead.
    let token = CancellationToken::new();
    let withdraw = async {
        tokio::time::sleep(SHORT).await;
        token.cancel();
        Instant::now()
    };
    let (outcome, withdrawn) = tokio::join!(executor.call(sleep().cancelled_by(token.clone())), withdraw);
    println!("{:?} {:?} after the token was cancelled", outcome.status, withdrawn.elapsed());
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(outcome.termination, Some(Termination::Killed));
    assert!(outcome.receipt.is_some_and(|receipt| receipt.confirmed));

    // Dropping the future kills the tree as well, and nobody is there to be told. Its place in the pool is free again
    // when the death is confirmed.
    let dropped = tokio::time::timeout(SHORT, executor.call(sleep())).await;
    assert!(dropped.is_err());

    // What still runs when the executor is closed was waited for: 0 says that nothing is left.
    assert_eq!(executor.close().await.unconfirmed, 0);
    Ok(())
}
