//! The command line: a thin reader of the library.
//!
//! What is typed (`args.rs`) is validated into what is meant (`settings.rs`); one file a command acts on it. Results
//! go to standard output, what toolexec itself says goes to standard error, and the exit code comes from one
//! table (`exit_code.rs`).

mod args;
mod batch;
mod bound;
mod check;
mod completions;
mod doctor;
mod entry;
mod exit_code;
mod host;
mod interrupts;
mod lane;
mod list;
mod log;
mod refusal;
mod relay;
mod report;
mod run;
mod screen;
mod settings;

pub use entry::main;
