//! How large the pool is.

use std::num::NonZeroUsize;

/// How many workers run and wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSettings {
    /// How many isolated calls run at once. Default 4.
    pub workers: NonZeroUsize,
    /// How many fresh workers wait, forked and idle, for a call. Default 2.
    pub spares: usize,
    /// How many calls may wait for a worker; one more is refused with `QUEUE_FULL`. Default 1,000.
    pub queue: usize,
}

impl PoolSettings {
    /// The default of [`PoolSettings::workers`].
    pub const DEFAULT_WORKERS: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    /// The default of [`PoolSettings::spares`].
    pub const DEFAULT_SPARES: usize = 2;
    /// The default of [`PoolSettings::queue`].
    pub const DEFAULT_QUEUE: usize = 1000;
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self { workers: Self::DEFAULT_WORKERS, spares: Self::DEFAULT_SPARES, queue: Self::DEFAULT_QUEUE }
    }
}
