//! The pool's state: pure. It is told what happened and says what to do; it owns no process and no clock.

use super::PoolSettings;
use std::collections::VecDeque;
use std::sync::Arc;
use toolexec_protocol::id::WorkerId;

/// How many forks are asked for and not answered at the most: 64. A zygote's socket takes some 270 such requests before
/// it is full, and one that is full is taken for a zygote that does not read.
const MOST_FORKING: usize = 64;

/// Who waits for a worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct WaiterId(pub(crate) u64);

/// Which worker a call can use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// One that has served nobody.
    Fresh,
    /// One that has served this tool and no other, or a fresh one.
    Served(Arc<str>),
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Fork one worker, with this id.
    Fork(WorkerId),
    /// This waiter gets this worker.
    Grant(WaiterId, WorkerId),
    /// This waiter gets none: a worker could not be made for it.
    Fail(WaiterId),
    /// This idle worker is not needed any more.
    Retire(WorkerId),
}

/// What a new wish gets at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// This idle worker.
    Granted(WorkerId),
    /// Nothing yet.
    Waits,
    /// Nothing: too many wait already.
    Full,
    /// Nothing: the pool is closed.
    Closed,
}

/// How a lease has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Returned {
    /// The worker may serve this tool again.
    Reusable(Arc<str>),
    /// It is ended soon; its call is over and nothing waits for its death, but a spare in its place comes behind that.
    Ending,
    /// It is dead, or given up.
    Dead,
    /// It is being killed, and its place is free only when it is dead.
    Condemned,
}

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    settings: PoolSettings,
    /// Idle, never used; the oldest first.
    fresh: VecDeque<WorkerId>,
    /// Idle, used by one tool; the longest idle first.
    served: VecDeque<(WorkerId, Arc<str>)>,
    /// Asked for and not there yet.
    forking: Vec<WorkerId>,
    /// Leased, by calls that run.
    leased: usize,
    /// Being killed, and not known to be dead; they still count as running.
    condemned: Vec<WorkerId>,
    /// Done with their calls and not known to be dead; they take no place.
    ending: Vec<WorkerId>,
    waiting: VecDeque<(WaiterId, Want)>,
    next_worker: u64,
    /// Whether the zygote of the moment has made a worker yet.
    proven: bool,
    closed: bool,
}

impl State {
    pub(crate) fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            fresh: VecDeque::new(),
            served: VecDeque::new(),
            forking: Vec::new(),
            leased: 0,
            condemned: Vec::new(),
            ending: Vec::new(),
            waiting: VecDeque::new(),
            next_worker: 1,
            proven: false,
            closed: false,
        }
    }

    /// The pool begins: the spares are forked.
    pub(crate) fn on_started(&mut self, actions: &mut Vec<Action>) {
        self.refill(actions);
    }

    /// A call wants a worker. The spares are refilled behind the calls and not in front of them: at once only when the
    /// last one is taken, else when a call ends.
    pub(crate) fn on_wanted(&mut self, waiter: WaiterId, want: Want, actions: &mut Vec<Action>) -> Answer {
        if self.closed {
            return Answer::Closed;
        }
        if self.waiting.is_empty()
            && self.room() > 0
            && let Some(worker) = self.take_idle(&want)
        {
            self.leased += 1;
            if self.fresh.is_empty() {
                self.refill(actions);
            }
            return Answer::Granted(worker);
        }
        // Whoever only waits for a fork has a place already and does not count against the queue.
        if self.waiting.len() >= self.settings.queue.saturating_add(self.room()) {
            return Answer::Full;
        }
        self.waiting.push_back((waiter, want));
        self.refill(actions);
        Answer::Waits
    }

    /// A waiter does not wait any more. A worker that was granted meanwhile comes back through `on_returned`.
    pub(crate) fn on_withdrawn(&mut self, waiter: WaiterId) {
        self.waiting.retain(|(waiting, _)| *waiting != waiter);
    }

    /// A worker that was asked for is there.
    pub(crate) fn on_forked(&mut self, worker: WorkerId, actions: &mut Vec<Action>) {
        self.forking.retain(|forking| *forking != worker);
        if self.closed {
            actions.push(Action::Retire(worker));
            return;
        }
        self.proven = true;
        self.fresh.push_back(worker);
        self.grant(actions);
        self.refill(actions);
    }

    /// A worker that was asked for will not come. The first who could have had it is told so, or it would wait for ever
    /// on a host that cannot fork. Whoever waits for a call to end goes on waiting.
    pub(crate) fn on_fork_failed(&mut self, worker: WorkerId, actions: &mut Vec<Action>) {
        self.forking.retain(|forking| *forking != worker);
        if self.room() > 0
            && let Some((waiter, _)) = self.waiting.pop_front()
        {
            actions.push(Action::Fail(waiter));
            if !self.waiting.is_empty() {
                self.refill(actions);
            }
        }
    }

    /// A lease has ended.
    pub(crate) fn on_returned(&mut self, worker: WorkerId, returned: Returned, actions: &mut Vec<Action>) {
        self.leased = self.leased.saturating_sub(1);
        match returned {
            Returned::Reusable(_) if self.closed => actions.push(Action::Retire(worker)),
            Returned::Reusable(tool) => {
                self.served.push_back((worker, tool));
                // Idle ones of tools that are not called any more make room for others.
                while self.served.len() > self.settings.workers.get()
                    && let Some((oldest, _)) = self.served.pop_front()
                {
                    actions.push(Action::Retire(oldest));
                }
            }
            Returned::Ending => self.ending.push(worker),
            Returned::Dead => {}
            Returned::Condemned => self.condemned.push(worker),
        }
        self.grant(actions);
        // Behind the end of the worker, as that is behind the call; unless the next call would have to wait.
        if !self.ending.contains(&worker) || !self.waiting.is_empty() || self.fresh.is_empty() {
            self.refill(actions);
        }
    }

    /// A worker's process is gone, or given up: it does not count as running any more.
    pub(crate) fn on_ended(&mut self, worker: WorkerId, actions: &mut Vec<Action>) {
        let idle = self.fresh.len() + self.served.len();
        self.fresh.retain(|fresh| *fresh != worker);
        self.served.retain(|(served, _)| *served != worker);
        if self.fresh.len() + self.served.len() < idle {
            // It died idle: let go of what the pool still holds of it.
            actions.push(Action::Retire(worker));
        }
        self.condemned.retain(|condemned| *condemned != worker);
        let served = self.ending.len();
        self.ending.retain(|ending| *ending != worker);
        let served = self.ending.len() < served;
        self.grant(actions);
        // Not for a spare that died: on a host where each dies at once that would go round for ever.
        if served || !self.waiting.is_empty() {
            self.refill(actions);
        }
    }

    /// The zygote is gone, and its idle workers with it. One that ended before it made any worker would do so again:
    /// then whoever waits is told, instead of starting one after the other.
    pub(crate) fn on_zygote_lost(&mut self, actions: &mut Vec<Action>) {
        for worker in self.fresh.drain(..).chain(self.served.drain(..).map(|(worker, _)| worker)) {
            actions.push(Action::Retire(worker));
        }
        self.forking.clear();
        self.ending.clear();
        if self.proven {
            self.proven = false;
            if !self.waiting.is_empty() {
                self.refill(actions);
            }
        } else {
            actions.extend(self.waiting.drain(..).map(|(waiter, _)| Action::Fail(waiter)));
        }
    }

    /// No call is taken any more; whoever waits is told.
    pub(crate) fn on_closed(&mut self, actions: &mut Vec<Action>) {
        self.closed = true;
        actions.extend(self.waiting.drain(..).map(|(waiter, _)| Action::Fail(waiter)));
        for worker in self.fresh.drain(..).chain(self.served.drain(..).map(|(worker, _)| worker)) {
            actions.push(Action::Retire(worker));
        }
    }

    /// How many more calls may run now.
    fn room(&self) -> usize {
        self.settings.workers.get().saturating_sub(self.leased + self.condemned.len())
    }

    fn take_idle(&mut self, want: &Want) -> Option<WorkerId> {
        if let Want::Served(tool) = want
            // The newest: its memory is the warmest.
            && let Some(position) = self.served.iter().rposition(|(_, of)| of == tool)
        {
            return self.served.remove(position).map(|(worker, _)| worker);
        }
        self.fresh.pop_front()
    }

    /// Gives idle workers to whoever waits, in the order of their coming.
    fn grant(&mut self, actions: &mut Vec<Action>) {
        while self.room() > 0
            && let Some((waiter, want)) = self.waiting.pop_front()
        {
            let Some(worker) = self.take_idle(&want) else {
                self.waiting.push_front((waiter, want));
                return;
            };
            self.leased += 1;
            actions.push(Action::Grant(waiter, worker));
        }
    }

    /// Asks for as many workers as those who wait can have now, and the spares.
    fn refill(&mut self, actions: &mut Vec<Action>) {
        if self.closed {
            return;
        }
        let wanted = self.settings.spares + self.waiting.len().min(self.room());
        while self.fresh.len() + self.forking.len() < wanted && self.forking.len() < MOST_FORKING {
            let worker = WorkerId(self.next_worker);
            self.next_worker += 1;
            self.forking.push(worker);
            actions.push(Action::Fork(worker));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    const ONE: WaiterId = WaiterId(1);
    const TWO: WaiterId = WaiterId(2);
    const THREE: WaiterId = WaiterId(3);

    fn settings(workers: usize, spares: usize, queue: usize) -> PoolSettings {
        PoolSettings { workers: NonZeroUsize::new(workers).unwrap(), spares, queue }
    }

    /// A state, and a way to write scripts: event in, exact actions out.
    struct Script(State);

    impl Script {
        fn started(workers: usize, spares: usize, queue: usize) -> Self {
            let mut script = Self(State::new(settings(workers, spares, queue)));
            let actions = script.does(State::on_started);
            assert_eq!(actions, (1..=spares as u64).map(|id| Action::Fork(WorkerId(id))).collect::<Vec<_>>());
            for id in 1..=spares as u64 {
                assert_eq!(script.forked(id), []);
            }
            script
        }

        fn does(&mut self, event: impl FnOnce(&mut State, &mut Vec<Action>)) -> Vec<Action> {
            let mut actions = Vec::new();
            event(&mut self.0, &mut actions);
            actions
        }

        fn wants(&mut self, waiter: WaiterId, want: Want) -> (Answer, Vec<Action>) {
            let mut actions = Vec::new();
            let answer = self.0.on_wanted(waiter, want, &mut actions);
            (answer, actions)
        }

        fn forked(&mut self, id: u64) -> Vec<Action> {
            self.does(|state, actions| state.on_forked(WorkerId(id), actions))
        }

        fn returned(&mut self, id: u64, how: Returned) -> Vec<Action> {
            self.does(|state, actions| state.on_returned(WorkerId(id), how, actions))
        }

        fn ended(&mut self, id: u64) -> Vec<Action> {
            self.does(|state, actions| state.on_ended(WorkerId(id), actions))
        }
    }

    fn fork(id: u64) -> Action {
        Action::Fork(WorkerId(id))
    }

    fn grant(waiter: WaiterId, id: u64) -> Action {
        Action::Grant(waiter, WorkerId(id))
    }

    fn granted(id: u64) -> Answer {
        Answer::Granted(WorkerId(id))
    }

    fn tool(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn a_spare_is_taken_at_once_and_refilled_behind_the_call() {
        let mut pool = Script::started(4, 2, 10);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![]));
        assert_eq!(pool.returned(1, Returned::Ending), []);
        assert_eq!(pool.ended(1), [fork(3)]);
        // Once.
        assert_eq!(pool.ended(1), []);
    }

    #[test]
    fn a_worker_that_is_dead_when_its_call_is_over_is_replaced_at_once() {
        let mut pool = Script::started(4, 2, 10);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![]));
        assert_eq!(pool.ended(1), []);
        assert_eq!(pool.returned(1, Returned::Dead), [fork(3)]);
    }

    #[test]
    fn spares_are_refilled_before_a_workers_end_when_there_is_none() {
        let mut pool = Script::started(1, 1, 1);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![fork(2)]));
        assert_eq!(pool.does(|state, actions| state.on_fork_failed(WorkerId(2), actions)), []);
        assert_eq!(pool.returned(1, Returned::Ending), [fork(3)]);
        assert_eq!(pool.ended(1), []);
    }

    #[test]
    fn the_last_spare_is_refilled_at_once() {
        let mut pool = Script::started(4, 2, 10);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![]));
        assert_eq!(pool.wants(TWO, Want::Fresh), (granted(2), vec![fork(3), fork(4)]));
    }

    #[test]
    fn without_spares_a_call_waits_for_its_own_fork() {
        let mut pool = Script::started(1, 0, 0);
        assert_eq!(pool.wants(ONE, Want::Fresh), (Answer::Waits, vec![fork(1)]));
        assert_eq!(pool.forked(1), [grant(ONE, 1)]);
        assert_eq!(pool.returned(1, Returned::Ending), []);
    }

    #[test]
    fn the_queue_is_bounded_and_first_come_first_served() {
        let mut pool = Script::started(1, 1, 1);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![fork(2)]));
        assert_eq!(pool.forked(2), []);
        assert_eq!(pool.wants(TWO, Want::Fresh), (Answer::Waits, vec![]));
        assert_eq!(pool.wants(THREE, Want::Fresh), (Answer::Full, vec![]));
        assert_eq!(pool.returned(1, Returned::Ending), [grant(TWO, 2), fork(3)]);
    }

    #[test]
    fn a_condemned_worker_keeps_its_place_until_it_is_dead() {
        let mut pool = Script::started(1, 1, 1);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![fork(2)]));
        assert_eq!(pool.forked(2), []);
        assert_eq!(pool.wants(TWO, Want::Fresh), (Answer::Waits, vec![]));
        assert_eq!(pool.returned(1, Returned::Condemned), []);
        assert_eq!(pool.ended(1), [grant(TWO, 2)]);
    }

    #[test]
    fn a_worker_is_reused_by_its_own_tool_only() {
        let mut pool = Script::started(2, 1, 1);
        assert_eq!(pool.wants(ONE, Want::Served(tool("a"))), (granted(1), vec![fork(2)]));
        assert_eq!(pool.returned(1, Returned::Reusable(tool("a"))), []);
        assert_eq!(pool.forked(2), []);
        assert_eq!(pool.wants(ONE, Want::Served(tool("a"))), (granted(1), vec![]));
        assert_eq!(pool.returned(1, Returned::Reusable(tool("a"))), []);
        assert_eq!(pool.wants(ONE, Want::Served(tool("b"))), (granted(2), vec![fork(3)]));
        assert_eq!(pool.returned(2, Returned::Ending), []);
        assert_eq!(pool.wants(ONE, Want::Fresh), (Answer::Waits, vec![fork(4)]));
    }

    #[test]
    fn idle_served_workers_are_bounded() {
        let mut pool = Script::started(1, 1, 1);
        for (id, name) in [(1, "a"), (2, "b")] {
            assert_eq!(pool.wants(ONE, Want::Served(tool(name))), (granted(id), vec![fork(id + 1)]));
            let retired = if id == 1 { vec![] } else { vec![Action::Retire(WorkerId(1))] };
            assert_eq!(pool.returned(id, Returned::Reusable(tool(name))), retired);
            assert_eq!(pool.forked(id + 1), []);
        }
    }

    #[test]
    fn who_waits_is_told_when_no_worker_can_be_made() {
        let mut pool = Script::started(2, 0, 5);
        assert_eq!(pool.wants(ONE, Want::Fresh).1, [fork(1)]);
        assert_eq!(pool.wants(TWO, Want::Fresh).1, [fork(2)]);
        let failed = pool.does(|state, actions| state.on_fork_failed(WorkerId(1), actions));
        assert_eq!(failed, [Action::Fail(ONE)]);
        assert_eq!(pool.forked(2), [grant(TWO, 2)]);
    }

    #[test]
    fn a_lost_zygote_is_replaced_for_who_waits_but_not_for_ever() {
        let mut pool = Script::started(1, 1, 5);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![fork(2)]));
        assert_eq!(pool.forked(2), []);
        assert_eq!(pool.wants(TWO, Want::Fresh), (Answer::Waits, vec![]));
        assert_eq!(pool.does(State::on_zygote_lost), [Action::Retire(WorkerId(2)), fork(3)]);
        assert_eq!(pool.does(State::on_zygote_lost), [Action::Fail(TWO)]);
    }

    #[test]
    fn an_idle_worker_that_dies_is_let_go() {
        let mut pool = Script::started(1, 1, 5);
        assert_eq!(pool.ended(1), [Action::Retire(WorkerId(1))]);
        assert_eq!(pool.wants(ONE, Want::Fresh), (Answer::Waits, vec![fork(2), fork(3)]));
    }

    #[test]
    fn a_closed_pool_takes_and_keeps_nothing() {
        let mut pool = Script::started(1, 1, 5);
        assert_eq!(pool.wants(ONE, Want::Served(tool("a"))), (granted(1), vec![fork(2)]));
        assert_eq!(pool.wants(TWO, Want::Fresh), (Answer::Waits, vec![]));
        assert_eq!(pool.does(State::on_closed), [Action::Fail(TWO)]);
        assert_eq!(pool.forked(2), [Action::Retire(WorkerId(2))]);
        assert_eq!(pool.returned(1, Returned::Reusable(tool("a"))), [Action::Retire(WorkerId(1))]);
        assert_eq!(pool.wants(THREE, Want::Fresh), (Answer::Closed, vec![]));
    }

    #[test]
    fn whoever_waits_for_a_condemned_workers_place_gets_a_fork_when_it_is_free() {
        let mut pool = Script::started(1, 0, 5);
        assert_eq!(pool.wants(ONE, Want::Fresh), (Answer::Waits, vec![fork(1)]));
        assert_eq!(pool.forked(1), [grant(ONE, 1)]);
        assert_eq!(pool.wants(TWO, Want::Fresh), (Answer::Waits, vec![]));
        assert_eq!(pool.returned(1, Returned::Condemned), []);
        assert_eq!(pool.ended(1), [fork(2)]);
        assert_eq!(pool.forked(2), [grant(TWO, 2)]);
    }

    #[test]
    fn a_failed_spare_fails_nobody_who_waits_for_a_place() {
        let mut pool = Script::started(1, 1, 5);
        assert_eq!(pool.wants(ONE, Want::Fresh), (granted(1), vec![fork(2)]));
        assert_eq!(pool.wants(TWO, Want::Fresh), (Answer::Waits, vec![]));
        assert_eq!(pool.does(|state, actions| state.on_fork_failed(WorkerId(2), actions)), []);
        assert_eq!(pool.returned(1, Returned::Ending), [fork(3), fork(4)]);
    }

    #[test]
    fn forks_are_asked_for_in_portions() {
        let mut state = State::new(settings(1, MOST_FORKING + 2, 0));
        let mut actions = Vec::new();
        state.on_started(&mut actions);
        assert_eq!(actions.len(), MOST_FORKING);
        actions.clear();
        state.on_forked(WorkerId(1), &mut actions);
        assert_eq!(actions, [fork(MOST_FORKING as u64 + 1)]);
    }

    #[test]
    fn a_withdrawn_waiter_gets_nothing() {
        let mut pool = Script::started(1, 0, 5);
        assert_eq!(pool.wants(ONE, Want::Fresh).1, [fork(1)]);
        pool.0.on_withdrawn(ONE);
        assert_eq!(pool.forked(1), []);
        assert_eq!(pool.wants(TWO, Want::Fresh), (granted(1), vec![]));
    }
}
