//! What tools declare beside their limits: what their result has to be, and which of them are offered.

use serde_json::{Value, json};
use toolexec::call::{OutputMode, ToolCall};
use toolexec::catalogue::{Body, Catalogue, HostBody, OutputSchema, Selection, ToolSpec, ToolTable};
use toolexec::{Failure, ToolName};
use toolexec_tests::house::{House, builder};
use toolexec_tests::launch::Toolexec;
use toolexec_tests::room::Room;
use toolexec_tests::told::Told;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

const CATALOGUE: &str = r#"
    [tool.echo]
    description = "Returns what it is given"
    command = ["cat"]
    stdin = "{value}"
    input = { required = ["value"] , properties = { value = {} } }
    tags = ["read"]
    timeout = "20s"
    [tool.count]
    description = "Returns a number that it is given"
    command = ["cat"]
    stdin = "{value}"
    input = { required = ["value"] , properties = { value = {} } }
    output = { type = "integer", minimum = 0 }
    category = "numbers"
    timeout = "20s"
    limits = { output = "1KiB" }
"#;

fn catalogue() -> ToolTable {
    Catalogue::parse(CATALOGUE, std::path::Path::new("/tmp/toolexec.toml")).unwrap().tools
}

#[track_caller]
fn call(house: &House, tool: &str, value: &str) -> Told {
    house.call(ToolCall::new(tool, format!("{{\"value\": {value}}}")))
}

/// Contract items 1 and 9.
#[test]
fn output_of_a_command_is_its_result_and_has_to_fit() {
    let house = House::new(builder(PROGRAM, 1).tools(catalogue()));
    call(&house, "echo", "7").assert_end("ok - returned").assert_at("/result", Value::Null);
    call(&house, "count", "7").assert_end("ok - returned").assert_at("/result", 7);

    let told = call(&house, "count", "-7");
    told.assert_end("error TOOL_ERROR returned").assert_at("/class", "semantic").assert_at("/result", Value::Null);
    let message = "the result does not fit the tool's output schema: -7 is less than the minimum of 0";
    told.assert_at("/message", message).assert_at("/exit/code", 0).assert_at("/receipt/confirmed", true);
    call(&house, "count", "\"seven\"").assert_end("error TOOL_ERROR returned").assert_at("/result", Value::Null);
    let long = format!("\"{}\"", "7".repeat(2000));
    let told = call(&house, "count", &long);
    told.assert_end("error TOOL_ERROR returned");
    assert!(told.text("/message").contains("more than is kept"), "{}", told.text("/message"));
}

#[test]
fn output_that_is_checked_is_not_streamed() {
    let house = House::new(builder(PROGRAM, 1).tools(catalogue()));
    let streamed = |tool: &str| {
        let (sender, _receiver) = tokio::sync::mpsc::channel(100);
        let mut call = ToolCall::new(tool, r#"{"value": 7}"#);
        call.options.output = OutputMode::Stream(sender);
        house.call(call)
    };
    streamed("count").assert_end("rejected INVALID_ARGUMENTS -").assert_at("/started", false);
    streamed("echo").assert_end("ok - returned");
}

#[test]
fn result_of_a_tool_in_this_process_has_to_fit() {
    let tool = |name: &str, output: Value| {
        let body = HostBody::blocking(|_, _| Ok::<_, Failure>(r#"{"id":12345678901234567890123}"#.into()));
        let output = Some(OutputSchema::new(output).unwrap());
        ToolSpec { output, ..ToolSpec::new(ToolName::new(name).unwrap(), "", Body::Host(body)) }
    };
    let id = |id: Value| json!({ "properties": { "id": id } });
    let tools = vec![tool("right", id(json!({ "type": "integer" }))), tool("wrong", id(json!({ "type": "string" })))];
    let house = House::new(builder(PROGRAM, 1).tools(ToolTable::new(tools).unwrap()));
    let result = house.runtime.block_on(house.executor().call(ToolCall::new("right", ""))).result.unwrap();
    assert_eq!(result.get(), r#"{"id":12345678901234567890123}"#, "each digit arrives");
    let told = house.call(ToolCall::new("wrong", ""));
    told.assert_end("error TOOL_ERROR returned").assert_at("/class", "semantic").assert_at("/result", Value::Null);
    let place = "/id: 12345678901234567890123 is not of type \"string\"";
    assert!(told.text("/message").ends_with(place), "{}", told.text("/message"));
}

/// Contract item 96.
#[test]
fn tool_that_is_not_offered_is_unknown() {
    let offered = catalogue().select(&Selection { tags: vec!["read".into()], ..Selection::default() });
    let house = House::new(builder(PROGRAM, 1).tools(offered));
    call(&house, "echo", "7").assert_end("ok - returned");
    let told = call(&house, "count", "7");
    told.assert_end("rejected UNKNOWN_TOOL -").assert_at("/started", false);
    told.assert_at("/message", r#"there is no tool "count"; the tools are echo"#);
}

/// On the command line a result is printed once, and one that does not fit makes the exit code 1.
#[test]
fn command_line_prints_a_result_once() {
    let toolexec = Toolexec::new(PROGRAM);
    let catalogue = toolexec.room().write("toolexec.toml", CATALOGUE);
    let run = |value: &str| {
        let arguments = format!("{{\"value\": {value}}}");
        toolexec.run(["--catalogue"]).arguments([&catalogue]).arguments(["count", "--args", &arguments]).finish()
    };
    let finished = run("7");
    finished.assert_code(0);
    assert_eq!(finished.stdout(), "7");
    run("-7").assert_code(1);
}

#[test]
fn list_is_of_the_tools_with_a_tag_or_of_a_category() {
    let room = Room::new();
    room.write("toolexec.toml", CATALOGUE);
    let listed = |options: &[&str]| {
        let mut command = assert_cmd::Command::new(PROGRAM);
        command.env("TMPDIR", room.temporary()).current_dir(room.files()).args(["list", "--json"]).args(options);
        let listed: Value = serde_json::from_slice(&command.assert().code(0).get_output().stdout).unwrap();
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&[]), ["echo", "count"]);
    assert_eq!(listed(&["--tag", "read", "--tag", "nobody has it"]), ["echo"]);
    assert_eq!(listed(&["--category", "numbers"]), ["count"]);
    assert!(listed(&["--category", "numbers", "--tag", "read"]).is_empty());
}
