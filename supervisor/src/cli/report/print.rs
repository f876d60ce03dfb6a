//! Printing what is small and was made in one piece: lists, findings, scripts, complaints.

use super::remark::{Remark, render};
use crate::cli::exit_code;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Prints `text` to standard output, its colours only where they belong, and gives back the exit code. A reader
/// that went away has had what it wanted.
pub(crate) fn print(text: &str) -> u8 {
    finish(write_to(anstream::stdout(), text))
}

/// Prints `value` as one line of JSON to standard output, and gives back the exit code.
pub(crate) fn json(value: &impl Serialize) -> u8 {
    match serde_json::to_string(value) {
        Ok(text) => finish(write_to(io::stdout(), &(text + "\n"))),
        Err(error) => {
            complain(&format!("cannot write JSON: {error}"));
            exit_code::REFUSED
        }
    }
}

/// Says on standard error what is wrong.
pub(crate) fn complain(text: &str) {
    let text = render(&[Remark::error(text)], false, true);
    // There is no other place to say that nobody reads this one.
    let _nowhere_to_tell = write_to(anstream::stderr(), &text);
}

fn write_to(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

fn finish(written: io::Result<()>) -> u8 {
    match written {
        Ok(()) => exit_code::OK,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit_code::OK,
        Err(error) => {
            complain(&format!("cannot write to standard output: {error}"));
            exit_code::REFUSED
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_failure_of_a_list() {
        assert_eq!(finish(Err(ErrorKind::BrokenPipe.into())), exit_code::OK);
        assert_eq!(finish(Ok(())), exit_code::OK);
        assert_eq!(finish(Err(ErrorKind::StorageFull.into())), exit_code::REFUSED);
    }
}
