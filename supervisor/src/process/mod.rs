//! The processes that the supervisor starts: zygotes, and through them workers.

mod program;

pub use program::WorkerProgram;
