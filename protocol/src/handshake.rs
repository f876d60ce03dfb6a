//! The first exchange on a zygote's control connection: which version both sides speak, or a refusal in words.
//!
//! These types keep their bytes in every version, since they are read before a version is agreed on.

use crate::limits::MAX_FAILURE_TEXT;
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
    let refuse = |reason: String| Answer::Refusal(Refusal { oldest: OLDEST_VERSION, newest: NEWEST_VERSION, reason });
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
            shortened(&hello.software, MAX_SOFTWARE),
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
        Answer::Refusal(refusal) => Err(HandshakeError::Refused(shortened(&refusal.reason, MAX_FAILURE_TEXT).into())),
        Answer::Welcome(welcome) if welcome.magic != MAGIC => Err(HandshakeError::WrongMagic),
        Answer::Welcome(welcome) if !(OLDEST_VERSION..=NEWEST_VERSION).contains(&welcome.version) => {
            Err(HandshakeError::WrongVersion { version: welcome.version })
        }
        Answer::Welcome(welcome) => Ok(welcome),
    }
}

/// The most bytes of a peer's own version that are repeated in a text: the peer may send a whole frame of it,
/// and the refusal has to fit into one.
const MAX_SOFTWARE: usize = 64;

fn shortened(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::limits::MAX_FRAME;

    fn hello(oldest: u16, newest: u16) -> Hello {
        Hello { oldest, newest, ..Hello::of_this_build() }
    }

    fn agreed(hello: &Hello) -> Option<u16> {
        match answer(hello) {
            Answer::Welcome(welcome) => Some(welcome.version),
            Answer::Refusal(_) => None,
        }
    }

    #[test]
    fn both_builds_of_one_release_agree() {
        let welcome = accept(answer(&Hello::of_this_build())).unwrap();
        assert_eq!(welcome.version, NEWEST_VERSION);
    }

    #[test]
    fn the_newest_version_that_both_speak_is_chosen() {
        assert_eq!(agreed(&hello(0, u16::MAX)), Some(NEWEST_VERSION));
        assert_eq!(agreed(&hello(OLDEST_VERSION, OLDEST_VERSION)), Some(OLDEST_VERSION));
        assert_eq!(agreed(&hello(0, OLDEST_VERSION - 1)), None);
        assert_eq!(agreed(&hello(NEWEST_VERSION + 1, u16::MAX)), None);
        assert_eq!(agreed(&hello(u16::MAX, 0)), None);
    }

    #[test]
    fn a_stranger_is_refused_on_both_sides() {
        let stranger = Hello { magic: *b"HTTP/1.1", ..Hello::of_this_build() };
        assert_eq!(agreed(&stranger), None);
        let welcome = Welcome { magic: stranger.magic, version: NEWEST_VERSION, software: String::new() };
        assert_eq!(accept(Answer::Welcome(welcome)), Err(HandshakeError::WrongMagic));
    }

    #[test]
    fn a_version_that_was_not_offered_is_not_accepted() {
        for version in [OLDEST_VERSION - 1, NEWEST_VERSION + 1, u16::MAX] {
            let welcome = Welcome { magic: MAGIC, version, software: String::new() };
            assert_eq!(accept(Answer::Welcome(welcome)), Err(HandshakeError::WrongVersion { version }));
        }
    }

    #[test]
    fn a_peer_with_a_long_name_is_refused_in_a_text_that_can_be_sent() {
        let software = "🦀".repeat(MAX_FRAME / 4 - 16);
        let refusal = answer(&Hello { software: software.clone(), ..hello(0, 0) });
        let mut bytes = Vec::new();
        frame::write(&refusal, &mut bytes).unwrap();
        assert!(bytes.len() < 1024);

        let refusal = Answer::Refusal(Refusal { oldest: 1, newest: 1, reason: software });
        match accept(refusal) {
            Err(HandshakeError::Refused(reason)) => assert_eq!(reason.len(), MAX_FAILURE_TEXT),
            other => panic!("{other:?}"),
        }
    }
}
