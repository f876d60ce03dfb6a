//! `toolexec batch`: a provider's response in, the messages to send back out; and batches that wait for somebody.

use serde_json::{Value, json};
use std::path::Path;
use toolexec_tests::launch::{Finished, Launch, Toolexec};
use toolexec_tests::marker::Marker;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

const CATALOGUE: &str = r#"
[tool.echo]
description = "Returns what it is given"
command = ["cat"]
stdin = "{text}"
input = { required = ["text"], properties = { text = {} } }
timeout = "20s"

[tool."files.append"]
description = "Appends a line to a file"
command = ["sh", "-c", 'echo "$1" >>"$2"', "sh", "{text}", "{file}"]
sensitive = true
timeout = "20s"

[tool.missing]
description = "Is not installed yet"
command = ["./not-there-yet", "{text}"]
timeout = "20s"

[tool.sleep]
description = "Sleeps"
command = ["sleep", "{text}"]
timeout = "60s"
"#;

struct House(Toolexec);

impl House {
    fn new() -> Self {
        let house = Self(Toolexec::new(PROGRAM));
        house.0.room().write("toolexec.toml", CATALOGUE);
        house
    }

    fn batch<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Launch {
        let arguments: Vec<&str> = ["batch"].into_iter().chain(arguments).collect();
        self.0.command(arguments).directory(&self.0.room().files())
    }

    fn run(&self, arguments: &[&str], response: &Value) -> Finished {
        self.batch(arguments.iter().copied()).input(response.to_string()).finish()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.room().file(name)
    }
}

#[track_caller]
fn messages(finished: &Finished) -> Value {
    finished.assert_code(0);
    serde_json::from_str(finished.stdout()).unwrap()
}

/// A response of Anthropic's with these calls.
fn response(calls: &[(&str, &str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, input)| json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
        .collect();
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "content": calls,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    })
}

#[track_caller]
fn contents(messages: &Value) -> Vec<(&str, &str)> {
    let results = messages[0]["content"].as_array().unwrap().iter();
    results.map(|result| (result["tool_use_id"].as_str().unwrap(), result["content"].as_str().unwrap())).collect()
}

#[test]
fn each_provider_gets_its_own_words_back() {
    let house = House::new();
    let arguments = r#"{"text":9007199254740993}"#;
    let input: Value = serde_json::from_str(arguments).unwrap();
    let cases = [
        (
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{
                    "index": 0, "finish_reason": "tool_calls",
                    "message": { "role": "assistant", "content": null, "tool_calls": [
                        { "id": "call_1", "type": "function", "function": { "name": "echo", "arguments": arguments } },
                    ] },
                }],
            }),
            json!([{ "role": "tool", "tool_call_id": "call_1", "content": "9007199254740993" }]),
        ),
        (
            json!({
                "id": "resp_1", "object": "response", "status": "completed", "model": "m",
                "output": [{
                    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "echo", "arguments": arguments,
                    "status": "completed",
                }],
            }),
            json!([{ "type": "function_call_output", "call_id": "call_1", "output": "9007199254740993" }]),
        ),
        (
            response(&[("toolu_1", "echo", input.clone())]),
            json!([{ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "9007199254740993" },
            ] }]),
        ),
        (
            json!({
                "candidates": [{
                    "content": { "role": "model", "parts": [{ "functionCall": { "name": "echo", "args": input } }] },
                    "finishReason": "STOP", "index": 0,
                }],
                "modelVersion": "m", "responseId": "r1",
            }),
            json!([{ "role": "user", "parts": [
                { "functionResponse": { "name": "echo", "response": { "output": "9007199254740993" } } },
            ] }]),
        ),
    ];
    for (response, expected) in cases {
        assert_eq!(messages(&house.run(&[], &response)), expected);
    }
}

#[test]
fn every_engine_answers_every_call_in_order() {
    let house = House::new();
    let calls: Vec<(String, &str, Value)> = (0..12)
        .map(|number| {
            let tool = if number % 5 == 3 { "unknown" } else { "echo" };
            (format!("id{number}"), tool, json!({ "text": format!("of {number}") }))
        })
        .collect();
    let calls: Vec<(&str, &str, Value)> =
        calls.iter().map(|(id, tool, input)| (id.as_str(), *tool, input.clone())).collect();
    let response = response(&calls);
    for engine in ["sequential", "concurrent", "3"] {
        let messages = messages(&house.run(&["--engine", engine], &response));
        let told = contents(&messages);
        assert_eq!(
            told.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
            calls.iter().map(|(id, ..)| *id).collect::<Vec<_>>()
        );
        assert_eq!(told[4], ("id4", "of 4"), "{engine}");
        assert!(told[3].1.starts_with("Error: there is no tool \"unknown\""), "{engine}: {told:?}");
    }
}

#[test]
fn response_without_calls_needs_no_messages_and_a_file_is_read() {
    let house = House::new();
    let path = house.0.room().write("response.json", response(&[]).to_string());
    let finished = house.batch([path.to_str().unwrap()]).finish();
    assert_eq!(messages(&finished), json!([]));
}

fn append(house: &House) -> Value {
    // The name as Anthropic allows it: toolexec declares `files.append` under another.
    let declared = toolexec::provider::Names::new(
        toolexec::provider::Provider::Anthropic,
        toolexec::catalogue::Catalogue::load(&house.file("toolexec.toml")).unwrap().tools.iter(),
    );
    let name = declared.unwrap().declared("files.append").unwrap().to_owned();
    let file = house.file("appended").display().to_string();
    response(&[
        ("a", "echo", json!({ "text": "before" })),
        ("b", &name, json!({ "text": "line", "file": file })),
        ("c", "echo", json!({ "text": "behind" })),
    ])
}

fn appended(house: &House) -> Option<String> {
    std::fs::read_to_string(house.file("appended")).ok()
}

#[test]
fn sensitive_tool_is_run_when_all_are_approved_and_not_when_nobody_is_there() {
    let house = House::new();
    let response = append(&house);
    let refused = messages(&house.run(&[], &response));
    let expected = [("a", "before"), ("b", "rejected: nobody was there to approve it"), ("c", "behind")];
    assert_eq!(contents(&refused), expected);
    assert_eq!(appended(&house), None);
    let approved = messages(&house.run(&["--approve", "all"], &response));
    assert_eq!(contents(&approved), [("a", "before"), ("b", ""), ("c", "behind")]);
    assert_eq!(appended(&house).as_deref(), Some("line\n"));
}

/// Contract C94: what one process has paused another resumes, and only one.
#[test]
fn paused_batch_is_resumed_by_another_process_and_once() {
    let house = House::new();
    let store = house.file("pauses").display().to_string();
    let paused = house.run(&["--approve", "pause", "--pause-store", &store], &append(&house));
    paused.assert_code(75);
    assert_eq!((paused.stdout(), appended(&house)), ("", None));
    assert!(paused.stderr().contains("files.append waits for approval"), "{}", paused.stderr());
    let resume = ["--resume", "msg_1", "--verdict", "approve", "--pause-store", &store, "--provider", "anthropic"];
    let running: Vec<_> = (0..3).map(|_| house.batch(resume).start()).collect();
    let finished: Vec<Finished> = running.into_iter().map(toolexec_tests::launch::Running::finish).collect();
    let (resumed, late): (Vec<_>, Vec<_>) = finished.iter().partition(|finished| finished.code() == Some(0));
    assert_eq!((resumed.len(), late.len()), (1, 2));
    let messages = messages(resumed[0]);
    assert_eq!(contents(&messages), [("a", "before"), ("b", ""), ("c", "behind")]);
    for late in late {
        late.assert_code(125);
        assert!(late.stderr().contains("no batch waits under \"msg_1\""), "{}", late.stderr());
    }
    assert_eq!(appended(&house).as_deref(), Some("line\n"));
}

#[test]
fn refused_call_of_a_paused_batch_is_answered_and_a_wrong_verdict_leaves_it_waiting() {
    let house = House::new();
    let store = house.file("pauses").display().to_string();
    let arguments = ["--approve", "pause", "--pause-store", store.as_str(), "--key", "talk", "--json"];
    let paused = house.run(&arguments, &append(&house));
    paused.assert_code(75);
    let told: Value = serde_json::from_str(paused.stdout()).unwrap();
    assert_eq!(told["paused"]["key"], "talk");
    let resume = |verdict: &str| {
        let resume = ["--resume", "talk", "--verdict", verdict, "--pause-store", &store, "--provider", "anthropic"];
        house.batch(resume).finish()
    };
    let wrong = resume("retry");
    wrong.assert_code(125);
    assert!(wrong.stderr().contains("waits for a verdict"), "{}", wrong.stderr());
    let messages = messages(&resume("reject: not on a Monday"));
    assert_eq!(contents(&messages)[1], ("b", "rejected: not on a Monday"));
    assert_eq!(appended(&house), None);
}

#[test]
fn failure_that_somebody_has_to_mend_pauses_the_batch_and_a_retry_runs_only_that() {
    let house = House::new();
    let store = house.file("pauses").display().to_string();
    let response = response(&[("a", "echo", json!({ "text": "once" })), ("b", "missing", json!({ "text": "now" }))]);
    let paused = house.run(&["--on-error", "pause", "--pause-store", &store], &response);
    paused.assert_code(75);
    assert!(paused.stderr().contains("cannot be found"), "{}", paused.stderr());
    let tool = house.0.room().write("not-there-yet", "#!/bin/sh\necho \"here $1\"\n");
    make_executable(&tool);
    let resume = ["--resume", "msg_1", "--verdict", "retry", "--pause-store", &store, "--provider", "anthropic"];
    let messages = messages(&house.batch(resume).finish());
    assert_eq!(contents(&messages), [("a", "once"), ("b", "here now\n")].map(|(id, text)| (id, text.trim_end())));
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn interrupted_batch_answers_every_call_and_leaves_nothing_running() {
    let house = House::new();
    let marker = Marker::new(40671);
    let sleep = json!({ "text": marker.to_string() });
    let response = response(&[("a", "sleep", sleep.clone()), ("b", "sleep", sleep.clone()), ("c", "sleep", sleep)]);
    let mut running = house.batch(["--engine", "2"]).input(response.to_string()).watching(&marker).start();
    running.await_sleeps(2);
    running.signal(rustix::process::Signal::INT);
    let finished = running.finish();
    finished.assert_code(130);
    let messages: Value = serde_json::from_str(finished.stdout()).unwrap();
    let told = contents(&messages);
    assert_eq!(told.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(told[2].1.contains("not run"), "{told:?}");
    finished.assert_nothing_runs().assert_marker_gone(&marker);
}

#[test]
fn what_cannot_be_a_batch_is_refused_and_nothing_is_run() {
    let house = House::new();
    let text = |text: &str| house.batch([]).input(text.to_owned()).finish();
    let twice = response(&[("a", "echo", json!({ "text": "1" })), ("a", "echo", json!({ "text": "2" }))]).to_string();
    for (input, problem) in [
        ("", "the response is not JSON"),
        ("{", "the response is not JSON"),
        ("{}", "the response has the shape of no provider"),
        (twice.as_str(), "a"),
    ] {
        let finished = text(input);
        finished.assert_code(125);
        assert!(finished.stderr().contains(problem), "{input}: {}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
    for (arguments, problem) in [
        (vec!["--engine", "0"], "--engine"),
        (vec!["--engine", "many"], "--engine"),
        (vec!["--approve", "maybe"], "--approve"),
        (vec!["--approve", "pause"], "--pause-store"),
        (vec!["--on-error", "pause"], "--pause-store"),
        (vec!["--provider", "acme"], "openai-responses"),
        (vec!["--timeout", "0"], "--timeout"),
        (vec!["--resume", "x"], "--verdict"),
        (vec!["--resume", "x", "--verdict", "maybe", "--pause-store", "p", "--provider", "gemini"], "--verdict"),
        (vec!["--resume", "x", "--verdict", "approve", "--pause-store", "p"], "--provider"),
        (vec!["--resume", "x", "--verdict", "approve", "--pause-store", "p", "--provider", "gemini"], "no batch waits"),
        (vec!["not-there.json"], "not-there.json"),
    ] {
        let finished = house.batch(arguments.iter().copied()).finish();
        finished.assert_code(125);
        assert!(finished.stderr().contains(problem), "{arguments:?}: {}", finished.stderr());
    }
}
