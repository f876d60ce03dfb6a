//! Which program becomes the zygote.

use std::ffi::OsString;
use std::path::PathBuf;

/// The program that becomes a zygote and whose forks are the workers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WorkerProgram {
    /// The program's path.
    pub path: PathBuf,
    /// What it gets as its arguments, after its name.
    pub arguments: Vec<OsString>,
}

impl WorkerProgram {
    /// The running program itself, which has to call [`toolexec_worker::become_zygote_if_asked`] at the top of
    /// its `main`. It is found through `/proc/self/exe`, and so is the same build even after an upgrade on disk.
    pub fn this_program() -> Self {
        Self { path: "/proc/self/exe".into(), arguments: Vec::new() }
    }

    /// Another program that speaks toolexec's protocol on its standard input.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), arguments: Vec::new() }
    }
}
