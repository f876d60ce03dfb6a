//! A streamed response, put together again from its events.

mod anthropic;
mod assembler;
mod event;
mod gemini;
mod openai;
mod responses;

pub use assembler::{Assembler, StreamError, Streamed};
