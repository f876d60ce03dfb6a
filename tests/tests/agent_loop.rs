//! A whole agent loop with real sockets: a scripted model endpoint, and a slow backend that speaks raw TCP (contract C79).
//!
//! What is asserted is the mechanism and not a model's behaviour: the script says only what any model could say.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolexec::batch::{Settled, ToolRecord};
use toolexec::call::{Policy, Status, Termination};
use toolexec::catalogue::{Body, CommandTemplate, Declared, HostBody, RetryPolicy, ToolSpec, ToolTable};
use toolexec::engine::{BatchOptions, Concurrent, ToolCallingManager};
use toolexec::filter::Chain;
use toolexec::provider::Provider;
use toolexec::{Executor, ToolName, WorkerProgram};
use toolexec_tests::bound::PATIENCE;
use toolexec_tests::house::runtime;
use toolexec_tests::room::Room;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

/// A backend that takes its time. It tells of each connection whether the client was still there when it was done.
fn slow_backend(delays: Vec<Duration>) -> (SocketAddr, mpsc::Receiver<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, served) = mpsc::channel();
    thread::spawn(move || {
        for delay in delays {
            let (mut stream, _) = listener.accept().unwrap();
            let sender = sender.clone();
            thread::spawn(move || {
                let mut request = [0; 4];
                stream.read_exact(&mut request).unwrap();
                // Whoever goes away meanwhile ends the wait.
                stream.set_read_timeout(Some(delay)).unwrap();
                let gone = matches!(stream.read(&mut request), Ok(0));
                let answered = !gone && stream.write_all(b"70 CNY").is_ok();
                // The test may have ended.
                let _nobody_asks = sender.send(answered);
            });
        }
    });
    (address, served)
}

/// A tool that asks the backend.
fn fetch(address: SocketAddr, calls: &Arc<AtomicUsize>) -> HostBody {
    let calls = Arc::clone(calls);
    HostBody::asynchronous(move |_, _| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move {
            let failed = |error: std::io::Error| toolexec::Failure::from(error.to_string());
            let mut stream = tokio::net::TcpStream::connect(address).await.map_err(failed)?;
            stream.write_all(b"ask\n").await.map_err(failed)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.map_err(failed)?;
            Ok(json!(answer).to_string())
        }
    })
}

fn tool(name: &str, body: Body, timeout: Option<u64>) -> ToolSpec {
    let policy = Policy { timeout: timeout.map(Duration::from_millis), ..Policy::default() };
    ToolSpec { policy, ..ToolSpec::new(ToolName::new(name).unwrap(), "", body) }
}

/// A model that first asks for these tools and then says that it is done. It gives back the requests that it got.
fn model(calls: &'static [&'static str]) -> (SocketAddr, thread::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let model = thread::spawn(move || {
        let asked: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(number, name)| {
                let function = json!({ "name": name, "arguments": "" });
                json!({ "id": format!("call_{number}"), "type": "function", "function": function })
            })
            .collect();
        let said = [
            json!({ "role": "assistant", "content": null, "tool_calls": asked }),
            json!({ "role": "assistant", "content": "done" }),
        ];
        said.into_iter().map(|message| answer(&listener, &message)).collect()
    });
    (address, model)
}

fn answer(listener: &TcpListener, message: &Value) -> Value {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    let mut bytes = [0; 4096];
    let request = loop {
        let count = stream.read(&mut bytes).unwrap();
        text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        if body.len() >= length.parse().unwrap() {
            break serde_json::from_str(body).unwrap();
        }
    };
    let reason = if message["content"].is_null() { "tool_calls" } else { "stop" };
    let choices = json!([{ "index": 0, "message": message, "finish_reason": reason }]);
    let body = json!({ "id": "c", "object": "chat.completion", "model": "m", "choices": choices }).to_string();
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    request
}

fn post(endpoint: SocketAddr, body: &Value) -> String {
    let body = body.to_string();
    let mut stream = TcpStream::connect(endpoint).unwrap();
    write!(stream, "POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// What came of a conversation.
struct Conversation {
    answer: String,
    /// What the model read for each call, in order.
    read: Vec<String>,
    records: Vec<ToolRecord>,
}

/// Runs the loop to the model's last word, with an engine whose default limit is 400 ms.
fn converse(tools: Vec<ToolSpec>, calls: &'static [&'static str], meanwhile: impl FnOnce(&Executor)) -> Conversation {
    runtime().block_on(async {
        let builder = Executor::builder().program(WorkerProgram::at(PROGRAM)).tools(ToolTable::new(tools).unwrap());
        let executor = Arc::new(builder.start().await.unwrap());
        let engine = Concurrent::new(Chain::new(Arc::clone(&executor))).default_timeout(Duration::from_millis(400));
        let (endpoint, model) = model(calls);
        let mut history = vec![json!({ "role": "user", "content": "go on" })];
        let mut records = Vec::new();
        let answer = loop {
            let response = post(endpoint, &json!({ "messages": history }));
            let asked = Provider::OpenAiChat.calls(&response).unwrap();
            history.extend(Provider::OpenAiChat.assistant_turn(&response).unwrap());
            if asked.is_empty() {
                break history.last().unwrap()["content"].as_str().unwrap().to_owned();
            }
            let options = BatchOptions { records, ..BatchOptions::default() };
            let Settled::Finished(result) = engine.execute_tool_calls(asked.into(), options).await.unwrap().settled
            else {
                panic!("paused")
            };
            let returns: Vec<_> = result.messages.into_iter().map(|message| message.tool_return).collect();
            history.extend(Provider::OpenAiChat.render(&returns));
            records = result.records;
        };
        meanwhile(&executor);
        assert_eq!(executor.close().await.unconfirmed, 0);
        let requests = model.join().unwrap();
        let messages = requests[1]["messages"].as_array().unwrap();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        let read = results.map(|message| message["content"].as_str().unwrap().to_owned()).collect();
        Conversation { answer, read, records }
    })
}

#[test]
fn loop_lives_on_after_a_timeout_and_what_waited_is_really_cancelled() {
    let (backend, served) = slow_backend(vec![PATIENCE]);
    let calls = Arc::default();
    let slow = tool("slow", Body::Host(fetch(backend, &calls)), Some(300));
    let conversation = converse(vec![slow], &["slow"], |_| ());
    assert_eq!(conversation.answer, "done");
    assert_eq!(conversation.read, ["Error: tool call timed out after 300ms"]);
    let record = &conversation.records[0];
    assert_eq!((record.status, record.termination), (Status::TimedOut, Some(Termination::Stopped)));
    // The backend saw its client go, long before it would have answered.
    assert!(!served.recv_timeout(PATIENCE).unwrap());
}

#[test]
fn declaration_saves_what_the_default_kills() {
    let (backend, served) = slow_backend(vec![Duration::from_millis(900); 2]);
    let calls = Arc::default();
    let price = tool("price", Body::Host(fetch(backend, &calls)), Some(60_000));
    let age = tool("age", Body::Host(fetch(backend, &calls)), None);
    let conversation = converse(vec![price, age], &["price", "age"], |_| ());
    assert_eq!(conversation.read, ["70 CNY", "Error: tool call timed out after 400ms"]);
    let mut answered = [served.recv_timeout(PATIENCE).unwrap(), served.recv_timeout(PATIENCE).unwrap()];
    answered.sort_unstable();
    assert_eq!(answered, [false, true]);
}

#[test]
fn retry_is_nothing_that_the_model_sees() {
    let (backend, _served) = slow_backend(vec![PATIENCE, Duration::from_millis(1)]);
    let calls = Arc::<AtomicUsize>::default();
    let declared = Declared { retry: Some(RetryPolicy::default()), ..Declared::default() };
    let flaky = ToolSpec { declared, ..tool("flaky", Body::Host(fetch(backend, &calls)), Some(1000)) };
    let conversation = converse(vec![flaky], &["flaky"], |_| ());
    assert_eq!(conversation.read, ["70 CNY"]);
    assert_eq!((calls.load(Ordering::SeqCst), conversation.records.len()), (2, 1));
    assert_eq!((conversation.records[0].status, conversation.records[0].attempts), (Status::Ok, 2));
}

/// What is abandoned may still have its effect, after the model was told; what was killed has none.
#[test]
fn effect_of_an_abandoned_loop_lands_later_and_that_of_a_killed_one_never() {
    let room = Room::new();
    let (told, landed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (until, effect) = (Arc::clone(&told), Arc::clone(&landed));
    let loops = HostBody::blocking(move |_, _| {
        while !until.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        effect.store(true, Ordering::SeqCst);
        Ok("null".into())
    });
    let (flag, killed) = (room.file("told"), room.file("landed"));
    let script = r#"while [ ! -e "$1" ]; do :; done; echo landed >"$2""#;
    let (flag_text, killed_text) = (flag.display().to_string(), killed.display().to_string());
    let command = CommandTemplate::new("sh", ["-c", script, "sh", &flag_text, &killed_text]).unwrap();
    let tools = vec![tool("here", Body::Host(loops), None), tool("isolated", Body::Command(command), None)];
    let conversation = converse(tools, &["here", "isolated"], |executor| {
        assert_eq!(executor.abandoned(), 1);
        assert!(!landed.load(Ordering::SeqCst));
        told.store(true, Ordering::SeqCst);
        std::fs::write(&flag, "").unwrap();
        assert!(toolexec_tests::bound::wait_until(PATIENCE, || landed.load(Ordering::SeqCst)));
        assert!(toolexec_tests::bound::wait_until(PATIENCE, || executor.abandoned() == 0));
    });
    assert_eq!(conversation.answer, "done");
    let timed_out = "Error: tool call timed out after 400ms";
    assert_eq!(conversation.read, [timed_out, timed_out]);
    let ends = [0, 1].map(|index: usize| conversation.records[index].termination.unwrap());
    assert_eq!(ends, [Termination::Abandoned, Termination::Killed]);
    assert_eq!(conversation.records[1].confirmed, Some(true));
    // Its condition has been there for as long as the other one took.
    assert!(!killed.exists());
}
