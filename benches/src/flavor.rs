//! The async runtimes in which calls are made.

use tokio::runtime::{Builder, Runtime};

/// The async runtime that a host runs calls in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flavor {
    /// One thread, as the `toolexec` command has it.
    OneThread,
    /// A thread for each CPU, as most servers have it; the calls are made from a task.
    ManyThreads,
}

impl Flavor {
    pub(crate) const ALL: [Self; 2] = [Self::OneThread, Self::ManyThreads];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OneThread => "one-thread runtime",
            Self::ManyThreads => "multi-thread runtime",
        }
    }

    /// Runs a task to its end in a runtime of this kind.
    pub(crate) fn run<T: Send + 'static>(
        self,
        task: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> anyhow::Result<T> {
        let runtime = self.runtime()?;
        runtime.block_on(async { tokio::spawn(task).await? })
    }

    fn runtime(self) -> std::io::Result<Runtime> {
        match self {
            Self::OneThread => Builder::new_current_thread().enable_all().build(),
            Self::ManyThreads => Builder::new_multi_thread().enable_all().build(),
        }
    }
}
