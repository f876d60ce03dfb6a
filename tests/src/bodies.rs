//! Bodies of tools in a test's own process: seen while they run, and ended with the test.

use crate::bound::{PATIENCE, assert_within};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use toolexec::Failure;
use toolexec::call::StopReason;

/// The bodies of a test, and how they end.
#[derive(Clone, Default, Debug)]
pub struct Bodies(Arc<State>);

/// What is known of them.
#[derive(Default, Debug)]
pub struct State {
    /// How many have begun.
    pub begun: AtomicUsize,
    /// How many run.
    pub running: AtomicUsize,
    /// How far their loops have come.
    pub rounds: AtomicU64,
    /// Whether they are to end.
    pub end: AtomicBool,
    /// How many have ended, or were dropped.
    pub dropped: AtomicUsize,
    /// Why one was asked to stop.
    pub reason: OnceLock<StopReason>,
}

/// One that runs, until this is dropped.
#[derive(Debug)]
pub struct Running(Bodies);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.dropped.fetch_add(1, Ordering::SeqCst);
        self.0.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Bodies {
    /// What is known of them.
    pub fn state(&self) -> &State {
        &self.0
    }

    /// One begins.
    pub fn enter(&self) -> Running {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
    }

    /// Computes until it is ended, and listens to nobody.
    pub fn spin(&self) -> Result<u64, Failure> {
        let _running = self.enter();
        while !self.0.end.load(Ordering::Relaxed) {
            self.0.rounds.fetch_add(1, Ordering::Relaxed);
        }
        Ok(0)
    }

    /// Sleeps until it is ended, and listens to nobody: as deaf, and less of a load.
    pub fn sleep(&self) -> Result<u64, Failure> {
        let _running = self.enter();
        while !self.0.end.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(0)
    }

    /// Waits until so many have begun.
    #[track_caller]
    pub fn await_begun(&self, count: usize) {
        assert_within(PATIENCE, "bodies that run", || self.0.begun.load(Ordering::SeqCst) >= count);
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    /// How many have ended, or were dropped.
    pub fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// Ends them, and waits until none is left.
    #[track_caller]
    pub fn end(&self) {
        self.0.end.store(true, Ordering::SeqCst);
        assert_within(PATIENCE, "the end of a test's bodies", || self.running() == 0);
    }
}

/// Ends the bodies of a test, also of one that fails.
#[derive(Debug)]
pub struct Ends(Bodies);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.0.end.store(true, Ordering::SeqCst);
        let end = Instant::now() + PATIENCE;
        while self.0.running() > 0 && Instant::now() < end {
            thread::yield_now();
        }
    }
}

/// The bodies of one test, and what ends them.
pub fn bodies() -> (Bodies, Ends) {
    let bodies = Bodies::default();
    (bodies.clone(), Ends(bodies))
}
