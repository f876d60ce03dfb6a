//! A supervisor that is killed by SIGKILL, at whatever moment, leaves nothing that runs and nothing that hinders the
//! next one: case O06 and its worst form.

use std::path::Path;
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
    check_random_moments("supervisor_killed_at_fifty_random_moments_leaves_nothing", None);
}

#[test]
fn supervisor_killed_at_fifty_random_moments_leaves_nothing_with_a_subreaper() {
    check_random_moments(
        "supervisor_killed_at_fifty_random_moments_leaves_nothing_with_a_subreaper",
        Some("subreaper"),
    );
}

#[track_caller]
fn check_random_moments(name: &str, strength: Option<&str>) {
    let mut random = Random::for_test(name);
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let load = toolexec.room().own_copy(env!("CARGO_BIN_EXE_loaded_host").as_ref());
    for moment in 0..MOMENTS {
        let marker = Marker::new(40660);
        let launch = Launch::new(&load, toolexec.room()).arguments([random.next().to_string(), marker.to_string()]);
        let mut running = launch.arguments(strength).watching(&marker).start();
        // Every fifth is killed while it starts, the others in full run.
        if moment % 5 != 0 {
            running.await_sleeps(1);
        }
        std::thread::sleep(random.milliseconds_below(300));
        assert!(running.is_running(), "moment {moment}: {}{}", running.stdout_so_far(), running.stderr_so_far());
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

/// What is left may be hard to remove, and is removed all the same.
#[test]
fn next_start_removes_what_a_killed_supervisor_left() {
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let marker = Marker::new(40661);
    let script = format!(
        "mkdir -p deep/er/and/deeper locked; touch locked/in .hidden; chmod 0 locked deep; ln -s / link; mkfifo pipe; \
         ln locked/in hard 2>/dev/null; i=0; while [ $i -lt 500 ]; do : >file$i; i=$((i+1)); done; sleep {marker}"
    );
    let launch = toolexec.run(["--cwd", "scratch", "--", "sh", "-c", &script]).watching(&marker);
    let mut running = launch.start();
    let tool = running.await_sleeps(1).remove(0);
    // The zygote too, since it would clean up; and before it the supervisor is stopped, since it would as well.
    let zygote = tool.line_up_to(running.pid()).and_then(|mut line| line.pop()).expect("a zygote above the tool");
    running.signal(rustix::process::Signal::STOP);
    zygote.kill();
    running.kill();
    assert_gone(ORPHANS_GONE, "tools of the killed supervisor", || marker.anywhere());
    assert!(!toolexec.room().left().is_empty(), "nothing was left to remove");
    toolexec.assert_next_call_works();
    toolexec.room().assert_swept();
}

/// Cleaning up after the dead must not touch the living.
#[test]
fn start_leaves_the_directories_of_living_supervisors_alone() {
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let go = toolexec.room().file("go");
    let script = format!("echo mine >file; while ! [ -e {} ]; do sleep 0.02; done; cat file; exit 1", go.display());
    let launch = toolexec.run(["--cwd", "scratch", "--timeout", "25", "--", "sh", "-c", &script]);
    let mut running = launch.start();
    assert_within(PATIENCE, "the tool", || {
        running.look();
        toolexec.room().left().iter().any(|run| file_below(run, "file"))
    });
    for _ in 0..5 {
        toolexec.assert_next_call_works();
    }
    std::fs::write(&go, "").expect("write a file of the test");
    let finished = running.finish();
    assert_eq!((finished.code(), finished.stdout()), (Some(1), "mine\n"), "{}", finished.stderr());
}

fn file_below(directory: &Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| entry.file_name() == name || file_below(&entry.path(), name))
}

/// Nor those who start at the same time.
#[test]
fn supervisors_that_start_at_once_do_not_disturb_one_another() {
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    for round in 0..40 {
        let running: Vec<_> = (0..12)
            .map(|number| {
                toolexec
                    .run(["--cwd", "scratch", "--", "sh", "-c", "echo $0 >file; cat file", &number.to_string()])
                    .start()
            })
            .collect();
        for (number, running) in running.into_iter().enumerate() {
            let finished = running.finish();
            assert_eq!(finished.stdout(), format!("{number}\n"), "round {round}: {}", finished.stderr());
            finished.assert_code(0);
        }
    }
    toolexec.room().assert_swept();
}

#[test]
fn caller_who_kills_a_wrapper_ends_the_call_by_closing_the_output() {
    // A supervisor whose reader is gone has nobody to answer to.
    let toolexec = Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    let marker = Marker::new(40606);
    let script = format!("(sleep {marker} &); while :; do echo still here; sleep 0.05; done");
    let mut running = toolexec.run(["--", "sh", "-c", &script]).unread().watching(&marker).start();
    running.await_sleeps(1);
    running.unread_stdout = None;
    assert_within(Duration::from_secs(2), "the supervisor's end", || !running.is_running());
    running.finish().assert_marker_gone(&marker);
    toolexec.room().assert_swept();
}
