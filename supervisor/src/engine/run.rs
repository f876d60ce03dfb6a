//! Running a batch: what every engine here has in common. They differ in how many calls are under way at once.

use super::{BatchOptions, ExecuteError, Executed, Pending, ToolResultObserver};
use crate::batch::{Assembled, Assembly, Batch, Declared, Finished, Plan, Prepared, Round, Settled, resume};
use crate::call::{CallId, Context, RequestedCall, ToolCall};
use crate::filter::Chain;
use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How many calls are under way at once.
#[derive(Clone, Debug)]
pub(super) enum Width {
    /// One.
    One,
    /// As many as there are.
    All,
    /// As many as there are places, of all batches together.
    Places(Arc<Semaphore>),
}

/// What an engine gives to each batch.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub(super) chain: Chain,
    pub(super) width: Width,
    pub(super) default_timeout: Option<Duration>,
    /// Cancelled when the engine is closed.
    pub(super) closing: CancellationToken,
}

impl Engine {
    pub(super) fn new(chain: Chain, width: Width) -> Self {
        Self { chain, width, default_timeout: None, closing: CancellationToken::new() }
    }

    pub(super) async fn execute(&self, pending: Pending, options: BatchOptions) -> Result<Executed, ExecuteError> {
        let BatchOptions { context, records, slots, gate, on_error, remaining, cancel, on_tool_result } = options;
        let declared = |call: &RequestedCall| self.declared(call);
        let prepared = match pending {
            Pending::Asked(calls) => {
                let round = Round { context, records, remaining, on_error };
                Batch::new(calls, declared)?.prepare(gate.as_deref(), round)
            }
            Pending::Paused { state, decision } => resume(&state, decision, on_error, declared)?,
        };
        let assembly = match prepared {
            Prepared::Ready(assembly) => assembly,
            Prepared::Paused(state) => {
                return Ok(Executed { settled: Settled::Paused(state), conflicts: Vec::new(), fold_error: None });
            }
        };
        let assembly = self.run(assembly, cancel, on_tool_result.as_ref()).await;
        let Assembled { settled, conflicts, fold_error, .. } = assembly.finish(&slots);
        for conflict in &conflicts {
            tracing::warn!(%conflict, "calls of one batch have written to one slot");
        }
        Ok(Executed { settled, conflicts, fold_error })
    }

    fn declared(&self, call: &RequestedCall) -> Declared {
        let tools = self.chain.executor().tools();
        match tools.get(&call.name) {
            Some(tool) => Declared::Known { serial: tool.declared.serial, return_direct: tool.declared.return_direct },
            None => Declared::Unknown { message: tools.unknown(&call.name) },
        }
    }

    async fn run(
        &self,
        mut assembly: Assembly,
        cancel: Option<CancellationToken>,
        observer: Option<&ToolResultObserver>,
    ) -> Assembly {
        let (mut waiting, lane) = match assembly.plan() {
            Plan::Lane(places) => (VecDeque::from(places), true),
            Plan::Free(places) => (VecDeque::from(places), false),
        };
        let most = match self.width {
            Width::One => 1,
            Width::All | Width::Places(_) if lane => 1,
            Width::All | Width::Places(_) => usize::MAX,
        };
        // Ends what runs, whoever withdraws it.
        let withdrawn = cancel.as_ref().map_or_else(CancellationToken::new, CancellationToken::child_token);
        let mut running = FuturesUnordered::new();
        let mut closed = false;
        while !(waiting.is_empty() && running.is_empty()) {
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !closed => {
                    closed = true;
                    assembly.on_closed();
                    waiting.clear();
                    withdrawn.cancel();
                }
                () = withdrawn.cancelled(), if !waiting.is_empty() => {
                    assembly.on_cancelled();
                    waiting.clear();
                }
                Some((index, finished)) = running.next(), if !running.is_empty() => {
                    let record = match finished {
                        Some(finished) => assembly.on_outcome(index, finished),
                        None => assembly.on_lost(index),
                    };
                    if let (Some(record), Some(observer)) = (record, observer) {
                        // It observes, and nothing that it does may cost an answer.
                        if catch_unwind(AssertUnwindSafe(|| observer(record))).is_err() {
                            tracing::error!(call = %record.id, "the observer of tool results has panicked");
                        }
                    }
                }
                place = self.place(), if !waiting.is_empty() && running.len() < most => {
                    if let Some(index) = waiting.pop_front()
                        && let Some(call) = assembly.call(index).cloned()
                        && assembly.on_started(index)
                    {
                        let context = assembly.context().clone();
                        running.push(self.call(index, call, context, withdrawn.clone(), place));
                    }
                }
            }
        }
        drop(running);
        assembly
    }

    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        match &self.width {
            Width::One | Width::All => None,
            // Never closed.
            Width::Places(places) => Arc::clone(places).acquire_owned().await.ok(),
        }
    }

    /// One call; `None` where a filter has panicked and nothing is known of it.
    async fn call(
        &self,
        index: usize,
        call: RequestedCall,
        context: Context,
        cancel: CancellationToken,
        place: Option<OwnedSemaphorePermit>,
    ) -> (usize, Option<Finished>) {
        let undeclared =
            self.chain.executor().tools().get(&call.name).is_some_and(|tool| tool.policy.timeout.is_none());
        let mut made = ToolCall { id: CallId::new(call.id), ..ToolCall::new(call.name, call.arguments) };
        made.options.cancel = Some(cancel);
        // By yielding to what the tool declares, and not by taking the shorter one.
        made.options.timeout = self.default_timeout.filter(|_| undeclared);
        made.options.context = context;
        let outcome = AssertUnwindSafe(self.chain.call(made)).catch_unwind().await;
        drop(place);
        if outcome.is_err() {
            tracing::error!("a filter has panicked; its call is told as lost");
        }
        let finished = outcome.ok().map(|mut outcome| {
            let writes = std::mem::take(&mut outcome.writes);
            Finished::new(outcome).with_writes(writes)
        });
        (index, finished)
    }
}
