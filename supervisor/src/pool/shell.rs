//! The pool's shell: does what the state says, with real workers and a real zygote.

use super::PoolSettings;
use super::lease::Lease;
use super::state::{Action, Answer, Returned, State, WaiterId, Want};
use crate::call::KillReason;
use crate::deadline::Watchdog;
use crate::process::{Fate, Reaped, ScratchRoot, Started, Worker, WorkerProgram, Zygote, ZygoteError, ZygoteEvents};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolexec_protocol::frame::FrameReader;
use toolexec_protocol::id::{Nonce, WorkerId};
use toolexec_protocol::message::{FromWorker, SetupFailure};
use toolexec_protocol::strength::KillStrength;

/// Why a call got no worker.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("too many calls wait for a worker already")]
    QueueFull,
    #[error("no worker came free within {0:?}")]
    QueueTimeout(Duration),
    #[error("the call was withdrawn while it waited for a worker")]
    Withdrawn,
    #[error("the executor is closed")]
    Closed,
    #[error("{0} calls that were abandoned still run; no further one is started before one of them ends")]
    TooManyAbandoned(usize),
    #[error("no worker could be made: {0}")]
    Spawn(Arc<str>),
}

/// How a pool is to be made.
#[derive(Debug)]
pub(crate) struct PoolOptions {
    pub(crate) settings: PoolSettings,
    pub(crate) program: WorkerProgram,
    pub(crate) strength: Option<KillStrength>,
    pub(crate) watchdog: Watchdog,
    pub(crate) scratch: ScratchRoot,
}

/// The pool; dropping it ends its zygote, and with it every worker.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

/// What leases and the zygote's task hold of a pool.
#[derive(Debug)]
pub(crate) struct Shared {
    options: PoolOptions,
    runtime: Handle,
    nonces: AtomicU64,
    inner: Mutex<Inner>,
    /// A lease was given back, or a worker has ended.
    returned: Notify,
}

#[derive(Debug)]
struct Inner {
    state: State,
    actions: Vec<Action>,
    idle: HashMap<WorkerId, Worker>,
    waiting: HashMap<WaiterId, oneshot::Sender<Result<Lease, Refusal>>>,
    next_waiter: u64,
    zygote: Slot,
    /// Why the newest fork or start failed.
    last_failure: Arc<str>,
    /// What has to end before the pool has.
    endings: Vec<Ending>,
    starting: Vec<JoinHandle<()>>,
    /// Leases that were not given back.
    leased: usize,
    /// Workers whose lease was dropped and that are not known to be dead.
    condemned: HashSet<WorkerId>,
    /// Workers whose death was given up, and of whom the zygote has not said since that they are gone.
    given_up: HashSet<WorkerId>,
    closed: bool,
}

#[derive(Debug)]
enum Slot {
    /// There is none; the next fork starts one.
    Empty,
    /// It starts; these are to be forked by it.
    Starting(Vec<WorkerId>),
    Ready(Arc<Zygote>),
}

/// What is done outside of the lock.
enum Effect {
    Fork(Arc<Zygote>, WorkerId),
    Start,
    Deliver(oneshot::Sender<Result<Lease, Refusal>>, Worker),
    Refuse(oneshot::Sender<Result<Lease, Refusal>>, Refusal),
    Retire(Worker),
}

impl Pool {
    /// Starts the zygote and asks for the spares.
    pub(crate) async fn start(options: PoolOptions) -> Result<Self, ZygoteError> {
        let inner = Inner {
            state: State::new(options.settings),
            actions: Vec::new(),
            idle: HashMap::new(),
            waiting: HashMap::new(),
            next_waiter: 0,
            zygote: Slot::Empty,
            last_failure: "the worker program has ended".into(),
            endings: Vec::new(),
            starting: Vec::new(),
            leased: 0,
            condemned: HashSet::new(),
            given_up: HashSet::new(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            options,
            runtime: Handle::current(),
            nonces: AtomicU64::new(1),
            inner: Mutex::new(inner),
            returned: Notify::new(),
        });
        let started = shared.start_zygote().await?;
        shared.lock().install(started, &shared.runtime);
        shared.change(State::on_started);
        Ok(Self { shared })
    }

    /// A number that no other call of this pool has.
    pub(crate) fn nonce(&self) -> Nonce {
        Nonce(self.shared.nonces.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits for a worker, in the order of coming.
    pub(crate) async fn lease(
        &self,
        want: Want,
        queue_timeout: Option<Duration>,
        cancel: Option<&CancellationToken>,
    ) -> Result<Lease, Refusal> {
        match queue_timeout {
            None => self.lease_some_time(want, cancel).await,
            Some(bound) => match tokio::time::timeout(bound, self.lease_some_time(want, cancel)).await {
                Ok(result) => result,
                Err(_elapsed) => Err(Refusal::QueueTimeout(bound)),
            },
        }
    }

    async fn lease_some_time(&self, want: Want, cancel: Option<&CancellationToken>) -> Result<Lease, Refusal> {
        loop {
            let lease = match self.shared.want(want.clone()) {
                Wish::Granted(lease) => lease,
                Wish::Refused(refusal) => return Err(refusal),
                Wish::Waits(waiting) => waiting.granted(cancel).await?,
            };
            match usable(lease) {
                Some(lease) => return Ok(lease),
                // It died while it was idle, or said something that nobody had asked for.
                None => continue,
            }
        }
    }

    /// Takes no call any more, waits until every lease was given back and every condemned worker is dead, and ends the
    /// zygote. The caller sees to it that the calls end. Gives back how many deaths stayed unconfirmed.
    pub(crate) async fn close(&self, bound: Duration) -> usize {
        self.shared.lock().closed = true;
        self.shared.change(State::on_closed);
        let all_returned = async {
            loop {
                let returned = self.shared.returned.notified();
                tokio::pin!(returned);
                returned.as_mut().enable();
                if self.shared.lock().outstanding() == 0 {
                    return;
                }
                returned.await;
            }
        };
        // Each death has its own bound in the watchdog; this one is behind it.
        let _all = tokio::time::timeout(bound, all_returned).await;
        let unconfirmed = self.shared.lock().unconfirmed();
        self.shared.end_zygotes(bound).await;
        if !self.shared.options.scratch.remove_empty() {
            // On a thread where it may take its time, should a tool have left much. A panic there was reported.
            let shared = Arc::clone(&self.shared);
            let _reported = tokio::task::spawn_blocking(move || shared.options.scratch.remove()).await;
        }
        unconfirmed
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The connection ends with the zygote's handle, and the zygote with it, after its workers.
        self.shared.lock().zygote = Slot::Empty;
        self.shared.change(State::on_closed);
    }
}

enum Wish {
    Granted(Lease),
    Waits(Waiting),
    Refused(Refusal),
}

/// A lease, if its worker can be used: it is alive, and a served one is silent. A worker that said something between
/// two calls (a late or a second reply) is not trusted with another.
fn usable(mut lease: Lease) -> Option<Lease> {
    let worker = lease.worker()?;
    let mut bytes = [0; 64];
    let usable = match worker.process.socket.peek(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
        // A fresh worker says something when its set-up failed: the call reads that and tells it. Else it is its
        // guardian's last word.
        Ok(count) if count > 0 && worker.calls == 0 => {
            let mut frames = FrameReader::new();
            frames.push(&bytes[..count]);
            !matches!(frames.next(), Ok(Some(FromWorker::Swept)))
        }
        Ok(_) | Err(_) => false,
    };
    if usable {
        Some(lease)
    } else {
        lease.finish();
        None
    }
}

/// A place in the queue; dropped, it is given up.
struct Waiting {
    id: WaiterId,
    granted: oneshot::Receiver<Result<Lease, Refusal>>,
    pool: Arc<Shared>,
}

impl Waiting {
    async fn granted(mut self, cancel: Option<&CancellationToken>) -> Result<Lease, Refusal> {
        let cancelled = async {
            match cancel {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            granted = &mut self.granted => granted.unwrap_or(Err(Refusal::Closed)),
            () = cancelled => Err(Refusal::Withdrawn),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut inner = self.pool.lock();
        inner.state.on_withdrawn(self.id);
        inner.waiting.remove(&self.id);
    }
}

/// What has to end before the pool has.
#[derive(Debug)]
struct Ending {
    /// The task that hears a zygote; it ends when nothing of it is left.
    task: JoinHandle<()>,
    reaped: Reaped,
}

impl Inner {
    /// Takes a zygote into use, and only then lets it be heard: so its loss cannot be told before it is there. Gives
    /// back what is to be forked by it.
    fn install(&mut self, started: Started, runtime: &Handle) -> (Arc<Zygote>, Vec<WorkerId>) {
        let (zygote, hearing, reaped) = started;
        let zygote = Arc::new(zygote);
        let pending = match std::mem::replace(&mut self.zygote, Slot::Ready(Arc::clone(&zygote))) {
            Slot::Starting(pending) => pending,
            Slot::Empty | Slot::Ready(_) => Vec::new(),
        };
        self.endings.retain(|ending| !ending.task.is_finished());
        self.endings.push(Ending { task: hearing.listen(runtime), reaped });
        (zygote, pending)
    }

    /// How many workers somebody still has to be rid of.
    fn outstanding(&self) -> usize {
        self.leased + self.condemned.len()
    }

    /// How many of them, and of those that were given up, are not known to be dead.
    fn unconfirmed(&self) -> usize {
        self.outstanding() + self.given_up.len()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watchdog(&self) -> &Watchdog {
        &self.options.watchdog
    }

    fn want(self: &Arc<Self>, want: Want) -> Wish {
        let mut inner = self.lock();
        let id = WaiterId(inner.next_waiter);
        inner.next_waiter += 1;
        let Inner { state, actions, .. } = &mut *inner;
        let wish = match state.on_wanted(id, want, actions) {
            Answer::Closed => Wish::Refused(Refusal::Closed),
            Answer::Full => Wish::Refused(Refusal::QueueFull),
            Answer::Waits => {
                let (sender, granted) = oneshot::channel();
                inner.waiting.insert(id, sender);
                Wish::Waits(Waiting { id, granted, pool: Arc::clone(self) })
            }
            Answer::Granted(worker) => match inner.idle.remove(&worker) {
                Some(worker) => {
                    inner.leased += 1;
                    Wish::Granted(Lease::new(worker, Arc::clone(self)))
                }
                // The state knows only workers that are in the map.
                None => Wish::Refused(Refusal::Spawn("a worker that was ready is missing".into())),
            },
        };
        let effects = self.effects(&mut inner);
        drop(inner);
        self.perform(effects);
        wish
    }

    /// Tells the state what happened, and does what it says.
    fn change(self: &Arc<Self>, event: impl FnOnce(&mut State, &mut Vec<Action>)) {
        let mut inner = self.lock();
        let Inner { state, actions, .. } = &mut *inner;
        event(state, actions);
        let effects = self.effects(&mut inner);
        drop(inner);
        self.perform(effects);
    }

    /// Turns the state's actions into what is done without the lock.
    fn effects(&self, inner: &mut Inner) -> Vec<Effect> {
        if inner.actions.is_empty() {
            return Vec::new();
        }
        let mut effects = Vec::with_capacity(inner.actions.len());
        for action in std::mem::take(&mut inner.actions) {
            match action {
                Action::Fork(worker) => match &mut inner.zygote {
                    Slot::Ready(zygote) => effects.push(Effect::Fork(Arc::clone(zygote), worker)),
                    Slot::Starting(pending) => pending.push(worker),
                    Slot::Empty => {
                        inner.zygote = Slot::Starting(vec![worker]);
                        effects.push(Effect::Start);
                    }
                },
                Action::Grant(waiter, worker) => {
                    if let (Some(sender), Some(worker)) = (inner.waiting.remove(&waiter), inner.idle.remove(&worker)) {
                        inner.leased += 1;
                        effects.push(Effect::Deliver(sender, worker));
                    }
                }
                Action::Fail(waiter) => {
                    if let Some(sender) = inner.waiting.remove(&waiter) {
                        let refusal = if inner.closed {
                            Refusal::Closed
                        } else {
                            Refusal::Spawn(Arc::clone(&inner.last_failure))
                        };
                        effects.push(Effect::Refuse(sender, refusal));
                    }
                }
                Action::Retire(worker) => {
                    if let Some(worker) = inner.idle.remove(&worker) {
                        effects.push(Effect::Retire(worker));
                    }
                }
            }
        }
        effects
    }

    fn perform(self: &Arc<Self>, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Fork(zygote, worker) => {
                    if let Err(error) = zygote.fork(worker) {
                        // It is gone, or does not read: its task will say that it is lost, and the state asks again.
                        tracing::warn!(%error, "a zygote cannot be asked for a worker; it is ended");
                        zygote.kill();
                    }
                }
                Effect::Start => self.start_another_zygote(),
                Effect::Deliver(sender, worker) => {
                    // Whoever waited may have gone: then the lease is dropped, which ends the worker.
                    let _gone = sender.send(Ok(Lease::new(worker, Arc::clone(self))));
                }
                Effect::Refuse(sender, refusal) => {
                    let _gone = sender.send(Err(refusal));
                }
                Effect::Retire(worker) => {
                    worker.process.record_retirement(KillReason::Finished);
                    self.watchdog().end(&worker.process);
                }
            }
        }
    }

    async fn start_zygote(self: &Arc<Self>) -> Result<Started, ZygoteError> {
        let PoolOptions { program, strength, watchdog, scratch, .. } = &self.options;
        let mut program = program;
        loop {
            let events = Arc::new(Events(Arc::downgrade(self)));
            match (Zygote::start(program, scratch, *strength, watchdog.clone(), events).await, &program.substitute) {
                (Err(error), Some(substitute)) => {
                    tracing::debug!(%error, "another worker program is started instead");
                    program = substitute;
                }
                (started, _) => return started,
            }
        }
    }

    /// Starts a zygote in the place of one that was lost.
    fn start_another_zygote(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        let task = self.runtime.spawn(async move {
            let Some(shared) = weak.upgrade() else {
                return;
            };
            let started = shared.start_zygote().await;
            shared.on_zygote_started(started);
        });
        let mut inner = self.lock();
        inner.starting.retain(|starting| !starting.is_finished());
        inner.starting.push(task);
    }

    fn on_zygote_started(self: &Arc<Self>, started: Result<Started, ZygoteError>) {
        match started {
            Ok(started) => {
                let mut inner = self.lock();
                if inner.closed {
                    // Dropped here, the connection ends it.
                    return;
                }
                let (zygote, pending) = inner.install(started, &self.runtime);
                drop(inner);
                self.perform(pending.into_iter().map(|worker| Effect::Fork(Arc::clone(&zygote), worker)).collect());
            }
            Err(error) => {
                let mut text = error.to_string();
                let mut cause = std::error::Error::source(&error);
                while let Some(error) = cause {
                    text = format!("{text}: {error}");
                    cause = error.source();
                }
                self.lose_zygote(text);
            }
        }
    }

    fn lose_zygote(self: &Arc<Self>, why: String) {
        let mut inner = self.lock();
        inner.zygote = Slot::Empty;
        inner.last_failure = why.into();
        drop(inner);
        self.change(State::on_zygote_lost);
    }

    /// A call is over, and its worker is ended behind it.
    pub(super) fn end_soon(self: &Arc<Self>, worker: Worker) {
        let process = Arc::clone(&worker.process);
        self.watchdog().end_soon(worker);
        self.lock().leased -= 1;
        self.change(|state, actions| {
            // Looked at under the lock, which whoever tells of its end takes after it has set this.
            let gone = process.ended().is_some() || process.is_orphaned();
            let returned = if gone { Returned::Dead } else { Returned::Ending };
            state.on_returned(process.id, returned, actions);
        });
        self.returned.notify_waiters();
    }

    /// A call is over, and its worker with it.
    pub(super) fn give_back(self: &Arc<Self>, worker: Worker) {
        let id = worker.process.id;
        drop(worker);
        self.lock().leased -= 1;
        self.change(|state, actions| state.on_returned(id, Returned::Dead, actions));
        self.returned.notify_waiters();
    }

    /// A call is over, and its worker may serve `tool` again.
    pub(super) fn keep(self: &Arc<Self>, worker: Worker, tool: Arc<str>) {
        let id = worker.process.id;
        let mut inner = self.lock();
        inner.leased -= 1;
        inner.idle.insert(id, worker);
        drop(inner);
        self.change(|state, actions| state.on_returned(id, Returned::Reusable(tool), actions));
        self.returned.notify_waiters();
    }

    /// A call was dropped in the middle, and its worker is being killed. Its place is free when that is confirmed, or
    /// given up: a task waits for it, since nobody else does.
    pub(super) fn give_back_condemned(self: &Arc<Self>, worker: Worker) {
        let process = Arc::clone(&worker.process);
        drop(worker);
        let mut inner = self.lock();
        inner.leased -= 1;
        inner.condemned.insert(process.id);
        drop(inner);
        self.change(|state, actions| state.on_returned(process.id, Returned::Condemned, actions));
        let pool = Arc::downgrade(self);
        self.runtime.spawn(async move {
            let fate = process.until_settled().await;
            if let Some(pool) = pool.upgrade() {
                pool.note_fate(process.id, fate);
                pool.on_worker_gone(process.id);
            }
        });
    }

    /// Remembers a death that stays unconfirmed; see [`Pool::close`].
    pub(super) fn note_fate(&self, worker: WorkerId, fate: Fate) {
        match fate {
            Fate::Dead { .. } => {}
            Fate::Pending | Fate::Survivors { .. } | Fate::Unconfirmed => {
                self.lock().given_up.insert(worker);
            }
        }
    }

    /// A worker takes no place any more: it is dead, or its death was given up.
    fn on_worker_gone(self: &Arc<Self>, worker: WorkerId) {
        self.lock().condemned.remove(&worker);
        self.change(|state, actions| state.on_ended(worker, actions));
        self.returned.notify_waiters();
    }

    async fn end_zygotes(&self, bound: Duration) {
        let starting = std::mem::take(&mut self.lock().starting);
        for task in starting {
            task.abort();
            // Awaited, so that none takes a zygote into use after this.
            let _aborted = task.await;
        }
        let (zygote, endings) = {
            let mut inner = self.lock();
            let zygote = match std::mem::replace(&mut inner.zygote, Slot::Empty) {
                Slot::Ready(zygote) => Some(zygote),
                Slot::Empty | Slot::Starting(_) => None,
            };
            (zygote, std::mem::take(&mut inner.endings))
        };
        let zygote = zygote.inspect(|zygote| zygote.ask_to_end());
        let ended = async {
            for Ending { task, reaped } in endings {
                // Neither can fail but by a panic, which was reported where it happened.
                let _reported = task.await;
                let _reported = reaped.await;
            }
        };
        if tokio::time::timeout(bound, ended).await.is_err() {
            tracing::error!("the zygote did not end within {bound:?}; it is killed");
            if let Some(zygote) = zygote {
                zygote.kill();
            }
        }
    }
}

/// What a zygote's task tells the pool. It holds the pool weakly, so that dropping the pool ends the zygote.
struct Events(Weak<Shared>);

impl ZygoteEvents for Events {
    fn on_forked(&self, worker: Worker) {
        if let Some(shared) = self.0.upgrade() {
            let id = worker.process.id;
            shared.lock().idle.insert(id, worker);
            shared.change(|state, actions| state.on_forked(id, actions));
        }
    }

    fn on_fork_failed(&self, worker: WorkerId, failure: SetupFailure) {
        if let Some(shared) = self.0.upgrade() {
            let error = std::io::Error::from_raw_os_error(failure.errno);
            let why = match failure.errno {
                0 => failure.step,
                _ => format!("{}: {error}", failure.step),
            };
            shared.lock().last_failure = why.into();
            shared.change(|state, actions| state.on_fork_failed(worker, actions));
        }
    }

    fn on_ended(&self, worker: WorkerId) {
        if let Some(shared) = self.0.upgrade() {
            shared.lock().given_up.remove(&worker);
            shared.on_worker_gone(worker);
        }
    }

    fn on_lost(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.lose_zygote("the worker program has ended".into());
        }
    }
}
