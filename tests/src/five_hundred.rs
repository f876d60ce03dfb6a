//! Five hundred random calls at once: the promise, for any kill mechanism.

use crate::bound::{GONE, PATIENCE, assert_gone, assert_within};
use crate::marker::Marker;
use crate::mix::{KINDS, Planned};
use crate::process;
use crate::random::Random;
use crate::room::scratch_left;
use crate::shell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;
use toolexec::{Executor, KillStrength, PoolSettings, WorkerProgram};

const CALLS: u64 = 500;

/// Makes the calls, on workers of this program, and checks each outcome and what is left. The test has to be alone in its
/// process.
///
/// # Panics
/// At the first thing that is not right.
pub fn check(program: &Path, strength: Option<KillStrength>) {
    let mut random = Random::for_test("five hundred calls");
    let marker = Marker::new(40650);
    let this = std::process::id();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let before = process::descriptors(this);
    let scratch = runtime.block_on(async {
        let pool = PoolSettings { workers: 4.try_into().unwrap(), ..PoolSettings::default() };
        let mut builder = Executor::builder().program(WorkerProgram::at(program)).pool(pool);
        if let Some(strength) = strength {
            builder = builder.strength(strength);
        }
        let executor = Arc::new(builder.start().await.unwrap());
        assert_eq!(executor.call(shell::call("echo warm", 20_000)).await.stdout.text, "warm\n");
        let mut idle = 0;
        assert_within(PATIENCE, "an idle pool", || {
            let last = std::mem::replace(&mut idle, process::descendants(this).len());
            std::thread::sleep(GONE / 5);
            idle == last
        });
        let base = process::descriptors(this);

        let mut calls = JoinSet::new();
        let mut kinds = HashMap::new();
        for number in 0..CALLS {
            let planned = Planned::draw(&mut random, number, &marker);
            *kinds.entry(planned.kind).or_insert(0) += 1;
            let executor = Arc::clone(&executor);
            calls.spawn(async move { planned.run(&executor).await });
        }
        assert!(KINDS.iter().all(|kind| kinds[kind] > 10), "not a mix: {kinds:?}");
        let watched = marker.clone();
        let watching =
            std::thread::spawn(move || assert_within(PATIENCE, "a tool of the mix", || !watched.sleeping().is_empty()));
        let results = calls.join_all().await;
        watching.join().unwrap();
        let wrong: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(wrong.is_empty(), "{} wrong outcomes: {wrong:#?}", wrong.len());
        assert_eq!(results.len() as u64, CALLS);

        assert_gone(GONE, "tools of the mix", || marker.anywhere());
        assert_within(PATIENCE, &format!("{base} descriptors"), || process::descriptors(this) == base);
        assert_within(PATIENCE, &format!("{idle} processes"), || process::descendants(this).len() == idle);
        assert_gone(GONE, "zombies", || {
            process::descendants(this).into_iter().filter(process::Process::is_zombie).collect()
        });
        let scratch = executor.call(shell::call("pwd", 20_000)).await.stdout.text;
        assert_eq!(executor.close().await.unconfirmed, 0);
        assert_gone(GONE, "the closed executor's processes", || process::descendants(this));
        scratch
    });
    drop(runtime);
    assert_gone(GONE, "directories of the executor", || scratch_left(scratch.trim_end().as_ref()));
    assert_within(PATIENCE, &format!("{before} descriptors at the end"), || process::descriptors(this) <= before);
}
