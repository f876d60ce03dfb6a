//! One command with a time limit, from a program of one's own.
//!
//! The command leaves a process in a session of its own, which a kill of the process group would miss. It is dead
//! before the outcome is there, and the receipt says so.

use std::error::Error;
use std::time::Duration;
use toolexec::Executor;
use toolexec::call::{Policy, Status, Termination, ToolCall};
use toolexec::worker::{Toolbox, become_zygote_if_asked};
use toolexec_examples::command;

fn main() -> Result<(), Box<dyn Error>> {
    // First of all: toolexec starts this program a second time, to fork workers from it.
    become_zygote_if_asked(&Toolbox::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder().start().await?;

    let script = "setsid -f sleep 100; echo begun; sleep 100";
    let policy = Policy { timeout: Some(Duration::from_millis(500)), ..Policy::default() };
    let outcome = executor.call(ToolCall::command(command("sh", &["-c", script]), policy)).await;
    println!("{}", serde_json::to_string_pretty(&outcome)?);

    assert_eq!(outcome.status, Status::TimedOut);
    assert_eq!(outcome.termination, Some(Termination::Killed));
    assert_eq!(outcome.stdout.text, "begun\n");
    let receipt = outcome.receipt.ok_or("a call that was started has a receipt")?;
    assert!(receipt.confirmed && receipt.survivors == 0);

    // The next call has a worker of its own and nothing of the one before.
    let outcome = executor.call(ToolCall::command(command("echo", &["hello"]), Policy::default())).await;
    assert_eq!((outcome.status, outcome.stdout.text.as_str()), (Status::Ok, "hello\n"));

    // Dropping the executor would do too; closing it waits until nothing is left, and says whether that was so.
    assert_eq!(executor.close().await.unconfirmed, 0);
    Ok(())
}
