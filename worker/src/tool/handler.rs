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
}

impl<F: Fn(&[u8]) -> Result<Vec<u8>, Failure>> Handler for F {
    fn call(&self, arguments: &[u8]) -> Result<Vec<u8>, Failure> {
        self(arguments)
    }
}
