//! Cases O14, O15 and O21: what is given to a tool arrives as it is or is refused in words, and never in between.

use serde_json::json;
use std::path::{Path, PathBuf};
use toolexec_tests::launch::{Finished, Launch, Toolexec};
use toolexec_tests::room::Room;

/// The longest argument that the kernel takes: 32 pages, with the byte that ends it; see execve(2).
const LONGEST: usize = 131_071;

const CATALOGUE: &str = r#"
    [tool.say]
    description = "Says it"
    command = ["printf", "%s", "{saying}"]
    input = { type = "object", required = ["saying"], properties = { saying = { type = "string" } } }
"#;

fn toolexec() -> Toolexec {
    Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"))
}

/// Writes the catalogue, and the arguments into a file.
fn arguments_in_file(room: &Room, saying: &str) -> [PathBuf; 2] {
    [room.write("toolexec.toml", CATALOGUE), room.write("arguments.json", json!({ "saying": saying }).to_string())]
}

#[track_caller]
fn say(toolexec: &Toolexec, saying: &str, options: &[&str]) -> Finished {
    let [catalogue, arguments] = arguments_in_file(toolexec.room(), saying);
    let launch = toolexec.run(["--catalogue"]).arguments([catalogue]).arguments(options);
    launch.arguments(["say", "--args", &format!("@{}", arguments.display())]).finish()
}

/// Case O14.
#[test]
fn argument_as_long_as_the_kernel_takes_arrives_whole() {
    let toolexec = toolexec();
    let saying = "é".repeat(LONGEST / 2) + "x";
    assert_eq!(saying.len(), LONGEST);
    let finished = say(&toolexec, &saying, &[]);
    finished.assert_code(0);
    assert!(finished.stdout() == saying, "{} bytes arrived of {LONGEST}", finished.stdout().len());
}

/// Case O14.
#[test]
fn argument_that_is_too_long_is_refused_by_name_with_the_limit() {
    let toolexec = toolexec();
    let finished = say(&toolexec, &"x".repeat(LONGEST + 1), &["--json"]);
    finished.assert_code(125);
    let told = finished.told();
    let message = told.text("/message");
    assert!(message.contains("saying"), "the argument is not named: {message}");
    assert!(message.contains("131072") || message.contains("131071") || message.contains("128 KiB"), "{message}");
    told.assert_at("/class", "semantic").assert_at("/side_effects_possible", false);
    assert!(message.len() < 1000, "the argument itself is repeated");
    toolexec.assert_next_call_works();
}

/// Case O14: an ad-hoc command has argument numbers instead of names.
#[test]
fn command_line_that_is_too_long_altogether_is_refused_with_the_limit() {
    let toolexec = toolexec();
    // Each is allowed, all together are not: the kernel takes a quarter of the stack limit, 6 MiB at the most.
    let catalogue = toolexec.room().write(
        "toolexec.toml",
        "[tool.many]\ndescription = \"Many\"\ncommand = [\"true\"".to_owned()
            + &", \"{a}\"".repeat(100)
            + "]\n"
            + "input = { type = \"object\", required = [\"a\"], properties = { a = { type = \"string\" } } }\n",
    );
    let arguments = toolexec.room().write("arguments.json", json!({ "a": "x".repeat(LONGEST) }).to_string());
    let launch = toolexec.run(["--json", "--catalogue"]).arguments([catalogue]);
    let finished = launch.arguments(["many", "--args", &format!("@{}", arguments.display())]).finish();
    finished.assert_code(125);
    let told = finished.told();
    assert!(told.text("/message").contains("long"), "{}", told.text("/message"));
    told.assert_at("/side_effects_possible", false);
    toolexec.assert_next_call_works();
}

/// Case O14: the shell cannot pass such arguments to toolexec either, so there are two other ways.
#[test]
fn arguments_come_from_the_line_a_file_or_standard_input() {
    let toolexec = toolexec();
    let saying = "so be it";
    let finished = say(&toolexec, saying, &[]);
    finished.assert_code(0);
    assert_eq!(finished.stdout(), saying);
    let [catalogue, _] = arguments_in_file(toolexec.room(), saying);
    let json = json!({ "saying": saying }).to_string();
    let typed = toolexec.run(["--catalogue"]).arguments([&catalogue]).arguments(["say", "--args", &json]).finish();
    typed.assert_code(0);
    assert_eq!(typed.stdout(), saying);
    let piped = toolexec.run(["--catalogue"]).arguments([&catalogue]).arguments(["say", "--args", "-"]).input(json);
    let piped = piped.finish();
    piped.assert_code(0);
    assert_eq!(piped.stdout(), saying);
}

/// Case O15.
#[test]
fn argument_reaches_the_program_as_one_element_byte_for_byte() {
    let toolexec = toolexec();
    let touched = toolexec.room().file("touched");
    let touch = format!("touch {}", touched.display());
    let saying =
        format!("a$({touch})b`{touch}`;{touch} #\"'\\\n\t* ? ~ {{saying}} %s %n $HOME ${{PATH}} && || | > < é🦀");
    let finished = say(&toolexec, &saying, &[]);
    finished.assert_code(0);
    assert_eq!(finished.stdout(), saying);
    assert!(!touched.exists(), "the model's text was run");
    // That the file could have been made is shown by making it.
    toolexec.run(["--", "sh", "-c", &touch]).finish().assert_code(0);
    assert!(touched.exists());
}

/// Case O15: an argument is one element, also where it is empty or looks like an option.
#[test]
fn empty_and_option_like_arguments_stay_one_element() {
    let toolexec = toolexec();
    let catalogue = toolexec.room().write(
        "toolexec.toml",
        r#"
            [tool.count]
            description = "Counts"
            command = ["sh", "-c", 'echo $#; printf "%s\n" "$@"', "sh", "{first}", "{second}"]
            input = { type = "object", required = ["first", "second"], properties = { first = { type = "string" }, second = { type = "string" } } }
        "#,
    );
    let arguments = json!({ "first": "", "second": "--help a b" }).to_string();
    let finished = toolexec.run(["--catalogue"]).arguments([catalogue]).arguments(["count", "--args", &arguments]);
    let finished = finished.finish();
    finished.assert_code(0);
    assert_eq!(finished.stdout(), "2\n\n--help a b\n");
}

/// A command's arguments are passed on even where they are no text.
#[test]
fn command_line_arguments_are_passed_on_byte_for_byte() {
    use std::os::unix::ffi::OsStrExt as _;
    let toolexec = toolexec();
    let odd = std::ffi::OsStr::from_bytes(b"a\xff\xfe$(b)\n");
    let finished = toolexec.run(["--", "printf", "%s"]).arguments([odd]).finish();
    finished.assert_code(0);
    assert_eq!(finished.stdout_bytes(), odd.as_bytes());
}

/// Arguments that do not fit the declaration are refused before anything is started.
#[test]
fn arguments_that_do_not_fit_are_refused_and_nothing_is_started() {
    let toolexec = toolexec();
    let [catalogue, _] = arguments_in_file(toolexec.room(), "");
    for arguments in ["{}", r#"{"saying":7}"#, "[]", "{", "nonsense", "\"text\"", ""] {
        let launch = toolexec.run(["--json", "--catalogue"]).arguments([&catalogue]);
        let finished = launch.arguments(["say", "--args", arguments]).finish();
        finished.assert_code(125);
        if !finished.stdout().is_empty() {
            let told = finished.told();
            told.assert_end("rejected INVALID_ARGUMENTS -")
                .assert_at("/started", false)
                .assert_at("/class", "semantic");
        }
    }
    let unknown = toolexec.run(["--json", "--catalogue"]).arguments([&catalogue]).arguments(["sya"]).finish();
    unknown.assert_code(125);
    assert!(unknown.stdout().contains("UNKNOWN_TOOL") || unknown.stderr().contains("sya"), "{}", unknown.stderr());
}

/// Arguments without an end fill no memory.
#[test]
fn endless_arguments_are_refused() {
    let toolexec = toolexec();
    let [catalogue, _] = arguments_in_file(toolexec.room(), "");
    for arguments in ["-", "@/dev/zero", "@/dev/stdin"] {
        let script = format!("exec \"$@\" say --args {arguments} </dev/zero");
        let launch = Launch::new("sh".as_ref(), toolexec.room()).arguments(["-c", &script, "sh"]);
        let launch = launch.arguments([toolexec.binary()]).arguments(["run", "--catalogue"]).arguments([&catalogue]);
        let finished = launch.finish();
        finished.assert_code(125);
        assert!(finished.peak_memory < 200 * 1024 * 1024, "{} bytes of memory", finished.peak_memory);
        assert!(!finished.stderr().is_empty());
    }
}

/// Case O21.
#[test]
fn time_limit_that_is_none_is_refused_before_anything_is_started() {
    let toolexec = toolexec();
    let touched = toolexec.room().file("touched");
    for option in ["--timeout", "--grace", "--queue-timeout"] {
        for limit in [
            "0",
            "0s",
            "0ms",
            "0.0",
            "-0",
            "-1",
            "-1s",
            "0.0000001",
            "nan",
            "inf",
            "1e30",
            "1e3",
            "",
            "s",
            "5 s",
            "1d",
            "99999999999999999999999",
            "18446744073709551616",
            "9223372036854775807",
            "0x10",
            "١",
        ] {
            let launch = toolexec.run([option, limit]);
            let launch = if option == "--grace" { launch.arguments(["--timeout", "5"]) } else { launch };
            let finished = launch.arguments(["--", "touch"]).arguments([&touched]).finish();
            finished.assert_code(125).assert_was_quick();
            assert!(!touched.exists(), "{option} {limit:?}: the command was run");
            assert_eq!(finished.stdout(), "", "{option} {limit:?}");
            assert!(finished.stderr().contains(option), "{option} {limit:?} is not named: {}", finished.stderr());
        }
    }
    toolexec.run(["--timeout", "20", "--", "touch"]).arguments([&touched]).finish().assert_code(0);
    assert!(touched.exists());
}

/// Case O21: a grace that is no part of the time limit has no meaning.
#[test]
fn grace_without_or_beyond_a_time_limit_is_refused() {
    let toolexec = toolexec();
    for options in
        [&["--grace", "1s"][..], &["--grace", "2s", "--timeout", "1s"], &["--grace", "1s", "--timeout", "1s"]]
    {
        let finished = toolexec.run(options).arguments(["--", "true"]).finish();
        finished.assert_code(125);
        assert!(finished.stderr().contains("grace"), "{}", finished.stderr());
    }
}

/// Case O21: the same in the catalogue, at its load, with file, line and name.
#[test]
fn time_limit_of_a_catalogue_that_is_none_is_refused_at_load() {
    let toolexec = toolexec();
    let touched = toolexec.room().file("touched");
    for limit in ["0", "-1", "0.0", "\"0s\"", "\"-1s\"", "nan", "inf", "1e30", "\"\"", "true", "[]"] {
        let text = format!(
            "[tool.good]\ndescription = \"Touches\"\ncommand = [\"touch\", \"{}\"]\n\n\
             [tool.bad]\ndescription = \"Bad\"\ncommand = [\"true\"]\ntimeout = {limit}\n",
            touched.display()
        );
        let catalogue = toolexec.room().write("limits.toml", text);
        for arguments in [["run", "good"].as_slice(), &["check"], &["list"]] {
            let finished = toolexec.command(arguments).arguments(["--catalogue"]).arguments([&catalogue]).finish();
            finished.assert_code(125);
            assert!(!touched.exists(), "timeout = {limit}: a tool was run");
            assert_names_place(&finished, &catalogue, 8, "bad");
        }
    }
}

/// A declared option that nothing reads would be a lie.
#[test]
fn catalogue_with_an_unknown_key_or_a_name_twice_is_refused_at_load() {
    let toolexec = toolexec();
    let tool = "[tool.same]\ndescription = \"One\"\ncommand = [\"true\"]\n";
    let unknown = toolexec.room().write("unknown.toml", format!("{tool}timeuot = \"1s\"\n"));
    let finished = toolexec.command(["check"]).arguments([&unknown]).finish();
    finished.assert_code(125);
    assert_names_place(&finished, &unknown, 4, "timeuot");
    let twice = toolexec.room().write("twice.toml", format!("{tool}timeout = 0\n{tool}timeout = 0\n"));
    let finished = toolexec.command(["check"]).arguments([&twice]).finish();
    finished.assert_code(125);
    assert_names_place(&finished, &twice, 5, "same");
}

#[track_caller]
fn assert_names_place(finished: &Finished, file: &Path, line: usize, name: &str) {
    let told = format!("{}{}", finished.stdout(), finished.stderr());
    let file = file.file_name().unwrap().to_str().unwrap();
    for part in [file, &line.to_string(), name] {
        assert!(told.contains(part), "{part:?} is not in: {told}");
    }
}
