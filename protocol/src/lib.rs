//! The values and bytes that toolexec's processes exchange.
//!
//! Three kinds of process speak here: the *supervisor* (the user's process), the *zygote* (forks
//! workers) and the *worker* (runs one tool call at a time). This crate says what they may say and
//! how it looks on the wire; it opens no socket and reads no clock. `docs/protocol.md` is its prose.

#![forbid(unsafe_code)]

pub mod encoding;
pub mod failure;
pub mod frame;
pub mod handshake;
pub mod id;
pub mod limits;
pub mod message;
pub mod strength;

/// Values that [`encoding`] can write.
pub use bincode::Encode;

/// Values that [`encoding`] can read, without any context.
pub trait Decode: bincode::Decode<()> {}
impl<T: bincode::Decode<()>> Decode for T {}
