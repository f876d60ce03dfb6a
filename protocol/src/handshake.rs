//! The first exchange on a zygote's control connection: which version both sides speak, or a refusal in words.
//!
//! These types keep their bytes in every version, since they are read before a version is agreed on.

use bincode::{Decode, Encode};

/// The first eight bytes of every `Hello` and `Welcome`: whoever does not send them speaks something else.
pub const MAGIC: [u8; 8] = *b"toolexec";

/// The oldest protocol version that this build speaks.
pub const OLDEST_VERSION: u16 = 1;

/// The newest protocol version that this build speaks.
pub const NEWEST_VERSION: u16 = 1;

/// The supervisor's greeting, its first frame on the control connection.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The oldest version that the supervisor speaks.
    pub oldest: u16,
    /// The newest version that the supervisor speaks.
    pub newest: u16,
    /// The supervisor's own version, for messages only.
    pub software: String,
}

impl Hello {
    /// The greeting of this build.
    pub fn of_this_build() -> Self {
        Self {
            magic: MAGIC,
            oldest: OLDEST_VERSION,
            newest: NEWEST_VERSION,
            software: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// The zygote's answer, its first frame.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Answer {
    /// Both speak a version.
    Welcome(Welcome),
    /// They do not; the zygote ends after it.
    Refusal(Refusal),
}

/// The zygote's agreement.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Welcome {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The version that both speak from here on.
    pub version: u16,
    /// The zygote's own version, for messages only.
    pub software: String,
}

/// The zygote's refusal, in words that an operator can act on.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Refusal {
    /// The oldest version that the zygote speaks.
    pub oldest: u16,
    /// The newest version that the zygote speaks.
    pub newest: u16,
    /// Why, and what to do.
    pub reason: String,
}

/// Answers a greeting: the newest version that both speak, or a refusal.
pub fn answer(hello: &Hello) -> Answer {
    let refuse = |reason: String| {
        Answer::Refusal(Refusal { oldest: OLDEST_VERSION, newest: NEWEST_VERSION, reason })
    };
    if hello.magic != MAGIC {
        return refuse("the peer does not speak toolexec's protocol".into());
    }
    if hello.oldest > hello.newest {
        return refuse(format!("the peer offers no version at all: {} to {}", hello.oldest, hello.newest));
    }
    let version = hello.newest.min(NEWEST_VERSION);
    if version < hello.oldest.max(OLDEST_VERSION) {
        return refuse(format!(
            "the supervisor (toolexec {}) speaks protocol versions {} to {}, this worker program (toolexec {}) {} to {}: \
             build both from the same release",
            hello.software,
            hello.oldest,
            hello.newest,
            env!("CARGO_PKG_VERSION"),
            OLDEST_VERSION,
            NEWEST_VERSION,
        ));
    }
    Answer::Welcome(Welcome { magic: MAGIC, version, software: env!("CARGO_PKG_VERSION").into() })
}

/// Why an answer does not let the supervisor go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The peer is not a zygote.
    #[error("the worker program does not speak toolexec's protocol")]
    WrongMagic,
    /// The zygote agreed to a version that was not offered.
    #[error("the worker program chose protocol version {version}, which was not offered")]
    WrongVersion {
        /// The version it chose.
        version: u16,
    },
    /// The zygote refused.
    #[error("the worker program refused: {0}")]
    Refused(String),
}

/// Checks an answer to [`Hello::of_this_build`].
///
/// # Errors
/// [`HandshakeError`] when it is a refusal, or no answer to that greeting.
pub fn accept(answer: Answer) -> Result<Welcome, HandshakeError> {
    match answer {
        Answer::Refusal(refusal) => Err(HandshakeError::Refused(refusal.reason)),
        Answer::Welcome(welcome) if welcome.magic != MAGIC => Err(HandshakeError::WrongMagic),
        Answer::Welcome(welcome) if !(OLDEST_VERSION..=NEWEST_VERSION).contains(&welcome.version) => {
            Err(HandshakeError::WrongVersion { version: welcome.version })
        }
        Answer::Welcome(welcome) => Ok(welcome),
    }
}
