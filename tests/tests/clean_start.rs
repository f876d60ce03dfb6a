//! Cases O08 and O10 to O13: what a tool finds when it starts is its own, and nothing of toolexec's or its caller's.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use toolexec_tests::bound::{assert_gone, with_growing_limit};
use toolexec_tests::launch::{Finished, Launch, Toolexec};
use toolexec_tests::marker::Marker;

fn toolexec() -> Toolexec {
    Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"))
}

/// With the strongest kill, and with the weakest that reaches a tree: a tool finds the same in both.
fn each_strength() -> [Toolexec; 2] {
    [toolexec(), Toolexec::killing_by(env!("CARGO_BIN_EXE_toolexec_under_test"), "subreaper")]
}

/// Runs `run ARGUMENTS…` to a quick and good end and gives back what it wrote.
#[track_caller]
fn check(toolexec: &Toolexec, arguments: &[&str]) -> String {
    let finished = toolexec.run(arguments).finish();
    finished.assert_code(0).assert_was_quick().assert_nothing_runs();
    toolexec.room().assert_swept();
    finished.stdout().to_owned()
}

/// Case O08. The caller's standard input is a pipe that never ends.
#[test]
fn command_gets_an_empty_standard_input() {
    for toolexec in each_strength() {
        assert_eq!(check(&toolexec, &["--timeout", "10", "--", "wc", "-c"]).trim(), "0");
    }
}

/// Case O08 by way of the catalogue.
#[test]
fn catalogue_tool_gets_an_empty_standard_input_unless_it_declares_one() {
    let toolexec = toolexec();
    let catalogue = toolexec.room().write(
        "toolexec.toml",
        r#"
            [tool.count]
            description = "Counts what it reads"
            command = ["wc", "-c"]
            [tool.repeat]
            description = "Repeats its arguments"
            command = ["cat"]
            stdin = "json"
            input = { type = "object", properties = { word = { type = "string" } } }
        "#,
    );
    let catalogue = catalogue.to_str().unwrap();
    assert_eq!(check(&toolexec, &["--catalogue", catalogue, "count"]).trim(), "0");
    let repeated = check(&toolexec, &["--catalogue", catalogue, "repeat", "--args", r#"{"word":"né"}"#]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&repeated).unwrap(), serde_json::json!({"word": "né"}));
}

/// A standard input that was asked for arrives, from a file and from toolexec's own, and ends.
#[test]
fn standard_input_that_is_asked_for_arrives_whole() {
    let toolexec = toolexec();
    let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let file = toolexec.room().write("input", &text);
    let from_file = check(&toolexec, &["--timeout", "10", "--stdin", file.to_str().unwrap(), "--", "cat"]);
    assert!(from_file == text, "{} bytes came back of {}", from_file.len(), text.len());
    let own = toolexec.run(["--timeout", "10", "--stdin", "-", "--", "cat"]).input(text.clone()).finish();
    own.assert_code(0);
    assert!(own.stdout() == text, "{} bytes came back of {}", own.stdout().len(), text.len());
}

/// Opening a pipe waits for whoever is to write into it: that is the tool's time, and not an unbounded wait before it.
#[test]
fn pipe_without_a_writer_as_standard_input_delays_no_deadline() {
    let toolexec = toolexec();
    let pipe = toolexec.room().file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo(1)").success());
    let launch = toolexec.run(["--timeout", "1", "--stdin"]).arguments([&pipe]).arguments(["--", "cat"]);
    launch.finish().assert_code(124).assert_took(Duration::from_secs(1)).assert_nothing_runs();
}

/// Case O10: a terminal that belongs to the user is not the tool's, not even by its name.
#[test]
fn tool_has_no_controlling_terminal_and_takes_no_key_from_the_user() {
    let Some(terminal) = Terminal::new() else { return };
    let prompt = r#"run --timeout 3 -- sh -c 'read -r p </dev/tty && echo "got $p"'"#;
    let script = format!(
        "stty -a >before; \"$TOOLEXEC\" {prompt}; echo \"status $?\"; stty -a >after; read -r left; echo \"left $left\""
    );
    let finished = terminal.finish(&script, "secret\n");
    let output = finished.stdout();
    assert!(!output.contains("got"), "the tool has read from the terminal: {output}");
    assert!(output.contains("left secret"), "the user's line is gone: {output}");
    assert!(!output.contains("status 0") && output.contains("status"), "the tool had a terminal: {output}");
    let settings = |name| fs::read_to_string(terminal.toolexec.room().file(name)).unwrap();
    assert_eq!(settings("before"), settings("after"));
    assert!(finished.took < Duration::from_secs(3), "it waited for the terminal: {:?}", finished.took);
}

/// Case O10, from the tool's own view: it leads a session or is in a new one, and that has no terminal.
#[test]
fn tool_is_in_a_session_without_a_terminal() {
    let Some(terminal) = Terminal::new() else { return };
    // Fields 6 and 7 of /proc/PID/stat: session and terminal.
    let finished = terminal.finish(
        "cut -d ' ' -f 6,7 /proc/self/stat >mine; \"$TOOLEXEC\" run -- cut -d ' ' -f 6,7 /proc/self/stat >its",
        "",
    );
    finished.assert_code(0);
    let fields = |name| {
        let text = fs::read_to_string(terminal.toolexec.room().file(name)).unwrap();
        let (session, tty) = text.trim().split_once(' ').unwrap();
        (session.to_owned(), tty.to_owned())
    };
    let (mine, its) = (fields("mine"), fields("its"));
    assert_ne!(mine.1, "0", "the test itself has no terminal");
    assert_eq!(its.1, "0", "the tool has a terminal");
    assert_ne!(mine.0, its.0, "the tool is in the user's session");
}

/// Case O11: a reader that has enough ends its writer, although toolexec itself ignores SIGPIPE.
#[test]
fn broken_pipe_ends_a_tool_within_a_tool() {
    for toolexec in each_strength() {
        let script = "while :; do echo l; sleep 0.05; done | head -n 1";
        assert_eq!(check(&toolexec, &["--timeout", "5", "--", "sh", "-c", script]), "l\n");
    }
}

const SIGNALS: [&str; 5] = ["--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
const NO_SIGNALS: &str = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";

/// Case O11.
#[test]
fn tool_starts_with_no_signal_blocked_or_ignored() {
    for toolexec in each_strength() {
        assert_eq!(check(&toolexec, &SIGNALS), NO_SIGNALS);
    }
}

/// Case O11, the other way round: what the caller of toolexec ignores and blocks is not handed on.
/// Its worker has some: so the kernel does not let it trace the worker and answer in its place.
#[test]
fn tool_has_no_capability_even_where_it_is_run_by_root() {
    let told = check(&toolexec(), &["--", "grep", "-E", "^Cap(Prm|Eff|Amb)", "/proc/self/status"]);
    assert_eq!(told, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n");
}

#[test]
fn signals_that_the_caller_ignores_and_blocks_are_not_handed_on() {
    let odd = ["--ignore-signal=HUP,PIPE,USR1,TERM,CHLD", "--block-signal=USR2,TERM,CHLD,ALRM"];
    if !Command::new("env").args(odd).arg("true").status().is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: env(1) cannot block signals here");
    }
    for toolexec in each_strength() {
        let launch = Launch::new("env".as_ref(), toolexec.room()).arguments(odd).arguments([toolexec.binary()]);
        let launch = launch.arguments(["run", "--strength", toolexec.strength().unwrap_or("pid-namespace")]);
        let finished = launch.arguments(SIGNALS).finish();
        if toolexec.strength().is_none() && finished.code() == Some(125) {
            eprintln!("SKIPPED: no PID namespaces here: {}", finished.stderr());
            continue;
        }
        finished.assert_code(0);
        assert_eq!(finished.stdout(), NO_SIGNALS);
    }
}

/// A time limit is kept whatever the caller ignores and blocks.
#[test]
fn caller_that_blocks_signals_gets_its_deadline_all_the_same() {
    let odd = ["--ignore-signal=CHLD,TERM,PIPE", "--block-signal=CHLD,TERM,ALRM"];
    if !Command::new("env").args(odd).arg("true").status().is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: env(1) cannot block signals here");
    }
    let toolexec = toolexec();
    let marker = Marker::new(40611);
    let script = format!("sleep {marker} & wait");
    with_growing_limit(|limit| {
        let launch = Launch::new("env".as_ref(), toolexec.room()).arguments(odd).arguments([toolexec.binary()]);
        let launch = launch.arguments(["run", "--json", "--timeout", &limit.as_secs().to_string()]);
        let finished = launch.arguments(["--", "sh", "-c", &script]).watching(&marker).finish();
        finished.assert_code(124).assert_took(limit).assert_marker_gone(&marker).told().assert_killed_for("deadline");
        finished.sleeps(&marker) == 1
    });
}

/// Case O12. The caller has more descriptors open than it should.
#[test]
fn tool_has_three_descriptors_and_no_more() {
    for toolexec in each_strength() {
        let other = toolexec.room().write("other", "of the caller");
        // `ls` opens the directory itself, as the lowest free number.
        let script = format!(
            "exec 5<{other} 6>>{other} 9<{other}; exec \"$@\" run --timeout 10 -- ls -1 /proc/self/fd",
            other = other.display()
        );
        let launch = Launch::new("sh".as_ref(), toolexec.room()).arguments(["-c", &script, "sh"]);
        let mut launch = launch.arguments([toolexec.binary()]);
        if let Some(strength) = toolexec.strength() {
            launch = launch.arguments(["--strength", strength]);
        }
        let finished = launch.finish();
        finished.assert_code(0);
        assert_eq!(finished.stdout(), "0\n1\n2\n3\n");
    }
}

/// Case O12: what the three are.
#[test]
fn descriptors_of_a_tool_are_nothing_and_two_pipes_of_its_own() {
    for toolexec in each_strength() {
        let listed = check(&toolexec, &["--", "sh", "-c", "for n in 0 1 2; do readlink /proc/self/fd/$n; done"]);
        let [stdin, stdout, stderr] = listed.lines().collect::<Vec<_>>()[..] else { panic!("{listed}") };
        assert_eq!(stdin, "/dev/null");
        // `readlink` has what the shell gave it, which is the tool's own.
        assert!(stdout.starts_with("pipe:") && stderr.starts_with("pipe:") && stdout != stderr, "{listed}");
    }
}

/// Only what was asked for is in the environment, and what toolexec needs for itself is not.
#[test]
fn environment_is_scrubbed_and_extended_on_demand() {
    let toolexec = toolexec();
    let launch = toolexec.run(["--env", "PASSED", "--env", "GIVEN=a b=c", "--", "env"]);
    let finished = launch.variable("PASSED", "1").variable("SECRET_TOKEN", "hunter2").finish();
    finished.assert_code(0);
    let names: Vec<&str> = finished.stdout().lines().map(|line| line.split('=').next().unwrap()).collect();
    assert!(finished.stdout().lines().any(|line| line == "PASSED=1"), "{}", finished.stdout());
    assert!(finished.stdout().lines().any(|line| line == "GIVEN=a b=c"), "{}", finished.stdout());
    assert!(names.contains(&"PATH"), "{names:?}");
    assert!(!finished.stdout().contains("hunter2"), "{}", finished.stdout());
    assert!(names.iter().all(|name| !name.starts_with("TOOLEXEC") && !name.starts_with("CARGO")), "{names:?}");
}

/// Case O13, second half: the caller stands in a directory that is no more.
#[test]
fn directory_that_is_gone_is_named_and_not_taken_for_a_missing_command() {
    let toolexec = toolexec();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let launch = Launch::new("sh".as_ref(), toolexec.room()).directory(&toolexec.room().files());
    let finished =
        launch.arguments(["-c", script, "sh"]).arguments([toolexec.binary()]).arguments(["run", "--", "pwd"]).finish();
    match finished.code() {
        Some(0) => {}
        Some(125) => {
            let told = finished.stderr();
            assert!(told.contains("directory"), "{told}");
            assert!(!told.contains("not found") && !told.contains("no such command"), "{told}");
        }
        other => panic!("{other:?}: {}", finished.stderr()),
    }
    toolexec.assert_next_call_works();
}

/// Case O13: a directory that never was.
#[test]
fn working_directory_that_does_not_exist_is_named() {
    let toolexec = toolexec();
    let missing = toolexec.room().file("missing");
    let finished = toolexec.run(["--cwd"]).arguments([&missing]).arguments(["--", "true"]).finish();
    finished.assert_code(125);
    assert!(finished.stderr().contains(missing.to_str().unwrap()), "{}", finished.stderr());
}

/// A command starts where its caller stands, or in a directory of its own that is gone afterwards.
#[test]
fn working_directory_is_the_callers_or_a_scratch_one() {
    let toolexec = toolexec();
    let here = toolexec.room().files();
    let finished = toolexec.run(["--", "pwd", "-P"]).directory(&here).finish();
    finished.assert_code(0);
    assert_eq!(Path::new(finished.stdout().trim_end()), here.canonicalize().unwrap());
    // With all that makes a directory hard to remove.
    let script = "pwd -P; touch file .hidden; mkdir -p deep/er locked; touch locked/in; chmod 0 locked; ln -s / link";
    let scratch = check(&toolexec, &["--cwd", "scratch", "--", "sh", "-c", script]);
    let scratch = Path::new(scratch.trim_end());
    assert!(scratch.starts_with(toolexec.room().temporary().canonicalize().unwrap()), "{}", scratch.display());
    assert!(!scratch.exists(), "{} is still there", scratch.display());
}

/// A terminal in which a shell runs; script(1) makes it.
struct Terminal {
    toolexec: Toolexec,
}

impl Terminal {
    /// `None`, said aloud, where there is no `script`.
    fn new() -> Option<Self> {
        let toolexec = toolexec();
        let usable = Command::new("script").args(["-qec", "true", "/dev/null"]).output();
        match usable {
            Ok(output) if output.status.success() => Some(Self { toolexec }),
            Ok(_) | Err(_) => {
                eprintln!("SKIPPED: no script(1) to make a terminal");
                None
            }
        }
    }

    /// Runs a script in the terminal, in the room's directory of files; the user types these keys and then no more.
    #[track_caller]
    fn finish(&self, script: &str, keys: &str) -> Finished {
        let room = self.toolexec.room();
        let launch = Launch::new("script".as_ref(), room).arguments(["-qec", script, "/dev/null"]);
        let launch = launch.directory(&room.files()).variable("TOOLEXEC", self.toolexec.binary());
        let mut running = launch.variable("SHELL", "/bin/sh").start();
        let mut keyboard = running.stdin.take().expect("a keyboard");
        std::io::Write::write_all(&mut keyboard, keys.as_bytes()).expect("typing");
        running.stdin = Some(keyboard);
        let finished = running.finish();
        assert_gone(Duration::from_millis(500), "processes in the terminal", || {
            finished.seen.iter().filter(|process| process.is_still_there()).cloned().collect()
        });
        finished
    }
}
