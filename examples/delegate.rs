//! A tool that is an agent of its own: it makes calls, and is cut cleanly when its time is up.
//!
//! The delegate runs in this process, as a future. At its limit it is dropped, and with it the call that it was waiting for: that one is
//! isolated, so its process is killed. Nothing of the child agent goes on behind the parent's back.

use schemars::JsonSchema;
use serde::Deserialize;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use toolexec::call::{CallContext, Status, Termination, ToolCall};
use toolexec::worker::become_zygote_if_asked;
use toolexec::{Executor, Tool, Tools};

/// How long the child's process may take to be gone: 10 s, which no machine needs.
const PATIENCE: Duration = Duration::from_secs(10);

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// The child agents that are there; one that is dropped takes itself out.
static CHILDREN: AtomicUsize = AtomicUsize::new(0);

struct Child;

impl Child {
    fn new() -> Self {
        CHILDREN.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        CHILDREN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The child's own executor: nothing of the parent's flows into it by itself.
static OF_CHILDREN: OnceLock<Executor> = OnceLock::new();

async fn delegate(_: Nothing, _: CallContext) -> Result<String, String> {
    let _registered = Child::new();
    let executor = OF_CHILDREN.get().ok_or("there is no executor for children")?;
    let outcome = executor.call(ToolCall::new("search", "")).await;
    Ok(format!("{:?}", outcome.status))
}

/// A tool of the child's that never comes to an end.
fn search(_: Nothing) -> Result<(), &'static str> {
    loop {
        std::hint::spin_loop();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let of_children = Tools::new().with(Tool::isolated("search", "Searches everything", search)?);
    // Both executors fork from this program.
    become_zygote_if_asked(&of_children.toolbox()?);
    let limit = Duration::from_millis(500);
    let tools = Tools::new().with(Tool::asynchronous("delegate", "Asks another agent", delegate)?.timeout(limit));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let child = Executor::builder().tools(of_children.into_table()?).start().await?;
        let child = OF_CHILDREN.get_or_init(|| child);
        let parent = Arc::new(Executor::builder().tools(tools.into_table()?).start().await?);
        let outcome = parent.call(ToolCall::new("delegate", "")).await;
        println!("{:?} {:?}: {} children", outcome.status, outcome.termination, CHILDREN.load(Ordering::SeqCst));
        assert_eq!((outcome.status, outcome.termination), (Status::TimedOut, Some(Termination::Stopped)));
        assert_eq!(CHILDREN.load(Ordering::SeqCst), 0);
        // Its process, too: a close waits until all that was dropped is confirmed to be dead.
        let begun = Instant::now();
        assert_eq!(child.close().await.unconfirmed, 0);
        assert!(begun.elapsed() < PATIENCE);
        assert_eq!(parent.close().await.unconfirmed, 0);
        Ok(())
    })
}
