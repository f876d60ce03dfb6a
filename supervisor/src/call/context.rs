//! What a tool that runs in the host's own process knows of its call.

use super::{CallId, Context, Writes};
use serde_json::Value;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Why a tool is asked to stop. The first reason is the one that counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StopReason {
    /// Its time is up, or nearly so where it has a grace period.
    Deadline {
        /// The time limit.
        timeout: Duration,
    },
    /// The caller withdrew, or dropped the call.
    Cancelled,
    /// The executor was closed.
    Closed,
}

/// A call, as the tool that serves it in the host's own process sees it. Cheap to clone.
///
/// Nothing ends such a tool by force: it is asked, and has to look. A tool that waits looks by `select!`ing over
/// [`CallContext::stopped`]; one that computes asks [`CallContext::is_stopped`] now and then.
#[derive(Clone, Debug)]
pub struct CallContext {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: CallId,
    tool: Arc<str>,
    token: CancellationToken,
    reason: OnceLock<StopReason>,
    /// Cancelled when the tool is not waited for any more.
    given_up: CancellationToken,
    context: Context,
    writes: Mutex<Writes>,
}

impl CallContext {
    pub(crate) fn new(id: CallId, tool: Arc<str>, context: Context) -> Self {
        let shared = Shared {
            id,
            tool,
            token: CancellationToken::new(),
            reason: OnceLock::new(),
            given_up: CancellationToken::new(),
            context,
            writes: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The call.
    pub fn id(&self) -> &CallId {
        &self.shared.id
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.shared.tool
    }

    /// Waits until the tool is asked to stop, and says why.
    pub async fn stopped(&self) -> StopReason {
        self.shared.token.cancelled().await;
        self.reason().unwrap_or(StopReason::Cancelled)
    }

    /// Whether the tool is asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.shared.token.is_cancelled()
    }

    /// Why the tool is asked to stop, if it is.
    pub fn reason(&self) -> Option<StopReason> {
        self.shared.reason.get().copied().filter(|_| self.is_stopped())
    }

    /// A token that is cancelled when the tool is asked to stop, for libraries that take one. Cancelling it stops nothing
    /// else.
    pub fn token(&self) -> CancellationToken {
        self.shared.token.child_token()
    }

    /// The slots that calls have in common, as they were when the batch began: nobody sees what a sibling writes. Empty unless the tool
    /// declares that it reads them.
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Wants this value written into a slot. It takes effect when the whole batch is over, together with what the other calls
    /// have written, and only if this call succeeds. The last of several values for one slot counts.
    pub fn write(&self, slot: impl Into<String>, value: impl Into<Value>) {
        // Nothing under this lock can panic half-way through a change.
        let mut writes = self.shared.writes.lock().unwrap_or_else(PoisonError::into_inner);
        *writes = std::mem::take(&mut *writes).with(slot, value);
    }

    pub(crate) fn take_writes(&self) -> Writes {
        std::mem::take(&mut self.shared.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn stop(&self, reason: StopReason) {
        // Before the token, so that whoever sees that one sees the reason.
        let _the_first_counts = self.shared.reason.set(reason);
        self.shared.token.cancel();
    }

    /// The tool is asked for the last time: a future is dropped then.
    pub(crate) fn give_up(&self, reason: StopReason) {
        self.stop(reason);
        self.shared.given_up.cancel();
    }

    pub(crate) async fn given_up(&self) {
        self.shared.given_up.cancelled().await;
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.shared.given_up.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallContext {
        CallContext::new(CallId::new("c"), "t".into(), Context::default())
    }

    #[test]
    fn the_first_reason_counts() {
        let call = call();
        assert_eq!((call.is_stopped(), call.reason()), (false, None));
        let deadline = StopReason::Deadline { timeout: Duration::from_secs(1) };
        call.stop(deadline);
        call.stop(StopReason::Closed);
        assert_eq!((call.is_stopped(), call.reason()), (true, Some(deadline)));
        let stopped = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(call.stopped());
        assert_eq!(stopped, deadline);
    }

    #[test]
    fn a_tools_own_token_stops_nothing_else() {
        let call = call();
        call.token().cancel();
        assert!(!call.is_stopped());
        let token = call.token();
        call.stop(StopReason::Cancelled);
        assert!(token.is_cancelled());
    }
}
