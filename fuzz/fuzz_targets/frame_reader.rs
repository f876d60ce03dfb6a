//! A stream of frames gives the same messages and the same error however it is split, and never more than it
//! holds. The first byte of the input is the size of the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolexec_protocol::frame::{self, FrameReader, HEADER};
use toolexec_protocol::limits::MAX_FRAME;
use toolexec_protocol::message::FromWorker;

fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    let size = usize::from(*size).max(1);
    let whole = read(stream, stream.len().max(1));
    assert_eq!(read(stream, size), whole);

    // What was read is what stood there.
    let mut again = Vec::new();
    whole.messages.iter().for_each(|message| frame::write(message, &mut again).expect("it fitted before"));
    assert!(stream.starts_with(&again));
});

#[derive(PartialEq, Debug)]
struct Read {
    messages: Vec<FromWorker>,
    error: Option<String>,
    /// What the end of the stream means, where no error came before it.
    end: Option<String>,
}

fn read(stream: &[u8], size: usize) -> Read {
    let mut reader = FrameReader::new();
    let mut messages = Vec::new();
    for piece in stream.chunks(size) {
        reader.push(piece);
        loop {
            match reader.next() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return Read { messages, error: Some(error.to_string()), end: None },
            }
        }
        assert!(reader.buffered() < HEADER + MAX_FRAME);
    }
    assert!(reader.end().is_err() || reader.buffered() == 0);
    Read { messages, error: None, end: reader.end().err().map(|error| error.to_string()) }
}
