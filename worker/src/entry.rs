//! The door: whether this process is to be a zygote.

use crate::channel::Channel;
use crate::serve::serve;
use crate::tool::Toolbox;
use crate::zygote;
use std::os::unix::net::UnixStream;

/// The name (`argv[0]`) by which a supervisor asks a program to be a zygote. The control connection is then the
/// program's standard input.
pub const ZYGOTE_NAME: &str = "toolexec-zygote";

/// Becomes the zygote if a supervisor started this process as one, and never returns then; else returns at once.
///
/// To be called at the top of `main`, before any thread exists: a zygote forks, and refuses to with more than
/// one thread.
pub fn become_zygote_if_asked(toolbox: &Toolbox) {
    if asked() {
        zygote::run(&|socket| serve(Channel::new(socket), toolbox))
    }
}

/// As [`become_zygote_if_asked`], for a program with a worker loop of its own: `serve` gets a worker's call
/// socket, and what it returns is the worker's exit status.
///
/// For worker programs in other languages' runtimes and for tests of hostile ones.
pub fn zygote_serving(serve: &dyn Fn(UnixStream) -> i32) {
    if asked() {
        zygote::run(serve)
    }
}

fn asked() -> bool {
    std::env::args_os().next().is_some_and(|name| name == ZYGOTE_NAME)
}
