//! The `toolexec` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolexec::cli::main(toolexec::Tools::new())
}
