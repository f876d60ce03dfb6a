//! Which program becomes the zygote.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use toolexec_worker::{Toolbox, become_zygote_if_asked};

/// The name of this build; see `build.rs`.
const BUILD: &str = env!("TOOLEXEC_BUILD");

/// The program's name, beside the one that looks for it.
const WORKER_PROGRAM: &str = "toolexec-worker";

/// The exit status of a `toolexec-worker` that was started by anybody but the `toolexec` that it was built with.
const NOT_OURS: u8 = 2;

/// The program that becomes a zygote and whose forks are the workers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WorkerProgram {
    /// The program's path.
    pub path: PathBuf,
    /// What it gets as its arguments, after its name.
    pub arguments: Vec<OsString>,
    /// What is started instead where this one cannot be, or does not become a zygote.
    pub substitute: Option<Box<WorkerProgram>>,
}

impl WorkerProgram {
    /// The running program itself, which has to call [`toolexec_worker::become_zygote_if_asked`] at the top of
    /// its `main`. It is found through `/proc/self/exe`, and so is the same build even after an upgrade on disk.
    pub fn this_program() -> Self {
        Self::at("/proc/self/exe")
    }

    /// Another program that speaks toolexec's protocol on its standard input.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), arguments: Vec::new(), substitute: None }
    }

    /// For workers that run commands and have no tools compiled in: `toolexec-worker` from beside this program, which is
    /// a tenth of its size. Where there is none, or one of another build, it is this program all the same.
    pub fn for_commands() -> Self {
        let this = Self::this_program();
        let beside = std::env::current_exe().map(|program| program.with_file_name(WORKER_PROGRAM));
        match beside {
            Ok(path) if path.is_file() => {
                Self { path, arguments: vec![BUILD.into()], substitute: Some(Box::new(this)) }
            }
            Ok(_) | Err(_) => this,
        }
    }
}

/// The whole of the `toolexec-worker` program, see [`WorkerProgram::for_commands`]: it becomes the zygote of the `toolexec`
/// that it was built with, and of no other.
pub fn serve_commands() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|build| build == BUILD) {
        become_zygote_if_asked(&Toolbox::new());
    }
    // Nothing is said: a `toolexec` of another build has a substitute.
    ExitCode::from(NOT_OURS)
}
