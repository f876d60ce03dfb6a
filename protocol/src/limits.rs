//! The bounds of the protocol: every length that a peer may announce is checked against one of these.

/// The largest frame payload in bytes: 16 MiB.
///
/// Arguments and results travel inside frames, output does not (it has its own pipes), so this bounds
/// one call's arguments or result. It also bounds what one decode may allocate.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;

/// The most bytes of arguments, or of a result, that one call may carry: [`MAX_FRAME`] less 64 KiB for
/// everything else in the frame (names, numbers, the environment).
pub const MAX_BODY: usize = MAX_FRAME - 64 * 1024;

/// The longest text of a failure in bytes: 64 KiB. A longer one is cut by [`crate::failure::Failure::new`].
pub const MAX_FAILURE_TEXT: usize = 64 * 1024;
