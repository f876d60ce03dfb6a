//! The zygote's table of children: pure, it is told what happened and says what to do.

use std::collections::HashMap;
use toolexec_protocol::id::WorkerId;

/// Which process is which worker.
#[derive(Debug, Default)]
pub(crate) struct Children {
    by_pid: HashMap<i32, WorkerId>,
}

/// What a reaped process was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Was {
    /// A worker (or its guardian).
    Worker(WorkerId),
    /// Something that a dead guardian had left to this process.
    Orphan,
}

impl Children {
    /// A worker was forked.
    pub(crate) fn on_forked(&mut self, pid: i32, worker: WorkerId) {
        self.by_pid.insert(pid, worker);
    }

    /// A process was reaped; its number may be another's from now on.
    pub(crate) fn on_reaped(&mut self, pid: i32) -> Was {
        self.by_pid.remove(&pid).map_or(Was::Orphan, Was::Worker)
    }

    /// Whether a process is a worker that was not reaped yet.
    pub(crate) fn is_worker(&self, pid: i32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    /// The processes that were not reaped yet.
    pub(crate) fn pids(&self) -> impl Iterator<Item = i32> {
        self.by_pid.keys().copied()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_pid.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_the_new_worker() {
        let mut children = Children::default();
        children.on_forked(10, WorkerId(1));
        assert!(children.is_worker(10));
        assert_eq!(children.on_reaped(10), Was::Worker(WorkerId(1)));
        assert_eq!(children.on_reaped(10), Was::Orphan);
        children.on_forked(10, WorkerId(2));
        assert_eq!(children.pids().collect::<Vec<_>>(), [10]);
        assert_eq!(children.on_reaped(10), Was::Worker(WorkerId(2)));
        assert_eq!(children.len(), 0);
    }
}
