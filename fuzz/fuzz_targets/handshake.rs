//! Any greeting is answered, with an answer that can be sent and read; any answer is accepted or refused in words.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;
use toolexec_protocol::handshake::{self, Answer, Hello, MAGIC};
use toolexec_protocol::{Decode, Encode, encoding};

fuzz_target!(|input: &[u8]| {
    if let Some(hello) = canonical::<Hello>(input) {
        let answer = handshake::answer(&hello);
        let mut bytes = Vec::new();
        encoding::encode_into(&answer, &mut bytes).expect("an answer can be sent");
        assert_eq!(canonical::<Answer>(&bytes).as_ref(), Some(&answer));
        if let Answer::Welcome(welcome) = &answer {
            assert!(hello.magic == MAGIC && (hello.oldest..=hello.newest).contains(&welcome.version));
            assert_eq!(handshake::accept(answer.clone()).as_ref(), Ok(welcome));
        }
    }
    if let Some(answer) = canonical::<Answer>(input) {
        match handshake::accept(answer) {
            Ok(welcome) => assert_eq!(welcome.magic, MAGIC),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});

/// What the input reads as, which is written as the input.
fn canonical<T: Decode + Encode + Debug>(input: &[u8]) -> Option<T> {
    let message = encoding::decode::<T>(input).ok()?;
    let mut again = Vec::new();
    encoding::encode_into(&message, &mut again).expect("it fitted before");
    assert_eq!(again, input, "{message:?} has a second encoding");
    Some(message)
}
