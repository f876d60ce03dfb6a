//! The thread that kills at deadlines and confirms deaths.
//!
//! An operating-system thread of its own, so that it works while every thread of the async runtime is blocked. It
//! waits on one epoll instance: a timer (`CLOCK_BOOTTIME`, so that a sleeping host does not stretch a limit), the
//! pidfds of whoever is being killed, and a wake-up for its end. Callers arm, strike and register directly, under one
//! lock; the thread is woken by what they set, not by a message.

use super::moment::Moment;
use super::queue::{DeadlineQueue, Ticket};
use super::scheduling::{Scheduling, raise_this_thread};
use crate::call::KillReason;
use crate::process::{Fate, Worker, WorkerProcess};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use toolexec_protocol::id::{Nonce, WorkerId};

/// Why there is no watchdog, and so no executor.
#[derive(Debug, thiserror::Error)]
#[error("the watchdog thread cannot be started")]
pub struct WatchdogError(#[from] io::Error);

/// The handle that callers share.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
}

/// The thread itself; its owner ends it by dropping this, and waits for its end.
#[derive(Debug)]
pub(crate) struct WatchdogThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
}

#[derive(Debug)]
struct Shared {
    events: OwnedFd,
    timer: OwnedFd,
    wake: OwnedFd,
    kill_bound: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queue: DeadlineQueue<Due>,
    dying: HashMap<WorkerId, Dying>,
    /// To be ended together, soon; while there is one, an `End` is in the queue.
    finished: Vec<Worker>,
    ending: bool,
}

#[derive(Debug)]
struct Dying {
    process: Arc<WorkerProcess>,
    give_up: Ticket,
    /// Its pidfd is still in the epoll instance.
    watched: bool,
}

/// What is due at a moment.
#[derive(Debug)]
enum Due {
    /// Ask this call's tree to end by itself.
    AskToEnd(Arc<WorkerProcess>, Nonce),
    /// Kill this call's tree.
    Kill(Arc<WorkerProcess>, Nonce, Moment),
    /// End the workers whose calls are over.
    End,
    /// Stop waiting for this death.
    GiveUp(WorkerId),
}

/// How long after its last call a worker is ended: 1 ms. Its end and what follows from it (the kernel's work, the
/// zygote's, and a new spare) then do not take the processor from whoever has just got the reply, and of many calls
/// one wake-up ends all workers.
const END_DELAY: Duration = Duration::from_millis(1);

/// When a call is asked to end, and when it is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub(crate) ask_to_end: Option<Moment>,
    pub(crate) kill: Moment,
}

/// The deadline of one call; dropped, it is disarmed. So a call that is itself dropped in the middle leaves nothing in the
/// queue that would hold its worker's descriptors until the deadline.
#[derive(Debug)]
pub(crate) struct Armed {
    shared: Arc<Shared>,
    ask_to_end: Option<Ticket>,
    kill: Option<Ticket>,
}

impl Drop for Armed {
    /// The timer is left as it is: that it may fire for nothing is cheaper than to set it twice a call.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        for ticket in [self.ask_to_end.take(), self.kill.take()].into_iter().flatten() {
            drop(state.queue.remove(ticket));
        }
    }
}

const TIMER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

impl WatchdogThread {
    /// Starts the thread. A death that is not confirmed within `kill_bound` is given up.
    pub(crate) fn start(kill_bound: Duration) -> Result<Self, WatchdogError> {
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(io::Error::from)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        epoll::add(&events, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)
            .map_err(io::Error::from)?;
        epoll::add(&events, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN).map_err(io::Error::from)?;
        let state = State { queue: DeadlineQueue::new(), dying: HashMap::new(), finished: Vec::new(), ending: false };
        let shared = Arc::new(Shared { events, timer, wake, kill_bound, state: Mutex::new(state) });
        let (raised, raise) = mpsc::sync_channel(1);
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("toolexec-watchdog".into()).spawn(move || {
            let scheduling = raise_this_thread();
            // The starter waits for it; if it is gone, so is the reason to run.
            if raised.send(scheduling).is_ok() {
                of_thread.run();
            }
        })?;
        let scheduling = raise.recv().map_err(|_| io::Error::other("the thread ended at once"))?;
        Ok(Self { shared, thread: Some(thread), scheduling })
    }

    pub(crate) fn handle(&self) -> Watchdog {
        Watchdog { shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn scheduling(&self) -> Scheduling {
        self.scheduling
    }
}

impl Drop for WatchdogThread {
    fn drop(&mut self) {
        self.shared.lock().ending = true;
        // An eventfd takes a write unless its counter is full, and then it is readable all the same.
        let _readable_already = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the panic hook; there is nothing to add.
            let _reported = thread.join();
        }
    }
}

impl Watchdog {
    /// Kills `process` at the limit if it still runs `call` then.
    pub(crate) fn arm(&self, process: &Arc<WorkerProcess>, call: Nonce, limits: Limits) -> Armed {
        let mut state = self.shared.lock();
        let mut earlier = None;
        let ask_to_end = limits.ask_to_end.map(|at| {
            let (ticket, timer) = state.queue.insert(at, Due::AskToEnd(Arc::clone(process), call));
            earlier = timer;
            ticket
        });
        let (kill, timer) = state.queue.insert(limits.kill, Due::Kill(Arc::clone(process), call, limits.kill));
        // The queue speaks up only for what is earlier than all before, so the newest word is the one that counts.
        if let Some(at) = timer.or(earlier) {
            self.shared.set_timer(Some(at));
        }
        Armed { shared: Arc::clone(&self.shared), ask_to_end, kill: Some(kill) }
    }

    /// Kills a worker whose end is recorded already (it is `Condemned`), and confirms its death.
    pub(crate) fn kill(&self, process: &Arc<WorkerProcess>) {
        self.shared.kill(process);
    }

    /// Ends a worker whose call is over. Its death is not waited for by anyone, so no descriptor is watched: the zygote
    /// tells of it, and the bound sees to it that one which does not die is not forgotten.
    pub(crate) fn end(&self, process: &Arc<WorkerProcess>) {
        self.shared.end_worker(process);
    }

    /// The same, but not at once: [`END_DELAY`] later, behind whoever waits for the call. What is held of the worker is
    /// closed with it.
    pub(crate) fn end_soon(&self, worker: Worker) {
        let mut state = self.shared.lock();
        if state.ending {
            drop(state);
            return self.end(&worker.process);
        }
        state.finished.push(worker);
        if state.finished.len() == 1 {
            let (_never_removed, timer) = state.queue.insert(Moment::now().saturating_add(END_DELAY), Due::End);
            if let Some(at) = timer {
                self.shared.set_timer(Some(at));
            }
        }
    }

    /// The zygote has reaped it.
    pub(crate) fn on_reaped(&self, process: &Arc<WorkerProcess>) {
        // First, so that whoever registers it from now on sees it dead.
        process.on_dead(Moment::now());
        let mut state = self.shared.lock();
        if let Some(dying) = state.dying.remove(&process.id) {
            drop(state.queue.remove(dying.give_up));
            if dying.watched {
                // It can only be missing from the epoll instance if the thread has just taken it out.
                let _taken_out = epoll::delete(&self.shared.events, process.pidfd());
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_timer(&self, at: Option<Moment>) {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = match at {
            None => zero,
            // A zero would disarm it; moments are never zero on a machine that has started.
            Some(Moment(nanoseconds)) => {
                Timespec { tv_sec: (nanoseconds / 1_000_000_000) as i64, tv_nsec: (nanoseconds % 1_000_000_000) as i64 }
            }
        };
        let setting = Itimerspec { it_interval: zero, it_value };
        if let Err(error) = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting) {
            // Only a malformed time or descriptor can be refused, and both are made here.
            tracing::error!(%error, "the watchdog's timer could not be set");
        }
    }

    fn kill(&self, process: &Arc<WorkerProcess>) {
        process.strike();
        self.register(process, true);
    }

    fn end_worker(&self, process: &Arc<WorkerProcess>) {
        process.strike();
        self.register(process, false);
    }

    fn register(&self, process: &Arc<WorkerProcess>, watch: bool) {
        let mut state = self.lock();
        if process.fate() != Fate::Pending {
            return;
        }
        if state.ending {
            drop(state);
            return process.on_gave_up();
        }
        let give_up_at = Moment::now().saturating_add(self.kill_bound);
        match state.dying.get_mut(&process.id) {
            Some(dying) if dying.watched || !watch => return,
            Some(dying) => dying.watched = true,
            None => {
                let (give_up, timer) = state.queue.insert(give_up_at, Due::GiveUp(process.id));
                let dying = Dying { process: Arc::clone(process), give_up, watched: watch };
                state.dying.insert(process.id, dying);
                if let Some(at) = timer {
                    self.set_timer(Some(at));
                }
            }
        }
        if watch {
            let data = epoll::EventData::new_u64(process.id.0);
            if let Err(error) = epoll::add(&self.events, process.pidfd(), data, epoll::EventFlags::IN) {
                // Out of memory or of epoll watches: the zygote's word, or the bound, has to do.
                tracing::warn!(%error, worker = %process.id, "a pidfd could not be watched");
            }
        }
    }

    fn run(&self) {
        let mut due = Vec::new();
        let mut ready = Vec::with_capacity(EVENTS);
        loop {
            ready.clear();
            match epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut ready), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "the watchdog cannot wait any more");
                    return;
                }
            }
            for event in &ready {
                match event.data.u64() {
                    TIMER => self.on_timer(&mut due),
                    WAKE => {}
                    worker => self.on_pidfd(WorkerId(worker)),
                }
            }
            if self.lock().ending {
                return self.end();
            }
        }
    }

    /// Nobody confirms a death any more: whoever waits for one is told so.
    fn end(&self) {
        self.end_finished();
        let dying = std::mem::take(&mut self.lock().dying);
        for Dying { process, .. } in dying.into_values() {
            process.on_gave_up();
        }
    }

    fn on_timer(&self, due: &mut Vec<Due>) {
        let mut count = [0; 8];
        // Nothing to read: another setting of the timer came in between, and this look does no harm.
        let _expirations = rustix::io::read(&self.timer, &mut count);
        let mut state = self.lock();
        let next = state.queue.due(Moment::now(), due);
        // Under the lock, so that no earlier setting of a caller is overwritten.
        self.set_timer(next);
        drop(state);
        for due in due.drain(..) {
            match due {
                Due::AskToEnd(process, call) => process.ask_to_end(call),
                Due::Kill(process, call, at) => {
                    if process.record_kill(call, KillReason::Deadline, at) {
                        process.note_unread();
                        self.kill(&process);
                        process.on_condemned();
                    }
                }
                Due::End => self.end_finished(),
                Due::GiveUp(worker) => self.on_give_up(worker),
            }
        }
    }

    fn end_finished(&self) {
        let finished = std::mem::take(&mut self.lock().finished);
        for worker in finished {
            self.end_worker(&worker.process);
        }
    }

    fn on_pidfd(&self, worker: WorkerId) {
        let now = Moment::now();
        let mut state = self.lock();
        let Some(dying) = state.dying.get_mut(&worker) else {
            return;
        };
        dying.watched = false;
        let process = Arc::clone(&dying.process);
        // It is in the instance, since it was just reported by it.
        let _taken_out = epoll::delete(&self.events, process.pidfd());
        process.on_dead(now);
        if process.fate() != Fate::Pending
            && let Some(dying) = state.dying.remove(&worker)
        {
            drop(state.queue.remove(dying.give_up));
        }
    }

    fn on_give_up(&self, worker: WorkerId) {
        let mut state = self.lock();
        let Some(dying) = state.dying.remove(&worker) else {
            return;
        };
        if dying.watched {
            let _taken_out = epoll::delete(&self.events, dying.process.pidfd());
        }
        drop(state);
        tracing::error!(worker = %worker, "a worker's death was not confirmed within the bound; it is given up");
        dying.process.on_gave_up();
    }
}

/// How many events one wait takes.
const EVENTS: usize = 64;
