//! toolexec's zygote and worker: the processes in which tools run.
//!
//! Everything here is blocking and has one thread; no async runtime is ever linked into this crate. The
//! only `unsafe` of the whole project is in [`sys`].
//!
//! A host program calls [`become_zygote_if_asked`] at the top of its `main`. Started by a supervisor it becomes
//! the zygote there and never returns; started by anyone else it goes on.

#[cfg(not(target_os = "linux"))]
compile_error!("toolexec runs on Linux only: it stands on pidfds, PID namespaces and child subreapers");

mod channel;
mod entry;
mod sandbox;
pub mod scratch;
mod serve;
mod sweep;
pub mod sys;
mod tool;
mod zygote;

pub use entry::{ZYGOTE_NAME, become_zygote_if_asked, zygote_serving};
pub use sys::signals::ABORTED;
pub use tool::{AlreadyThere, Handler, Returned, Toolbox};
pub use toolexec_protocol::failure::{ErrorClass, Failure};
pub use zygote::SWEEP_SIGNAL;
