//! What a worker sends is a message or none, and a message has one encoding.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolexec_protocol::encoding;
use toolexec_protocol::message::FromWorker;

fuzz_target!(|input: &[u8]| {
    if let Ok(message) = encoding::decode::<FromWorker>(input) {
        let mut again = Vec::new();
        encoding::encode_into(&message, &mut again).expect("it fitted before");
        assert_eq!(again, input, "{message:?} has a second encoding");
    }
});
