//! The commands beside `run`, and what is said on which stream.

use assert_cmd::Command;
use serde_json::Value;
use std::time::Duration;
use toolexec_tests::bound::PATIENCE;
use toolexec_tests::room::Room;

/// A short command, which starts no tool and is over in a moment.
fn toolexec(room: &Room) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolexec_under_test"));
    command.env("TMPDIR", room.temporary()).current_dir(room.files()).timeout(PATIENCE);
    command
}

#[track_caller]
fn json(command: &mut Command, code: i32) -> Value {
    let assert = command.assert().code(code);
    let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn text(command: &mut Command, code: i32) -> String {
    let assert = command.assert().code(code);
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

const CATALOGUE: &str = r#"
[defaults]
timeout = "30s"
[tool.greet]
description = "Greets somebody by name"
command = ["echo", "hello", "{name}"]
timeout = "2s"
input = { type = "object", required = ["name"], properties = { name = { type = "string" } } }
[tool.count]
description = "Counts what it reads"
command = ["wc", "-c"]
stdin = "json"
"#;

#[test]
fn help_has_examples_and_the_exit_codes() {
    let room = Room::new();
    let long = text(toolexec(&room).arg("--help"), 0);
    for part in ["toolexec run --timeout", "124", "125", "126, 127", "128 + n"] {
        assert!(long.contains(part), "{part} is not in: {long}");
    }
    for command in ["run", "list", "check", "doctor", "completions"] {
        let help = text(toolexec(&room).args([command, "--help"]), 0);
        assert!(help.contains("Examples:") && help.contains("toolexec "), "{command}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 120), "{command}: {help}");
    }
    assert!(text(toolexec(&room).arg("--version"), 0).starts_with("toolexec "));
}

#[test]
fn completions_are_printed_for_each_shell() {
    let room = Room::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = text(toolexec(&room).args(["completions", shell]), 0);
        assert!(script.contains("queue-timeout"), "{shell}: {script}");
    }
    let script = room.write("completions.bash", text(toolexec(&room).args(["completions", "bash"]), 0));
    let bash = std::process::Command::new("bash").arg("-n").arg(script).output();
    match bash {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("SKIPPED: no bash to read the completions: {error}"),
    }
}

#[test]
fn list_tells_the_tools_of_a_catalogue() {
    let room = Room::new();
    room.write("toolexec.toml", CATALOGUE);
    let listed = text(toolexec(&room).arg("list"), 0);
    for part in ["greet", "Greets somebody by name", "count", "2s", "30s"] {
        assert!(listed.contains(part), "{part} is not in: {listed}");
    }
    assert!(!listed.contains('\u{1b}'), "colours without a terminal: {listed}");
    let listed = json(toolexec(&room).args(["list", "--json"]), 0);
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["greet", "count"]);
    assert_eq!(listed["tools"][0]["description"], "Greets somebody by name");
}

#[test]
fn check_accepts_what_is_right_and_refuses_what_is_wrong_with_its_place() {
    let room = Room::new();
    room.write("toolexec.toml", CATALOGUE);
    toolexec(&room).arg("check").assert().code(0);
    json(toolexec(&room).args(["check", "--json"]), 0);
    room.write("wrong.toml", CATALOGUE.replace("{name}", "{nmae}"));
    let assert = toolexec(&room).args(["check", "wrong.toml"]).assert().code(125);
    let output = assert.get_output();
    let said = String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap();
    for part in ["wrong.toml", "6", "greet", "nmae"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let wrong = json(toolexec(&room).args(["check", "--json", "wrong.toml"]), 125);
    assert_eq!(wrong["problems"].as_array().unwrap().len(), 1, "{wrong:#}");
    let missing = toolexec(&room).args(["check", "missing.toml"]).assert().code(125);
    let said = String::from_utf8(missing.get_output().stderr.clone()).unwrap();
    assert!(said.contains("missing.toml"), "{said}");
}

#[test]
fn doctor_tells_the_kill_strength_that_calls_really_get() {
    let room = Room::new();
    let told = text(toolexec(&room).arg("doctor"), 0);
    for part in ["kernel", "namespace", "pidfd", "watchdog"] {
        assert!(told.to_lowercase().contains(part), "{part} is not in: {told}");
    }
    assert!(!told.contains('\u{1b}'), "colours without a terminal: {told}");
    for strength in [&[][..], &["--strength", "subreaper"]] {
        let doctor = json(toolexec(&room).args(["doctor", "--json"]).args(strength), 0);
        let call = json(toolexec(&room).args(["run", "--json"]).args(strength).args(["--", "true"]), 0);
        assert_eq!(doctor["kill_strength"], call["receipt"]["strength"], "{doctor:#}");
    }
    room.assert_swept();
}

#[test]
fn outcome_has_the_keys_that_are_promised() {
    let room = Room::new();
    // The keys themselves are checked wherever an outcome is read; here each of the objects is there.
    let script = "echo out; echo err >&2; exit 3";
    let outcome = text(toolexec(&room).args(["run", "--json", "--timeout", "20", "--", "sh", "-c", script]), 3);
    let told = toolexec_tests::told::Told::from_line(&outcome, "");
    for object in ["/exit", "/stdout", "/stderr", "/timing", "/usage", "/receipt"] {
        assert!(told.at(object).is_object(), "{object} of {outcome}");
    }
    assert!(!told.text("/call_id").is_empty());
    assert!(told.number("/timing/total_us") >= told.number("/timing/run_us"), "{outcome}");
    told.assert_at("/receipt/deadline_ms", 20_000).assert_at("/receipt/reason", "finished");
    // What it says is said to a program: nothing on the other stream.
    toolexec(&room).args(["run", "--json", "--", "true"]).assert().code(0).stderr("");
}

#[test]
fn plain_run_says_nothing_of_its_own_about_a_success() {
    let room = Room::new();
    toolexec(&room).args(["run", "--", "echo", "hi"]).assert().code(0).stdout("hi\n").stderr("");
    toolexec(&room).args(["run", "--timeout", "20s", "--", "echo", "hi"]).assert().code(0).stdout("hi\n").stderr("");
}

#[test]
fn no_colour_without_a_terminal_or_with_no_color() {
    let room = Room::new();
    for (name, value) in [("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("CLICOLOR", "1")] {
        for arguments in
            [&["run", "--timeout", "100ms", "--", "sleep", "20"][..], &["run", "nonsense"], &["--help"], &["doctor"]]
        {
            let output = toolexec(&room).env(name, value).args(arguments).output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            assert!(!said.contains(&0x1b), "{name} {arguments:?}: {}", String::from_utf8_lossy(&said));
        }
    }
}

/// In a terminal, with and without `NO_COLOR`; the elapsed time is shown there and not mixed into the output.
#[test]
fn colours_appear_on_a_terminal_only_and_never_with_no_color() {
    let room = Room::new();
    let in_terminal = |variables: &[(&str, &str)], line: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", &format!("{} {line}", env!("CARGO_BIN_EXE_toolexec_under_test")), "/dev/null"]);
        command.env("TMPDIR", room.temporary()).env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        command.env_remove("NO_COLOR").envs(variables.iter().copied()).current_dir(room.files());
        command
            .timeout(Duration::from_secs(20))
            .output()
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Ok(coloured) = in_terminal(&[], "run --timeout 100ms -- sleep 20") else {
        return eprintln!("SKIPPED: no script(1) to make a terminal");
    };
    let colour = |text: &str| {
        // `ESC [ … m`; other sequences move the cursor of a progress line.
        text.split("\u{1b}[").skip(1).any(|part| {
            part.split(|c: char| !c.is_ascii_digit() && c != ';')
                .next()
                .is_some_and(|codes| part[codes.len()..].starts_with('m'))
        })
    };
    assert!(colour(&coloured), "no colour on a terminal: {coloured:?}");
    let plain = in_terminal(&[("NO_COLOR", "1")], "run --timeout 100ms -- sleep 20").unwrap();
    assert!(plain.contains("timed out"), "{plain:?}");
    assert!(!colour(&plain), "colour in spite of NO_COLOR: {plain:?}");
}

/// A reader of a list that goes away early is no failure.
#[test]
fn reader_that_goes_away_is_no_reason_to_complain() {
    let room = Room::new();
    for arguments in [&["--help"][..], &["doctor"], &["completions", "zsh"]] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_toolexec_under_test"))
            .args(arguments)
            .env("TMPDIR", room.temporary())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}
