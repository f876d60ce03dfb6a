//! A supervisor that is killed by SIGKILL, at whatever moment, leaves nothing that runs and nothing that hinders the
//! next one: case O06 and its worst form.

use std::time::Duration;
use toolexec_tests::bound::{ORPHANS_GONE, PATIENCE, assert_gone, assert_within};
use toolexec_tests::launch::{Launch, Toolexec};
use toolexec_tests::marker::Marker;
use toolexec_tests::process;
use toolexec_tests::random::Random;

/// At how many moments it is killed.
const MOMENTS: usize = 50;

#[test]
fn idle_workers_die_with_their_killed_supervisor() {
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let host = toolexec.room().own_copy(env!("CARGO_BIN_EXE_idle_host").as_ref());
    let mut running = Launch::new(&host, toolexec.room()).start();
    running.await_stdout("idle\n");
    // The supervisor, its zygote, and two spares at the least.
    assert_within(PATIENCE, "idle workers", || process::executing(&host).len() >= 4);
    running.kill();
    assert_gone(ORPHANS_GONE, "processes of the killed supervisor", || process::executing(&host));
    assert_gone(ORPHANS_GONE, "processes that were seen", || {
        running.seen().iter().filter(|process| process.is_alive()).cloned().collect()
    });
    toolexec.assert_next_call_works();
    toolexec.room().assert_swept();
}

#[test]
fn supervisor_killed_at_fifty_random_moments_leaves_nothing() {
    let mut random = Random::for_test("supervisor_killed_at_fifty_random_moments_leaves_nothing");
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let load = toolexec.room().own_copy(env!("CARGO_BIN_EXE_mixed_load").as_ref());
    for moment in 0..MOMENTS {
        let marker = Marker::new(40660);
        let arguments = [random.next().to_string(), marker.to_string()];
        let mut running = Launch::new(&load, toolexec.room()).arguments(arguments).watching(&marker).start();
        // Every fifth is killed while it starts, the others in full run.
        if moment % 5 != 0 {
            running.await_sleep();
        }
        std::thread::sleep(random.milliseconds_below(300));
        assert!(running.is_running(), "moment {moment}: {}", running.stdout_so_far());
        running.kill();
        assert_gone(ORPHANS_GONE, "processes of the killed supervisor", || process::executing(&load));
        assert_gone(ORPHANS_GONE, "tools of the killed supervisor", || marker.anywhere());
        assert_gone(ORPHANS_GONE, "processes that were seen", || {
            running.seen().iter().filter(|process| process.is_alive()).cloned().collect()
        });
    }
    toolexec.assert_next_call_works();
    toolexec.room().assert_swept();
}

#[test]
fn caller_who_kills_a_wrapper_ends_the_call_by_closing_the_output() {
    // A supervisor whose reader is gone has nobody to answer to.
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let marker = Marker::new(40606);
    let script = format!("(sleep {marker} &); while :; do echo still here; sleep 0.05; done");
    let mut running = toolexec.run(["--", "sh", "-c", &script]).unread().watching(&marker).start();
    running.await_sleep();
    running.unread_stdout = None;
    assert_within(Duration::from_secs(2), "the supervisor's end", || !running.is_running());
    running.finish().assert_marker_gone(&marker);
    toolexec.room().assert_swept();
}
