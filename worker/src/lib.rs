//! toolexec's zygote and worker: the processes in which tools run.
//!
//! Everything here is blocking and has one thread; no async runtime is ever linked into this crate. The
//! only `unsafe` of the whole project is in `sys`.

pub mod scratch;
