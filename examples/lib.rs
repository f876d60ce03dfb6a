//! The examples are programs: `embed.rs`, `rust_tools.rs`, `agent_loop.rs`, `custom_filter.rs`, `delegate.rs`, `cancel.rs`. Run one with
//! `cargo run -p toolexec-examples --bin embed`.
//!
//! This library holds what they have in common, and makes the Rust code of the README a test.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use toolexec::call::{Command, Directory, Input};
use toolexec::catalogue::environment::base_environment;

/// A program with its arguments: nothing to read, a scratch directory to start in, and a short environment.
pub fn command(program: impl Into<OsString>, arguments: &[&str]) -> Command {
    Command {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: base_environment(&[]),
        directory: Directory::Scratch,
        stdin: Input::Empty,
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
