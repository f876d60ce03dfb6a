//! The figures, one room each.

pub(crate) mod after_kill;
pub(crate) mod fresh_rate;
pub(crate) mod fresh_worker;
pub(crate) mod kill;
pub(crate) mod memory;
pub(crate) mod round_trip;
pub(crate) mod run;

mod figure;

pub(crate) use figure::Figure;
