//! Outcomes for tests.

use crate::KillStrength;
use crate::call::{CallId, Exit, KillReason, Outcome, Receipt, Status};

/// An outcome of which only the status and the exit are said.
pub(crate) fn outcome(status: Status, exit: Option<Exit>) -> Outcome {
    let outcome = Outcome::not_started(CallId::new("c1"), "sh");
    Outcome { status, exit, started: true, side_effects_possible: true, attempts: 1, ..outcome }
}

/// A receipt of a confirmed death.
pub(crate) fn receipt(reason: KillReason) -> Receipt {
    Receipt {
        strength: KillStrength::PidNamespace,
        reason,
        deadline_ms: Some(1000),
        signalled_after_us: Some(112),
        dead_after_us: Some(263),
        confirmed: true,
        survivors: 0,
        background_killed: 0,
    }
}
