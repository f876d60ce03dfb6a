//! The processes that the supervisor starts: zygotes, and through them workers.

mod call_socket;
mod connection;
mod keeper;
mod program;
mod scratch_root;
mod worker;
mod zygote;

pub(crate) use call_socket::CallSocket;
pub use program::{WorkerProgram, serve_commands};
pub use scratch_root::ScratchError;
pub(crate) use scratch_root::ScratchRoot;
pub(crate) use worker::{Ended, Fate, Phase, Worker, WorkerProcess};
pub use zygote::ZygoteError;
pub(crate) use zygote::{Reaped, Started, Zygote, ZygoteEvents};
