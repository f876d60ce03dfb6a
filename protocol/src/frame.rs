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
/// Bytes that were given but not yet asked for stay inside; [`FrameReader::buffered`] counts them. Whoever
/// asks until there is no message before giving more keeps them to one frame and one gift.
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
    #[expect(clippy::should_implement_trait, reason = "the type of the message is the caller's choice, each time")]
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
        self.give_back();
        Ok(Some(message))
    }

    /// What the end of the connection means now: fine between frames, an error inside one. Whole frames that
    /// were not asked for yet are fine, and can still be asked for.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] inside a frame, [`FrameError::TooLarge`] inside one that could not have come.
    pub fn end(&self) -> Result<(), FrameError> {
        let mut waiting = &self.buffer[self.start..];
        loop {
            let Some((header, rest)) = waiting.split_first_chunk::<HEADER>() else {
                return match waiting.len() {
                    0 => Ok(()),
                    some => Err(FrameError::Truncated { missing: HEADER - some }),
                };
            };
            let length = checked_length(*header)?;
            match rest.get(length..) {
                Some(behind) => waiting = behind,
                None => return Err(FrameError::Truncated { missing: length - rest.len() }),
            }
        }
    }

    /// Forgets what was handed out. It moves no more bytes than it forgets, so that many small frames which
    /// came at once cost no more than their length, and gives a large frame's memory back.
    fn give_back(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
        } else if self.start >= KEPT_CAPACITY && self.start >= self.buffered() {
            self.buffer.drain(..self.start);
        } else {
            return;
        }
        self.start = 0;
        self.buffer.shrink_to(KEPT_CAPACITY);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &Vec<u8>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(message, &mut bytes).unwrap();
        bytes
    }

    fn next(reader: &mut FrameReader) -> Option<Vec<u8>> {
        reader.next::<Vec<u8>>().unwrap()
    }

    #[test]
    fn a_large_frame_leaves_no_memory_behind_even_when_the_next_has_begun() {
        let large = vec![7; MAX_FRAME - 8];
        for begun in [0, 1, HEADER, 100] {
            let mut reader = FrameReader::new();
            let following = framed(&vec![9; 200]);
            reader.push(&framed(&large));
            reader.push(&following[..begun]);
            assert_eq!(next(&mut reader).as_ref(), Some(&large));
            assert!(reader.buffer.capacity() <= KEPT_CAPACITY, "kept {} bytes", reader.buffer.capacity());
            assert_eq!(reader.buffered(), begun);
            reader.push(&following[begun..]);
            assert_eq!(next(&mut reader), Some(vec![9; 200]));
            assert_eq!(reader.buffered(), 0);
        }
    }

    #[test]
    fn frames_that_never_end_on_a_push_do_not_pile_up() {
        let frame = framed(&vec![5; 1000]);
        let endless: Vec<u8> = frame.iter().copied().cycle().take(frame.len() * 1000).collect();
        let mut reader = FrameReader::new();
        let mut seen = 0;
        for part in endless.chunks(frame.len() + 1) {
            reader.push(part);
            while next(&mut reader).is_some() {
                seen += 1;
            }
            assert!(reader.buffer.capacity() <= 4 * KEPT_CAPACITY);
        }
        assert_eq!((seen, reader.buffered()), (1000, 0));
    }

    #[test]
    fn an_announcement_takes_no_memory() {
        let mut reader = FrameReader::new();
        reader.push(&(MAX_FRAME as u32).to_le_bytes());
        assert_eq!(next(&mut reader), None);
        assert!(reader.buffer.capacity() <= 64);
    }

    #[test]
    fn the_end_is_fine_only_between_frames() {
        let frame = framed(&vec![1, 2, 3]);
        let two = frame.repeat(2);
        for cut in 0..=two.len() {
            let mut reader = FrameReader::new();
            reader.push(&two[..cut]);
            let inside = cut % frame.len();
            let missing = match inside {
                0 => None,
                _ if inside < HEADER => Some(HEADER - inside),
                _ => Some(frame.len() - inside),
            };
            match (reader.end(), missing) {
                (Ok(()), None) => {}
                (Err(FrameError::Truncated { missing: told }), Some(missing)) => assert_eq!(told, missing),
                (told, missing) => panic!("after {cut} bytes: {told:?}, missing {missing:?}"),
            }
        }
    }
}
