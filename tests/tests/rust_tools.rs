//! Tools that are written in Rust: the three kinds tell the same, numbers stay what they are, and what cannot be declared or used
//! together is refused in words, by the library and by a program's own command line.

use schemars::JsonSchema;
use serde::Deserialize;
use std::num::NonZeroU32;
use std::time::Duration;
use toolexec::call::{Policy, ToolCall};
use toolexec::{ExecutorBuilder, Failure, KillStrength, Tool, Tools};
use toolexec_tests::bound::{GONE, PATIENCE, assert_gone, assert_within};
use toolexec_tests::house::{self, House};
use toolexec_tests::kinds::{self, KINDS, Nothing};
use toolexec_tests::launch::Toolexec;
use toolexec_tests::process;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rust_tools_under_test");

fn builder() -> ExecutorBuilder {
    house::builder(PROGRAM, 2).tools(kinds::tools().into_table().expect("a table"))
}

// The library.

#[test]
fn all_kinds_of_tools_tell_the_same() {
    let house = House::new(builder());
    for (arguments, end, class) in [
        (r#"{"how": "ok"}"#, "ok - returned", None),
        (r#"{"how": "largest_that_fits"}"#, "ok - returned", None),
        (r#"{"how": "text"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "transient"}"#, "error TOOL_ERROR returned", Some("transient")),
        (r#"{"how": "semantic"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "environment"}"#, "error TOOL_ERROR returned", Some("environment")),
        (r#"{"how": "long_error"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "panic_str"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "panic_bomb"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "large"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "not_json"}"#, "error TOOL_ERROR returned", Some("semantic")),
        (r#"{"how": "ok", "and": 1}"#, "rejected INVALID_ARGUMENTS -", Some("semantic")),
        (r#"{"how": "no_way"}"#, "rejected INVALID_ARGUMENTS -", Some("semantic")),
        (r#"{"how": "#, "rejected INVALID_ARGUMENTS -", Some("semantic")),
        ("[]", "rejected INVALID_ARGUMENTS -", Some("semantic")),
        ("", "rejected INVALID_ARGUMENTS -", Some("semantic")),
    ] {
        let same = KINDS.map(|kind| {
            let told = house.call(ToolCall::new(format!("end_{kind}"), arguments));
            told.assert_end(end).assert_at("/class", class);
            let keys =
                ["status", "code", "class", "termination", "started", "side_effects_possible", "message", "result"];
            keys.map(|key| told.at(&format!("/{key}")).clone())
        });
        assert!(same[0] == same[1] && same[1] == same[2], "{arguments}: {:.2000}", format!("{same:#?}"));
    }
    let large = house.call(ToolCall::new("end_blocking", r#"{"how": "large"}"#));
    assert!(
        large.text("/message").starts_with("the result has 16711681 bytes, more than"),
        "{}",
        large.text("/message")
    );
}

/// Case O32.
#[test]
fn numbers_arrive_and_return_unchanged_in_all_kinds() {
    let runtime = house::runtime();
    runtime.block_on(async {
        let executor = builder().start().await.expect("an executor starts");
        for kind in KINDS {
            for (unsigned, signed, double, number) in [
                ("9007199254740993", "9007199254740993", "0.1", "9007199254740993"),
                ("18446744073709551615", "-9223372036854775808", "1e-320", "18446744073709551615"),
                ("18446744073709551614", "9223372036854775807", "-2.5", "-9223372036854775808"),
                ("0", "-1", "1.7976931348623157e308", "1e-320"),
                ("1", "0", "5e-324", "0.1"),
            ] {
                let text = format!(
                    r#"{{"unsigned":{unsigned},"signed":{signed},"double":{double},"number":{number},"raw":{number}}}"#
                );
                let outcome = executor.call(ToolCall::new(format!("numbers_{kind}"), text.clone())).await;
                let result = outcome.result.as_ref().map(|json| json.get().replace("e+", "e"));
                assert_eq!(result, Some(text), "{kind}: {:?}", outcome.message);
            }
            for (what, text) in [
                ("more than an u64", r#"{"unsigned":18446744073709551616,"signed":0,"double":0,"number":0,"raw":0}"#),
                ("more than an i64", r#"{"unsigned":0,"signed":9223372036854775808,"double":0,"number":0,"raw":0}"#),
                ("an u64 below zero", r#"{"unsigned":-1,"signed":0,"double":0,"number":0,"raw":0}"#),
                ("no integer", r#"{"unsigned":1.5,"signed":0,"double":0,"number":0,"raw":0}"#),
            ] {
                let outcome = executor.call(ToolCall::new(format!("numbers_{kind}"), text)).await;
                assert_eq!(outcome.result.as_ref().map(|json| json.get()), None, "{kind}: {what} was rounded");
                assert_eq!(outcome.class, Some(toolexec::ErrorClass::Semantic), "{kind}: {what}");
            }
        }
        executor.close().await;
    });
}

#[test]
fn types_that_serde_reads_into_a_buffer_take_numbers_in_all_kinds() {
    let house = House::new(builder());
    for kind in KINDS {
        for untagged in ["18446744073709551615", "\"text\""] {
            let text = format!(
                r#"{{"count": 9007199254740993, "share": 0.25, "untagged": {untagged},
                    "tagged": {{"operation": "add", "a": -9223372036854775808, "b": 2}}}}"#
            );
            let told = house.call(ToolCall::new(format!("buffered_{kind}"), text.clone()));
            told.assert_end("ok - returned");
            let sent: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(*told.at("/result"), sent, "{kind}");
        }
    }
}

// Declarations.

fn tool(name: &str) -> Tool {
    Tool::isolated(name, "", |_: Nothing| Ok::<_, Failure>(1)).expect("a tool")
}

fn here(name: &str) -> Tool {
    Tool::blocking(name, "", |_: Nothing, _| Ok::<_, Failure>(1)).expect("a tool")
}

/// The error and what it came from.
fn in_full(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", in_full(source)),
        None => error.to_string(),
    }
}

#[test]
fn function_that_cannot_be_a_tool_is_refused_in_words() {
    fn declare<A: serde::de::DeserializeOwned + JsonSchema + 'static>(name: &str) -> [String; 3] {
        let body = |_: A| Ok::<_, Failure>(1);
        let errors = [
            Tool::isolated(name, "", body).err(),
            Tool::asynchronous(name, "", move |arguments: A, _| std::future::ready(body(arguments))).err(),
            Tool::blocking(name, "", move |arguments: A, _| body(arguments)).err(),
        ];
        errors.map(|error| in_full(&error.expect("it is refused")))
    }
    #[derive(Deserialize, JsonSchema)]
    struct Pair(#[expect(dead_code, reason = "never read")] u8, #[expect(dead_code, reason = "never read")] u8);
    #[derive(Deserialize, JsonSchema)]
    struct Unit;
    #[derive(Deserialize, JsonSchema)]
    enum Word {
        A,
    }

    let of_name = |name: &str, problem: &str| {
        let expected = format!("the tool {:?} cannot be declared: {problem}", &name[..name.len().min(64)]);
        assert_eq!(declare::<Nothing>(name), [(); 3].map(|()| expected.clone()));
    };
    of_name("", "a tool's name is empty");
    of_name(&"n".repeat(65), "a tool's name has 65 bytes, more than 64");
    of_name(&"n".repeat(1_000_000), "a tool's name has 1000000 bytes, more than 64");
    of_name("a b", "a tool's name has ' '; allowed are A-Z a-z 0-9 _ - .");
    for declared in [
        declare::<u64>("a"),
        declare::<String>("a"),
        declare::<Vec<u8>>("a"),
        declare::<()>("a"),
        declare::<Pair>("a"),
        declare::<Unit>("a"),
        declare::<Word>("a"),
        declare::<Option<u64>>("a"),
    ] {
        let start = "the arguments of the tool a cannot be declared; take a struct with named fields: ";
        assert!(declared.iter().all(|text| text.starts_with(start) && text.len() > start.len()), "{declared:?}");
    }
    tool("a.b-c_D9");
}

#[test]
fn declaration_that_cannot_be_kept_is_refused_in_words() {
    let second = Duration::from_secs(1);
    let check = |tool: Tool, expected: &str| {
        let error = Tools::new().with(tool).into_table().expect_err(expected);
        let error = in_full(&error);
        assert!(error.starts_with("the tool t cannot be declared so: ") && error.contains(expected), "{error}");
    };
    for make in [tool, here] {
        check(make("t").timeout(Duration::ZERO), "a timeout of zero is refused");
        check(make("t").timeout(second).grace(Duration::ZERO), "a grace of zero is refused");
        check(make("t").timeout(second).grace(second), "has to be shorter than the timeout");
        check(make("t").timeout(second).grace(second * 2), "has to be shorter than the timeout");
        check(make("t").grace(second), "needs a timeout");
        check(make("t").with_policy(|policy| policy.queue_timeout = Some(Duration::ZERO)), "queue timeout of zero");
        check(make("t").with_policy(|policy| policy.output = Some(0)), "an output bound of zero");
    }
    check(tool("t").timeout(second * 2).grace(second), "gets no SIGTERM");
    check(here("t").with_policy(|policy| policy.kill = KillStrength::Subreaper), "where nothing is killed; isolate it");
    check(here("t").reuse(NonZeroU32::MIN), "wants to share a worker");
    check(here("t").with_policy(|policy| policy.output = Some(1)), "whose output is not collected");
    // And each of them where it can be kept.
    let good = [
        tool("a").timeout(second).reuse(NonZeroU32::MIN),
        tool("b").with_policy(|policy| {
            *policy = Policy { kill: KillStrength::Subreaper, output: Some(1), ..policy.clone() }
        }),
        here("c").timeout(second * 2).grace(second),
    ];
    assert_eq!(good.into_iter().fold(Tools::new(), Tools::with).into_table().map(|table| table.len()), Ok(3));
}

/// Rules C7 and C8.
#[test]
fn namesakes_are_all_listed_and_told_before_anything_else() {
    type Make = fn(&str) -> Tool;
    const PAIRS: [[Make; 2]; 4] = [[tool, tool], [tool, here], [here, tool], [here, here]];
    for [first, second] in PAIRS {
        let tools = || {
            let zero = Duration::ZERO;
            ["b", "a", "c"].into_iter().fold(Tools::new(), |tools, name| {
                let tools = tools.with(first(name).timeout(zero));
                if name == "c" { tools } else { tools.with(second(name).timeout(zero)) }
            })
        };
        assert_eq!(
            tools().toolbox().err().map(|error| error.to_string()),
            Some("declared more than once: b, a".into())
        );
        assert_eq!(
            tools().into_table().err().map(|error| error.to_string()),
            Some("declared more than once: b, a".into())
        );
    }
}

// The command line.

#[test]
fn list_tells_what_a_deadline_does_to_each_kind() {
    let toolexec = Toolexec::new(PROGRAM);
    let listed = toolexec.command(["list"]).finish();
    listed.assert_code(0).assert_nothing_runs();
    let lines: Vec<&str> = listed.stdout().lines().collect();
    let of = |tool: &str| {
        let place = lines.iter().position(|line| line.split_whitespace().next() == Some(tool)).expect(tool);
        lines[place + 1].trim()
    };
    assert!(
        of("spin_isolated").starts_with("300ms at most, then killed: tree, confirmed ("),
        "{}",
        of("spin_isolated")
    );
    assert_eq!(of("spin_blocking"), "300ms at most, then asked to stop; may keep running; in this process");
    assert_eq!(of("listen"), "300ms at most, then asked to stop, as it has promised to; in this process");
    assert_eq!(of("end_blocking"), "no time limit; in this process");
    assert!(!lines.iter().any(|line| line.contains("in this process") && line.contains("killed")), "{lines:#?}");
}

#[test]
fn run_has_one_exit_code_for_each_end_whatever_the_kind() {
    let toolexec = Toolexec::new(PROGRAM);
    for kind in KINDS {
        let end = format!("end_{kind}");
        for (how, code, stdout) in
            [("ok", 0, "[1, 2.50, \"é\"]\n"), ("environment", 1, ""), ("panic_str", 1, ""), ("no_way", 125, "")]
        {
            let arguments = format!(r#"{{"how": "{how}"}}"#);
            let ran = toolexec.run([end.as_str(), "--args", &arguments]).finish();
            assert_eq!((ran.code(), ran.stdout()), (Some(code), stdout), "{kind} {how}: {}", ran.stderr());
        }
        let told = toolexec.run(["--json", &end, "--args", r#"{"how": "transient"}"#]).finish();
        told.assert_code(1).told().assert_end("error TOOL_ERROR returned").assert_at("/class", "transient");
    }
}

/// The tool's thread computes for ever; the program ends all the same, and the tool with it.
#[test]
fn program_ends_at_the_limit_though_its_tool_still_runs() {
    let toolexec = Toolexec::new(PROGRAM);
    for (tool, termination) in [
        ("spin_isolated", "killed"),
        ("spin_blocking", "abandoned"),
        ("spin_asynchronous", "abandoned"),
        ("listen", "stopped"),
        ("wait", "stopped"),
    ] {
        let ran = toolexec.run(["--json", tool]).finish();
        ran.assert_code(124).assert_took(Duration::from_millis(300)).assert_nothing_runs();
        ran.told().assert_end(&format!("timed_out TOOL_TIMEOUT {termination}"));
        let ran = toolexec.run([tool, "--timeout", "50ms"]).finish();
        ran.assert_code(124).assert_took(Duration::from_millis(50)).assert_nothing_runs();
        assert!(ran.stderr().contains("timed out"), "{}", ran.stderr());
        assert_eq!(ran.stderr().contains("may still"), termination == "abandoned", "{}", ran.stderr());
    }
    assert_gone(GONE, "programs with tools that never end", || process::executing(PROGRAM.as_ref()));
}

#[test]
fn interrupted_program_ends_though_its_tool_listens_to_nobody() {
    let toolexec = Toolexec::new(PROGRAM);
    let mut running = toolexec.run(["--json", "spin_blocking", "--timeout", "20s"]).start();
    // It listens for signals before it starts its executor, whose zygote is the sign that it does.
    assert_within(PATIENCE, "a thread of the tool", || {
        running.look();
        process_threads(running.pid()).iter().any(|name| name == "toolexec-host\n")
    });
    running.signal(rustix::process::Signal::INT);
    let ended = running.finish();
    ended.assert_code(130).told().assert_end("cancelled CANCELLED abandoned");
    ended.assert_nothing_runs();
}

/// The names of a process's threads.
fn process_threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
}

#[test]
fn program_with_namesakes_is_refused_and_names_them() {
    let toolexec = Toolexec::new(PROGRAM);
    for which in ["twice_isolated", "twice_here", "twice_each_kind", "twice_zero"] {
        for arguments in [&["list"][..], &["run", "twice"]] {
            let refused = toolexec.command(arguments).variable("RUST_TOOLS", which).finish();
            refused.assert_code(125);
            assert!(refused.stderr().contains("declared more than once: twice"), "{which}: {}", refused.stderr());
            assert_eq!(refused.stdout(), "");
        }
    }
    let catalogue = toolexec.room().write("tools.toml", CATALOGUE);
    let catalogue = catalogue.to_str().expect("a path");
    for arguments in [
        &["list", "--catalogue", catalogue][..],
        &["run", "end_blocking", "--catalogue", catalogue],
        &["run", "other", "--catalogue", catalogue],
        &["check", catalogue],
    ] {
        let refused = toolexec.command(arguments).finish();
        refused.assert_code(125);
        let told = refused.stderr();
        assert!(told.contains("declared more than once: end_blocking, wait"), "{arguments:?}: {told}");
    }
}

const CATALOGUE: &str = r#"
[tool.end_blocking]
description = "Has the name of a tool in Rust"
command = ["true"]

[tool.other]
description = "Has a name of its own"
command = ["true"]

[tool.wait]
description = "Has the name of another tool in Rust"
command = ["true"]
"#;
