//! The only home of `unsafe` in toolexec: the system calls that no safe wrapper offers.
//!
//! Each function is safe to call and says what it demands of the kernel; each `unsafe` block holds one call
//! and the proof of its conditions.

pub mod clone;
pub(crate) mod close_range;
pub mod exit;
pub mod scheduling;
pub(crate) mod signals;
pub(crate) mod spawn;
pub mod wait;
