//! The call while it runs: the executor, the output that is passed on, the line on the terminal.

use super::super::lane::while_moving;
use super::super::refusal::Refusal;
use super::super::relay::Relay;
use super::super::screen::{APPEARS_AFTER, StatusLine};
use super::{Facts, Manner, Outlets, PATIENCE};
use crate::call::{Outcome, ToolCall};
use crate::{Executor, ExecutorBuilder};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// A call that is over.
pub(super) struct Performed {
    pub(super) outcome: Outcome,
    /// When the outcome was there.
    pub(super) at: Instant,
    /// What ran it; `None` where that could not be started.
    pub(super) executor: Option<Executor>,
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
        Ok(executor) => executor,
        Err(error) => {
            let refusal = Refusal::of_the_host(format!("{:#}", anyhow::Error::new(error)));
            return Performed { outcome: refusal.into_outcome(&facts.label), at: Instant::now(), executor: None };
        }
    };
    let outcome = tokio::select! {
        outcome = executor.call(call.cancelled_by(cancel.clone())) => outcome,
        never = pass_on(relay, cancel, outlets) => match never {},
        never = status_line(facts, manner, outlets) => match never {},
    };
    Performed { outcome, at: Instant::now(), executor: Some(executor) }
}

/// Passes the output on. Whoever withdraws a call does not wait for a reader that stands still, not even where the
/// tool has ended by itself meanwhile.
async fn pass_on(relay: Option<&mut Relay>, cancel: &CancellationToken, outlets: &Outlets) -> Infallible {
    if let Some(relay) = relay {
        let Outlets { output, error, .. } = outlets;
        let standstill = async {
            cancel.cancelled().await;
            while_moving([output, error], Instant::now(), PATIENCE, pending::<()>()).await;
        };
        tokio::select! {
            () = relay.pass_on(output, error) => {}
            () = standstill => relay.close(),
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
