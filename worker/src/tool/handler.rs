//! The trait that tool authors implement.

use toolexec_protocol::failure::Failure;

/// A tool that is compiled into a worker program.
///
/// It runs in a worker process of its own: a panic, an abort, a stack overflow or an endless loop in it costs the
/// call and nothing else. What it prints is the call's output. It starts no thread that outlives the call.
pub trait Handler {
    /// Does one call. `arguments` is the text of a JSON object, and so is what is returned of a JSON value.
    ///
    /// # Errors
    /// What the model should read about the tool's failure.
    fn call(&self, arguments: &[u8]) -> Result<Vec<u8>, Failure>;

    /// Does one call of a tool that reads or writes the slots that calls have in common. `context` is the text of a JSON
    /// object, the slots with their values, and empty for a tool that does not declare that it reads them.
    ///
    /// # Errors
    /// As [`Handler::call`].
    fn call_in_context(&self, arguments: &[u8], context: &[u8]) -> Result<Returned, Failure> {
        let _not_read = context;
        self.call(arguments).map(|value| Returned { value, writes: Vec::new() })
    }
}

/// What a tool returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned {
    /// The text of a JSON value.
    pub value: Vec<u8>,
    /// The slots to be written with their values: the text of a JSON object, or nothing.
    pub writes: Vec<u8>,
}

impl<F: Fn(&[u8]) -> Result<Vec<u8>, Failure>> Handler for F {
    fn call(&self, arguments: &[u8]) -> Result<Vec<u8>, Failure> {
        self(arguments)
    }
}
