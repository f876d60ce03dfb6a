//! The call while it runs: the executor, the output that is passed on, the line on the terminal.

use super::super::lane::while_moving;
use super::super::refusal::Refusal;
use super::super::relay::Relay;
use super::super::screen::{APPEARS_AFTER, StatusLine};
use super::{Facts, Manner, Outlets, PATIENCE};
use crate::call::{Outcome, ToolCall};
use crate::filter::Chain;
use crate::{Executor, ExecutorBuilder};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// When a call should be over, counted from its deadline or from its withdrawal: 50 ms. The kill takes a millisecond or
/// so. A tool that still runs has no right to be held output for, and a flood would fill memory with it; the executor
/// begins to give output up only after 250 ms.
const OVER_AFTER: Duration = Duration::from_millis(50);

/// A call that is over.
pub(super) struct Performed {
    pub(super) outcome: Outcome,
    /// When the outcome was there.
    pub(super) at: Instant,
    /// What ran it; `None` where that could not be started.
    pub(super) executor: Option<Arc<Executor>>,
}

/// Starts the executor and makes the call.
pub(super) async fn perform(
    executor: ExecutorBuilder,
    call: ToolCall,
    relay: Option<&mut Relay>,
    cancel: &CancellationToken,
    facts: &Facts,
    manner: Manner,
    outlets: &Outlets,
) -> Performed {
    let executor = match executor.start().await {
        Ok(executor) => Arc::new(executor),
        Err(error) => {
            let refusal = Refusal::of_the_host(format!("{:#}", anyhow::Error::new(error)));
            return Performed { outcome: refusal.into_outcome(&facts.label), at: Instant::now(), executor: None };
        }
    };
    // With what the tool declares about itself, such as a retry.
    let chain = Chain::new(Arc::clone(&executor));
    let outcome = tokio::select! {
        outcome = chain.call(call.cancelled_by(cancel.clone())) => outcome,
        never = pass_on(relay, cancel, facts.timeout, outlets) => match never {},
        never = status_line(facts, manner, outlets) => match never {},
    };
    Performed { outcome, at: Instant::now(), executor: Some(executor) }
}

/// Passes the output on. When the call should be over, what is left is held; and where even that does not let the
/// executor come to its end, because the tool has left too much, a withdrawn call waits for no reader.
async fn pass_on(
    relay: Option<&mut Relay>,
    cancel: &CancellationToken,
    timeout: Option<Duration>,
    outlets: &Outlets,
) -> Infallible {
    if let Some(relay) = relay {
        let Outlets { output, error, .. } = outlets;
        let should_be_over = async {
            match timeout {
                Some(timeout) => drop(tokio::time::timeout(timeout, cancel.cancelled()).await),
                None => cancel.cancelled().await,
            }
            tokio::time::sleep(OVER_AFTER).await;
        };
        let is_all = tokio::select! {
            () = relay.pass_on(output, error) => true,
            () = should_be_over => false,
        };
        if !is_all {
            relay.hold_the_rest();
            let standstill = async {
                cancel.cancelled().await;
                while_moving([output, error], Instant::now(), PATIENCE, pending::<()>()).await;
            };
            tokio::select! {
                () = relay.pass_on(output, error) => {}
                () = standstill => relay.close(),
            }
        }
    }
    pending().await
}

async fn status_line(facts: &Facts, manner: Manner, outlets: &Outlets) -> Infallible {
    let started = Instant::now();
    if manner.status_line {
        tokio::time::sleep(APPEARS_AFTER).await;
        let _shown = StatusLine::show(Arc::clone(&outlets.screen), &facts.label, started, facts.timeout);
        return pending().await;
    }
    pending().await
}
