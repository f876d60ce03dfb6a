//! Telling what came of a batch.

use super::super::{exit_code, report};
use super::BatchSettings;
use crate::batch::{CallError, Context, PauseState, ToolExecutionResult, ToolRecord};
use crate::call::{Status, ToolReturn};
use crate::engine::ToolResultObserver;
use crate::provider::{Names, Provider};
use serde::Serialize;
use serde_json::Value;
use std::io::IsTerminal as _;
use std::sync::Arc;

/// Everything that is known, as programs read it.
#[derive(Debug, Serialize)]
struct Told<'r> {
    version: u32,
    provider: &'static str,
    /// What is to be sent back.
    messages: &'r [Value],
    records: &'r [ToolRecord],
    context: &'r Context,
    errors: &'r [CallError],
    /// The answer to the user, where the model is not to be asked again.
    return_direct: Option<&'r str>,
    paused: Option<Paused<'r>>,
}

#[derive(Debug, Serialize)]
struct Paused<'r> {
    key: &'r str,
    why: String,
}

/// A line for each call that is over, where somebody watches.
pub(super) fn progress(json: bool) -> Option<ToolResultObserver> {
    if json || !std::io::stderr().is_terminal() {
        return None;
    }
    Some(Arc::new(|record: &ToolRecord| {
        let how = match record.status {
            Status::Ok => "ok",
            _ => record.message.as_deref().unwrap_or("failed"),
        };
        anstream::eprintln!("toolexec: {} ({} ms): {how}", record.name, record.timing.total_ms);
    }))
}

/// Prints the messages, and gives back the exit code.
pub(super) fn finished(result: ToolExecutionResult, provider: Provider, names: &Names, json: bool) -> u8 {
    let returns: Vec<ToolReturn> = result
        .messages
        .iter()
        .map(|message| {
            let returned = message.tool_return.clone();
            match names.declared(&returned.name) {
                Some(name) => ToolReturn { name: name.to_owned(), ..returned },
                None => returned,
            }
        })
        .collect();
    let messages = provider.render(&returns);
    if !json {
        return report::json(&messages);
    }
    report::json(&Told {
        version: 1,
        provider: provider.name(),
        messages: &messages,
        records: &result.records,
        context: &result.context,
        errors: &result.errors,
        return_direct: result.return_direct.as_deref(),
        paused: None,
    })
}

/// Says that the batch waits, and how it goes on.
pub(super) fn paused(state: &PauseState, key: &str, provider: Provider, settings: &BatchSettings) -> u8 {
    let verdicts = match state {
        PauseState::BeforeExecution(_) => "approve|reject|reject:REASON|cancel",
        PauseState::AfterExecution(_) => "retry|proceed|cancel",
    };
    let store = settings.pause_store.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let name = provider.name();
    report::complain(&format!(
        "paused: {state}; go on with\n  toolexec batch --resume {key:?} --pause-store {store:?} --provider {name} --verdict {verdicts}"
    ));
    if settings.json {
        let told = Told {
            version: 1,
            provider: name,
            messages: &[],
            records: state.records(),
            context: state.context(),
            errors: &[],
            return_direct: None,
            paused: Some(Paused { key, why: state.to_string() }),
        };
        let printed = report::json(&told);
        if printed != exit_code::OK {
            return printed;
        }
    }
    exit_code::PAUSED
}
