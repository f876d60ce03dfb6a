//! On what was measured: a ratio is read together with it.

use rustix::fs::statfs;
use rustix::system::uname;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

/// A machine and how busy it was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) cpus: usize,
    /// How many processes wanted to run, on the average of the last minute, before the first figure.
    pub(crate) load: Option<f64>,
    /// What kind of file system the workers' scratch directories are on: making and removing one may cost a hundred times
    /// more on a disk than in memory.
    pub(crate) scratch: String,
}

impl Machine {
    /// This one, now.
    pub(crate) fn now() -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok();
        Self {
            kernel: uname().release().to_string_lossy().into_owned(),
            cpus: available_parallelism().map_or(1, usize::from),
            load: load.and_then(|text| text.split(' ').next()?.parse().ok()),
            scratch: file_system(&std::env::temp_dir()),
        }
    }
}

/// The name of a file system's kind, or its number; see statfs(2).
fn file_system(path: &Path) -> String {
    match statfs(path).map(|seen| seen.f_type as u32) {
        Ok(0x0102_1994) => "tmpfs".into(),
        Ok(0xef53) => "ext4".into(),
        Ok(0x5846_5342) => "xfs".into(),
        Ok(0x9123_683e) => "btrfs".into(),
        Ok(0x794c_7630) => "overlayfs".into(),
        Ok(other) => format!("{other:#x}"),
        Err(error) => format!("unknown: {error}"),
    }
}
