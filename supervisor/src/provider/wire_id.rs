//! What a call's id has to remember between the response and the result.
//!
//! Two things about a call decide the shape of its result, and no result knows them: that Gemini gave it no id, and that
//! it was a custom call of the Responses API. A call may be stored and finished by another process, so the id is what
//! carries them. Every id that a provider may give comes back as it was.

/// What all ids begin with that say more than the provider's own.
const MARK: &str = "toolexec.";
const CUSTOM: &str = "toolexec.custom.";
const GIVEN: &str = "toolexec.given.";
const MADE: &str = "toolexec.made.";

/// An id as it has to be understood when a result is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WireId<'a> {
    /// The provider's own.
    Given(&'a str),
    /// The provider's own, of a custom tool's call.
    Custom(&'a str),
    /// There was none, and this was made to tell the calls apart.
    Made,
}

impl<'a> WireId<'a> {
    /// What an id of a call says.
    pub(super) fn of(id: &'a str) -> Self {
        if let Some(own) = id.strip_prefix(CUSTOM) {
            Self::Custom(own)
        } else if id.starts_with(MADE) {
            Self::Made
        } else {
            Self::Given(id.strip_prefix(GIVEN).unwrap_or(id))
        }
    }

    /// The provider's own id, if there is one.
    pub(super) fn own(self) -> Option<&'a str> {
        match self {
            Self::Given(own) | Self::Custom(own) => Some(own),
            Self::Made => None,
        }
    }
}

/// The id of a call with this id of its provider.
pub(super) fn given(own: &str) -> String {
    // An id that looks like one of those made here would be taken for one.
    if own.starts_with(MARK) { format!("{GIVEN}{own}") } else { own.to_owned() }
}

/// The id of a custom tool's call with this id of its provider.
pub(super) fn custom(own: &str) -> String {
    format!("{CUSTOM}{own}")
}

/// An id for a call without one: always the same for the same call of the same response.
pub(super) fn made(response: Option<&str>, position: usize) -> String {
    match response {
        Some(response) => format!("{MADE}{response}.{position}"),
        None => format!("{MADE}{position}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_ids_stay_as_they_are() {
        assert_eq!(given("call_abc"), "call_abc");
        assert_eq!(WireId::of("call_abc"), WireId::Given("call_abc"));
        assert_eq!(made(Some("r1"), 2), "toolexec.made.r1.2");
        assert_eq!(WireId::of("toolexec.made.0"), WireId::Made);
    }

    proptest! {
        #[test]
        fn every_id_comes_back_as_it_was(own in "(toolexec\\.(custom\\.|given\\.|made\\.)?){0,2}\\PC{0,5}") {
            let id = given(&own);
            prop_assert_eq!(WireId::of(&id), WireId::Given(own.as_str()));
            let id = custom(&own);
            prop_assert_eq!(WireId::of(&id), WireId::Custom(own.as_str()));
            let id = made(Some(&own), 1);
            prop_assert_eq!(WireId::of(&id).own(), None);
        }
    }
}
