//! Appends single bytes to a file as fast as it can: `append_forever FILE`.
//!
//! Each byte is a side effect of its own that nobody can take back: one write(2), with nothing in between.

use std::fs::OpenOptions;
use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let path = std::env::args_os().nth(1).expect("a file");
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    loop {
        file.write_all(b".")?;
    }
}
