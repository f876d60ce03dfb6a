//! One worker process as the supervisor holds it.
//!
//! [`WorkerProcess`] is what the watchdog, the pool and a call share: the pidfd and what is known of its end.
//! [`Worker`] is what one call owns at a time: the sockets and pipes.

use super::CallSocket;
use crate::call::KillReason;
use crate::deadline::Moment;
use rustix::process::{Signal, pidfd_send_signal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use toolexec_protocol::frame::FrameReader;
use toolexec_protocol::id::{Nonce, WorkerId};
use toolexec_protocol::message::{Exit, Usage};
use toolexec_protocol::strength::KillStrength;

/// A worker, with all that a call needs of it.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) process: std::sync::Arc<WorkerProcess>,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
    pub(crate) frames: FrameReader,
    /// How many calls it has served.
    pub(crate) calls: u32,
}

/// A worker process and what is known of its end.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    pub(crate) id: WorkerId,
    pub(crate) strength: KillStrength,
    /// The call socket; here and not in [`Worker`] so that the watchdog can see whether a reply waits in it.
    pub(crate) socket: CallSocket,
    pidfd: OwnedFd,
    phase: AtomicU64,
    /// When the reason to kill arose: the deadline itself, or when the kill was ordered.
    condemned_at: OnceLock<Moment>,
    signalled_at: OnceLock<Moment>,
    /// When the pidfd was seen readable.
    dead_at: OnceLock<Moment>,
    /// What the zygote told of its end.
    ended: OnceLock<Ended>,
    /// The zygote is gone and will tell nothing any more.
    orphaned: AtomicBool,
    /// The guardian has said that nothing is left.
    swept: AtomicBool,
    gave_up: AtomicBool,
    /// The tree was asked to end by itself.
    asked_to_end: AtomicBool,
    /// How many bytes lay unread in the socket when the deadline came.
    unread_at_deadline: AtomicU64,
    /// Something of the above has changed.
    changed: Notify,
}

/// What the zygote told of a worker's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) usage: Usage,
    pub(crate) survivors: u32,
}

/// What a worker does at the moment. Only one transition out of `Running` ever succeeds for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It waits for a call, or has answered one.
    Idle,
    /// It runs this call.
    Running(Nonce),
    /// It runs this call, and was asked to end.
    Asked(Nonce),
    /// It is being killed.
    Condemned(KillReason),
}

/// What is known of a condemned worker's death.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Not yet known.
    Pending,
    /// Nothing of its tree is left, since then.
    Dead { at: Moment },
    /// The worker is dead, and what it left could not be swept.
    Survivors { at: Moment, count: u32 },
    /// Its death was not confirmed within the bound.
    Unconfirmed,
}

impl WorkerProcess {
    pub(crate) fn new(id: WorkerId, strength: KillStrength, pidfd: OwnedFd, socket: CallSocket) -> Self {
        Self {
            id,
            strength,
            socket,
            pidfd,
            phase: AtomicU64::new(pack(Phase::Idle)),
            condemned_at: OnceLock::new(),
            signalled_at: OnceLock::new(),
            dead_at: OnceLock::new(),
            ended: OnceLock::new(),
            orphaned: AtomicBool::new(false),
            swept: AtomicBool::new(false),
            gave_up: AtomicBool::new(false),
            asked_to_end: AtomicBool::new(false),
            unread_at_deadline: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    pub(crate) fn phase(&self) -> Phase {
        unpack(self.phase.load(Ordering::Acquire))
    }

    /// A call is handed over.
    pub(crate) fn begin(&self, call: Nonce) -> bool {
        self.advance(Phase::Idle, Phase::Running(call))
    }

    /// Records the reply. False when a kill was recorded first: the reply is then dropped.
    pub(crate) fn record_reply(&self, call: Nonce) -> bool {
        self.advance(Phase::Running(call), Phase::Idle) || self.advance(Phase::Asked(call), Phase::Idle)
    }

    /// Records a kill. False when the call is over, or another kill was recorded first.
    pub(crate) fn record_kill(&self, call: Nonce, reason: KillReason, at: Moment) -> bool {
        let first = self.advance(Phase::Running(call), Phase::Condemned(reason))
            || self.advance(Phase::Asked(call), Phase::Condemned(reason));
        if first {
            // Nobody else gets here: the transition succeeds once.
            let _first = self.condemned_at.set(at);
        }
        first
    }

    /// Records the end of a worker that runs no call. False when it is condemned already, or was leased meanwhile.
    pub(crate) fn record_retirement(&self, reason: KillReason) -> bool {
        let first = self.advance(Phase::Idle, Phase::Condemned(reason));
        if first {
            let _first = self.condemned_at.set(Moment::now());
        }
        first
    }

    fn advance(&self, from: Phase, to: Phase) -> bool {
        self.phase.compare_exchange(pack(from), pack(to), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Sends the signals that end the whole tree. An error means that the process is gone already (`ESRCH`).
    pub(crate) fn strike(&self) {
        match self.strength {
            KillStrength::PidNamespace | KillStrength::Cgroup | KillStrength::ProcessGroup => {
                let _gone = pidfd_send_signal(&self.pidfd, Signal::KILL);
            }
            KillStrength::Subreaper => {
                // To the guardian: sweep. SIGCONT, since a tool may have stopped it.
                let _gone = pidfd_send_signal(&self.pidfd, Signal::USR1);
                let _gone = pidfd_send_signal(&self.pidfd, Signal::CONT);
            }
        }
        let _first = self.signalled_at.set(Moment::now());
    }

    /// Asks the call's tree to end by itself, if it still runs. Such a worker serves no other call, so the signal can
    /// never reach one.
    pub(crate) fn ask_to_end(&self, call: Nonce) {
        // Before the phase and the signal: whoever sees what came of them sees this too.
        self.asked_to_end.store(true, Ordering::Release);
        if self.advance(Phase::Running(call), Phase::Asked(call)) {
            let _gone = pidfd_send_signal(&self.pidfd, Signal::TERM);
        }
    }

    pub(crate) fn asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Acquire)
    }

    pub(crate) fn on_dead(&self, at: Moment) {
        let _first = self.dead_at.set(at);
        self.changed.notify_waiters();
    }

    pub(crate) fn on_ended(&self, ended: Ended) {
        let _first = self.ended.set(ended);
        self.changed.notify_waiters();
    }

    pub(crate) fn on_orphaned(&self) {
        self.orphaned.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn on_swept(&self) {
        self.swept.store(true, Ordering::Release);
    }

    pub(crate) fn on_gave_up(&self) {
        self.gave_up.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn on_condemned(&self) {
        self.changed.notify_waiters();
    }

    pub(crate) fn condemned_at(&self) -> Option<Moment> {
        self.condemned_at.get().copied()
    }

    pub(crate) fn signalled_at(&self) -> Option<Moment> {
        self.signalled_at.get().copied()
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended.get().copied()
    }

    pub(crate) fn is_orphaned(&self) -> bool {
        self.orphaned.load(Ordering::Acquire)
    }

    /// What is known of its death. With a PID namespace the pidfd says it all: it turns readable when the kernel has
    /// reaped the whole namespace. With a guardian, the zygote has to say that nothing is left, or the guardian itself
    /// when there is no zygote any more.
    pub(crate) fn fate(&self) -> Fate {
        match (self.dead_at.get(), self.strength) {
            (Some(&at), KillStrength::PidNamespace) => Fate::Dead { at },
            (Some(&at), KillStrength::Subreaper | KillStrength::Cgroup | KillStrength::ProcessGroup) => {
                match self.ended.get() {
                    Some(Ended { survivors: 0, .. }) => Fate::Dead { at },
                    Some(Ended { survivors, .. }) => Fate::Survivors { at, count: *survivors },
                    None if self.is_orphaned() && self.swept.load(Ordering::Acquire) => Fate::Dead { at },
                    None if self.is_orphaned() || self.gave_up.load(Ordering::Acquire) => Fate::Unconfirmed,
                    None => Fate::Pending,
                }
            }
            (None, _) if self.gave_up.load(Ordering::Acquire) => Fate::Unconfirmed,
            (None, _) => Fate::Pending,
        }
    }

    /// Waits until `seen` sees something.
    pub(crate) async fn until<T>(&self, seen: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before the look, so that a change between the look and the wait is not missed.
            changed.as_mut().enable();
            if let Some(value) = seen(self) {
                return value;
            }
            changed.await;
        }
    }

    /// Waits until its death is confirmed, or given up.
    pub(crate) async fn until_settled(&self) -> Fate {
        self.until(|process| Some(process.fate()).filter(|fate| *fate != Fate::Pending)).await
    }

    /// Why it is being killed, if it is.
    pub(crate) fn condemned(&self) -> Option<KillReason> {
        match self.phase() {
            Phase::Condemned(reason) => Some(reason),
            Phase::Idle | Phase::Running(_) | Phase::Asked(_) => None,
        }
    }

    /// Notes, at the deadline, how much lies unread in the socket: a reply that was complete in that is kept, although
    /// nobody had come to read it.
    pub(crate) fn note_unread(&self) {
        self.unread_at_deadline.store(self.socket.unread(), Ordering::Release);
    }

    /// How many bytes lay unread in the socket at the deadline.
    pub(crate) fn unread_at_deadline(&self) -> u64 {
        self.unread_at_deadline.load(Ordering::Acquire)
    }
}

/// The low four bits say which phase, the rest is the call's nonce.
fn pack(phase: Phase) -> u64 {
    match phase {
        Phase::Idle => 0,
        Phase::Running(Nonce(call)) => (call << 4) | 1,
        Phase::Condemned(KillReason::Finished) => 2,
        Phase::Condemned(KillReason::Deadline) => 3,
        Phase::Condemned(KillReason::Cancelled) => 4,
        Phase::Condemned(KillReason::ReaderGone) => 5,
        Phase::Condemned(KillReason::Closed) => 6,
        Phase::Condemned(KillReason::Protocol) => 7,
        Phase::Condemned(KillReason::Lost) => 8,
        Phase::Asked(Nonce(call)) => (call << 4) | 9,
    }
}

fn unpack(packed: u64) -> Phase {
    match packed & 0xf {
        0 => Phase::Idle,
        1 => Phase::Running(Nonce(packed >> 4)),
        2 => Phase::Condemned(KillReason::Finished),
        3 => Phase::Condemned(KillReason::Deadline),
        4 => Phase::Condemned(KillReason::Cancelled),
        5 => Phase::Condemned(KillReason::ReaderGone),
        6 => Phase::Condemned(KillReason::Closed),
        7 => Phase::Condemned(KillReason::Protocol),
        9 => Phase::Asked(Nonce(packed >> 4)),
        _ => Phase::Condemned(KillReason::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_survives_packing() {
        let reasons = [
            KillReason::Finished,
            KillReason::Deadline,
            KillReason::Cancelled,
            KillReason::ReaderGone,
            KillReason::Closed,
            KillReason::Protocol,
            KillReason::Lost,
        ];
        let phases = [Phase::Idle, Phase::Running(Nonce(0)), Phase::Running(Nonce(77)), Phase::Asked(Nonce(77))];
        for phase in phases.into_iter().chain(reasons.map(Phase::Condemned)) {
            assert_eq!(unpack(pack(phase)), phase);
        }
    }
}
