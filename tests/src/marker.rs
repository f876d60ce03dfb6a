//! A text that no other process on this machine has among its arguments.

use crate::process::{self, Process};
use crate::random::Random;
use std::fmt;

/// A sleeping time like `40601.385110720418563`: a tool that runs `sleep` with it is found in `/proc`, whoever
/// started it and whoever its parent is by now. Tests can so run side by side without seeing one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marker(String);

impl Marker {
    /// A fresh one. `case` says in a list of processes which test it belongs to, and is at least a thousand seconds:
    /// no test waits until it is over.
    pub fn new(case: u32) -> Self {
        assert!(case >= 1000, "a marker's sleep has to outlive its test");
        Self(format!("{case}.{:015}", Random::unseeded().below(1_000_000_000_000_000)))
    }

    /// One that another process has made.
    pub fn given(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The `sleep` processes that have it. A process that is on its way to execute `sleep` is not among them.
    pub fn sleeping(&self) -> Vec<Process> {
        process::all().into_iter().filter(|process| self.is_sleep(process)).collect()
    }

    /// Whether a process is a `sleep` with this marker.
    pub fn is_sleep(&self, process: &Process) -> bool {
        matches!(process.arguments.as_slice(), [program, time] if program.ends_with("sleep") && *time == self.0)
    }

    /// All processes with it anywhere among their arguments: shells that were to start a `sleep`, and supervisors.
    pub fn anywhere(&self) -> Vec<Process> {
        let marked = |process: &Process| process.arguments.iter().any(|argument| argument.contains(&self.0));
        process::all().into_iter().filter(marked).collect()
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
