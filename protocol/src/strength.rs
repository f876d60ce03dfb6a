//! How surely a kill reaches everything that a call has started.

use bincode::{Decode, Encode};
use std::fmt;

/// The mechanism behind a kill, weakest first, so that `>=` reads "at least as sure as".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub enum KillStrength {
    /// `kill(-pgid)`: misses whatever called `setsid`. Never called a tree kill.
    ProcessGroup,
    /// The worker's parent is a child subreaper and sweeps until `ECHILD`; see `PR_SET_CHILD_SUBREAPER` in prctl(2).
    Subreaper,
    /// `cgroup.kill` and then `populated 0`; see cgroups(7).
    Cgroup,
    /// The worker is process 1 of its own PID namespace, and the kernel kills the rest with it; see pid_namespaces(7).
    PidNamespace,
}

impl KillStrength {
    /// The name used in receipts, catalogues and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProcessGroup => "process-group",
            Self::Subreaper => "subreaper",
            Self::Cgroup => "cgroup",
            Self::PidNamespace => "pid-namespace",
        }
    }

    /// Reads a name; `tree` means the weakest strength that catches a whole tree.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "process-group" => Some(Self::ProcessGroup),
            "tree" | "subreaper" => Some(Self::Subreaper),
            "cgroup" => Some(Self::Cgroup),
            "pid-namespace" => Some(Self::PidNamespace),
            _ => None,
        }
    }
}

impl fmt::Display for KillStrength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
