//! A filter of one's own: it counts how many calls of each tool are under way at once.
//!
//! A filter is a `tower` layer. Where it stands decides what it sees: put on after `.retry()` it sees a call once, before it each
//! attempt.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use toolexec::call::{CallContext, Outcome, Status, ToolCall, Work};
use toolexec::filter::{CallService, Chain};
use toolexec::worker::become_zygote_if_asked;
use toolexec::{Executor, Tool, Tools};
use tower::{Layer, Service};

/// How many calls of each tool are under way.
type UnderWay = Arc<Mutex<HashMap<String, usize>>>;

/// Counts the calls of each tool that are under way, and remembers the most.
#[derive(Clone, Default)]
struct Busiest {
    under_way: UnderWay,
    most: UnderWay,
}

impl Layer<CallService> for Busiest {
    type Service = Counting;

    fn layer(&self, inner: CallService) -> Counting {
        Counting { inner, counts: self.clone() }
    }
}

#[derive(Clone)]
struct Counting {
    inner: CallService,
    counts: Busiest,
}

impl Service<ToolCall> for Counting {
    type Response = Outcome;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let name = match &call.work {
            Work::Tool { name, .. } => name.clone(),
            Work::Command { .. } => "a command".to_owned(),
        };
        let counts = self.counts.clone();
        let answer = self.inner.call(call);
        Box::pin(async move {
            let now = change(&counts.under_way, &name, |count| count + 1);
            change(&counts.most, &name, |most| most.max(now));
            // A timeout is an ordinary outcome here, and so is everything else that can go wrong.
            let outcome = answer.await;
            change(&counts.under_way, &name, |count| count - 1);
            outcome
        })
    }
}

fn change(counts: &UnderWay, name: &str, new: impl Fn(usize) -> usize) -> usize {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.entry(name.to_owned()).or_default();
    *count = new(*count);
    *count
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    milliseconds: u64,
}

async fn wait(Wait { milliseconds }: Wait, _: CallContext) -> Result<&'static str, &'static str> {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    Ok("waited")
}

fn main() -> Result<(), Box<dyn Error>> {
    let limit = Duration::from_millis(200);
    let tools = Tools::new().with(Tool::asynchronous("wait", "Waits", wait)?.timeout(limit));
    become_zygote_if_asked(&tools.toolbox()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let executor = Arc::new(Executor::builder().tools(tools.into_table()?).start().await?);
        let busiest = Busiest::default();
        let chain = Chain::builder(Arc::clone(&executor)).retry().layer(busiest.clone()).build();
        let call = |arguments: &str| chain.call(ToolCall::new("wait", arguments));
        let (short, too_long, again) = tokio::join!(
            call(r#"{"milliseconds": 50}"#),
            call(r#"{"milliseconds": 60000}"#),
            call(r#"{"milliseconds": 50}"#),
        );
        assert_eq!([short.status, too_long.status, again.status], [Status::Ok, Status::TimedOut, Status::Ok]);
        let most = change(&busiest.most, "wait", |most| most);
        println!("at most {most} calls of `wait` were under way at once");
        assert_eq!((most, change(&busiest.under_way, "wait", |count| count)), (3, 0));
        executor.close().await;
        Ok(())
    })
}
