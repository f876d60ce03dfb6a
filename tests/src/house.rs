//! An executor in a test, and where its processes stand.

use crate::bound::{PATIENCE, await_some};
use crate::marker::Marker;
use crate::process::Process;
use crate::shell;
use crate::told::Told;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use toolexec::call::ToolCall;
use toolexec::{Executor, ExecutorBuilder, KillStrength, PoolSettings, WorkerProgram};

/// A time limit in milliseconds for everything that is to end before it.
pub const LONG: u64 = 20_000;

/// A runtime of two threads.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// An executor of so many workers that are forks of this program.
pub fn builder(program: impl AsRef<Path>, workers: usize) -> ExecutorBuilder {
    let workers = NonZeroUsize::new(workers).expect("a pool has a worker");
    let pool = PoolSettings { workers, ..PoolSettings::default() };
    Executor::builder().program(WorkerProgram::at(program.as_ref())).pool(pool)
}

/// A builder for each mechanism that kills trees.
pub fn each_strength(program: impl AsRef<Path>, workers: usize) -> [ExecutorBuilder; 2] {
    [builder(&program, workers), builder(program, workers).strength(KillStrength::Subreaper)]
}

/// An executor, the runtime that it was started in, and calls that go on by themselves while a test looks at `/proc`.
#[derive(Debug)]
pub struct House {
    executor: Option<Arc<Executor>>,
    /// The executor's runtime.
    pub runtime: Runtime,
}

impl House {
    /// Starts an executor.
    #[track_caller]
    pub fn new(builder: ExecutorBuilder) -> Self {
        let runtime = runtime();
        let executor = runtime.block_on(builder.start()).expect("an executor starts");
        Self { executor: Some(Arc::new(executor)), runtime }
    }

    /// The executor.
    pub fn executor(&self) -> Arc<Executor> {
        Arc::clone(self.executor.as_ref().expect("it was not dropped yet"))
    }

    /// Drops the executor, and keeps the runtime.
    pub fn drop_executor(&mut self) {
        self.executor = None;
    }

    /// Starts a call.
    pub fn begin(&self, call: ToolCall) -> JoinHandle<Told> {
        let executor = self.executor();
        self.runtime.spawn(async move { Told::of(&executor.call(call).await) })
    }

    /// Waits for a call that was begun.
    #[track_caller]
    pub fn end(&self, call: JoinHandle<Told>) -> Told {
        let ended = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await });
        ended.expect("the call has an outcome").expect("the call does not panic")
    }

    /// Makes a call.
    #[track_caller]
    pub fn call(&self, call: ToolCall) -> Told {
        self.end(self.begin(call))
    }

    /// The next call works, and has nothing of an earlier one: rule R3.
    #[track_caller]
    pub fn assert_next_call_works(&self) {
        self.call(shell::call("echo next", LONG)).assert_end("ok - returned").assert_at("/stdout/text", "next\n");
    }
}

/// A script: a sleep in a session of its own, and one beside it.
pub fn two_sleeps(marker: &Marker) -> String {
    format!("setsid -f sleep {marker}; sleep {marker}")
}

/// Waits until `count` sleeps with the marker run.
#[track_caller]
pub fn await_sleeps(marker: &Marker, count: usize) -> Vec<Process> {
    await_some(PATIENCE, "sleeping tools", || Some(marker.sleeping()).filter(|sleeping| sleeping.len() == count))
}

/// The zygote above a tool's process.
#[track_caller]
pub fn zygote_above(tool: &Process) -> Process {
    let zygote = tool.line_up_to(std::process::id()).expect("a tool of this test").pop().expect("a zygote");
    assert!(is_of_toolexec(&zygote), "{zygote:?}");
    zygote
}

/// What stands between a tool's process and the zygote, the tool's own processes left out: the worker, and a guardian
/// of it where there is one.
#[track_caller]
pub fn workers_above(tool: &Process) -> Vec<Process> {
    let mut line = tool.line_up_to(std::process::id()).expect("a tool of this test");
    line.pop();
    line.retain(is_of_toolexec);
    assert!(!line.is_empty(), "no worker above {tool:?}");
    line
}

/// Whether a process is a zygote, or was forked by one and executes nothing else.
pub fn is_of_toolexec(process: &Process) -> bool {
    process.arguments.first().is_some_and(|name| name == toolexec::worker::ZYGOTE_NAME)
}
