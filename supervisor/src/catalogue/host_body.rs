//! The body of a tool that runs in the host's own process.

use crate::call::CallContext;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use toolexec_protocol::failure::Failure;

/// What a tool returns: the text of a JSON value.
pub type Returned = Result<String, Failure>;

/// One call's work, on the thread that the executor gives it. `None` where it was given up before it returned.
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
        let begin = move |arguments, call: CallContext| -> Work {
            let body = Arc::clone(&body);
            Box::new(move |runtime| {
                let _entered = runtime.enter();
                (!call.is_given_up()).then(|| body(arguments, call))
            })
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
                    let given_up = call.clone();
                    // Begun where it is polled, and not after it was given up: from then on nothing of it runs but its drop.
                    let future = async move { body(arguments, call).await };
                    tokio::select! {
                        biased;
                        () = given_up.given_up() => None,
                        returned = future => Some(returned),
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
