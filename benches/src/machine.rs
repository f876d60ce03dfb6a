//! On what was measured: a ratio is read together with it.

use rustix::system::uname;
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread::available_parallelism;

/// A machine and how busy it was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) cpus: usize,
    /// How many processes wanted to run, on the average of the last minute, before the first figure.
    pub(crate) load: Option<f64>,
}

impl Machine {
    /// This one, now.
    pub(crate) fn now() -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok();
        Self {
            kernel: uname().release().to_string_lossy().into_owned(),
            cpus: available_parallelism().map_or(1, usize::from),
            load: load.and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }
}
