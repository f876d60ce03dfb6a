//! Isolated calls while tools in this process block whatever they can. One test alone in its process: no other shares the
//! processors with its loops.

use std::num::NonZeroUsize;
use std::time::Duration;
use toolexec::call::ToolCall;
use toolexec::catalogue::ToolTable;
use toolexec::{HostSettings, Tool, Tools};
use toolexec_tests::bodies::bodies;
use toolexec_tests::bound::{LATENESS, PATIENCE};
use toolexec_tests::house::{self, House};
use toolexec_tests::kinds::{self, Nothing};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rust_tools_under_test");

/// A time limit for what is to reach it.
const SHORT: Duration = Duration::from_millis(100);

/// Every thread that in-process tools can get computes, and so do more of them than there are processors.
#[test]
fn isolated_calls_are_killed_on_time_while_tools_in_this_process_block_every_thread_they_get() {
    const THREADS: usize = 12;
    let (bodies, _ends) = bodies();
    let (of_loop, of_sleep, of_task) = (bodies.clone(), bodies.clone(), bodies.clone());
    let tools = [
        Tool::blocking("loop", "", move |_: Nothing, _| of_loop.spin()),
        // Blocks where it should await.
        Tool::asynchronous("sleep", "", move |_: Nothing, _| {
            let bodies = of_sleep.clone();
            async move { bodies.sleep() }
        }),
        // Blocks the thread that drives the timers of all the others.
        Tool::asynchronous("task", "", move |_: Nothing, _| {
            let bodies = of_task.clone();
            async move { tokio::spawn(async move { bodies.spin() }).await.expect("a task") }
        }),
    ];
    let mut specs = kinds::tools().into_specs();
    specs.extend(tools.into_iter().fold(Tools::new(), |tools, tool| tools.with(tool.expect("a tool"))).into_specs());
    let host = HostSettings { threads: NonZeroUsize::new(THREADS).unwrap(), queue: 0, abandoned: None };
    let house = House::new(house::builder(PROGRAM, 2).tools(ToolTable::new(specs).unwrap()).host(host));
    let call = |tool: &str| ToolCall::new(tool, "{}").timeout(PATIENCE);
    let names = ["sleep", "task"].into_iter().chain(std::iter::repeat("loop")).take(THREADS);
    let loops: Vec<_> = names.map(|name| house.begin(call(name))).collect();
    bodies.await_begun(THREADS);
    house.call(call("loop")).assert_end("rejected QUEUE_FULL -");
    for _ in 0..5 {
        let told = house.call(ToolCall::new("spin_isolated", "").timeout(SHORT));
        told.assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
        // With the watchdog's thread to be scheduled among a dozen loops on few processors this is mostly below a millisecond,
        // below some 50 without the right to a better class. The loops run until the test ends them: whoever waited for one
        // would be later than any bound.
        let late = Duration::from_micros(told.number("/receipt/signalled_after_us"));
        assert!(late <= LATENESS, "killed {late:?} after the limit");
    }
    bodies.end();
    for call in loops {
        house.end(call).assert_end("ok - returned");
    }
}
