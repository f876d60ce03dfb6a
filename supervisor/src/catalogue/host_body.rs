//! The body of a tool that runs in the host's own process.

use crate::call::CallContext;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use toolexec_protocol::failure::Failure;

/// What a tool returns: the text of a JSON value.
pub type Returned = Result<String, Failure>;

/// One call's work, on the thread that the executor gives it.
pub(crate) type Work = Box<dyn FnOnce(&tokio::runtime::Handle) -> Option<Returned> + Send>;

/// The body of a tool that runs in the host's own process: a function, and how a call of it is begun.
#[derive(Clone)]
pub struct HostBody {
    begin: Arc<dyn Fn(String, CallContext) -> Work + Send + Sync>,
    /// Whether it ends soon after it was asked to stop.
    cooperative: bool,
}

impl HostBody {
    /// A body that computes, or waits in the manner of threads. The first argument is the text of a JSON object.
    ///
    /// Nothing can end it but itself; see [`CallContext`].
    pub fn blocking(body: impl Fn(String, CallContext) -> Returned + Send + Sync + 'static) -> Self {
        let body = Arc::new(body);
        let begin = move |arguments, call| -> Work {
            let body = Arc::clone(&body);
            Box::new(move |_| Some(body(arguments, call)))
        };
        Self { begin: Arc::new(begin), cooperative: false }
    }

    /// A body that waits in the manner of futures: when it is asked to stop it is dropped at its next `await`, so a future that
    /// never blocks its thread is cooperative by nature.
    pub fn asynchronous<F>(body: impl Fn(String, CallContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Returned> + Send + 'static,
    {
        let body = Arc::new(body);
        let begin = move |arguments, call: CallContext| -> Work {
            let body = Arc::clone(&body);
            Box::new(move |runtime| {
                runtime.block_on(async move {
                    let future = body(arguments, call.clone());
                    tokio::select! {
                        biased;
                        returned = future => Some(returned),
                        () = call.given_up() => None,
                    }
                })
            })
        };
        Self { begin: Arc::new(begin), cooperative: true }
    }

    /// Promises that the body ends soon after it was asked to stop. Without it, a tool with a time limit is warned about
    /// when its table is made.
    #[must_use]
    pub fn cooperative(self) -> Self {
        Self { cooperative: true, ..self }
    }

    pub(crate) fn is_cooperative(&self) -> bool {
        self.cooperative
    }

    pub(crate) fn begin(&self, arguments: String, call: CallContext) -> Work {
        (self.begin)(arguments, call)
    }
}

impl fmt::Debug for HostBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBody").field("cooperative", &self.cooperative).finish_non_exhaustive()
    }
}
