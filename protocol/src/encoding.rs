//! The one place that names the serializer and its options.
//!
//! bincode with fixed-width little-endian integers and a limit on every decode; `docs/decisions/0001-bincode.md`
//! says why, and how it would be replaced. The encoding is canonical: a value has one byte string, and a
//! byte string that decodes encodes back to itself.

use crate::limits::MAX_FRAME;
use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
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

fn configuration() -> Configuration<LittleEndian, Fixint, Limit<MAX_FRAME>> {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<MAX_FRAME>()
}

/// Appends a message to `buffer`.
///
/// # Errors
/// [`EncodeError::TooLarge`] when it is over [`MAX_FRAME`]; `buffer` is then as it was before.
pub fn encode_into(message: &impl Encode, buffer: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = buffer.len();
    let written = bincode::encode_into_std_write(message, buffer, configuration());
    let length = buffer.len() - start;
    match written {
        Ok(_) if length <= MAX_FRAME => Ok(()),
        Ok(_) => {
            buffer.truncate(start);
            Err(EncodeError::TooLarge { length })
        }
        Err(error) => {
            buffer.truncate(start);
            Err(EncodeError::Serializer(error))
        }
    }
}

/// Reads a message that fills `bytes` to the last one.
///
/// Allocates at most [`MAX_FRAME`] bytes whatever the input says.
///
/// # Errors
/// [`DecodeError`] when the bytes are not one, or more than one.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (message, used) = bincode::decode_from_slice(bytes, configuration()).map_err(DecodeError::Malformed)?;
    match bytes.len() - used {
        0 => Ok(message),
        extra => Err(DecodeError::TrailingBytes { extra }),
    }
}
