//! One call of a tool in the host's own process: begin it on a thread of its own, watch it, ask it to stop.
//!
//! Nothing is killed here, so nothing may be told as killed. A body that has not ended when it was given up is abandoned: its
//! thread goes on, what it still returns is dropped, and it is counted until it ends.

use super::classify::{End, HostEnd, Promise, Work, classify};
use crate::call::{CallContext, CallId, Captured, Context, Outcome, Policy, Status, StopReason, Timing};
use crate::catalogue::{HostBody, OutputSchema, Returned};
use crate::deadline::Moment;
use crate::pool::Refusal;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// How long a tool that was given up may take to end before it counts as abandoned: 100 ms. A future is dropped within
/// microseconds; a thread that looks now and then gets time for one look.
const STOP_BOUND: Duration = Duration::from_millis(100);

/// How many calls run in the host's own process, and how many may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostSettings {
    /// How many run at once, each on a thread of its own; an abandoned one keeps its thread until it ends. At least 1.
    pub threads: std::num::NonZeroUsize,
    /// How many calls may wait for a thread; one more is refused.
    pub queue: usize,
    /// How many abandoned calls may still run before further calls are refused; `None` is no limit.
    pub abandoned: Option<usize>,
}

impl Default for HostSettings {
    /// 512 threads, 1000 waiting calls, no limit on abandoned ones.
    fn default() -> Self {
        Self { threads: std::num::NonZeroUsize::MIN.saturating_add(511), queue: 1000, abandoned: None }
    }
}

/// The threads that in-process tools run on; made when the first is called.
#[derive(Debug)]
pub(crate) struct HostThreads {
    settings: HostSettings,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    abandoned: Arc<AtomicUsize>,
    runtime: Mutex<Option<Runtime>>,
}

impl HostThreads {
    pub(crate) fn new(settings: HostSettings) -> Self {
        Self {
            settings,
            places: Arc::new(Semaphore::new(settings.threads.get().min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
            abandoned: Arc::new(AtomicUsize::new(0)),
            runtime: Mutex::new(None),
        }
    }

    /// How many abandoned calls still run.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Acquire)
    }

    /// A runtime of the tools' own, so that nothing they block is the supervisor's.
    fn handle(&self) -> io::Result<tokio::runtime::Handle> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        // One thread drives timers and I/O and runs no tool; tools get a blocking thread each.
        let made = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(self.settings.threads.get())
            .thread_name("toolexec-host")
            .enable_all()
            .build()?;
        let handle = made.handle().clone();
        *runtime = Some(made);
        Ok(handle)
    }

    /// Waits for a thread.
    async fn place(
        &self,
        policy: &Policy,
        cancel: Option<&CancellationToken>,
        closing: &CancellationToken,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        if closing.is_cancelled() {
            return Err(Refusal::Closed);
        }
        if cancel.is_some_and(CancellationToken::is_cancelled) {
            return Err(Refusal::Withdrawn);
        }
        if let Some(most) = self.settings.abandoned
            && self.abandoned() >= most
        {
            return Err(Refusal::TooManyAbandoned(most));
        }
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let _waiting = Waiting::enter(&self.waiting, self.settings.queue).ok_or(Refusal::QueueFull)?;
        let place = async {
            // Never closed.
            Arc::clone(&self.places).acquire_owned().await.map_err(|_| Refusal::Closed)
        };
        let bounded = async {
            match policy.queue_timeout {
                None => place.await,
                Some(bound) => tokio::time::timeout(bound, place).await.unwrap_or(Err(Refusal::QueueTimeout(bound))),
            }
        };
        tokio::select! {
            biased;
            place = bounded => place,
            () = super::isolated::cancelled(cancel) => Err(Refusal::Withdrawn),
            () = closing.cancelled() => Err(Refusal::Closed),
        }
    }
}

impl Drop for HostThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // Nobody waits for abandoned tools, and an async runtime may be dropping this.
            runtime.shutdown_background();
        }
    }
}

/// A call in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::AcqRel);
        let waiting = Self(count);
        (before < most).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A call of an in-process tool that is ready to be run.
#[derive(Debug)]
pub(crate) struct HostPlan {
    pub(crate) id: CallId,
    pub(crate) tool: Arc<str>,
    pub(crate) body: HostBody,
    /// The text of a JSON object.
    pub(crate) arguments: String,
    pub(crate) policy: Policy,
    /// What its result has to be.
    pub(crate) schema: Option<OutputSchema>,
    pub(crate) cancel: Option<CancellationToken>,
    /// What the tool sees of the slots that calls have in common.
    pub(crate) context: Context,
}

/// Runs one call to its one outcome.
pub(crate) async fn run(threads: &HostThreads, plan: HostPlan, closing: &CancellationToken) -> Outcome {
    let came = Moment::now();
    let HostPlan { id, tool, body, arguments, policy, schema, cancel, context } = plan;
    let place = threads.place(&policy, cancel.as_ref(), closing).await;
    let runtime = place.and_then(|place| {
        let runtime = threads.handle();
        runtime.map(|runtime| (place, runtime)).map_err(|error| Refusal::Spawn(format!("no thread: {error}").into()))
    });
    let begun = Moment::now();
    let queue_us = begun.us_since(came);
    let (place, runtime) = match runtime {
        Ok(ready) => ready,
        Err(refusal) => {
            let mut outcome = Outcome::not_started(id, &tool);
            classify(&End::Refused(refusal), &policy, &Work::Tool).fill(&mut outcome);
            outcome.timing = Timing { queue_us, total_us: queue_us, ..Timing::default() };
            return outcome;
        }
    };

    let call = CallContext::new(id.clone(), Arc::clone(&tool), context);
    let work = body.begin(arguments, call.clone());
    let state = Arc::new(Execution { state: AtomicU8::new(RUNNING), abandoned: Arc::clone(&threads.abandoned) });
    let (sender, mut returned) = oneshot::channel();
    let of_thread = Arc::clone(&state);
    let handle = runtime.clone();
    // Its end is told through the channel, and by the place that comes back.
    let _detached = runtime.spawn_blocking(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&handle)));
        of_thread.on_ended();
        // Nobody hears a late result.
        let _late = sender.send(result);
        drop(place);
    });
    let mut guard = Dropped { call: &call, state: &state, armed: true };
    let ended = watch(&call, &mut returned, &policy, begun, cancel.as_ref(), closing).await;
    let body_over = Moment::now();
    let end = match ended {
        Ok(returned) => HostEnd::from(returned),
        Err(reason) => {
            call.give_up(reason);
            match tokio::time::timeout(STOP_BOUND, &mut returned).await {
                Ok(_) => HostEnd::Stopped(reason),
                Err(_elapsed) if state.abandon() => HostEnd::Abandoned(reason),
                // It ended in the last moment.
                Err(_elapsed) => HostEnd::Stopped(reason),
            }
        }
    };
    guard.armed = false;
    let settled = Moment::now();
    let mut outcome = Outcome::not_started(id, &tool);
    outcome.attempts = 1;
    let promise = Promise { output: schema.as_ref(), stdout: &Captured::default() };
    classify(&End::Host(end), &policy, &Work::Tool).held_to(promise).fill(&mut outcome);
    if outcome.status == Status::Ok {
        outcome.writes = call.take_writes();
    }
    outcome.timing = Timing {
        queue_us,
        start_us: 0,
        run_us: body_over.us_since(begun),
        kill_us: settled.us_since(body_over),
        drain_us: 0,
        total_us: settled.us_since(came),
    };
    outcome
}

type Thrown = Box<dyn Any + Send>;
type Heard = oneshot::Receiver<Result<Option<Returned>, Thrown>>;

/// Waits until the body has returned, or until it has to be given up. A result that is there counts, whatever else has come.
async fn watch(
    call: &CallContext,
    returned: &mut Heard,
    policy: &Policy,
    begun: Moment,
    cancel: Option<&CancellationToken>,
    closing: &CancellationToken,
) -> Result<Result<Option<Returned>, Thrown>, StopReason> {
    let limit = policy.timeout.map(|timeout| (timeout, StopReason::Deadline { timeout }));
    let mut asked = false;
    loop {
        let next = match (limit, policy.grace) {
            (Some((timeout, reason)), Some(grace)) if !asked => Some((timeout.saturating_sub(grace), reason)),
            (limit, _) => limit,
        };
        let last = asked || policy.grace.is_none();
        let up = async {
            match next {
                Some((after, reason)) => {
                    tokio::time::sleep(after.saturating_sub(Moment::now().since(begun))).await;
                    reason
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // The sender is dropped unused only if the thread could not run.
            returned = &mut *returned => return returned.map_err(|_| StopReason::Closed),
            () = super::isolated::cancelled(cancel) => return Err(StopReason::Cancelled),
            () = closing.cancelled() => return Err(StopReason::Closed),
            reason = up => {
                if last {
                    return Err(reason);
                }
                asked = true;
                call.stop(reason);
            }
        }
    }
}

const RUNNING: u8 = 0;
const ENDED: u8 = 1;
const ABANDONED: u8 = 2;

/// Whether a body runs, and whether somebody waits for it: decided by one swap, so that an abandoned body is counted exactly
/// until it ends.
#[derive(Debug)]
struct Execution {
    state: AtomicU8,
    abandoned: Arc<AtomicUsize>,
}

impl Execution {
    fn on_ended(&self) {
        if self.state.swap(ENDED, Ordering::AcqRel) == ABANDONED {
            self.abandoned.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// False when it has ended already.
    fn abandon(&self) -> bool {
        // Counted before it can end, so that the count never goes below zero.
        self.abandoned.fetch_add(1, Ordering::AcqRel);
        let abandoned = self.state.compare_exchange(RUNNING, ABANDONED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !abandoned {
            self.abandoned.fetch_sub(1, Ordering::AcqRel);
        }
        abandoned
    }
}

/// A call that is dropped in the middle asks its tool to stop, and counts it as abandoned until it does.
struct Dropped<'a> {
    call: &'a CallContext,
    state: &'a Execution,
    armed: bool,
}

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.call.give_up(StopReason::Cancelled);
            self.state.abandon();
        }
    }
}
