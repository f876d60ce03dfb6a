//! `toolexec batch`: the tool calls of a model's response, run; the messages to send back, printed.

mod approve;
mod read;
mod tell;

use super::exit_code;
use super::host::Host;
use super::interrupts::Interrupts;
use super::settings::{Approve, BatchSettings, BatchWork, EngineChoice};
use super::{list, report};
use crate::batch::{FileStore, PauseState, PauseStore, Settled};
use crate::call::RequestedCall;
use crate::catalogue::ToolTable;
use crate::engine::{BatchOptions, Bounded, Concurrent, Executed, Pending, Sequential, ToolCallingManager};
use crate::filter::{Chain, TraceLayer};
use crate::provider::{Names, Provider};
use crate::{Executor, PoolSettings};
use anyhow::{Context as _, anyhow};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A batch, ready to be run.
struct Ready {
    pending: Pending,
    provider: Provider,
    /// What a pause is called.
    key: String,
    names: Names,
    tools: ToolTable,
    pool: PoolSettings,
    store: Option<FileStore>,
}

/// Runs the batch, tells what came of it, and gives back the exit code.
pub(super) fn batch(settings: BatchSettings, host: Host) -> u8 {
    let made = prepare(&settings, host).and_then(|(ready, program)| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        runtime.block_on(conduct(ready, &settings, program))
    });
    made.unwrap_or_else(|error| {
        report::complain(&format!("{error:#}"));
        exit_code::REFUSED
    })
}

fn prepare(settings: &BatchSettings, host: Host) -> anyhow::Result<(Ready, crate::WorkerProgram)> {
    let response = match &settings.work {
        BatchWork::Response { from, .. } => Some(read::response(from.as_deref())?),
        BatchWork::Paused { .. } => None,
    };
    let program = host.program.clone();
    let catalogue = list::load(&settings.catalogue, &host)?;
    let pool = catalogue.as_ref().map_or_else(PoolSettings::default, |catalogue| catalogue.pool);
    let tools = host.table(catalogue)?;
    let store = settings.pause_store.as_ref().map(FileStore::open).transpose()?;
    let (pending, provider, key) = match (&settings.work, response) {
        (BatchWork::Response { provider, key, .. }, Some(response)) => {
            let provider = provider.map_or_else(|| read::provider(&response), Ok)?;
            let calls = provider.calls(&response)?;
            let key = key.clone().or_else(|| read::id(&response)).unwrap_or_else(|| "batch".to_owned());
            (Pending::Asked(calls), provider, key)
        }
        (BatchWork::Paused { key, provider, decision }, _) => {
            let store = store.as_ref().ok_or_else(|| anyhow!("there is no store"))?;
            // Looked at first: what cannot go on stays where it is.
            let state = store.load(key)?.ok_or_else(|| anyhow!("no batch waits under {key:?}"))?;
            (Pending::Paused { state, decision: decision.clone() }, *provider, key.clone())
        }
        (BatchWork::Response { .. }, None) => return Err(anyhow!("there is no response")),
    };
    let names = Names::new(provider, tools.iter())?;
    let pending = match pending {
        Pending::Asked(calls) => Pending::Asked(calls.into_iter().map(|call| own_name(call, &names)).collect()),
        paused @ Pending::Paused { .. } => paused,
    };
    Ok((Ready { pending, provider, key, names, tools, pool, store }, program))
}

/// A call by the tool's own name, where the provider knows it by another.
fn own_name(call: RequestedCall, names: &Names) -> RequestedCall {
    match names.tool(&call.name) {
        Some(name) => RequestedCall { name: name.to_owned(), ..call },
        None => call,
    }
}

async fn conduct(ready: Ready, settings: &BatchSettings, program: crate::WorkerProgram) -> anyhow::Result<u8> {
    let Ready { pending, provider, key, names, tools, pool, store } = ready;
    let approve = settings.approve.unwrap_or_else(approve::as_here);
    let gate = approve::gate(approve, &tools);
    let mut interrupts = Interrupts::listen().context("cannot listen for signals")?;
    let builder = Executor::builder().program(program).pool(pool).tools(tools);
    let builder = match settings.strength {
        Some(strength) => builder.strength(strength),
        None => builder,
    };
    let executor = Arc::new(builder.start().await?);
    // From here on it is this process's to run; who is second finds nothing.
    let taken = match (&pending, &store) {
        (Pending::Paused { .. }, Some(store)) => {
            Some(store.take(&key)?.ok_or_else(|| anyhow!("no batch waits under {key:?} any more"))?)
        }
        (_, _) => None,
    };
    let pending = match (pending, &taken) {
        (Pending::Paused { decision, .. }, Some(state)) => Pending::Paused { state: state.clone(), decision },
        (pending, _) => pending,
    };
    let cancel = CancellationToken::new();
    let options = BatchOptions {
        gate: Some(gate),
        on_error: settings.on_error,
        cancel: Some(cancel.clone()),
        on_tool_result: tell::progress(settings.json),
        ..BatchOptions::default()
    };
    let engine = engine(settings, Arc::clone(&executor));
    let executing = engine.execute_tool_calls(pending, options);
    let (executed, interrupt) = interrupts.withdraw(&cancel, || (), executing).await;
    executor.close().await;
    let executed = match executed {
        Ok(executed) => executed,
        Err(error) => {
            put_back(store.as_ref(), &key, taken.as_ref())?;
            return Err(error.into());
        }
    };
    let Executed { settled, fold_error, .. } = executed;
    if let Some(error) = fold_error {
        report::complain(&format!("nothing was written into the context: {error}"));
    }
    let code = match settled {
        Settled::Paused(state) => {
            let store = store.ok_or_else(|| anyhow!("the batch has to wait, and --pause-store does not say where"))?;
            store.save(&key, &state)?;
            tell::paused(&state, &key, provider, settings)
        }
        Settled::Finished(result) => tell::finished(result, provider, &names, settings.json),
    };
    Ok(interrupt.map_or(code, exit_code::of_interrupt))
}

fn put_back(store: Option<&FileStore>, key: &str, state: Option<&PauseState>) -> anyhow::Result<()> {
    if let (Some(store), Some(state)) = (store, state) {
        store.save(key, state)?;
    }
    Ok(())
}

fn engine(settings: &BatchSettings, executor: Arc<Executor>) -> Box<dyn ToolCallingManager> {
    let chain = Chain::builder(Arc::clone(&executor)).layer(TraceLayer::new(executor)).build();
    macro_rules! limited {
        ($engine:expr) => {{
            let engine = $engine;
            match settings.timeout {
                Some(timeout) => Box::new(engine.default_timeout(timeout)),
                None => Box::new(engine),
            }
        }};
    }
    match settings.engine {
        EngineChoice::Sequential => limited!(Sequential::new(chain)),
        EngineChoice::Concurrent => limited!(Concurrent::new(chain)),
        EngineChoice::Bounded(places) => limited!(Bounded::new(chain, places)),
    }
}

/// Whether a batch may be left waiting without anybody having said so.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_called_by_its_own_name() {
        use crate::catalogue::{Body, ToolSpec};
        use toolexec_protocol::id::ToolName;
        let spec = ToolSpec::new(ToolName::new("fs.read").unwrap(), "", Body::Compiled);
        let names = Names::new(Provider::Anthropic, [&spec]).unwrap();
        let call = |name: &str| RequestedCall { id: "1".into(), name: name.into(), arguments: String::new() };
        let declared = names.declared("fs.read").unwrap();
        assert_eq!(own_name(call(declared), &names).name, "fs.read");
        assert_eq!(own_name(call("unknown"), &names).name, "unknown");
    }
}
