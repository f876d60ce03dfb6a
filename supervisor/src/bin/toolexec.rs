//! The `toolexec` command.
fn main() {}
