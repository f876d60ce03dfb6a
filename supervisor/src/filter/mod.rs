//! Filters: what happens around every call, as layers of [`tower`] around the executor.
//!
//! A filter sees the call on its way in and the outcome on its way out, a timeout too: that is an ordinary outcome here. The time
//! limit covers the tool's body alone, so a filter that waits (for an approval, say) uses up none of it. The order has a meaning: what
//! lies outside of the retry sees a call once, what lies inside sees each attempt.

mod approval;
mod chain;
mod redact;
mod retry;
mod trace;

pub use approval::{Approval, ApprovalLayer, ApprovalRequest, ApprovalService};
pub use chain::{CallService, Chain, ChainBuilder};
pub use redact::{RedactLayer, RedactService};
pub use retry::{RetryLayer, RetryService};
pub use trace::{TraceLayer, TraceService};
