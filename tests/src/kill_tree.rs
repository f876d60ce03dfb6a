//! The promises of a tree kill, each to be checked with every mechanism that claims to kill a tree.
//!
//! The test files hold the list of promises and the mechanism; [`crate::tree_kill_promises!`] makes a test of each.

use crate::bound::{ORPHANS_GONE, PATIENCE, assert_gone, with_growing_limit};
use crate::launch::{Finished, Toolexec};
use crate::marker::Marker;
use crate::process::Process;
use crate::told::Told;
use std::collections::HashSet;

/// Makes one test of each promise; `$toolexec` makes the [`Toolexec`] that has to keep it.
#[macro_export]
macro_rules! tree_kill_promises {
    ($toolexec:expr) => {
        $crate::tree_kill_promises! { $toolexec;
            grandchild_that_holds_the_output_pipe_dies_at_the_deadline
            what_a_successful_tool_leaves_in_the_background_is_killed_and_counted
            new_session_does_not_escape_the_deadline
            new_session_does_not_outlive_its_tool
            tool_that_ignores_polite_signals_dies_at_the_deadline
            grace_lies_inside_the_time_limit
            tool_that_dies_of_the_polite_signal_has_timed_out
            tool_that_gives_up_when_asked_has_timed_out
            tool_that_succeeds_when_asked_to_end_was_in_time
            twenty_spinning_daemons_die_at_the_deadline
            stopped_process_dies_at_the_deadline
            process_that_keeps_moving_on_dies_at_the_deadline
            process_with_new_namespaces_dies_at_the_deadline
            tool_that_stops_its_worker_dies_at_the_deadline
            tool_that_kills_its_worker_dies_with_it_or_has_no_effect
            killed_supervisor_takes_its_running_call_with_it
        }
    };
    ($toolexec:expr; $($promise:ident)+) => {
        $(
            #[test]
            fn $promise() {
                $crate::kill_tree::$promise(&$toolexec);
            }
        )+
    };
}

/// Runs a script with a time limit that it does not keep, a longer one if `saw` did not see by then what was to die; rules
/// R1, R2 and R3. Gives back what the last outcome told.
#[track_caller]
fn check_deadline(
    toolexec: &Toolexec,
    marker: &Marker,
    options: &[&str],
    script: &str,
    saw: impl Fn(&Finished) -> bool,
) -> Told {
    let mut last = None;
    with_growing_limit(|limit| {
        let seconds = limit.as_secs().to_string();
        let launch = toolexec.run_shell(&[&["--timeout", &seconds], options].concat(), script).watching(marker);
        let finished = launch.finish();
        finished.assert_code(124).assert_took(limit).assert_marker_gone(marker);
        let told = finished.told();
        told.assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
        told.assert_at("/receipt/deadline_ms", limit.as_secs() * 1000).assert_at("/class", "transient");
        told.assert_at("/started", true).assert_at("/side_effects_possible", true);
        assert_mechanism(toolexec, &told);
        toolexec.room().assert_swept();
        toolexec.assert_next_call_works();
        last = Some(told);
        saw(&finished)
    });
    last.expect("an attempt was made")
}

/// Runs a script that ends when the file `$go` is there, which it is once `sleeps` sleeps were seen.
#[track_caller]
fn finish_when_seen(toolexec: &Toolexec, marker: &Marker, options: &[&str], script: &str, sleeps: usize) -> Finished {
    let go = toolexec.room().file("go");
    let script = format!("go='{}'; {script}", go.display());
    let mut running = toolexec.run_shell(options, &script).watching(marker).start();
    running.await_sleeps(sleeps);
    toolexec.room().write("go", "");
    let finished = running.finish();
    finished.assert_marker_gone(marker);
    finished
}

/// Waits for the file.
const AWAIT_GO: &str = r#"while ! [ -e "$go" ]; do sleep 0.02; done"#;

#[track_caller]
fn assert_mechanism(toolexec: &Toolexec, told: &Told) {
    match toolexec.strength() {
        Some(strength) => told.assert_at("/receipt/strength", strength),
        None => told.assert_kills_trees(),
    };
}

/// Case O01.
pub fn grandchild_that_holds_the_output_pipe_dies_at_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40601);
    let script = format!("sleep {marker} & echo begun; wait");
    let told = check_deadline(toolexec, &marker, &[], &script, |finished| finished.sleeps(&marker) == 1);
    told.assert_at("/stdout/text", "begun\n");
}

/// Case O02.
pub fn what_a_successful_tool_leaves_in_the_background_is_killed_and_counted(toolexec: &Toolexec) {
    let marker = Marker::new(40602);
    let left = format!("(sleep {marker} &); (nohup sleep {marker} >/dev/null 2>&1 &)");
    let script = format!("{left}; {AWAIT_GO}; printf ready");
    let finished = finish_when_seen(toolexec, &marker, &["--timeout", "25"], &script, 2);
    finished.assert_code(0).assert_was_quick();
    let told = finished.told();
    told.assert_end("ok - returned").assert_at("/stdout/text", "ready").assert_at("/exit/code", 0);
    told.assert_at("/receipt/background_killed", 2).assert_at("/receipt/confirmed", true);
    assert_mechanism(toolexec, &told);
    toolexec.room().assert_swept();
    toolexec.assert_next_call_works();
}

/// Case O03, first half.
pub fn new_session_does_not_escape_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40603);
    let script = format!("setsid -f sleep {marker} >/dev/null 2>&1; sleep {marker}");
    check_deadline(toolexec, &marker, &[], &script, |finished| {
        let sleeps = finished.seen.iter().filter(|process| marker.is_sleep(process));
        sleeps.map(|process| process.session).collect::<HashSet<_>>().len() == 2
    });
}

/// Case O03, second half.
pub fn new_session_does_not_outlive_its_tool(toolexec: &Toolexec) {
    let marker = Marker::new(40603);
    let script = format!("setsid -f sleep {marker} >/dev/null 2>&1; {AWAIT_GO}; exit 0");
    let finished = finish_when_seen(toolexec, &marker, &["--timeout", "25"], &script, 1);
    finished.assert_code(0).assert_was_quick();
    finished.told().assert_end("ok - returned").assert_at("/receipt/background_killed", 1);
    toolexec.room().assert_swept();
}

/// Case O04.
pub fn tool_that_ignores_polite_signals_dies_at_the_deadline(toolexec: &Toolexec) {
    check_impolite(toolexec, &[]);
}

/// Case O04 with a grace: it is no time on top.
pub fn grace_lies_inside_the_time_limit(toolexec: &Toolexec) {
    check_impolite(toolexec, &["--grace", "400ms"]);
}

#[track_caller]
fn check_impolite(toolexec: &Toolexec, options: &[&str]) {
    let marker = Marker::new(40604);
    // What a shell ignores, its children ignore too.
    let script = format!("trap '' HUP INT QUIT TERM; sleep {marker}; sleep {marker}");
    check_deadline(toolexec, &marker, options, &script, |finished| finished.sleeps(&marker) == 1);
}

/// What ends by the signal that toolexec has sent for the time limit has not crashed, it has timed out.
pub fn tool_that_dies_of_the_polite_signal_has_timed_out(toolexec: &Toolexec) {
    check_polite(toolexec, "(sleep MARKER &); sleep MARKER", "", "timed_out", 124);
}

/// Nor has it failed by itself, should it end in an orderly way.
pub fn tool_that_gives_up_when_asked_has_timed_out(toolexec: &Toolexec) {
    check_polite(toolexec, "trap 'echo goodbye; exit 3' TERM; sleep MARKER & wait", "goodbye\n", "timed_out", 124);
}

/// A tool that uses its grace to succeed was in time.
pub fn tool_that_succeeds_when_asked_to_end_was_in_time(toolexec: &Toolexec) {
    check_polite(toolexec, "trap 'echo done; exit 0' TERM; sleep MARKER & wait", "done\n", "ok", 0);
}

/// The grace begins long before the time limit ends, and the tool ends at its beginning.
#[track_caller]
fn check_polite(toolexec: &Toolexec, script: &str, said: &str, status: &str, code: i32) {
    with_growing_limit(|grace_begins| {
        let marker = Marker::new(40604);
        let timeout = (grace_begins + PATIENCE).as_secs().to_string();
        let options = ["--timeout", &timeout, "--grace", &PATIENCE.as_secs().to_string()];
        let launch = toolexec.run_shell(&options, &script.replace("MARKER", marker.as_str()));
        let finished = launch.watching(&marker).finish();
        finished.assert_took(grace_begins).assert_marker_gone(&marker);
        toolexec.room().assert_swept();
        let begun = finished.sleeps(&marker) >= 1;
        if begun {
            finished.assert_code(code);
            finished.told().assert_at("/status", status).assert_at("/stdout/text", said);
        }
        begun
    });
}

/// Daemons that use the processor as hard as they can.
pub fn twenty_spinning_daemons_die_at_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40620);
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
           (setsid -f sh -c 'while :; do :; done' {marker} >/dev/null 2>&1 &)
         done
         sleep {marker}"
    );
    check_deadline(toolexec, &marker, &[], &script, |finished| {
        // The shell that starts them has the whole script as its last argument.
        let spinning = |process: &&Process| process.arguments.last().is_some_and(|last| last == marker.as_str());
        finished.seen.iter().filter(spinning).filter(|process| !marker.is_sleep(process)).count() >= 20
    });
}

/// A process that is stopped takes no signal but SIGKILL and SIGCONT.
pub fn stopped_process_dies_at_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40621);
    let script = format!("sleep {marker} & kill -STOP $!; kill -STOP $$; wait");
    check_deadline(toolexec, &marker, &[], &script, |finished| {
        finished.seen.iter().filter(|process| process.state == 'T').count() == 2
    });
}

/// A process that forks, ends, and goes on as its child, in a new session each time: nobody who reads a list of
/// processes and then kills them catches it for sure.
pub fn process_that_keeps_moving_on_dies_at_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40622);
    let footprints = toolexec.room().file("footprints");
    let hop = "printf . >>\"$1\"; setsid -f sh \"$0\" \"$1\" \"$2\" >/dev/null 2>&1\n";
    let hop = toolexec.room().write("hop", hop);
    let script = format!("sh {} {} {marker}; sleep {marker}", hop.display(), footprints.display());
    // One process is too short-lived to be seen for sure; what it leaves behind it is not.
    check_deadline(toolexec, &marker, &[], &script, |_| {
        std::fs::metadata(&footprints).is_ok_and(|metadata| metadata.len() >= 10)
    });
}

/// A process that is in PID and user namespaces of its own. Where users may make none, that is said aloud.
pub fn process_with_new_namespaces_dies_at_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40623);
    let unshare = "unshare --user --map-root-user --pid --fork";
    let tried = toolexec.run_shell(&["--timeout", "20"], &format!("{unshare} true")).finish();
    if tried.code() != Some(0) {
        return eprintln!("SKIPPED: a tool may not make namespaces here: {}", tried.told().text("/stderr/text"));
    }
    let script = format!("{unshare} sh -c 'setsid -f sleep {marker}; sleep {marker}'; sleep {marker}");
    check_deadline(toolexec, &marker, &[], &script, |finished| finished.sleeps(&marker) == 2);
}

/// A tool may stop what looks after it, should it have the right to.
pub fn tool_that_stops_its_worker_dies_at_the_deadline(toolexec: &Toolexec) {
    let marker = Marker::new(40615);
    let script = format!("(setsid sleep {marker} &); kill -STOP $PPID; sleep {marker}");
    check_deadline(toolexec, &marker, &[], &script, |finished| finished.sleeps(&marker) == 2);
}

/// In a PID namespace the kernel protects the worker from its tool. Elsewhere the call is lost, and nothing of it stays.
pub fn tool_that_kills_its_worker_dies_with_it_or_has_no_effect(toolexec: &Toolexec) {
    let marker = Marker::new(40614);
    let script = format!("(setsid sleep {marker} &); {AWAIT_GO}; kill -KILL $PPID; sleep 0.3; echo unharmed");
    let finished = finish_when_seen(toolexec, &marker, &["--timeout", "25"], &script, 1);
    finished.assert_was_quick();
    let told = finished.told();
    match told.text("/receipt/strength") {
        "pid-namespace" => {
            finished.assert_code(0);
            told.assert_end("ok - returned").assert_at("/stdout/text", "unharmed\n");
        }
        _ => {
            finished.assert_code(125);
            told.assert_end("failed WORKER_LOST killed").assert_at("/receipt/confirmed", true);
        }
    }
    toolexec.room().assert_swept();
    toolexec.assert_next_call_works();
}

/// Case O06: SIGKILL for the supervisor itself, in the middle of a call.
pub fn killed_supervisor_takes_its_running_call_with_it(toolexec: &Toolexec) {
    let marker = Marker::new(40606);
    let script = format!("setsid -f sleep {marker} >/dev/null 2>&1; (sleep {marker} &); sleep {marker}");
    let mut running = toolexec.run_shell(&[], &script).watching(&marker).start();
    running.await_sleeps(3);
    running.kill();
    assert_gone(ORPHANS_GONE, "the killed supervisor's tree", || marker.anywhere());
    assert_gone(ORPHANS_GONE, "the killed supervisor's processes", || {
        running.seen().iter().filter(|process| process.is_alive()).cloned().collect()
    });
    toolexec.assert_next_call_works();
    // What the killed supervisor could not remove, the next one has removed.
    toolexec.room().assert_swept();
}
