//! The pool of workers: who waits, who runs, who is forked next.

mod lease;
mod settings;
mod shell;
mod state;

pub(crate) use lease::Lease;
pub use settings::PoolSettings;
pub(crate) use shell::{Pool, PoolOptions, Refusal};
pub(crate) use state::Want;
