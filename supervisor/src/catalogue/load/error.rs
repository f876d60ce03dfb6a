//! Why a catalogue could not be loaded, in words.

use super::problem::{DuplicateTool, Problem};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a catalogue could not be loaded.
#[derive(Debug)]
pub enum CatalogueError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is over 1 MiB.
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8, which TOML has to be.
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is not.
        line: usize,
    },
    /// The directory that the catalogue is in cannot be told, because the current directory is gone.
    Directory {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Tools are declared more than once; all further declarations are listed. Nothing else was looked at, because it
    /// is not known which declaration is meant.
    Duplicates {
        /// The file.
        path: PathBuf,
        /// All further declarations, in the order of the file.
        tools: Vec<DuplicateTool>,
    },
    /// Something in it is wrong; all problems are listed, up to 100.
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problems in the order of the file.
        problems: Vec<Problem>,
        /// How many more there are.
        more: usize,
    },
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, .. } => write!(f, "cannot read the catalogue {}", path.display()),
            Self::TooLarge { path } => {
                write!(f, "the catalogue {} is larger than 1 MiB; split it, or make its texts shorter", path.display())
            }
            Self::NotUtf8 { path, line } => {
                write!(f, "{}:{line}: not UTF-8, which a catalogue has to be", path.display())
            }
            Self::Directory { path, .. } => {
                write!(f, "cannot tell the directory that the catalogue {} is in", path.display())
            }
            Self::Duplicates { path, tools } => lines(f, path, tools),
            Self::Invalid { path, problems, more } => {
                lines(f, path, problems)?;
                if *more > 0 {
                    write!(f, "\n{}: and {more} more problems", path.display())?;
                }
                Ok(())
            }
        }
    }
}

/// One line for each, beginning with the file's name.
fn lines(f: &mut fmt::Formatter<'_>, path: &Path, all: &[impl fmt::Display]) -> fmt::Result {
    for (index, one) in all.iter().enumerate() {
        let newline = if index == 0 { "" } else { "\n" };
        write!(f, "{newline}{}:{one}", path.display())?;
    }
    Ok(())
}

impl std::error::Error for CatalogueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } | Self::Directory { source, .. } => Some(source),
            Self::TooLarge { .. } | Self::NotUtf8 { .. } | Self::Duplicates { .. } | Self::Invalid { .. } => None,
        }
    }
}
