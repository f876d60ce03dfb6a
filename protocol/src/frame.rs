//! Frames: a length of four little-endian bytes, then that many bytes of one message.
//!
//! Only buffers live here; reading and writing sockets is the callers' business. The length is checked
//! against [`MAX_FRAME`] before anything is allocated for it.

use crate::encoding::{self, DecodeError, EncodeError};
use crate::limits::MAX_FRAME;
use bincode::{Decode, Encode};

/// How many bytes announce a frame's length.
pub const HEADER: usize = 4;

/// Why what a peer sent is not a frame. After any of these the connection is of no further use.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer announced more than [`MAX_FRAME`].
    #[error("a frame of {length} bytes was announced, more than the {MAX_FRAME} allowed")]
    TooLarge {
        /// The announced length in bytes.
        length: u64,
    },
    /// The frame does not hold a message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The peer closed the connection in the middle of a frame.
    #[error("the connection ended inside a frame, {missing} bytes short")]
    Truncated {
        /// How many bytes were still to come, as far as is known.
        missing: usize,
    },
}

/// Appends a whole frame, header and message, to `buffer`.
///
/// # Errors
/// As [`encoding::encode_into`]; `buffer` is then as it was before.
pub fn write(message: &impl Encode, buffer: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; HEADER]);
    if let Err(error) = encoding::encode_into(message, buffer) {
        buffer.truncate(start);
        return Err(error);
    }
    // `encode_into` keeps the length at or below MAX_FRAME, which is far below u32::MAX.
    let length = (buffer.len() - start - HEADER) as u32;
    buffer[start..start + HEADER].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Collects bytes as they come and gives back whole messages.
///
/// Bytes that were given but not yet asked for stay inside; [`FrameReader::buffered`] counts them.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Everything before this was handed out already.
    start: usize,
}

impl FrameReader {
    /// An empty reader; it allocates when the first byte comes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes that a peer sent.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes wait for the rest of their frame, or to be asked for.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The next whole message, or `None` until more bytes come.
    ///
    /// # Errors
    /// [`FrameError`] when the peer announced too much, or the frame does not hold a `T`.
    pub fn next<T: Decode<()>>(&mut self) -> Result<Option<T>, FrameError> {
        let waiting = &self.buffer[self.start..];
        let Some((header, rest)) = waiting.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = checked_length(*header)?;
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let message = encoding::decode(payload)?;
        self.start += HEADER + length;
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            self.buffer.shrink_to(KEPT_CAPACITY);
        } else if self.start >= KEPT_CAPACITY {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        Ok(Some(message))
    }

    /// What the end of the connection means now: fine between frames, an error inside one.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] inside a frame.
    pub fn end(&self) -> Result<(), FrameError> {
        let waiting = &self.buffer[self.start..];
        let missing = match waiting.split_first_chunk::<HEADER>() {
            None if waiting.is_empty() => return Ok(()),
            None => HEADER - waiting.len(),
            Some((header, rest)) => checked_length(*header)?.saturating_sub(rest.len()),
        };
        Err(FrameError::Truncated { missing })
    }
}

/// A reader that once held a large frame gives its memory back down to this many bytes.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Reads a frame's header.
///
/// # Errors
/// [`FrameError::TooLarge`] over [`MAX_FRAME`].
pub fn checked_length(header: [u8; HEADER]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(header);
    match usize::try_from(length) {
        Ok(length) if length <= MAX_FRAME => Ok(length),
        Ok(_) | Err(_) => Err(FrameError::TooLarge { length: length.into() }),
    }
}
