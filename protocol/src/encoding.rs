//! The one place that knows the serializer's options; elsewhere only its derives and its two traits appear.
//!
//! bincode with fixed-width little-endian integers and a limit on every decode; `docs/decisions/0001-bincode.md`
//! says why, and how it would be replaced. The encoding is canonical: a value has one byte string, and a
//! byte string that decodes encodes back to itself.

use crate::limits::MAX_FRAME;
use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::{Decode, Encode};

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// They are not an encoding of the wanted type.
    #[error("the bytes are not a message")]
    Malformed(#[source] bincode::error::DecodeError),
    /// A message is followed by something else.
    #[error("{extra} bytes follow the message")]
    TrailingBytes {
        /// How many.
        extra: usize,
    },
    /// There are more bytes than a frame may have; they were not looked at.
    #[error("{length} bytes are more than the {MAX_FRAME} that a message may have")]
    TooLarge {
        /// How many there are.
        length: usize,
    },
}

/// Why a message cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// It would be a larger frame than the peer accepts.
    #[error("the message has {length} bytes, more than the {MAX_FRAME} that a frame may have")]
    TooLarge {
        /// Its length in bytes.
        length: usize,
    },
    /// The serializer refused it.
    #[error("the message cannot be encoded")]
    Serializer(#[source] bincode::error::EncodeError),
}

/// Appends a message to `buffer`.
///
/// # Errors
/// [`EncodeError::TooLarge`] when it is over [`MAX_FRAME`]; `buffer` is then as it was before, and never
/// held more than [`MAX_FRAME`] bytes of the message.
pub fn encode_into(message: &impl Encode, buffer: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (start, capacity) = (buffer.len(), buffer.capacity());
    let writer = Bounded { end: start.saturating_add(MAX_FRAME), buffer };
    let Err(error) = bincode::encode_into_writer(message, writer, configuration::<MAX_FRAME>()) else {
        return Ok(());
    };
    buffer.truncate(start);
    buffer.shrink_to(capacity);
    match length(message) {
        Ok(length) if length > MAX_FRAME => Err(EncodeError::TooLarge { length }),
        Ok(_) | Err(_) => Err(EncodeError::Serializer(error)),
    }
}

/// Reads a message that fills `bytes` to the last one.
///
/// What it allocates is bounded by the number of `bytes`, not by what they say: a length inside them that
/// they cannot hold is refused before memory is taken for it.
///
/// # Errors
/// [`DecodeError`] when the bytes are not one message, or more than one.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    // The serializer takes its limit as a constant, so that the nearest of a few must do.
    match bytes.len() {
        length if length <= SMALL => decode_within::<T, { SMALL * EXPANSION }>(bytes),
        length if length <= MEDIUM => decode_within::<T, { MEDIUM * EXPANSION }>(bytes),
        length if length <= MAX_FRAME => decode_within::<T, { MAX_FRAME * EXPANSION }>(bytes),
        length => Err(DecodeError::TooLarge { length }),
    }
}

/// The serializer counts a list against its limit by the size that its elements have in memory, before it
/// allocates them. No list of this protocol is larger in memory than this many times its encoding: an empty
/// `Vec` has 8 bytes there and 24 here. With a smaller factor a list of short arguments could be sent and not
/// be read; `tests/properties.rs` tries.
const EXPANSION: usize = 3;

/// Most messages are shorter than this.
const SMALL: usize = 4 * 1024;

/// Half way from [`SMALL`] to [`MAX_FRAME`] by ratio.
const MEDIUM: usize = 256 * 1024;

fn decode_within<T: Decode<()>, const LIMIT: usize>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (message, used) =
        bincode::decode_from_slice(bytes, configuration::<LIMIT>()).map_err(DecodeError::Malformed)?;
    match bytes.len() - used {
        0 => Ok(message),
        extra => Err(DecodeError::TrailingBytes { extra }),
    }
}

fn configuration<const LIMIT: usize>() -> Configuration<LittleEndian, Fixint, Limit<LIMIT>> {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<LIMIT>()
}

/// How many bytes a message has, without writing them anywhere.
fn length(message: &impl Encode) -> Result<usize, bincode::error::EncodeError> {
    let mut size = SizeWriter::default();
    bincode::encode_into_writer(message, &mut size, configuration::<MAX_FRAME>())?;
    Ok(size.bytes_written)
}

/// Appends to a buffer up to a length. The serializer's own limit does not bind what it writes.
struct Bounded<'a> {
    buffer: &'a mut Vec<u8>,
    /// The length that the buffer may not pass.
    end: usize,
}

impl Writer for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), bincode::error::EncodeError> {
        if bytes.len() > self.end - self.buffer.len() {
            return Err(bincode::error::EncodeError::UnexpectedEnd);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}
