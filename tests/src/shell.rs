//! Commands for the library: shell scripts, with the smallest environment in which they run.

use std::ffi::OsString;
use std::time::Duration;
use toolexec::call::{Command, Directory, Input, Policy, ToolCall};

/// Where the programs of every Linux are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program with its arguments, an empty standard input, and a scratch directory to start in.
pub fn program(program: impl Into<OsString>, arguments: &[&str]) -> Command {
    Command {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), PATH.into())],
        directory: Directory::Scratch,
        stdin: Input::Empty,
    }
}

/// `sh -c SCRIPT`.
pub fn script(script: &str) -> Command {
    program("sh", &["-c", script])
}

/// No limits but this time limit.
pub fn limit(milliseconds: u64) -> Policy {
    Policy { timeout: Some(Duration::from_millis(milliseconds)), ..Policy::default() }
}

/// A call of `sh -c SCRIPT` with a time limit.
pub fn call(text: &str, milliseconds: u64) -> ToolCall {
    ToolCall::command(script(text), limit(milliseconds))
}
