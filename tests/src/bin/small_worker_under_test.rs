//! The `toolexec-worker` program once more, as a binary of this package, where its tests can find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolexec::serve_commands()
}
