//! A batch that waits for a human: plain data, to be stored and to be resumed by another process, of a later version too.

use super::prepare::duplicates;
use super::{CallError, Context, Round, ToolMessage, ToolRecord, Verdict, Verdicts};
use crate::call::RequestedCall;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What becomes of failures of class environment, which neither the model nor a retry can mend.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnError {
    /// They go to the model, as all others do.
    #[default]
    Proceed,
    /// The batch is paused, for somebody to look after the environment.
    Pause,
}

/// A paused batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum PauseState {
    /// Nothing was run: the gate has left a call to a human.
    BeforeExecution(BeforeExecution),
    /// All was run, and the environment has failed some of it.
    AfterExecution(AfterExecution),
}

/// A batch of which nothing was run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BeforeExecution {
    calls: Vec<RequestedCall>,
    verdicts: Verdicts,
    /// One of `calls`, whose verdict is [`Verdict::Pause`].
    pending: RequestedCall,
    remaining: Option<u32>,
    records: Vec<ToolRecord>,
    context: Context,
}

/// A batch that was run, and whose answers were not given to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AfterExecution {
    messages: Vec<ToolMessage>,
    /// Each of them is answered by one of `messages`.
    failed: Vec<RequestedCall>,
    errors: Vec<CallError>,
    remaining: Option<u32>,
    records: Vec<ToolRecord>,
    /// As the batch began with it. The writes are in the messages and are folded when the batch is over, so that a
    /// pause changes neither what a call sees nor what the writes come to.
    context: Context,
}

/// Why a stored pause does not fit together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InconsistentPause {
    /// It is of a version that this build does not know.
    #[error("version {0} is not known")]
    Version(u32),
    /// A key of its phase is missing.
    #[error("key {0:?} is missing")]
    Missing(&'static str),
    /// Ids do not name one call each.
    #[error("several calls have the same id: {}", .0.join(", "))]
    DuplicateIds(Vec<String>),
    /// The call that it waits for is not there, or was decided.
    #[error("call {0:?} waits for nobody")]
    NotPending(String),
    /// A call that is said to have failed has no answer that says so.
    #[error("call {0:?} has no failure")]
    NotFailed(String),
}

/// Why bytes are no pause, or a pause cannot become bytes.
#[derive(Debug, thiserror::Error)]
pub enum UnreadablePause {
    /// A later version of toolexec has written it.
    #[error("it is of version {0}; this build reads version {max}", max = PauseState::VERSION)]
    Newer(u32),
    /// It is damaged, or something else.
    #[error("it is not a pause")]
    Corrupt(#[source] serde_json::Error),
    /// It is over [`PauseState::MOST_BYTES`].
    #[error("it has more than {max} bytes", max = PauseState::MOST_BYTES)]
    TooLarge,
    /// It would be read as something else than was written.
    #[error("it would not be read as it was written")]
    Changed,
}

impl PauseState {
    /// The version of the stored form.
    pub const VERSION: u32 = 1;

    /// How large a stored pause may be: 64 MiB, some dozens of calls that each fill the default bound on output. A store
    /// reads no more than that into memory.
    pub const MOST_BYTES: usize = 64 * 1024 * 1024;

    /// The stored form. What could not be read again is refused here, while there is still somebody to be told: JSON has
    /// values, such as those nested too deeply, that are written and not read.
    pub fn to_json(&self) -> Result<String, UnreadablePause> {
        let json = serde_json::to_string(self).map_err(UnreadablePause::Corrupt)?;
        if Self::from_json(json.as_bytes())? == *self { Ok(json) } else { Err(UnreadablePause::Changed) }
    }

    /// Reads the stored form.
    pub fn from_json(json: &[u8]) -> Result<Self, UnreadablePause> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        if json.len() > Self::MOST_BYTES {
            return Err(UnreadablePause::TooLarge);
        }
        // First the version: of a later one nothing else is understood.
        let Version { version } = serde_json::from_slice(json).map_err(UnreadablePause::Corrupt)?;
        if version > Self::VERSION {
            return Err(UnreadablePause::Newer(version));
        }
        serde_json::from_slice(json).map_err(UnreadablePause::Corrupt)
    }

    /// What [`Round::remaining`] was.
    pub fn remaining(&self) -> Option<u32> {
        match self {
            Self::BeforeExecution(pause) => pause.remaining,
            Self::AfterExecution(pause) => pause.remaining,
        }
    }

    /// The records so far.
    pub fn records(&self) -> &[ToolRecord] {
        match self {
            Self::BeforeExecution(pause) => &pause.records,
            Self::AfterExecution(pause) => &pause.records,
        }
    }

    /// The context that the batch began with.
    pub fn context(&self) -> &Context {
        match self {
            Self::BeforeExecution(pause) => &pause.context,
            Self::AfterExecution(pause) => &pause.context,
        }
    }
}

/// What it waits for, in a line.
impl fmt::Display for PauseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeExecution(pause) => write!(f, "{} waits for approval", pause.pending.name),
            Self::AfterExecution(pause) => {
                f.write_str("the environment has failed ")?;
                for (index, call) in pause.failed.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    let error = pause.errors.iter().find(|error| error.id == call.id);
                    let message = error.map_or("no message", |error| error.message.as_str());
                    write!(f, "{separator}{}: {message}", call.name)?;
                }
                Ok(())
            }
        }
    }
}

impl BeforeExecution {
    pub(super) fn new(calls: Vec<RequestedCall>, verdicts: Verdicts, pending: RequestedCall, round: Round) -> Self {
        let Round { context, records, remaining, on_error: _ } = round;
        Self { calls, verdicts, pending, remaining, records, context }
    }

    /// The call that waits for a verdict.
    pub fn pending(&self) -> &RequestedCall {
        &self.pending
    }

    /// All calls of the batch.
    pub fn calls(&self) -> &[RequestedCall] {
        &self.calls
    }

    /// The verdicts so far, that of the pending call being [`Verdict::Pause`].
    pub fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// What the batch began with.
    pub(super) fn round(&self, on_error: OnError) -> Round {
        let (context, records) = (self.context.clone(), self.records.clone());
        Round { context, records, remaining: self.remaining, on_error }
    }
}

impl AfterExecution {
    pub(super) fn new(
        messages: Vec<ToolMessage>,
        failed: Vec<RequestedCall>,
        errors: Vec<CallError>,
        remaining: Option<u32>,
        records: Vec<ToolRecord>,
        context: Context,
    ) -> Self {
        Self { messages, failed, errors, remaining, records, context }
    }

    /// The answers as they are.
    pub fn messages(&self) -> &[ToolMessage] {
        &self.messages
    }

    /// The calls that the environment has failed.
    pub fn failed(&self) -> &[RequestedCall] {
        &self.failed
    }

    /// All failures of the batch, also those that the model can mend.
    pub fn errors(&self) -> &[CallError] {
        &self.errors
    }

    /// What the batch began with, but that the records are those of now.
    pub(super) fn round(&self, on_error: OnError) -> Round {
        let (context, records) = (self.context.clone(), self.records.clone());
        Round { context, records, remaining: self.remaining, on_error }
    }
}

/// The stored form: one flat object. Neither `flatten` nor a tagged enum: both read numbers into a buffer that does not
/// give them back where they keep their digits.
#[derive(Clone, Serialize, Deserialize)]
struct Form {
    version: u32,
    phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<RequestedCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdicts: Option<Verdicts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_messages: Option<Vec<ToolMessage>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_calls: Option<Vec<RequestedCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<CallError>>,
    remaining: Option<u32>,
    records: Vec<ToolRecord>,
    context: Context,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    BeforeExecution,
    AfterExecution,
}

impl From<PauseState> for Form {
    fn from(state: PauseState) -> Self {
        let version = PauseState::VERSION;
        match state {
            PauseState::BeforeExecution(pause) => Self {
                version,
                phase: Phase::BeforeExecution,
                pending_id: Some(pause.pending.id),
                tool_calls: Some(pause.calls),
                verdicts: Some(pause.verdicts),
                batch_messages: None,
                failed_calls: None,
                errors: None,
                remaining: pause.remaining,
                records: pause.records,
                context: pause.context,
            },
            PauseState::AfterExecution(pause) => Self {
                version,
                phase: Phase::AfterExecution,
                pending_id: None,
                tool_calls: None,
                verdicts: None,
                batch_messages: Some(pause.messages),
                failed_calls: Some(pause.failed),
                errors: Some(pause.errors),
                remaining: pause.remaining,
                records: pause.records,
                context: pause.context,
            },
        }
    }
}

impl TryFrom<Form> for PauseState {
    type Error = InconsistentPause;

    fn try_from(form: Form) -> Result<Self, InconsistentPause> {
        if form.version != Self::VERSION {
            return Err(InconsistentPause::Version(form.version));
        }
        let Form { remaining, records, context, .. } = form;
        match form.phase {
            Phase::BeforeExecution => {
                let pending = form.pending_id.ok_or(InconsistentPause::Missing("pending_id"))?;
                let calls = form.tool_calls.ok_or(InconsistentPause::Missing("tool_calls"))?;
                let verdicts = form.verdicts.ok_or(InconsistentPause::Missing("verdicts"))?;
                distinct(calls.iter().map(|call| call.id.as_str()))?;
                let call = calls.iter().find(|call| call.id == pending);
                let Some(call) = call.filter(|_| verdicts.get(&pending) == Some(&Verdict::Pause)) else {
                    return Err(InconsistentPause::NotPending(pending));
                };
                let pending = call.clone();
                Ok(Self::BeforeExecution(BeforeExecution { calls, verdicts, pending, remaining, records, context }))
            }
            Phase::AfterExecution => {
                let messages = form.batch_messages.ok_or(InconsistentPause::Missing("batch_messages"))?;
                let failed = form.failed_calls.ok_or(InconsistentPause::Missing("failed_calls"))?;
                let errors = form.errors.ok_or(InconsistentPause::Missing("errors"))?;
                distinct(messages.iter().map(|message| message.tool_return.id.as_str()))?;
                distinct(failed.iter().map(|call| call.id.as_str()))?;
                let answered = |call: &RequestedCall| {
                    messages.iter().any(|message| message.tool_return.id == call.id && message.tool_return.is_error)
                };
                if let Some(call) = failed.iter().find(|call| !answered(call)) {
                    return Err(InconsistentPause::NotFailed(call.id.clone()));
                }
                Ok(Self::AfterExecution(AfterExecution { messages, failed, errors, remaining, records, context }))
            }
        }
    }
}

fn distinct<'a>(ids: impl Iterator<Item = &'a str>) -> Result<(), InconsistentPause> {
    let duplicates = duplicates(ids);
    if duplicates.is_empty() { Ok(()) } else { Err(InconsistentPause::DuplicateIds(duplicates)) }
}

#[cfg(test)]
mod tests {
    use super::super::script::{any_pause, call, known, paused_after, paused_before};
    use super::super::{Batch, Prepared};
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// The first stored pauses. They are never changed: every later version has to read them.
    const BEFORE: &str = include_str!("../../tests/fixtures/pause-v1-before-execution.json");
    const AFTER: &str = include_str!("../../tests/fixtures/pause-v1-after-execution.json");

    /// This build writes exactly them, too. A key that is added has to be left out where it says nothing new.
    #[test]
    fn the_first_stored_form_is_read_and_written_byte_by_byte() {
        for (stored, state) in [(BEFORE, paused_before()), (AFTER, paused_after())] {
            let stored = stored.trim_end();
            assert_eq!(PauseState::from_json(stored.as_bytes()).unwrap(), state);
            assert_eq!(state.to_json().unwrap(), stored);
        }
    }

    #[test]
    fn keys_are_found_in_whatever_order_a_database_has_put_them() {
        for stored in [BEFORE, AFTER] {
            let Value::Object(keys) = serde_json::from_str(stored).unwrap() else { panic!("{stored}") };
            let backwards: Vec<_> = keys.iter().rev().map(|(key, value)| format!("{key:?}:{value}")).collect();
            let backwards = format!("{{{}}}", backwards.join(","));
            assert_eq!(
                PauseState::from_json(backwards.as_bytes()).unwrap(),
                PauseState::from_json(stored.as_bytes()).unwrap()
            );
        }
    }

    #[test]
    fn a_later_version_is_named_and_not_guessed_at() {
        let later = r#"{"version":2,"phase":"somewhere else"}"#;
        let error = PauseState::from_json(later.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "it is of version 2; this build reads version 1");
        let zero = BEFORE.replacen(r#""version":1"#, r#""version":0"#, 1);
        assert!(matches!(PauseState::from_json(zero.as_bytes()), Err(UnreadablePause::Corrupt(_))));
    }

    #[test]
    fn what_does_not_fit_together_is_not_resumed() {
        let refused = |stored: &str, from: &str, to: &str| {
            let changed = stored.replacen(from, to, 1);
            assert_ne!(changed, stored);
            match PauseState::from_json(changed.as_bytes()).unwrap_err() {
                UnreadablePause::Corrupt(source) => source.to_string(),
                other => panic!("{other}"),
            }
        };
        let says = |text: String, expected: &str| assert!(text.contains(expected), "{text}");
        says(refused(BEFORE, r#""pending_id":"b""#, r#""pending_id":"a""#), r#"call "a" waits for nobody"#);
        says(refused(BEFORE, r#""pending_id":"b""#, r#""pending_id":"x""#), r#"call "x" waits for nobody"#);
        says(refused(BEFORE, r#""pending_id""#, r#""other""#), r#"key "pending_id" is missing"#);
        says(refused(BEFORE, r#"[{"id":"a""#, r#"[{"id":"b""#), "several calls have the same id: b");
        says(
            refused(AFTER, r#""failed_calls":[{"id":"b""#, r#""failed_calls":[{"id":"a""#),
            r#"call "a" has no failure"#,
        );
        says(refused(AFTER, r#""errors""#, r#""other""#), r#"key "errors" is missing"#);
        says(refused(AFTER, r#""context""#, r#""other""#), "missing field `context`");
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let mut deep = Value::Null;
        for _ in 0..200 {
            deep = Value::Array(vec![deep]);
        }
        let gate = |_: &RequestedCall, _: &Context| Verdict::Pause;
        let round = Round { context: Context::default().with("deep", deep), ..Round::default() };
        let prepared = Batch::new(vec![call("a", "tool")], known).unwrap().prepare(Some(&gate), round);
        let Prepared::Paused(state) = prepared else { panic!("runs") };
        assert!(matches!(state.to_json(), Err(UnreadablePause::Corrupt(_))));
    }

    proptest! {
        #[test]
        fn any_pause_is_read_as_it_was_written(state in any_pause()) {
            let json = state.to_json().unwrap();
            prop_assert_eq!(PauseState::from_json(json.as_bytes()).unwrap(), state);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..4000_usize) {
            let _ = PauseState::from_json(&bytes);
            let cut = AFTER.floor_char_boundary(cut.min(AFTER.trim_end().len() - 1));
            prop_assert!(PauseState::from_json(&AFTER.as_bytes()[..cut]).is_err());
        }
    }
}
