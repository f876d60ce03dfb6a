//! Case O20 and the table of exit codes: how a tool ended is told apart from how toolexec did.

use rustix::process::Signal;
use std::time::Duration;
use toolexec_tests::launch::Toolexec;
use toolexec_tests::marker::Marker;
use toolexec_tests::told::Told;

fn toolexec() -> Toolexec {
    Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"))
}

/// Runs a script twice: with `--json` it exits with `code` and tells `end`, and without it exits with the same code and
/// passes on the same output.
#[track_caller]
fn check(script: &str, code: i32, end: &str) -> Told {
    let toolexec = toolexec();
    let finished = toolexec.run_shell(&["--timeout", "20"], script).finish();
    finished.assert_code(code).assert_was_quick().assert_nothing_runs();
    let told = finished.told();
    told.assert_end(end);
    let plain = toolexec.run(["--timeout", "20", "--", "sh", "-c", script]).finish();
    plain.assert_code(code);
    assert_eq!(plain.stdout(), told.text("/stdout/text"));
    toolexec.room().assert_swept();
    told
}

#[test]
fn success_is_zero() {
    let told = check("printf whole", 0, "ok - returned");
    told.assert_at("/exit/code", 0).assert_at("/exit/signal", ()).assert_at("/stdout/text", "whole");
    told.assert_at("/class", ()).assert_at("/message", ()).assert_at("/attempts", 1).assert_at("/result", ());
    told.assert_at("/tool", "sh");
}

#[test]
fn commands_own_status_is_passed_on() {
    for status in [1, 2, 42, 123] {
        let told = check(&format!("printf half; exit {status}"), status, "error TOOL_ERROR returned");
        told.assert_at("/exit/code", status).assert_at("/exit/signal", ()).assert_at("/stdout/text", "half");
        told.assert_at("/class", "semantic");
    }
}

/// Case O20.
#[test]
fn death_by_signal_is_no_success_and_no_timeout() {
    for (signal, number) in [("SEGV", 11), ("KILL", 9), ("ABRT", 6), ("TERM", 15), ("PIPE", 13), ("USR1", 10)] {
        let told =
            check(&format!("printf half; kill -{signal} $$; sleep 20"), 128 + number, "crashed TOOL_CRASHED returned");
        told.assert_at("/exit/signal", format!("SIG{signal}")).assert_at("/exit/code", ());
        told.assert_at("/stdout/text", "half").assert_at("/class", "semantic");
        assert!(told.text("/message").contains(&format!("SIG{signal}")), "{}", told.text("/message"));
        assert!(!told.text("/message").contains("timed out"), "{}", told.text("/message"));
    }
}

/// Case O20, third part.
#[test]
fn status_that_looks_like_a_signal_is_told_apart() {
    for status in [124, 125, 126, 127, 130, 137, 139, 255] {
        let told = check(&format!("exit {status}"), status, "error TOOL_ERROR returned");
        told.assert_at("/exit/code", status).assert_at("/exit/signal", ());
    }
}

#[test]
fn timeout_is_124() {
    let toolexec = toolexec();
    let finished = toolexec.run(["--timeout", "300ms", "--", "sleep", "20"]).finish();
    finished.assert_code(124).assert_took(Duration::from_millis(300));
    assert!(finished.stderr().contains("timed out"), "{}", finished.stderr());
    assert!(finished.stderr().lines().all(|line| line.starts_with("toolexec:")), "{}", finished.stderr());
    let quiet = toolexec.run(["--quiet", "--timeout", "300ms", "--", "sleep", "20"]).finish();
    quiet.assert_code(124);
    assert_eq!(quiet.stderr(), "");
}

#[test]
fn command_that_cannot_be_found_is_127() {
    let toolexec = toolexec();
    for missing in ["no-such-command-anywhere", "./no-such-file", "/no/such/path"] {
        let finished = toolexec.run(["--json", "--", missing]).finish();
        finished.assert_code(127).assert_was_quick();
        let told = finished.told();
        told.assert_end("failed SPAWN_FAILED -").assert_at("/side_effects_possible", false).assert_at("/exit", ());
        assert!(told.text("/message").contains(missing), "{}", told.text("/message"));
        let plain = toolexec.run(["--", missing]).finish();
        plain.assert_code(127);
        assert!(plain.stderr().contains(missing), "{}", plain.stderr());
    }
    toolexec.room().assert_swept();
}

#[test]
fn command_that_cannot_be_executed_is_126() {
    let toolexec = toolexec();
    let text = toolexec.room().write("text", "not a program");
    for program in [text.to_str().unwrap(), "/"] {
        let finished = toolexec.run(["--json", "--", program]).finish();
        finished.assert_code(126).assert_was_quick();
        let told = finished.told();
        told.assert_end("failed SPAWN_FAILED -").assert_at("/side_effects_possible", false);
        assert!(told.text("/message").contains(program), "{}", told.text("/message"));
    }
    toolexec.room().assert_swept();
}

#[test]
fn refusal_is_125_and_starts_nothing() {
    let toolexec = toolexec();
    for arguments in [
        &["run"][..],
        &["run", "--"],
        &["run", "--nonsense", "--", "true"],
        &["run", "ls", "-l"],
        &["run", "no_such_tool"],
        &["run", "--kill", "softly", "--", "true"],
        &["run", "--output", "0", "--", "true"],
        &["run", "--output", "-5", "--", "true"],
        &["run", "--memory", "1GiB", "--", "true"],
        &["run", "--strength", "prayer", "--", "true"],
        &["nonsense"],
        &[],
    ] {
        let finished = toolexec.command(arguments).finish();
        finished.assert_code(125).assert_was_quick();
        assert_eq!(finished.stdout(), "", "{arguments:?}");
        assert!(!finished.stderr().is_empty(), "{arguments:?} is refused without a word");
    }
    toolexec.room().assert_swept();
}

/// A demand that this kill cannot meet is refused, not lowered.
#[test]
fn kill_weaker_than_demanded_is_refused() {
    let toolexec = Toolexec::killing_by(env!("CARGO_BIN_EXE_toolexec_under_test"), "subreaper");
    let touched = toolexec.room().file("touched");
    let launch = toolexec.run(["--json", "--kill", "pid-namespace", "--", "touch"]).arguments([&touched]);
    let finished = launch.finish();
    finished.assert_code(125);
    finished.told().assert_end("failed CONTAINMENT_UNAVAILABLE -").assert_at("/started", false);
    assert!(!touched.exists(), "the command was run with a weaker kill");
    toolexec.run(["--kill", "tree", "--", "touch"]).arguments([&touched]).finish().assert_code(0);
    assert!(touched.exists());
}

/// Interrupted by its user, toolexec takes the call's tree along and says which signal it was.
#[test]
fn interrupted_supervisor_kills_its_call_and_exits_as_the_signal_has_it() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for options in [&["--json"][..], &[]] {
            let toolexec = toolexec();
            let marker = Marker::new(40624);
            let script = format!("setsid -f sleep {marker} >/dev/null 2>&1; echo begun; sleep {marker}");
            let launch = toolexec.run(options).arguments(["--", "sh", "-c", &script]).watching(&marker);
            let mut running = launch.start();
            running.await_sleeps(2);
            running.signal(signal);
            let finished = running.finish();
            finished.assert_code(code).assert_marker_gone(&marker);
            if !options.is_empty() {
                let told = finished.told();
                told.assert_end("cancelled CANCELLED killed").assert_killed_for("cancelled");
                told.assert_at("/stdout/text", "begun\n");
            } else {
                assert_eq!(finished.stdout(), "begun\n");
            }
            toolexec.room().assert_swept();
        }
    }
}

/// The whole of an outcome's usage is of this call: what a tool burns is told, and what it does not is not.
#[test]
fn usage_tells_what_the_call_used() {
    let toolexec = toolexec();
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let burnt = toolexec.run_shell(&["--timeout", "20"], burn).finish().told();
    let idle = toolexec.run_shell(&["--timeout", "20"], "sleep 0.3").finish().told();
    assert!(burnt.number("/usage/cpu_us") > 50_000, "{:#}", burnt.0);
    assert!(idle.number("/usage/cpu_us") < 50_000, "{:#}", idle.0);
    assert!(idle.number("/timing/run_us") >= 300_000, "{:#}", idle.0);
    let memory = burnt.number("/usage/max_rss_bytes");
    assert!((100_000..1_000_000_000).contains(&memory), "{memory}");
}
