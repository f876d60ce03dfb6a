//! The pool of workers: who waits, who runs, who is forked next.

mod settings;

pub use settings::PoolSettings;
