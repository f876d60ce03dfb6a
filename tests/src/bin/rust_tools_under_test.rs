//! The `toolexec` command with tools of its own, and their worker program.
//!
//! `RUST_TOOLS` in its environment names tools that cannot be used together, to see them refused.

use std::process::ExitCode;
use std::time::Duration;
use toolexec::{Failure, Tool, Tools};
use toolexec_tests::kinds::{self, Nothing};

fn main() -> ExitCode {
    let tools = match std::env::var("RUST_TOOLS").ok().as_deref() {
        Some("twice_isolated") => kinds::tools().with(isolated()).with(isolated()),
        Some("twice_here") => kinds::tools().with(blocking()).with(blocking()),
        Some("twice_each_kind") => kinds::tools().with(isolated()).with(blocking()),
        Some("twice_zero") => {
            Tools::new().with(isolated().timeout(Duration::ZERO)).with(isolated().timeout(Duration::ZERO))
        }
        Some(other) => panic!("no tools are called {other}"),
        None => kinds::tools(),
    };
    toolexec::cli::main(tools)
}

fn isolated() -> Tool {
    Tool::isolated("twice", "", |_: Nothing| Ok::<_, Failure>(1)).expect("a tool")
}

fn blocking() -> Tool {
    Tool::blocking("twice", "", |_: Nothing, _| Ok::<_, Failure>(2)).expect("a tool")
}
