//! What the model providers' JSON means: calls out of a response, tools and results into a request.
//!
//! Values and text go in, values come out. Nothing here opens a connection or runs a tool; `docs/providers.md` shows the
//! shapes.

mod adapter;
mod anthropic;
mod calls;
mod document;
mod gemini;
mod heal;
mod names;
mod openai;
mod responses;
mod returned;
mod stream;
#[cfg(test)]
mod tests;
mod wire_id;

pub use adapter::Provider;
pub use document::ResponseError;
pub use heal::Healed;
pub use names::{DeclareError, Names};
pub use stream::{Assembler, StreamError, Streamed};
