//! The directory that holds every worker's scratch directory, and the removal of what dead supervisors left.
//!
//! `$TMPDIR/toolexec-UID/run-XXXXXX/`, where the supervisor holds a shared lock on `run-XXXXXX` and each zygote one on
//! its own directory in it. A directory on which nobody holds a lock belongs to nobody alive. The kernel drops a lock
//! with its holder, so nothing that is killed can block the next start.

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, openat, statat};
use rustix::process::geteuid;
use std::fs::{DirBuilder, Permissions, read_dir, remove_dir};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use toolexec_worker::scratch::remove_tree;

/// How often a new directory may be taken away before it is locked: only another start's clean-up does that, and
/// only in the instant between making and locking.
const ATTEMPTS: usize = 100;

/// Why there is no place for scratch directories.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The directory cannot be made or locked.
    #[error("no scratch directory can be made in {}", directory.display())]
    Make {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The directory for this user is somebody else's.
    #[error("{} is not a directory of this user's alone; remove it, or set TMPDIR to another place", directory.display())]
    NotOurs {
        /// Which.
        directory: PathBuf,
    },
}

/// The supervisor's scratch root: made when the first zygote needs it, removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ScratchRoot {
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    run: Option<Run>,
    zygotes: u64,
}

/// A directory of this supervisor's, with the lock that says so.
#[derive(Debug)]
struct Run {
    directory: TempDir,
    _lock: OwnedFd,
}

impl ScratchRoot {
    /// Makes the directory of one more zygote, and before the first one the supervisor's own.
    pub(crate) fn for_zygote(&self) -> Result<PathBuf, ScratchError> {
        // Nothing under this lock can panic half-way through a change.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let number = made.zygotes;
        made.zygotes += 1;
        let run = match &mut made.run {
            Some(run) => run,
            empty => empty.insert(Run::make()?),
        };
        let directory = run.directory.path().join(format!("z{number}"));
        DirBuilder::new().mode(0o700).create(&directory).map_err(make_error(&directory))?;
        Ok(directory)
    }

    /// Removes it if the zygotes have left nothing in it. True when it is gone.
    pub(crate) fn remove_empty(&self) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.run.as_ref().is_none_or(|run| remove_dir(run.directory.path()).is_ok())
    }

    /// Removes all of it. Only for when every zygote has ended.
    pub(crate) fn remove(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        drop(made.run);
    }

    /// Whether there is anything: of supervisors that live, or that are dead. Asked before this one's own is made.
    pub(crate) fn has_neighbours(parent: &Path) -> bool {
        read_dir(parent).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Removes what supervisors that are dead now have left beside this one's directory.
    ///
    /// Blocking, and as long as what they left is large.
    pub(crate) fn remove_stale(parent: &Path) {
        let Ok(entries) = read_dir(parent) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"run-") {
                // What cannot be removed now is tried again at the next start.
                let _later = remove_if_unlocked(&entry.path());
            }
        }
    }

    /// The directory in which each supervisor of this user has its own.
    pub(crate) fn parent() -> io::Result<PathBuf> {
        // A relative TMPDIR would mean another place to a worker, which starts elsewhere.
        std::path::absolute(std::env::temp_dir().join(format!("toolexec-{}", geteuid().as_raw())))
    }
}

impl Run {
    fn make() -> Result<Self, ScratchError> {
        let parent = ScratchRoot::parent().map_err(make_error(&std::env::temp_dir()))?;
        make_private(&parent)?;
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new().prefix("run-").tempdir_in(&parent).map_err(make_error(&parent))?;
            let lock = match open(directory.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock.map_err(make_error(directory.path()))?,
            };
            flock(&lock, FlockOperation::LockShared).map_err(io::Error::from).map_err(make_error(directory.path()))?;
            if is_still(directory.path(), &lock) {
                return Ok(Self { directory, _lock: lock });
            }
        }
        Err(ScratchError::Make { directory: parent, source: io::ErrorKind::NotFound.into() })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // With a remover that withstands what tools make; TempDir's own would give up, and finds nothing after this.
        let _later = remove(self.directory.path());
    }
}

/// Removes a directory and everything below it, whatever a tool has made there.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = open(parent)?;
    remove_tree(parent.as_fd(), name)
}

fn remove_if_unlocked(run: &Path) -> io::Result<()> {
    let lock = open(run)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    let mut zygotes = Vec::new();
    for entry in read_dir(run)?.flatten() {
        // A zygote may outlive its supervisor for the moment in which it cleans up for itself.
        let zygote = open(&entry.path())?;
        flock(&zygote, FlockOperation::NonBlockingLockExclusive)?;
        zygotes.push(zygote);
    }
    remove(run)
}

/// Makes a directory for this user alone. What a tool of the same user may have put in its place, or done to its mode,
/// is put right; what belongs to somebody else is refused.
fn make_private(directory: &Path) -> Result<(), ScratchError> {
    let make = || match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(make_error(directory)(error)),
        Ok(()) | Err(_) => std::fs::symlink_metadata(directory).map_err(make_error(directory)),
    };
    let mut metadata = make()?;
    let user = geteuid().as_raw();
    if metadata.uid() == user && !metadata.is_dir() {
        std::fs::remove_file(directory).map_err(make_error(directory))?;
        metadata = make()?;
    }
    if metadata.uid() != user || !metadata.is_dir() {
        return Err(ScratchError::NotOurs { directory: directory.into() });
    }
    if metadata.mode() & 0o777 != 0o700 {
        std::fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(make_error(directory))?;
    }
    Ok(())
}

fn open(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(CWD, directory, flags, Mode::empty())?)
}

fn is_still(directory: &Path, lock: &OwnedFd) -> bool {
    match (statat(CWD, directory, AtFlags::SYMLINK_NOFOLLOW), fstat(lock)) {
        (Ok(named), Ok(held)) => (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

fn make_error(directory: &Path) -> impl FnOnce(io::Error) -> ScratchError + '_ {
    move |source| ScratchError::Make { directory: directory.into(), source }
}
