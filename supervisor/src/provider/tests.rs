//! Whole responses and streams of each provider, as recorded: what comes out is compared with what is written beside them.

use super::{Provider, ResponseError, StreamError, Streamed};
use crate::call::{RequestedCall, ToolReturn};
use crate::catalogue::{Body, InputSchema, ToolSpec};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::Path;
use toolexec_protocol::id::ToolName;

/// A response, and everything that is made of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    provider: String,
    response: Box<RawValue>,
    calls: Vec<RequestedCall>,
    assistant_turn: Vec<Value>,
    /// What the calls return, in their order.
    #[serde(default)]
    returns: Vec<Returned>,
    #[serde(default)]
    rendered: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Returned {
    content: String,
    value: Option<Value>,
    #[serde(default)]
    is_error: bool,
}

/// The events of a stream, and what they make.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    provider: String,
    events: Vec<Value>,
    response: Value,
    calls: Vec<RequestedCall>,
}

fn fixture<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/provider/fixtures").join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[track_caller]
fn check_exchange(name: &str) {
    let Exchange { provider, response, calls, assistant_turn, returns, rendered } = fixture(name);
    let provider = Provider::from_name(&provider).unwrap();
    assert_eq!(Provider::detect(&serde_json::from_str(response.get()).unwrap()), Some(provider));
    assert_eq!(provider.calls(response.get()).unwrap(), calls);
    assert_eq!(json!(provider.assistant_turn(response.get()).unwrap()), json!(assistant_turn));
    let returned = |(call, returned): (&RequestedCall, Returned)| ToolReturn {
        id: call.id.clone(),
        name: call.name.clone(),
        content: returned.content,
        value: returned.value,
        is_error: returned.is_error,
    };
    let returns: Vec<ToolReturn> = calls.iter().zip(returns).map(returned).collect();
    assert_eq!(json!(provider.render(&returns)), json!(rendered));

    // What was answered needs no healing, and what was not is healed to the same shape.
    let mut history = [assistant_turn.clone(), rendered.clone()].concat();
    let open = calls.len() - returns.len();
    assert_eq!(provider.heal(&mut history).count, open);
    let mut unanswered = assistant_turn.clone();
    assert_eq!(provider.heal(&mut unanswered).count, calls.len());
    let cancelled = |call: &RequestedCall| ToolReturn {
        id: call.id.clone(),
        name: call.name.clone(),
        content: super::heal::NO_RESULT.into(),
        value: None,
        is_error: false,
    };
    let cancelled: Vec<ToolReturn> = calls.iter().map(cancelled).collect();
    assert_eq!(json!(unanswered), json!([assistant_turn, provider.render(&cancelled)].concat()));
}

fn stream(provider: Provider, events: &[Value]) -> Result<Streamed, StreamError> {
    let mut assembler = provider.assembler();
    for event in events {
        assembler.push(event)?;
    }
    assembler.finish()
}

#[track_caller]
fn check_stream(name: &str) {
    let Recorded { provider, events, response, calls } = fixture(name);
    let provider = Provider::from_name(&provider).unwrap();
    let streamed = stream(provider, &events).unwrap();
    assert_eq!(streamed.response, response);
    assert_eq!(streamed.calls, calls);
    // Whatever is missing at the end, no call comes out unless they all do.
    for end in 0..events.len() {
        if let Ok(early) = stream(provider, &events[..end]) {
            assert_eq!(early.calls, calls, "of the first {end} events");
        }
    }
}

#[test]
fn parallel_calls_of_chat_come_out_in_their_order() {
    check_exchange("openai_parallel");
}

#[test]
fn an_assistant_message_of_chat_may_stand_alone() {
    check_exchange("openai_message");
}

#[test]
fn an_answer_of_chat_without_calls_is_only_text() {
    check_exchange("openai_text");
}

#[test]
fn a_custom_tool_of_responses_gets_a_result_of_its_kind() {
    check_exchange("responses_parallel");
}

#[test]
fn thinking_and_server_tools_of_anthropic_come_back_untouched() {
    check_exchange("anthropic_parallel");
}

#[test]
fn an_answer_of_anthropic_without_calls_is_only_text() {
    check_exchange("anthropic_text");
}

#[test]
fn calls_of_gemini_without_ids_are_answered_without_ids() {
    check_exchange("gemini_without_ids");
}

#[test]
fn calls_of_gemini_with_ids_are_answered_with_them() {
    check_exchange("gemini_with_ids");
}

#[test]
fn interleaved_fragments_of_chat_are_told_apart_by_their_indexes() {
    check_stream("openai_stream");
}

#[test]
fn chat_without_indexes_is_told_apart_by_its_ids() {
    check_stream("openai_stream_without_indexes");
}

#[test]
fn a_stream_of_responses_ends_with_the_whole_response() {
    check_stream("responses_stream");
}

#[test]
fn a_stream_of_responses_without_items_at_its_end_is_put_together() {
    check_stream("responses_stream_without_output");
}

#[test]
fn a_block_of_anthropic_without_input_takes_none() {
    check_stream("anthropic_stream");
}

#[test]
fn input_of_anthropic_that_is_no_json_reaches_the_executor_as_it_is() {
    check_stream("anthropic_stream_invalid_input");
}

#[test]
fn parts_of_gemini_are_joined_over_chunks() {
    check_stream("gemini_stream");
}

/// The tools of the declarations.
fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, description: &str, input: Option<Value>| ToolSpec {
        input: input.map(|schema| InputSchema::new(schema).unwrap()),
        ..ToolSpec::new(ToolName::new(name).unwrap(), description, Body::Compiled)
    };
    let schema =
        json!({ "properties": { "path": { "type": "string" } }, "required": ["path"], "additionalProperties": false });
    vec![
        tool("files.read", "Reads a file", Some(schema)),
        tool("now", "Tells the time", None),
        tool(
            "any",
            "",
            Some(json!({ "additionalProperties": { "type": "integer", "maximum": 9007199254740993_u64 } })),
        ),
    ]
}

#[test]
fn tools_are_declared_in_each_providers_words() {
    let expected: Value = fixture("declared");
    for provider in Provider::ALL {
        assert_eq!(provider.declare(tools().iter()).unwrap(), expected[provider.name()], "{provider:?}");
        assert_eq!(provider.declare([].iter()).unwrap(), json!([]));
    }
}

#[test]
fn providers_are_found_by_their_names() {
    for provider in Provider::ALL {
        assert_eq!(Provider::from_name(provider.name()), Some(provider));
    }
    assert_eq!(Provider::from_name("OpenAI"), None);
}

#[test]
fn a_shape_that_leaves_a_doubt_is_nobodys() {
    let doubtful = [
        json!({ "role": "assistant", "content": "hello" }),
        json!({ "error": { "message": "no" } }),
        json!({ "choices": [], "candidates": [{}], "object": "response", "output": [] }),
        json!([]),
        json!(null),
        json!("x"),
    ];
    for value in doubtful {
        assert_eq!(Provider::detect(&value), None, "{value}");
    }
}

#[track_caller]
fn check_refused(provider: Provider, response: Value, expected: &str) {
    assert_eq!(provider.calls(&response.to_string()).map_err(|error| error.to_string()), Err(expected.into()));
}

#[test]
fn what_is_missing_in_chat_is_named_with_its_place() {
    let check = |response, expected| check_refused(Provider::OpenAiChat, response, expected);
    let ended = |reason: &str, calls: Value| json!({ "choices": [{ "message": { "role": "assistant", "tool_calls": calls }, "finish_reason": reason }] });
    let with = |calls| ended("tool_calls", calls);
    let f = json!({ "name": "f", "arguments": "{}" });
    check(
        with(json!([{ "id": "a", "function": f }, { "function": f }])),
        "choices[0].message.tool_calls[1].id is missing",
    );
    check(
        with(json!([{ "id": 7, "function": f }])),
        "choices[0].message.tool_calls[0].id is a number, and has to be a string of Unicode text",
    );
    check(
        with(json!([{ "id": "", "function": f }])),
        "choices[0].message.tool_calls[0].id is an empty string, and has to be a name",
    );
    check(
        with(json!([{ "id": "a", "function": f }, { "id": "b", "function": f }, { "id": "a", "function": f }])),
        "choices[0].message.tool_calls[2].id is \"a\", the id of an earlier call",
    );
    check(
        with(json!([{ "id": "a", "function": { "arguments": "{}" } }])),
        "choices[0].message.tool_calls[0].function.name is missing",
    );
    check(with(json!([{ "id": "a" }])), "choices[0].message.tool_calls[0].function is missing");
    check(with(json!({})), "choices[0].message.tool_calls is an object, and has to be an array");
    check(
        ended("length", json!([{ "id": "a", "function": f }])),
        "choices[0].finish_reason is \"length\": the response was cut off, and its last call may be half of one",
    );
    check(
        ended("content_filter", json!([{ "id": "a", "function": f }])),
        "choices[0].finish_reason is \"content_filter\": no call of this response may run",
    );
    check(
        json!({ "role": "assistant", "content": null, "function_call": f }),
        "function_call is not supported: declare the functions under `tools`",
    );
    check(json!({ "role": "assistant", "tool_calls": [{ "function": f }] }), "tool_calls[0].id is missing");
    check(json!({ "choices": [] }), "choices[0] is missing");
    check(json!({}), "choices is missing");
    check(json!([]), "the response is an array, and has to be an object");
    check(
        json!({ "error": { "message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded" } }),
        "the provider answered with an error: Rate limit reached",
    );
    let error = Provider::OpenAiChat.calls("{").unwrap_err();
    assert_eq!(error.to_string(), "the response is not JSON: EOF while parsing an object at line 1 column 1");
}

#[test]
fn what_is_missing_in_responses_is_named_with_its_place() {
    let check = |response, expected| check_refused(Provider::OpenAiResponses, response, expected);
    let call = |id: &str, status: &str| json!({ "type": "function_call", "id": "fc_1", "call_id": id, "name": "f", "arguments": "{}", "status": status });
    check(
        json!({ "output": [{ "type": "function_call", "id": "fc_1", "name": "f" }] }),
        "output[0].call_id is missing",
    );
    check(json!({ "output": [{}] }), "output[0].type is missing");
    check(json!({ "object": "response" }), "output is missing");
    check(
        json!({ "output": [call("a", "completed"), call("a", "completed")] }),
        "output[1].call_id is \"a\", the id of an earlier call",
    );
    let half = "output[1].status is \"incomplete\": the response was cut off, and its last call may be half of one";
    check(json!({ "status": "incomplete", "output": [call("a", "completed"), call("b", "incomplete")] }), half);
    check(
        json!({ "status": "incomplete", "incomplete_details": { "reason": "content_filter" }, "output": [call("a", "completed")] }),
        "incomplete_details.reason is \"content_filter\": no call of this response may run",
    );
    check(
        json!({ "status": "failed", "error": { "code": "server_error", "message": "broken" }, "output": [] }),
        "the provider answered with an error: broken",
    );
    let cut_behind = json!({ "status": "incomplete", "output": [call("a", "completed")] });
    assert_eq!(Provider::OpenAiResponses.calls(&cut_behind.to_string()).unwrap().len(), 1);
}

#[test]
fn what_is_missing_in_messages_is_named_with_its_place() {
    let check = |response, expected| check_refused(Provider::Anthropic, response, expected);
    let ended = |reason: &str, blocks: Value| json!({ "type": "message", "content": blocks, "stop_reason": reason });
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "f", "input": {} });
    check(ended("tool_use", json!([{ "type": "tool_use", "name": "f", "input": {} }])), "content[0].id is missing");
    check(ended("tool_use", json!([{ "type": "tool_use", "id": "a", "name": "f" }])), "content[0].input is missing");
    check(ended("tool_use", json!([call, call])), "content[1].id is \"toolu_1\", the id of an earlier call");
    check(ended("refusal", json!([call])), "stop_reason is \"refusal\": no call of this response may run");
    check(
        ended("max_tokens", json!([call])),
        "stop_reason is \"max_tokens\": the response was cut off, and its last call may be half of one",
    );
    check(
        json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
        "the provider answered with an error: Overloaded",
    );
    let refused = ended("refusal", json!([])).to_string();
    assert_eq!(Provider::Anthropic.calls(&refused), Ok(vec![]));
    assert_eq!(Provider::Anthropic.assistant_turn(&refused), Ok(vec![]));
}

#[test]
fn what_is_missing_in_contents_is_named_with_its_place() {
    let check = |response, expected| check_refused(Provider::Gemini, response, expected);
    let ended = |reason: &str, parts: Value| json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": reason }] });
    let call = json!({ "functionCall": { "id": "a", "name": "f", "args": {} } });
    check(
        ended("STOP", json!([{ "text": "x" }, { "functionCall": { "args": {} } }])),
        "candidates[0].content.parts[1].functionCall.name is missing",
    );
    check(
        ended("STOP", json!([call, call])),
        "candidates[0].content.parts[1].functionCall.id is \"a\", the id of an earlier call",
    );
    check(ended("SAFETY", json!([call])), "candidates[0].finishReason is \"SAFETY\": no call of this response may run");
    check(
        ended("MAX_TOKENS", json!([call])),
        "candidates[0].finishReason is \"MAX_TOKENS\": the response was cut off, and its last call may be half of one",
    );
    check(
        ended("MALFORMED_FUNCTION_CALL", json!([])),
        "candidates[0].finishReason is \"MALFORMED_FUNCTION_CALL\": no call of this response may run",
    );
    check(
        json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }),
        "promptFeedback.blockReason is \"PROHIBITED_CONTENT\": no call of this response may run",
    );
    check(
        ended("STOP", json!([{ "functionCall": { "name": "f", "partialArgs": [], "willContinue": true } }])),
        "candidates[0].content.parts[0].functionCall.partialArgs is not supported: leave `streamFunctionCallArguments` out",
    );
    check(json!({ "candidates": [] }), "candidates[0] is missing");
    let stopped = json!({ "candidates": [{ "finishReason": "MAX_TOKENS" }] }).to_string();
    assert_eq!(Provider::Gemini.calls(&stopped), Ok(vec![]));
    assert_eq!(Provider::Gemini.assistant_turn(&stopped), Ok(vec![]));
}

#[test]
fn arguments_keep_the_digits_and_the_spaces_of_the_model() {
    let written = r#"{ "a" : 9007199254740993, "b":1e-320,"c":18446744073709551615, "d":1E5, "e": -0.0, "a": 2 }"#;
    let text = Value::from(written).to_string();
    let cases = [
        (
            Provider::OpenAiChat,
            format!(
                r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"1","function":{{"name":"f","arguments":{text}}}}}]}}}}]}}"#
            ),
        ),
        (
            Provider::OpenAiResponses,
            format!(r#"{{"output":[{{"type":"function_call","call_id":"1","name":"f","arguments":{text}}}]}}"#),
        ),
        (
            Provider::Anthropic,
            format!(r#"{{"content":[{{"type":"tool_use","id":"1","name":"f","input":{written}}}]}}"#),
        ),
        (
            Provider::Gemini,
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"id":"1","name":"f","args":{written}}}}}]}}}}]}}"#
            ),
        ),
    ];
    for (provider, response) in cases {
        let expected = RequestedCall { id: "1".into(), name: "f".into(), arguments: written.into() };
        assert_eq!(provider.calls(&response), Ok(vec![expected]), "{provider:?}");
    }
}

#[test]
fn arguments_that_are_no_json_are_left_to_the_executor() {
    for arguments in ["", "{", "{\"a\": ", "nonsense", "[1]"] {
        let call = json!({ "id": "1", "function": { "name": "f", "arguments": arguments } });
        let response = json!({ "choices": [{ "message": { "tool_calls": [call] } }] }).to_string();
        assert_eq!(Provider::OpenAiChat.calls(&response).unwrap()[0].arguments, arguments);
    }
}

#[test]
fn a_failure_is_one_for_every_provider() {
    let failed = |content: &str| ToolReturn {
        id: "1".into(),
        name: "f".into(),
        content: content.into(),
        value: Some(json!(1)),
        is_error: true,
    };
    let silent = "the tool failed and said nothing";
    for (content, prefixed, plain) in [
        ("no such file", "Error: no such file", "no such file"),
        ("Error: no", "Error: no", "Error: no"),
        (" \n", &format!("Error: {silent}"), silent),
    ] {
        let rendered = |provider: Provider| provider.render(&[failed(content)]).remove(0);
        assert_eq!(rendered(Provider::OpenAiChat)["content"], prefixed);
        assert_eq!(rendered(Provider::OpenAiResponses)["output"], prefixed);
        let block = json!({ "type": "tool_result", "tool_use_id": "1", "content": plain, "is_error": true });
        assert_eq!(rendered(Provider::Anthropic)["content"][0], block);
        let response = &rendered(Provider::Gemini)["parts"][0]["functionResponse"]["response"];
        assert_eq!(*response, json!({ "error": plain }));
    }
}

#[test]
fn no_results_are_no_message() {
    for provider in Provider::ALL {
        assert_eq!(provider.render(&[]), Vec::<Value>::new());
    }
}

#[track_caller]
fn check_broken(provider: Provider, events: &[Value], expected: &str) {
    assert_eq!(stream(provider, events).map_err(|error| error.to_string()), Err(expected.into()));
}

#[test]
fn a_broken_stream_of_chat_says_what_is_wrong() {
    let check = |events: &[Value], expected| check_broken(Provider::OpenAiChat, events, expected);
    let chunk = |calls: Value| json!({ "choices": [{ "index": 0, "delta": { "tool_calls": calls } }] });
    let begin = |index: u64, id: &str| {
        chunk(json!([{ "index": index, "id": id, "function": { "name": "f", "arguments": "" } }]))
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    check(&[], "the stream ended before a chunk with a `finish_reason`");
    check(&[begin(0, "a")], "the stream ended before a chunk with a `finish_reason`");
    check(
        &[begin(0, "a"), begin(1_000_000_000, "b"), end.clone()],
        "the stream ended before the call with the index 1 came, though 1000000000 did",
    );
    check(
        &[begin(0, "a"), begin(0, "b")],
        "in an event, the id of the call with the index 0 is \"b\", and was \"a\" before",
    );
    check(
        &[chunk(json!([{ "function": { "arguments": "{" } }]))],
        "in an event, tool_calls[].index is missing, and there is no id",
    );
    check(&[chunk(json!([{ "index": -1 }]))], "in an event, index is -1, which is no index");
    check(
        &[chunk(json!([{ "index": 0, "function": { "arguments": {} } }]))],
        "in an event, arguments is an object, and has to be a string",
    );
    check(
        &[chunk(json!([{ "index": 0, "function": { "name": "f" } }])), end],
        "choices[0].message.tool_calls[0].id is missing",
    );
    check(&[json!({ "error": { "message": "gone" } })], "the provider ended the stream with an error: gone");
    check(&[json!(1)], "in an event, the event itself is a number, and has to be an object");
}

#[test]
fn a_broken_stream_of_responses_says_what_is_wrong() {
    let check = |events: &[Value], expected| check_broken(Provider::OpenAiResponses, events, expected);
    let item = json!({ "type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": "" });
    let added = |index: u64| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
    let delta = |index: u64, text: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": text });
    let done =
        |text: &str| json!({ "type": "response.function_call_arguments.done", "output_index": 0, "arguments": text });
    let completed = json!({ "type": "response.completed", "response": { "object": "response", "status": "completed", "output": [] } });
    check(&[added(0), delta(0, "{}"), done("{}")], "the stream ended before `response.completed`");
    check(&[delta(1_000_000_000, "{}")], "in an event, output_index is 1000000000, and no such item has begun");
    check(&[added(0), added(0)], "in an event, output_index is 0, and that item has begun before");
    check(&[added(0), delta(0, "{"), done("{}")], "in an event, arguments is another text than its fragments were");
    check(&[added(0), done("{}"), completed.clone()], "the stream ended before the end of the item with the index 0");
    check(&[added(1), completed], "the stream ended before the item with the index 0 came, though 1 did");
    check(
        &[json!({ "type": "response.failed", "response": { "error": { "code": "x", "message": "broken" } } })],
        "the provider ended the stream with an error: broken",
    );
    check(
        &[json!({ "type": "error", "code": "x", "message": "broken" })],
        "the provider ended the stream with an error: broken",
    );
}

#[test]
fn a_broken_stream_of_anthropic_says_what_is_wrong() {
    let check = |events: &[Value], expected| check_broken(Provider::Anthropic, events, expected);
    let start = |index: u64| {
        let block = json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} });
        json!({ "type": "content_block_start", "index": index, "content_block": block })
    };
    let delta = |index: u64, text: &str| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": text } });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let over = json!({ "type": "message_stop" });
    check(&[start(0), delta(0, "{}"), stop(0)], "the stream ended before `message_stop`");
    check(&[start(0), delta(0, "{"), over.clone()], "the stream ended before the end of the block with the index 0");
    check(&[delta(1_000_000_000, "{")], "in an event, index is 1000000000, and no such block has begun");
    check(&[start(0), stop(0), delta(0, "{")], "in an event, index is 0, and that block has ended");
    check(&[start(0), start(0)], "in an event, index is 0, and that block has begun before");
    check(
        &[start(1_000_000_000), stop(1_000_000_000), over],
        "the stream ended before the block with the index 0 came, though 1000000000 did",
    );
    check(&[json!({ "type": "content_block_start", "index": 0 })], "in an event, content_block is missing");
    check(&[json!({})], "in an event, type is missing");
    check(
        &[json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } })],
        "the provider ended the stream with an error: Overloaded",
    );
}

#[test]
fn a_broken_stream_of_gemini_says_what_is_wrong() {
    let check = |events: &[Value], expected| check_broken(Provider::Gemini, events, expected);
    let call = json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "f" } }] } }] });
    check(&[], "the stream ended before a chunk with a candidate");
    check(&[call], "the stream ended before a chunk with a `finishReason`");
    check(
        &[json!({ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } })],
        "the provider ended the stream with an error: overloaded",
    );
}

#[test]
fn an_assembler_that_has_failed_stays_failed() {
    let mut assembler = Provider::Anthropic.assembler();
    let error = assembler.push(&json!({ "type": "error", "error": { "message": "x" } })).unwrap_err();
    assert_eq!(assembler.push(&json!({ "type": "ping" })), Err(error.clone()));
    assert_eq!(assembler.push(&json!({ "type": "message_stop" })), Err(error.clone()));
    assert_eq!(assembler.finish(), Err(error));
}

#[test]
fn a_stream_without_end_is_refused() {
    let text = "x".repeat(1024 * 1024);
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let mut assembler = Provider::OpenAiChat.assembler();
    let taken = (0..100).take_while(|_| assembler.push(&chunk).is_ok()).count();
    assert_eq!(taken, 63);
    assert_eq!(assembler.finish(), Err(StreamError::TooLarge));
}

/// `text` in pieces that end at these characters.
fn pieces(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
    cuts.extend([0, characters.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| characters[cut[0]..cut[1]].iter().collect()).collect()
}

/// The events of a stream with two calls whose arguments come in these pieces, taking turns.
fn fragmented(provider: Provider, fragments: [&[String]; 2]) -> Vec<Value> {
    let ids = ["a", "b"];
    let turns = (0..fragments[0].len().max(fragments[1].len())).flat_map(|turn| [(0, turn), (1, turn)]);
    let fragments: Vec<(usize, &String)> =
        turns.filter_map(|(call, turn)| Some((call, fragments[call].get(turn)?))).collect();
    let whole = |call: usize| {
        fragments.iter().filter(|(own, _)| *own == call).map(|(_, text)| text.as_str()).collect::<String>()
    };
    let mut events = Vec::new();
    match provider {
        Provider::OpenAiChat => {
            let chunk = |call: Value| json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
            events.extend(
                (0..2).map(|call| chunk(json!({ "index": call, "id": ids[call], "function": { "name": "f" } }))),
            );
            events.extend(
                fragments.iter().map(|(call, text)| chunk(json!({ "index": call, "function": { "arguments": text } }))),
            );
            events.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }));
        }
        Provider::OpenAiResponses => {
            let event = |kind: &str, call: usize, name: &str, value: Value| json!({ "type": format!("response.{kind}"), "output_index": call, name: value });
            let item = |call: usize, arguments: &str| json!({ "type": "function_call", "call_id": ids[call], "name": "f", "arguments": arguments });
            events.extend((0..2).map(|call| event("output_item.added", call, "item", item(call, ""))));
            events.extend(
                fragments
                    .iter()
                    .map(|(call, text)| event("function_call_arguments.delta", *call, "delta", json!(text))),
            );
            events.extend(
                (0..2).map(|call| event("function_call_arguments.done", call, "arguments", json!(whole(call)))),
            );
            events.extend((0..2).map(|call| event("output_item.done", call, "item", item(call, &whole(call)))));
            events.push(json!({ "type": "response.completed", "response": { "status": "completed" } }));
        }
        Provider::Anthropic => {
            let block = |call: usize| json!({ "type": "tool_use", "id": ids[call], "name": "f", "input": {} });
            let delta = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
            events.push(json!({ "type": "message_start", "message": { "content": [] } }));
            events.extend(
                (0..2)
                    .map(|call| json!({ "type": "content_block_start", "index": call, "content_block": block(call) })),
            );
            events.extend(
                fragments
                    .iter()
                    .map(|(call, text)| json!({ "type": "content_block_delta", "index": call, "delta": delta(text) })),
            );
            events.extend((0..2).map(|call| json!({ "type": "content_block_stop", "index": call })));
            events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }));
            events.push(json!({ "type": "message_stop" }));
        }
        // Its calls do not come in pieces.
        Provider::Gemini => {}
    }
    events
}

/// JSON text as some response could have it: right in some places and wrong in others.
fn response() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(0)),
        prop::sample::select(vec![
            "",
            "a",
            "call_1",
            "f",
            "{}",
            "{\"a\":1}",
            "function",
            "tool_use",
            "function_call",
            "custom_tool_call",
            "message",
            "assistant",
            "model",
            "user",
            "tool",
            "tool_result",
            "STOP",
            "refusal",
            "length",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_start",
            "message_stop",
            "input_json_delta",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
            "incomplete",
            "response",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        let key = prop::sample::select(vec![
            "choices",
            "message",
            "delta",
            "tool_calls",
            "function",
            "custom",
            "id",
            "name",
            "arguments",
            "index",
            "finish_reason",
            "output",
            "type",
            "call_id",
            "input",
            "status",
            "item",
            "output_index",
            "response",
            "content",
            "stop_reason",
            "content_block",
            "partial_json",
            "candidates",
            "parts",
            "functionCall",
            "functionResponse",
            "args",
            "finishReason",
            "promptFeedback",
            "role",
            "error",
            "object",
            "tool_use_id",
            "tool_call_id",
            "incomplete_details",
            "usage",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|members| Value::Object(
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn arguments_are_the_same_however_they_are_cut(
        texts in prop::array::uniform2("(\\{\"a\": ?\"\\PC{0,8}\", \"n\": -?[0-9]{1,30}\\}|\\PC{0,8})"),
        cuts in prop::array::uniform2(prop::collection::vec(any::<prop::sample::Index>(), 0..6)),
    ) {
        let [first, second] = [pieces(&texts[0], &cuts[0]), pieces(&texts[1], &cuts[1])];
        for provider in [Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Anthropic] {
            let streamed = stream(provider, &fragmented(provider, [&first, &second])).unwrap();
            // A block of Anthropic that gets no text is one with `{}`.
            let expected = |text: &str| match provider {
                Provider::Anthropic if text.is_empty() => "{}".to_owned(),
                _ => text.to_owned(),
            };
            let arguments: Vec<String> = streamed.calls.into_iter().map(|call| call.arguments).collect();
            prop_assert_eq!(arguments, [expected(&texts[0]), expected(&texts[1])]);
        }
    }

    #[test]
    fn no_json_makes_reading_panic(values in prop::collection::vec(response(), 0..5), text in "[{}\\[\\]\",:a1\\\\ ]{0,30}") {
        for provider in Provider::ALL {
            for value in &values {
                let text = value.to_string();
                let _ = provider.calls(&text);
                let _ = provider.assistant_turn(&text);
                let _ = Provider::detect(value);
            }
            let _ = provider.calls(&text);
            let _ = provider.assistant_turn(&text);
            let _ = stream(provider, &values);
            let mut history = values.clone();
            let _ = provider.heal(&mut history);
        }
    }
}

#[test]
fn a_response_that_is_nested_beyond_reason_is_an_error_and_no_crash() {
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let response = format!(r#"{{"content":[{{"type":"tool_use","id":"1","name":"f","input":{deep}}}]}}"#);
    assert_eq!(Provider::Anthropic.calls(&response).unwrap()[0].arguments, deep);
    let expected = ResponseError::Unexpected {
        place: "content".into(),
        found: "an array",
        expected: "a value of at most 128 levels, in Unicode text",
    };
    assert_eq!(Provider::Anthropic.assistant_turn(&response), Err(expected));
}
