//! The receipt: what was done to end a call's processes, and what was seen of it.

use super::classify::End;
use crate::call::{KillReason, Policy, Receipt, Status};
use crate::deadline::Moment;
use crate::process::{Fate, WorkerProcess};

/// The proof of how a call's processes ended; `None` where none was started.
pub(super) fn receipt(process: &WorkerProcess, end: &End, status: Status, policy: &Policy) -> Option<Receipt> {
    let ended_by_itself = Receipt {
        strength: process.strength,
        reason: KillReason::Finished,
        deadline_ms: policy.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        signalled_after_us: None,
        dead_after_us: None,
        // Before it replied, the worker had seen that nothing was left below it.
        confirmed: true,
        survivors: 0,
        background_killed: 0,
    };
    match end {
        // Nothing was started, or nothing that could be killed.
        End::Refused(_) | End::TooWeak { .. } | End::TooLarge(_) | End::Host(_) => None,
        End::Replied(reply) => {
            // One that ended on request did so because its time was nearly up.
            let reason = if status == Status::TimedOut { KillReason::Deadline } else { KillReason::Finished };
            Some(Receipt { reason, background_killed: reply.background_killed, ..ended_by_itself })
        }
        End::Condemned { reason, fate, .. } => {
            let after = |moment: Moment| process.condemned_at().map(|reason| moment.us_since(reason));
            let (dead_at, confirmed, survivors) = match *fate {
                Fate::Dead { at } => (Some(at), true, 0),
                Fate::Survivors { at, count } => (Some(at), false, count),
                Fate::Unconfirmed | Fate::Pending => (None, false, 1),
            };
            Some(Receipt {
                reason: *reason,
                signalled_after_us: process.signalled_at().and_then(after),
                dead_after_us: dead_at.and_then(after),
                confirmed,
                survivors,
                ..ended_by_itself
            })
        }
    }
}
