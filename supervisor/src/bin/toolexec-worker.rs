//! The program whose forks run commands for `toolexec`: small, so that it starts quickly and its workers hold little.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolexec::serve_commands()
}
