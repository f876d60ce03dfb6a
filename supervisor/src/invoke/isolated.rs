//! One call in a worker process: hand it over, watch it, see to its end.
//!
//! The caller's own task does all of it; nothing is spawned. The watchdog's thread ends the call at its deadline
//! whatever this task is doing.

use super::classify::{Broken, End, Promise, Subject, classify};
use super::drain::{Drain, Flow};
use super::proof::receipt;
use super::wire::{Outgoing, Reply, last_words, receive};
use crate::call::{CallId, KillReason, Outcome, OutputMode, Policy, Timing, WorkerPolicy};
use crate::catalogue::OutputSchema;
use crate::deadline::{Limits, Moment};
use crate::pool::{Lease, Pool, Refusal, Want};
use crate::process::{Fate, Worker, WorkerProcess};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolexec_protocol::frame;
use toolexec_protocol::id::Nonce;
use toolexec_protocol::message::{FromWorker, Task, ToWorker};

/// How long the zygote's word on what a dead worker had used is waited for: 100 ms. It comes within a millisecond,
/// or the zygote is stuck; the outcome then says that it is not known.
const USAGE_BOUND: Duration = Duration::from_millis(100);

/// A call that is ready to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: CallId,
    /// The tool's name; reused workers serve one tool only.
    pub(crate) tool: Arc<str>,
    pub(crate) task: Task,
    /// The descriptor that goes with a command's task.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) policy: Policy,
    pub(crate) output: OutputMode,
    /// What its result has to be.
    pub(crate) schema: Option<OutputSchema>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// Runs one call to its one outcome. `closing` is cancelled when the executor is closed.
pub(crate) async fn run(pool: &Pool, plan: Plan, closing: &CancellationToken) -> Outcome {
    let came = Moment::now();
    let Plan { id, tool, task, stdin, policy, output, schema, cancel } = plan;
    let subject = match &task {
        Task::Command(command) => Subject::Command(String::from_utf8_lossy(&command.program).into_owned()),
        Task::Tool { .. } | Task::ToolInContext { .. } => Subject::Tool,
    };
    let refused = |end, policy: &Policy| {
        let mut outcome = Outcome::not_started(id.clone(), &tool);
        classify(&end, policy, &subject).fill(&mut outcome);
        let waited = Moment::now().us_since(came);
        outcome.timing = Timing { queue_us: waited, total_us: waited, ..Timing::default() };
        outcome
    };
    let cancelled = || cancel.as_ref().is_some_and(CancellationToken::is_cancelled);
    if cancelled() {
        return refused(End::Refused(Refusal::Withdrawn), &policy);
    }
    let want = match policy.worker {
        WorkerPolicy::Fresh => Want::Fresh,
        WorkerPolicy::Reuse { .. } => Want::Served(Arc::clone(&tool)),
    };
    let call = pool.nonce();
    let lasts = |served: u32| match policy.worker {
        WorkerPolicy::Fresh => true,
        WorkerPolicy::Reuse { max_calls } => served.saturating_add(1) >= max_calls.get(),
    };
    let mut lease = match pool.lease(want, policy.queue_timeout, cancel.as_ref()).await {
        Ok(lease) => lease,
        Err(refusal) => return refused(End::Refused(refusal), &policy),
    };
    let leased = Moment::now();
    let watchdog = lease.watchdog().clone();
    let Some(worker) = lease.worker() else {
        return refused(End::Refused(Refusal::Closed), &policy);
    };
    if worker.process.strength < policy.kill {
        let offered = worker.process.strength;
        lease.finish();
        return refused(End::TooWeak { offered }, &policy);
    }
    let last = lasts(worker.calls);
    let mut frame = Vec::new();
    if let Err(error) = frame::write(&ToWorker::Call { nonce: call, last, task }, &mut frame) {
        // Nothing was said to it, so it is as good as before; but a fresh worker is cheap and this is rare.
        lease.finish();
        return refused(End::TooLarge(error), &policy);
    }
    let drain = Drain::new(output, policy.output.unwrap_or(Policy::DEFAULT_OUTPUT));
    let process = Arc::clone(&worker.process);
    let begun = process.begin(call);
    let handed = Moment::now();
    let armed = policy.timeout.filter(|_| begun).map(|timeout| {
        let kill = handed.saturating_add(timeout);
        let ask_to_end = policy.grace.map(|grace| handed.saturating_add(timeout.saturating_sub(grace)));
        watchdog.arm(&process, call, Limits { ask_to_end, kill })
    });

    let mut running = Running { call, drain, outgoing: Outgoing::new(frame, stdin), handed_over: None };
    let ended = running.until_end(worker, cancel.as_ref(), closing).await;
    let replied = Moment::now();
    drop(armed);
    let end = match ended {
        BodyEnd::Reply(reply) => End::Replied(reply),
        BodyEnd::Condemned => see_to_the_end(&process, worker, call, None).await,
        BodyEnd::Condemn(reason) => {
            if process.record_kill(call, reason, replied) {
                watchdog.kill(&process);
            }
            see_to_the_end(&process, worker, call, None).await
        }
        BodyEnd::Broken(broken) => {
            let reason = match broken {
                Broken::Closed => KillReason::Lost,
                Broken::Protocol(_) | Broken::SetupFailed(_) => KillReason::Protocol,
            };
            if process.record_kill(call, reason, replied) {
                watchdog.kill(&process);
            }
            see_to_the_end(&process, worker, call, Some(broken)).await
        }
    };
    let settled = Moment::now();
    let Running { mut drain, handed_over, .. } = running;
    let patient = matches!(end, End::Replied(_));
    drain.finish(&worker.stdout, &worker.stderr, patient, cancel.as_ref(), closing).await;
    let drained = Moment::now();

    let mut outcome = Outcome::not_started(id, &tool);
    outcome.attempts = 1;
    (outcome.stdout, outcome.stderr) = drain.captured();
    let promise = Promise { output: schema.as_ref(), stdout: &outcome.stdout };
    let verdict = classify(&end, &policy, &subject).held_to(promise);
    outcome.receipt = receipt(&process, &end, verdict.status, &policy).filter(|_| verdict.started);
    verdict.fill(&mut outcome);
    // What ended the body: the reply, or the reason of the kill.
    let body_over = match &end {
        End::Replied(_) => replied,
        _ => process.condemned_at().unwrap_or(replied),
    };
    let dead_at = match &end {
        End::Replied(_) => None,
        _ => match process.fate() {
            Fate::Dead { at } | Fate::Survivors { at, .. } => Some(at),
            Fate::Pending | Fate::Unconfirmed => Some(settled),
        },
    };
    let was_handed_over = handed_over.is_some();
    let handed_over = handed_over.unwrap_or(handed);
    outcome.timing = Timing {
        queue_us: leased.us_since(came),
        start_us: handed_over.us_since(leased),
        run_us: body_over.us_since(handed),
        kill_us: dead_at.map_or(0, |at| at.us_since(body_over)),
        drain_us: drained.us_since(settled),
        total_us: Moment::now().us_since(came),
    };
    match end {
        End::Replied(reply) if reply.reusable && !last && was_handed_over && process.condemned().is_none() => {
            keep(lease, tool);
        }
        End::Replied(_) => lease.finish(),
        _ => lease.settled(),
    }
    outcome
}

fn keep(mut lease: Lease, tool: Arc<str>) {
    if let Some(worker) = lease.worker() {
        worker.calls = worker.calls.saturating_add(1);
        // Bytes behind the reply are a second one: such a worker is not trusted with another call.
        if worker.frames.buffered() == 0 {
            return lease.keep(tool);
        }
    }
    lease.finish();
}

/// How the running part of a call has ended.
enum BodyEnd {
    /// With a reply that was recorded before any kill.
    Reply(Reply),
    /// Somebody else has condemned the worker: the watchdog, at the deadline.
    Condemned,
    /// It has to be condemned for this reason.
    Condemn(KillReason),
    /// The worker cannot be talked to any more.
    Broken(Broken),
}

struct Running {
    call: Nonce,
    drain: Drain,
    outgoing: Outgoing,
    /// When the last byte of the call was written.
    handed_over: Option<Moment>,
}

impl Running {
    async fn until_end(
        &mut self,
        worker: &mut Worker,
        cancel: Option<&CancellationToken>,
        closing: &CancellationToken,
    ) -> BodyEnd {
        let Worker { process, stdout, stderr, frames, .. } = worker;
        // At once: an idle worker's socket has room for a small call.
        self.write(process);
        loop {
            tokio::select! {
                biased;
                _reason = process.until(WorkerProcess::condemned) => return BodyEnd::Condemned,
                received = receive(process, frames) => return match received {
                    Ok(message) => self.on_message(process, message),
                    Err(broken) => BodyEnd::Broken(broken),
                },
                () = cancelled(cancel) => return BodyEnd::Condemn(KillReason::Cancelled),
                () = closing.cancelled() => return BodyEnd::Condemn(KillReason::Closed),
                () = process.socket.writable(), if self.handed_over.is_none() => self.write(process),
                flow = self.drain.flow(stdout, stderr) => match flow {
                    Flow::Moved => {}
                    Flow::ReaderGone => return BodyEnd::Condemn(KillReason::ReaderGone),
                },
            }
        }
    }

    fn on_message(&self, process: &WorkerProcess, message: FromWorker) -> BodyEnd {
        match message {
            FromWorker::SetupFailed(failure) => BodyEnd::Broken(Broken::SetupFailed(failure)),
            FromWorker::Swept => {
                process.on_swept();
                BodyEnd::Broken(Broken::Closed)
            }
            FromWorker::Reply { nonce, .. } if nonce != self.call => {
                BodyEnd::Broken(Broken::Protocol("it answered another call than it was given".into()))
            }
            FromWorker::Reply { report, background_killed, usage, reusable, .. } => {
                if process.record_reply(self.call) {
                    let asked_to_end = process.asked_to_end();
                    let reusable = reusable && !asked_to_end;
                    BodyEnd::Reply(Reply { report, background_killed, usage, reusable, asked_to_end })
                } else {
                    // The kill was recorded first: the reply is dropped.
                    BodyEnd::Condemned
                }
            }
        }
    }

    fn write(&mut self, process: &WorkerProcess) {
        if self.outgoing.write(&process.socket) {
            self.handed_over = Some(Moment::now());
        }
    }
}

pub(super) async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Waits for a condemned worker's death, and for the zygote's word on it.
async fn see_to_the_end(process: &WorkerProcess, worker: &mut Worker, call: Nonce, broken: Option<Broken>) -> End {
    let settled = process.until_settled().await;
    let told = process.until(|process| process.ended().map(Some).or_else(|| process.is_orphaned().then_some(None)));
    let ended = tokio::time::timeout(USAGE_BOUND, told).await.ok().flatten();
    let reason = process.condemned().unwrap_or(KillReason::Lost);
    let waiting_reply = last_words(process, &mut worker.frames, call);
    if reason == KillReason::Deadline
        && let Some(reply) = waiting_reply
    {
        return End::Replied(reply);
    }
    let fate = match settled {
        // Without a zygote the guardian's word counts, which may have been among the last.
        Fate::Unconfirmed if process.is_orphaned() => process.fate(),
        settled => settled,
    };
    End::Condemned { reason, fate, ended, broken }
}
