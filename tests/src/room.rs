//! A place of a test's own on the disk, and whether anything is left in it.

use crate::bound::{GONE, assert_gone};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Two directories: one to be the `TMPDIR` of a supervisor, one for the files of tools. Both are removed at the end.
#[derive(Debug)]
pub struct Room {
    directory: TempDir,
}

impl Room {
    /// An empty one.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("toolexec-test-").tempdir().expect("a directory for the test");
        let room = Self { directory };
        // A supervisor that is root may run its tools as somebody else; they have to get in here all the same.
        fs::set_permissions(room.directory.path(), fs::Permissions::from_mode(0o755))
            .expect("open the test's directory");
        for (path, mode) in [(room.temporary(), 0o1777), (room.files(), 0o777)] {
            fs::create_dir(&path).expect("make a directory of the test");
            // Not at its making: the umask would have a say there.
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("open a directory of the test");
        }
        room
    }

    /// What a supervisor gets as its `TMPDIR`.
    pub fn temporary(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// A directory that every tool may write.
    pub fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    /// A file that every tool may make.
    pub fn file(&self, name: &str) -> PathBuf {
        self.files().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, content).expect("write a file of the test");
        path
    }

    /// A copy of a program which only this test starts, so that whatever executes it is this test's.
    pub fn own_copy(&self, program: &Path) -> PathBuf {
        let copy = self.directory.path().join(program.file_name().expect("a program has a name"));
        // A second name of the file will do, where both places are on one file system and the file is ours. Else a
        // process of its own copies it: a file that is open for writing in this process, or for a moment in a child that
        // another test's thread has just forked, cannot be executed.
        if fs::hard_link(program, &copy).is_err() {
            let copied = Command::new("cp").arg(program).arg(&copy).status().expect("start cp");
            assert!(copied.success(), "copy {} to {}", program.display(), copy.display());
        }
        copy
    }

    /// Waits until there is nothing in the `TMPDIR` but, at most, an empty folder of this user.
    ///
    /// # Panics
    /// When something is left.
    #[track_caller]
    pub fn assert_swept(&self) {
        assert_gone(GONE, "files in TMPDIR", || self.left());
    }

    /// What is in the `TMPDIR`, but for an empty folder `toolexec-<uid>`.
    pub fn left(&self) -> Vec<PathBuf> {
        let folder = self.temporary().join(format!("toolexec-{}", rustix::process::getuid().as_raw()));
        let mut left = Vec::new();
        for path in entries(&self.temporary()) {
            if path == folder {
                left.extend(entries(&folder));
            } else {
                left.push(path);
            }
        }
        left
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of the test can be read");
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// What is there of a scratch directory and those that it is in, up to the folder that all supervisors of a user share.
pub fn scratch_left(scratch: &Path) -> Vec<PathBuf> {
    let shared = |directory: &&Path| {
        directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("toolexec-"))
    };
    let own = scratch.ancestors().take_while(|directory| !shared(directory));
    own.filter(|directory| directory.exists()).map(Path::to_path_buf).collect()
}
