//! Finding a program as execvp(3) does, but in the tool's own `PATH`.
//!
//! Done here, before the fork: the child of a `vfork` shares this process's memory and does as little as it can.

use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use toolexec_protocol::message::StartFailure;

/// The `PATH` of a tool that has none; execvp(3) uses the same, without the current directory.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds `program`: a name with a slash is itself, anything else is looked up in `path`.
///
/// # Errors
/// [`StartFailure::NotFound`], or [`StartFailure::NotExecutable`] when one was found that may not be executed and
/// none that may.
pub(crate) fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, StartFailure> {
    if program.is_empty() {
        return Err(StartFailure::NotFound);
    }
    if program.as_bytes().contains(&b'/') {
        return Ok(program.into());
    }
    let mut denied = None;
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        let candidate = join(&directory, program);
        if !candidate.is_file() {
            continue;
        }
        match accessat(CWD, &candidate, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => return Ok(candidate),
            Err(error) => denied = Some(StartFailure::NotExecutable { errno: error.raw_os_error() }),
        }
    }
    Err(denied.unwrap_or(StartFailure::NotFound))
}

/// An empty element of `PATH` means the current directory; `./` keeps it from being looked up again.
fn join(directory: &Path, program: &OsStr) -> PathBuf {
    if directory.as_os_str().is_empty() {
        let mut path = OsString::from("./");
        path.push(program);
        path.into()
    } else {
        directory.join(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_text(program: &str, path: Option<&str>) -> Result<PathBuf, StartFailure> {
        find(program.as_ref(), path.map(OsStr::new))
    }

    #[test]
    fn a_name_is_looked_up_and_a_path_is_not() {
        assert_eq!(find_text("sh", Some("/nowhere:/bin")), Ok("/bin/sh".into()));
        assert_eq!(find_text("sh", None), Ok("/bin/sh".into()));
        assert_eq!(find_text("./sh", Some("/bin")), Ok("./sh".into()));
        assert_eq!(find_text("sh", Some("/nowhere")), Err(StartFailure::NotFound));
        assert_eq!(find_text("", Some("/bin")), Err(StartFailure::NotFound));
    }

    #[test]
    fn a_file_without_the_right_to_execute_is_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("tool"), "").unwrap();
        let path = format!("{}:/nowhere", directory.path().display());
        assert_eq!(find_text("tool", Some(&path)), Err(StartFailure::NotExecutable { errno: libc::EACCES }));
    }
}
