//! An agent loop: ask a model, run the calls in its answer, send the results back, until it has no more calls.
//!
//! `cargo run -p toolexec-examples --bin agent_loop` talks to a recorded endpoint of its own, on the loopback, which says the same as a
//! model would. With `AGENT_ENDPOINT=host:port` it talks to any server with OpenAI's Chat Completions over plain HTTP instead, such as a
//! local one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use toolexec::batch::{Limits, Settled};
use toolexec::engine::{BatchOptions, Concurrent, ToolCallingManager};
use toolexec::filter::{Chain, TraceLayer};
use toolexec::provider::Provider;
use toolexec::worker::become_zygote_if_asked;
use toolexec::{Executor, Tool, Tools};

/// What the model is asked.
const QUESTION: &str = "How many times has 17 to be added up to make 51, and does 2 to the 1000th end in 6?";

/// How often the model is asked at the most.
const ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// How long a peer may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Deserialize, JsonSchema)]
struct Division {
    dividend: i64,
    divisor: i64,
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn tools() -> Result<Tools, Box<dyn Error>> {
    let divide = |Division { dividend, divisor }: Division| dividend.checked_div(divisor).ok_or("it has no quotient");
    let ponder = |_: Nothing| -> Result<(), &str> {
        loop {
            std::hint::spin_loop();
        }
    };
    Ok(Tools::new()
        .with(Tool::isolated("divide", "Divides two whole numbers", divide)?.timeout(Duration::from_secs(2)))
        .with(Tool::isolated("ponder", "Thinks about it", ponder)?.timeout(Duration::from_millis(300))))
}

fn main() -> Result<(), Box<dyn Error>> {
    let tools = tools()?;
    become_zygote_if_asked(&tools.toolbox()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = match std::env::var("AGENT_ENDPOINT") {
        Ok(endpoint) => runtime.block_on(converse(tools, &endpoint))?,
        Err(_) => {
            let recorded = TcpListener::bind("127.0.0.1:0")?;
            let endpoint = recorded.local_addr()?.to_string();
            // It answers twice and ends.
            let server = std::thread::spawn(move || serve_recorded(&recorded).map_err(|error| error.to_string()));
            let answer = runtime.block_on(converse(tools, &endpoint))?;
            server.join().map_err(|_| "the recorded endpoint has panicked")??;
            assert_eq!(answer, "Three times. I could not find out the other thing in time.");
            answer
        }
    };
    println!("{answer}");
    Ok(())
}

/// Asks until the model has no more calls, and gives back what it says then.
async fn converse(tools: Tools, endpoint: &str) -> Result<String, Box<dyn Error>> {
    let executor = Arc::new(Executor::builder().tools(tools.into_table()?).start().await?);
    let chain = Chain::builder(Arc::clone(&executor)).layer(TraceLayer::new(Arc::clone(&executor))).build();
    let engine = Concurrent::new(chain);
    let declared = Provider::OpenAiChat.declare(executor.tools().iter())?;
    let limits = Limits { rounds: Some(ROUNDS), ..Limits::default() };
    let mut remaining = limits.first_remaining();
    let mut history = vec![json!({ "role": "user", "content": QUESTION })];
    let mut records = Vec::new();
    let answer = loop {
        let request = json!({ "model": "any", "messages": history, "tools": declared });
        let response = post(endpoint, "/v1/chat/completions", &request)?;
        let calls = Provider::OpenAiChat.calls(&response)?;
        history.extend(Provider::OpenAiChat.assistant_turn(&response)?);
        if calls.is_empty() {
            let said = history.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
            break said.to_owned();
        }
        limits.check(remaining, &records)?;
        remaining = remaining.map(|rounds| rounds.saturating_sub(1));
        let options = BatchOptions { records, remaining, ..BatchOptions::default() };
        let result = match engine.execute_tool_calls(calls.into(), options).await?.settled {
            Settled::Finished(result) => result,
            // Without a gate that pauses, and with failures that go to the model.
            Settled::Paused(state) => return Err(format!("nobody is there to decide: {state}").into()),
        };
        let returns: Vec<_> = result.messages.into_iter().map(|message| message.tool_return).collect();
        for returned in &returns {
            println!("{}: {}", returned.name, returned.content);
        }
        history.extend(Provider::OpenAiChat.render(&returns));
        records = result.records;
    };
    executor.close().await;
    Ok(answer)
}

/// One request over a connection of its own, which is enough for an example; a real agent has an HTTP client.
fn post(endpoint: &str, path: &str, body: &Value) -> Result<String, Box<dyn Error>> {
    let body = body.to_string();
    let mut stream = TcpStream::connect(endpoint)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: {endpoint}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").ok_or("the endpoint did not speak HTTP")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status == "200" { Ok(body.to_owned()) } else { Err(format!("the endpoint answered {status}: {body}").into()) }
}

/// Says what a model would: two calls, and an answer that depends on their results.
fn serve_recorded(listener: &TcpListener) -> Result<(), Box<dyn Error + Send + Sync>> {
    let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let calls = vec![call("call_1", "divide", r#"{"dividend": 51, "divisor": 17}"#), call("call_2", "ponder", "")];
    let asks = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    answer(listener, |_| Ok((asks.clone(), "tool_calls")))?;
    answer(listener, |request| {
        let messages = request["messages"].as_array().ok_or("a request without messages")?;
        let results: Vec<_> = messages.iter().filter(|message| message["role"] == "tool").collect();
        let [quotient, pondered] = results[..] else { return Err("two results were to come back".into()) };
        if quotient["content"] != "3" || pondered["content"] != "Error: tool call timed out after 300ms" {
            return Err(format!("other results came back: {results:?}").into());
        }
        let said = "Three times. I could not find out the other thing in time.";
        Ok((json!({ "role": "assistant", "content": said }), "stop"))
    })
}

type Said = Result<(Value, &'static str), Box<dyn Error + Send + Sync>>;

fn answer(listener: &TcpListener, say: impl Fn(&Value) -> Said) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let body = loop {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes)?;
        request.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or_default() || count == 0 {
            break body.to_owned();
        }
    };
    let (message, reason) = say(&serde_json::from_str(&body)?)?;
    let choice = json!({ "index": 0, "message": message, "finish_reason": reason });
    let body =
        json!({ "id": "chatcmpl-1", "object": "chat.completion", "model": "any", "choices": [choice] }).to_string();
    write!(
        stream,
        "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
