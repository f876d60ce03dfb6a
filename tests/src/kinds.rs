//! Rust tools that exist three times: isolated, asynchronous and blocking, with one body.
//!
//! The fixture program and the tests of the library share them, so that the one is the worker program of the other. What
//! only an in-process test can see (counters, drop guards, stop flags) the tests make for themselves.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use toolexec::{ErrorClass, Failure, Tool, Tools};

/// How the name of each kind's tool ends.
pub const KINDS: [&str; 3] = ["isolated", "asynchronous", "blocking"];

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub struct Nothing {}

/// How a call is to end.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ending {
    how: How,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    Ok,
    Text,
    Transient,
    Semantic,
    Environment,
    LongError,
    PanicStr,
    PanicString,
    PanicOther,
    PanicBomb,
    Large,
    LargestThatFits,
    NotJson,
}

/// Numbers of every type that keeps all of them, or says that it does not.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Numbers {
    unsigned: u64,
    signed: i64,
    double: f64,
    number: serde_json::Number,
    raw: Box<RawValue>,
}

/// What serde reads by way of a buffer.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Buffered {
    #[serde(flatten)]
    flat: Flat,
    tagged: Tagged,
    untagged: Untagged,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Flat {
    count: u64,
    share: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "operation", rename_all = "snake_case")]
enum Tagged {
    Add { a: i64, b: i64 },
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Text(String),
}

/// Deserializing it panics.
struct Trap;

impl<'de> Deserialize<'de> for Trap {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("sprung")
    }
}

impl JsonSchema for Trap {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trap".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

/// A file to write to.
#[derive(Deserialize, JsonSchema)]
struct File {
    path: PathBuf,
}

/// A panic's payload that panics once more.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload of a panic was dropped");
    }
}

/// All of them.
pub fn tools() -> Tools {
    let mut tools = Tools::new();
    for tool in [
        three("end", end),
        three("numbers", Ok::<Numbers, Failure>),
        three("buffered", Ok::<Buffered, Failure>),
        three("trap", |_: Trap| Ok::<_, Failure>(())),
        three("spin", |_: Nothing| -> Result<(), Failure> {
            loop {
                std::hint::spin_loop();
            }
        }),
    ]
    .into_iter()
    .flatten()
    {
        tools = tools.with(tool);
    }
    tools
        .with(Tool::isolated("append", "Appends to a file for ever", append).expect("a tool"))
        .with(
            Tool::blocking("listen", "Ends when it is asked to", |_: Nothing, call| -> Result<(), Failure> {
                while !call.is_stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            })
            .expect("a tool")
            .timeout(Duration::from_millis(300))
            .cooperative(),
        )
        .with(
            Tool::asynchronous("wait", "Waits for ever", |_: Nothing, _| std::future::pending::<Result<(), Failure>>())
                .expect("a tool")
                .timeout(Duration::from_millis(300)),
        )
}

/// One body as a tool of each kind; those that spin have a time limit.
fn three<A, R>(name: &str, body: fn(A) -> Result<R, Failure>) -> [Tool; 3]
where
    A: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + 'static,
{
    let [isolated, asynchronous, blocking] = KINDS.map(|kind| format!("{name}_{kind}"));
    let tools = [
        Tool::isolated(&isolated, "", body),
        Tool::asynchronous(&asynchronous, "", move |arguments, _| {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(arguments)));
            // In the future and not where it is made; and as text, since the result of a body need not be one that is sent.
            let ended = ended.map(|ended| ended.map(|value| serde_json::value::to_raw_value(&value).expect("JSON")));
            async move { ended.unwrap_or_else(|payload| std::panic::resume_unwind(payload)) }
        }),
        Tool::blocking(&blocking, "", move |arguments, _| body(arguments)),
    ];
    tools.map(|tool| {
        let tool = tool.expect("a tool");
        if name == "spin" { tool.timeout(Duration::from_millis(300)) } else { tool }
    })
}

fn end(Ending { how }: Ending) -> Result<Box<RawValue>, Failure> {
    let json = |text: String| RawValue::from_string(text).map_err(|error| error.to_string().into());
    let fail = |class| Err(Failure::new(class, "it did not go well"));
    let of_length = |length: usize| json(format!("\"{}\"", "x".repeat(length - 2)));
    match how {
        How::Ok => json("[1, 2.50, \"é\"]".into()),
        How::Text => Err("a text without a class".into()),
        How::Transient => fail(ErrorClass::Transient),
        How::Semantic => fail(ErrorClass::Semantic),
        How::Environment => fail(ErrorClass::Environment),
        How::LongError => Err("é".repeat(100_000).into()),
        How::PanicStr => panic!("a text"),
        How::PanicString => panic!("a text with {}", "a number"),
        How::PanicOther => std::panic::panic_any(7),
        How::PanicBomb => std::panic::panic_any(Bomb),
        How::Large => of_length(toolexec_protocol::limits::MAX_BODY + 1),
        How::LargestThatFits => of_length(toolexec_protocol::limits::MAX_BODY),
        How::NotJson => json(String::new()),
    }
}

fn append(File { path }: File) -> Result<(), Failure> {
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(|error| error.to_string())?;
    loop {
        file.write_all(b".").map_err(|error| error.to_string())?;
    }
}
