//! Which program `toolexec` forks its workers from: the small one beside it, if that was built with it, or itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolexec_tests::launch::Toolexec;
use toolexec_tests::marker::Marker;

const TOOLEXEC: &str = env!("CARGO_BIN_EXE_toolexec_under_test");
const SMALL_WORKER: &str = env!("CARGO_BIN_EXE_small_worker_under_test");

/// A `toolexec` in a directory of its own, with `worker` beside it.
struct Installed {
    directory: tempfile::TempDir,
}

impl Installed {
    fn with(worker: Option<&Path>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let installed = Self { directory };
        installed.copy(Path::new(TOOLEXEC), "toolexec");
        if let Some(worker) = worker {
            installed.copy(worker, "toolexec-worker");
        }
        installed
    }

    /// By another process: a file that this one writes may be held open by what another test starts meanwhile, and is not
    /// executable then (`ETXTBSY`).
    fn copy(&self, program: &Path, name: &str) {
        assert!(Command::new("cp").arg(program).arg(self.program(name)).status().unwrap().success());
    }

    fn program(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a command to its end, and gives back the name of the program that its zygote was.
    fn zygotes_program(&self, marker: &Marker) -> String {
        let toolexec = Toolexec::new(self.program("toolexec"));
        let mut running = toolexec.run_shell(&["--timeout", "20"], &format!("sleep {marker}")).watching(marker).start();
        let sleeps = running.await_sleeps(1);
        let zygote = sleeps[0].line_up_to(running.pid()).unwrap().pop().unwrap();
        let program = fs::read_link(format!("/proc/{}/exe", zygote.pid)).unwrap();
        assert_eq!(program.parent(), Some(self.directory.path()), "{zygote:?}");
        running.signal(rustix::process::Signal::INT);
        running.finish().assert_code(130);
        program.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

#[test]
fn small_worker_of_the_same_build_is_used() {
    assert_eq!(Installed::with(Some(Path::new(SMALL_WORKER))).zygotes_program(&Marker::new(40661)), "toolexec-worker");
}

#[test]
fn without_a_small_worker_toolexec_is_its_own() {
    assert_eq!(Installed::with(None).zygotes_program(&Marker::new(40662)), "toolexec");
}

#[test]
fn anything_else_beside_toolexec_is_not_used() {
    // Programs that end at once, and something that is no program.
    for (worker, marker) in [("/bin/true", 40663), ("/bin/cat", 40664), ("/proc/self/status", 40665)] {
        let installed = Installed::with(Some(Path::new(worker)));
        assert_eq!(installed.zygotes_program(&Marker::new(marker)), "toolexec", "beside {worker}");
    }
}

#[test]
fn small_worker_by_itself_does_nothing() {
    let status = Command::new(SMALL_WORKER).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
