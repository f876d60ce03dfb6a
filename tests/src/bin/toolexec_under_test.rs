//! The `toolexec` command once more, as a binary of this package, where its tests can find it.
//!
//! It has another name, since two binaries of one workspace would overwrite each other under one.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolexec::cli::main(toolexec::Tools::new())
}
