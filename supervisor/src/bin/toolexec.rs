//! The `toolexec` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolexec::cli::main(&toolexec::worker::Toolbox::default())
}
