//! What a tool says about itself beside its limits.

use std::num::NonZeroU32;
use std::time::Duration;

/// What a tool declares; everything is off unless said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Declared {
    /// A failed call may be made again.
    pub retry: Option<RetryPolicy>,
    /// Calls of a batch run one after the other if one of them is of this tool.
    pub serial: bool,
    /// It wants to be approved before it runs.
    pub sensitive: bool,
    /// Its result is the answer, and not for the model to read.
    pub return_direct: bool,
    /// It reads the context of its batch.
    pub context: bool,
    /// By which it is offered.
    pub tags: Vec<String>,
    /// Under which it is listed.
    pub category: Option<String>,
}

/// How often a failed call is made again. Declaring it is the promise that a second run does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    /// The most further attempts after the first.
    pub max: NonZeroU32,
    /// The pause before the second attempt; it doubles with each. Never zero.
    pub initial: Duration,
}

impl Default for RetryPolicy {
    /// Two further attempts, the first after 200 ms.
    fn default() -> Self {
        Self { max: NonZeroU32::MIN.saturating_add(1), initial: Duration::from_millis(200) }
    }
}
