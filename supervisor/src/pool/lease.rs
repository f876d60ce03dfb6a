//! The right to use one worker: move-only, and dropped unfinished it kills.

use super::shell::Shared;
use crate::call::KillReason;
use crate::deadline::{Moment, Watchdog};
use crate::process::{Phase, Worker};
use std::sync::Arc;

/// A worker that belongs to one call.
#[derive(Debug)]
pub(crate) struct Lease {
    /// `None` only while it is being given back.
    worker: Option<Worker>,
    pool: Arc<Shared>,
}

impl Lease {
    pub(super) fn new(worker: Worker, pool: Arc<Shared>) -> Self {
        Self { worker: Some(worker), pool }
    }

    /// The worker; `None` never happens outside of this type's own methods.
    pub(crate) fn worker(&mut self) -> Option<&mut Worker> {
        self.worker.as_mut()
    }

    pub(crate) fn watchdog(&self) -> &Watchdog {
        self.pool.watchdog()
    }

    /// The call is over and the worker may serve `tool` again.
    pub(crate) fn keep(mut self, tool: Arc<str>) {
        if let Some(worker) = self.worker.take() {
            self.pool.keep(worker, tool);
        }
    }

    /// The call is over and the worker ends. Its tree is empty already, so nobody waits for that, and it comes behind the caller.
    pub(crate) fn finish(mut self) {
        if let Some(worker) = self.worker.take() {
            worker.process.record_retirement(KillReason::Finished);
            self.pool.end_soon(worker);
        }
    }

    /// The worker is condemned and its death was waited for: confirmed, or given up.
    pub(crate) fn settled(mut self) {
        if let Some(worker) = self.worker.take() {
            self.pool.note_fate(worker.process.id, worker.process.fate());
            self.pool.give_back(worker);
        }
    }
}

impl Drop for Lease {
    /// The call was dropped in the middle: its tree is killed, and its place is free when that is confirmed.
    fn drop(&mut self) {
        let Some(worker) = self.worker.take() else {
            return;
        };
        let recorded = match worker.process.phase() {
            Phase::Running(call) | Phase::Asked(call) => {
                worker.process.record_kill(call, KillReason::Cancelled, Moment::now())
            }
            Phase::Idle => worker.process.record_retirement(KillReason::Cancelled),
            Phase::Condemned(_) => false,
        };
        if recorded {
            self.pool.watchdog().kill(&worker.process);
        }
        self.pool.give_back_condemned(worker);
    }
}
