//! Gives this build a name, by which `toolexec` knows the `toolexec-worker` that was built with it.
//!
//! A release is told by its version. Between releases the sources of what both share are told apart too, since Cargo builds one
//! of them without the other where only one is asked for.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

/// What both programs share, beside this package. A package that was published has no such neighbours, and a version.
const SHARED: [&str; 2] = ["../worker/src", "../protocol/src"];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for directory in SHARED {
        println!("cargo::rerun-if-changed={directory}");
        for file in files(Path::new(directory))? {
            hasher.write(file.as_os_str().as_encoded_bytes());
            hasher.write(&fs::read(&file)?);
        }
    }
    println!("cargo::rustc-env=TOOLEXEC_BUILD={}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
    Ok(())
}

/// Every file below a directory, in a fixed order; none where there is no such directory.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
