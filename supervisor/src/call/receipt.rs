//! The proof of how a call's processes ended.

use serde::{Serialize, Serializer};
use toolexec_protocol::strength::KillStrength;

/// Why a call's processes were ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KillReason {
    /// The call was over; what was left in the background was ended with it.
    Finished,
    /// The time limit was reached.
    Deadline,
    /// The caller withdrew, or dropped the call.
    Cancelled,
    /// The reader of the output went away.
    ReaderGone,
    /// The executor was closed.
    Closed,
    /// The worker broke the protocol.
    Protocol,
    /// The worker was lost, and its tree was ended to be sure.
    Lost,
}

/// What the supervisor did and saw. All times are of `CLOCK_BOOTTIME`, so they go on while the host sleeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Receipt {
    /// The mechanism of the kill.
    #[serde(serialize_with = "strength")]
    pub strength: KillStrength,
    /// Why.
    pub reason: KillReason,
    /// The time limit in milliseconds, where the call had one.
    pub deadline_ms: Option<u64>,
    /// From the deadline (or from the reason, where it is another) to the kill signal, in microseconds.
    pub signalled_after_us: Option<u64>,
    /// From the deadline (or the reason) to the confirmed death of the whole tree, in microseconds.
    pub dead_after_us: Option<u64>,
    /// Whether the kernel, or the sweeping parent, has confirmed that nothing of the tree is left.
    pub confirmed: bool,
    /// Processes that could not be shown to be dead.
    pub survivors: u32,
    /// Processes that the tool had left in the background and that were killed when it was over.
    pub background_killed: u32,
}

fn strength<S: Serializer>(strength: &KillStrength, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(strength.as_str())
}
