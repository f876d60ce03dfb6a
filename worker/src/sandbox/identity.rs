//! Who a worker is inside its own user namespace: the same user and group as outside.
//!
//! Without a map it would be 65534 to itself, and programs that ask who they are would go astray. One line that
//! maps the process's own id needs no privilege; see user_namespaces(7), "Defining user and group ID mappings".

use rustix::process::{Gid, Uid, getegid, geteuid};
use std::fs;
use std::io;

/// A user and a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    user: Uid,
    group: Gid,
}

impl Identity {
    /// This process's. To be asked before the fork: inside of a new user namespace a process sees only the
    /// overflow id in place of its own.
    pub(crate) fn current() -> Self {
        Self { user: geteuid(), group: getegid() }
    }

    /// Maps these ids to themselves in this process's user namespace.
    pub(super) fn keep(self) -> io::Result<()> {
        let (user, group) = (self.user.as_raw(), self.group.as_raw());
        // Without CAP_SETGID outside, the group map is allowed only once setgroups(2) is given up.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    }
}
