//! One file a key. A file is either the whole old state or the whole new one, whoever is killed when.

use super::{PauseStore, StoreError};
use crate::batch::pause::PauseState;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// The longest name of a file that Linux file systems take, in bytes.
const LONGEST_NAME: usize = 255;

const SUFFIX: &str = ".json";

/// A directory with one file for each key. Several processes may use it at once; it has to be on one file system.
#[derive(Debug)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// A store in this directory, which is made for this user alone if it is not there.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(file_error("made", &directory))?;
        Ok(Self { directory })
    }

    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        let refuse = |reason| StoreError::Key { key: key.to_owned(), path: self.directory.clone(), reason };
        if key.is_empty() {
            return Err(refuse("it is empty"));
        }
        let name = file_name(key);
        if name.len() > LONGEST_NAME {
            return Err(refuse("it is too long for the name of a file"));
        }
        Ok(self.directory.join(name))
    }

    fn temporary(&self, prefix: &str) -> Result<NamedTempFile, StoreError> {
        // With mode 0600, as that crate makes all of its files.
        tempfile::Builder::new()
            .prefix(prefix)
            .tempfile_in(&self.directory)
            .map_err(file_error("written to", &self.directory))
    }

    /// Makes what was renamed or removed last over a loss of power.
    fn sync_directory(&self) -> Result<(), StoreError> {
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(file_error("synced", &self.directory))
    }
}

impl PauseStore for FileStore {
    fn save(&self, key: &str, state: &PauseState) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let json = state.to_json().map_err(|source| StoreError::Unstorable {
            key: key.to_owned(),
            path: path.clone(),
            source,
        })?;
        let mut temporary = self.temporary(".saving-")?;
        temporary
            .write_all(json.as_bytes())
            .and_then(|()| temporary.as_file().sync_all())
            .map_err(file_error("written", temporary.path()))?;
        temporary.persist(&path).map_err(|error| file_error("replaced", &path)(error.error))?;
        self.sync_directory()
    }

    fn load(&self, key: &str) -> Result<Option<PauseState>, StoreError> {
        let path = self.path(key)?;
        read(key, &path, &path)
    }

    fn take(&self, key: &str) -> Result<Option<PauseState>, StoreError> {
        let path = self.path(key)?;
        // What cannot be read is not even moved.
        if read(key, &path, &path)?.is_none() {
            return Ok(None);
        }
        // Renaming is what only one can do; it puts the state in the place of an empty file of our own, under a name
        // that nobody looks for, and from there it is removed when it was read.
        let taken = self.temporary(".taken-")?.into_temp_path();
        match fs::rename(&path, &taken) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error("taken", &path)(error)),
        }
        // Before anybody gets the state: or a loss of power could bring it back, to be resumed twice.
        match self.sync_directory().and_then(|()| read(key, &taken, &path)) {
            // Here the file is removed; should that fail, its name is one that nobody reads.
            Ok(state) => Ok(state),
            Err(error) => {
                put_back(taken, &path)?;
                Err(error)
            }
        }
    }

    fn remove(&self, key: &str) -> Result<bool, StoreError> {
        let path = self.path(key)?;
        match fs::remove_file(&path) {
            Ok(()) => {
                self.sync_directory()?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(file_error("removed", &path)(error)),
        }
    }
}

/// Nobody gets the state: another process has replaced it by one that cannot be read, between the look and the taking,
/// or the disk has failed. A state that was saved since has the better right to the name.
fn put_back(taken: TempPath, path: &Path) -> Result<(), StoreError> {
    match taken.persist_noclobber(path) {
        Ok(()) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => {
            let source = error.error;
            // Rather a file under a strange name than none.
            let kept = error.path.keep().map_err(|error| file_error("kept", path)(error.error))?;
            Err(StoreError::File { doing: "put back", path: kept, source })
        }
    }
}

/// Reads a state, which errors name by the `path` that it is known under.
fn read(key: &str, from: &Path, path: &Path) -> Result<Option<PauseState>, StoreError> {
    let file = match File::open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error("read", path)(error)),
    };
    let mut json = Vec::new();
    // One byte more, so that what is too large is seen to be.
    let most = PauseState::MOST_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut json).map_err(file_error("read", path))?;
    PauseState::from_json(&json).map(Some).map_err(|source| StoreError::Unreadable {
        key: key.to_owned(),
        path: path.to_owned(),
        source,
    })
}

/// The name of a key's file: no two keys have the same, none has a slash or begins with a dot.
fn file_name(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + SUFFIX.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name.push_str(SUFFIX);
    name
}

fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::File { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::script::paused_before;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    fn store() -> (TempDir, FileStore) {
        let directory = TempDir::new().unwrap();
        let store = FileStore::open(directory.path().join("pauses")).unwrap();
        (directory, store)
    }

    fn names(store: &FileStore) -> Vec<String> {
        fs::read_dir(&store.directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_pause_is_one_file_that_nobody_else_may_read() {
        let (_directory, store) = store();
        store.save("../etc/pass wd", &paused_before()).unwrap();
        assert_eq!(names(&store), ["%2e%2e%2fetc%2fpass%20wd.json"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&store.path("../etc/pass wd").unwrap()), 0o600);
        assert_eq!(mode(&store.directory), 0o700);
        store.take("../etc/pass wd").unwrap();
        assert_eq!(names(&store), [""; 0]);
    }

    #[test]
    fn what_cannot_be_read_is_named_and_stays() {
        let (_directory, store) = store();
        let path = store.path("talk").unwrap();
        for (content, expected) in [("{\"version\":1,", "it is not a pause"), ("{\"version\":9}", "it is of version 9")]
        {
            fs::write(&path, content).unwrap();
            for error in [store.load("talk").unwrap_err(), store.take("talk").unwrap_err()] {
                let expected_text = format!("the pause of \"talk\" in {} cannot be resumed", path.display());
                assert_eq!(error.to_string(), expected_text);
                let StoreError::Unreadable { source, .. } = error else { panic!("{error}") };
                assert!(source.to_string().starts_with(expected), "{source}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(names(&store), ["talk.json"]);
        }
    }

    #[test]
    fn a_key_that_no_file_can_have_is_refused() {
        let (_directory, store) = store();
        for key in ["", "x".repeat(251).as_str(), "/".repeat(84).as_str()] {
            assert!(matches!(store.save(key, &paused_before()), Err(StoreError::Key { .. })), "{key:?}");
        }
        store.save(&"x".repeat(250), &paused_before()).unwrap();
    }

    #[test]
    fn a_state_that_was_put_back_does_not_replace_a_newer_one() {
        let (_directory, store) = store();
        let path = store.path("talk").unwrap();
        let taken = || {
            let mut taken = store.temporary(".taken-").unwrap();
            taken.write_all(b"old").unwrap();
            taken.into_temp_path()
        };
        put_back(taken(), &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        fs::write(&path, "new").unwrap();
        put_back(taken(), &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(&store), ["talk.json"]);
    }

    #[test]
    fn a_directory_that_cannot_be_is_named() {
        let error = FileStore::open("/proc/pauses").unwrap_err();
        assert_eq!(error.to_string(), "/proc/pauses cannot be made");
    }
}
