//! What a tool declares about itself beside its limits: how it may be scheduled and repeated, and how it is found.

use crate::call::Place;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What a tool declares beside its limits and its schemas. By default it declares nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Declared {
    /// Whether and how a call that failed may be repeated. To declare it is the promise that a second run does no harm
    /// (contract items 5 and 42); `None` is never.
    pub retry: Option<RetryPolicy>,
    /// Whether a batch with a call of it runs in the order of its calls, one after the other (contract item 50).
    pub serial: bool,
    /// Whether a call of it asks for approval first.
    pub sensitive: bool,
    /// Whether its result is the answer, without another turn of the model, where all calls of a batch declare it
    /// (contract item 66).
    pub return_direct: bool,
    /// Whether it reads the conversation's context, as it was when the round began. For tools that are written in Rust: a
    /// command is handed its arguments and nothing else.
    pub context: bool,
    /// What it is found by, each once (contract item 96).
    pub tags: Vec<String>,
    /// Which group it belongs to.
    pub category: Option<String>,
}

/// How a call that failed for a passing reason is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    /// The most further attempts after the first, within [`RetryPolicy::MAX`].
    pub max: NonZeroU32,
    /// How long the first of them waits after the failure; each further one waits twice as long as the one before it. Never
    /// zero.
    pub initial: Duration,
}

impl RetryPolicy {
    /// How many further attempts may be declared. What has failed a hundred times does not pass by itself.
    pub const MAX: RangeInclusive<u32> = 1..=100;
}

impl Default for RetryPolicy {
    /// Two further attempts, the first after 200 ms: what `retry = true` means (contract item 42).
    fn default() -> Self {
        Self { max: NonZeroU32::MIN.saturating_add(1), initial: Duration::from_millis(200) }
    }
}

/// A declaration says something that cannot be kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeclaredError {
    /// More attempts than [`RetryPolicy::MAX`].
    #[error("{0} further attempts are refused; declare at most {max}", max = RetryPolicy::MAX.end())]
    TooManyAttempts(NonZeroU32),
    /// An attempt right after the one that failed.
    #[error("a retry that waits for zero time is refused")]
    ZeroDelay,
    /// A command that reads the context.
    #[error("it reads the conversation's context and is a command, which is handed its arguments and nothing else")]
    ContextOfCommand,
    /// A tag without a character.
    #[error("an empty tag is refused")]
    EmptyTag,
    /// A tag that is there already.
    #[error("it has the tag {0:?} more than once")]
    DuplicateTag(String),
    /// A category without a character.
    #[error("an empty category is refused; leave it out for none")]
    EmptyCategory,
}

impl Declared {
    /// Refuses what has no meaning that two users would agree on, and what nobody would read.
    pub(crate) fn check(&self, place: Place) -> Result<(), DeclaredError> {
        let Self { retry, serial: _, sensitive: _, return_direct: _, context, tags, category } = self;
        if let Some(RetryPolicy { max, initial }) = retry {
            if !RetryPolicy::MAX.contains(&max.get()) {
                return Err(DeclaredError::TooManyAttempts(*max));
            }
            if initial.is_zero() {
                return Err(DeclaredError::ZeroDelay);
            }
        }
        match place {
            Place::Command if *context => return Err(DeclaredError::ContextOfCommand),
            Place::Command | Place::Worker | Place::Host => {}
        }
        let mut seen = HashSet::new();
        for tag in tags {
            if is_blank(tag) {
                return Err(DeclaredError::EmptyTag);
            }
            if !seen.insert(tag) {
                return Err(DeclaredError::DuplicateTag(tag.clone()));
            }
        }
        if category.as_deref().is_some_and(is_blank) {
            return Err(DeclaredError::EmptyCategory);
        }
        Ok(())
    }
}

/// Whether a tag or a category could not be seen.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let retry = |max, initial| {
            let retry = RetryPolicy { max: NonZeroU32::new(max).unwrap(), initial: Duration::from_nanos(initial) };
            Declared { retry: Some(retry), ..Declared::default() }
        };
        let tags = |tags: &[&str]| Declared {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Declared::default()
        };
        let category = |category: &str| Declared { category: Some(category.into()), ..Declared::default() };
        let cases = [
            (Declared::default(), Ok(())),
            (retry(1, 1), Ok(())),
            (retry(100, 1), Ok(())),
            (retry(101, 1), Err("101 further attempts are refused; declare at most 100")),
            (retry(2, 0), Err("a retry that waits for zero time is refused")),
            (tags(&["a", "b", "A"]), Ok(())),
            (tags(&["a", ""]), Err("an empty tag is refused")),
            (tags(&["a", "b", "a"]), Err("it has the tag \"a\" more than once")),
            (category("a"), Ok(())),
            (category("\t"), Err("an empty category is refused; leave it out for none")),
        ];
        for (declared, expected) in cases {
            for place in [Place::Command, Place::Worker, Place::Host] {
                assert_eq!(declared.check(place).map_err(|error| error.to_string()), expected.map_err(str::to_owned));
            }
        }
    }

    #[test]
    fn a_command_reads_no_context() {
        let declared = Declared { context: true, ..Declared::default() };
        assert_eq!(declared.check(Place::Command), Err(DeclaredError::ContextOfCommand));
        assert_eq!((declared.check(Place::Worker), declared.check(Place::Host)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_retry_without_words_is_two_more_after_200_ms() {
        let RetryPolicy { max, initial } = RetryPolicy::default();
        assert_eq!((max.get(), initial), (2, Duration::from_millis(200)));
    }
}
