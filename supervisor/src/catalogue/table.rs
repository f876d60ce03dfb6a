//! The table of declared tools, made once and never changed.

use super::excerpt::excerpt;
use super::nearest::nearest;
use super::{Body, DeclaredError, Selection, ToolSpec};
use crate::call::PolicyError;
use std::collections::{HashMap, HashSet};
use toolexec_protocol::id::ToolName;

/// The most names that the answer to an unknown name lists.
const MAX_LISTED: usize = 50;

/// The most bytes that the answer to an unknown name repeats of it.
const NAME_EXCERPT: usize = 64;

/// The declared tools by name, in the order of their declaration.
#[derive(Debug, Default)]
pub struct ToolTable {
    tools: Vec<ToolSpec>,
    index: HashMap<String, usize>,
}

/// Why declarations do not make a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TableError {
    /// Told before anything else, so that no problem of one of two namesakes is taken for the other's.
    #[error(transparent)]
    Duplicates(#[from] DuplicateTools),
    /// A declaration cannot be kept.
    #[error("the tool {tool} cannot be declared so: {problem}")]
    Policy {
        /// The tool.
        tool: ToolName,
        /// What it says.
        problem: PolicyError,
    },
    /// What a tool says of itself beside its limits cannot be kept.
    #[error("the tool {tool} cannot be declared so: {problem}")]
    Declared {
        /// The tool.
        tool: ToolName,
        /// What it says.
        problem: DeclaredError,
    },
}

/// Names that were declared more than once.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("declared more than once: {}", .0.join(", "))]
pub struct DuplicateTools(pub Vec<String>);

impl DuplicateTools {
    /// Lists every name that comes more than once.
    pub(crate) fn check<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), Self> {
        let mut seen = HashSet::new();
        let mut duplicates: Vec<String> = Vec::new();
        for name in names {
            if !seen.insert(name) && !duplicates.iter().any(|known| known == name) {
                duplicates.push(name.to_owned());
            }
        }
        if duplicates.is_empty() { Ok(()) } else { Err(Self(duplicates)) }
    }
}

impl ToolTable {
    /// A table of these tools.
    ///
    /// # Errors
    /// [`TableError::Duplicates`] lists every name that more than one tool has, and none of them is picked;
    /// [`TableError::Policy`] and [`TableError::Declared`] tell of the first declaration that cannot be kept.
    pub fn new(tools: Vec<ToolSpec>) -> Result<Self, TableError> {
        DuplicateTools::check(tools.iter().map(|tool| tool.name.as_str()))?;
        let index =
            tools.iter().enumerate().map(|(position, tool)| (tool.name.as_str().to_owned(), position)).collect();
        for ToolSpec { name, policy, declared, body, .. } in &tools {
            let place = body.place();
            policy.check(place).map_err(|problem| TableError::Policy { tool: name.clone(), problem })?;
            declared.check(place).map_err(|problem| TableError::Declared { tool: name.clone(), problem })?;
        }
        Ok(Self { tools, index })
    }

    /// The table of those of its tools that are offered, in the same order. To an executor that gets it the others are unknown
    /// tools: what is not offered may not be run either.
    #[must_use]
    pub fn select(self, selection: &Selection) -> Self {
        let tools: Vec<ToolSpec> = self.tools.into_iter().filter(|tool| selection.offers(tool)).collect();
        let index =
            tools.iter().enumerate().map(|(position, tool)| (tool.name.as_str().to_owned(), position)).collect();
        Self { tools, index }
    }

    /// What is allowed and worth a word: a time limit that can only ask.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.tools.iter().filter_map(|ToolSpec { name, policy, body, .. }| match body {
            Body::Host(body) if policy.timeout.is_some() && !body.is_cooperative() => Some(format!(
                "the tool {name} has a time limit and runs in the host's own process without a promise to end when it is \
                 asked to: at its limit it may be abandoned and still run; isolate it, or declare it cooperative"
            )),
            Body::Host(_) | Body::Command(_) | Body::Compiled => None,
        })
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.index.get(name).and_then(|position| self.tools.get(*position))
    }

    /// The tools in the order of their declaration.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ToolSpec> {
        self.tools.iter()
    }

    /// Their names in the order of their declaration.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// The declarations in their order, to be put into another table.
    pub fn into_specs(self) -> Vec<ToolSpec> {
        self.tools
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The answer to a call of a name that no tool has: what the model may have meant, and what there is.
    pub fn unknown(&self, name: &str) -> String {
        let unknown = excerpt(name, NAME_EXCERPT);
        if self.is_empty() {
            return format!("there is no tool {unknown:?}; no tools are declared");
        }
        let mut names: Vec<&str> = self.names().take(MAX_LISTED).collect();
        let more = match self.len() - names.len() {
            0 => String::new(),
            more => format!("{more} more"),
        };
        names.extend((!more.is_empty()).then_some(more.as_str()));
        let names = names.join(", ");
        match nearest(name, self.names()) {
            Some(meant) => format!("there is no tool {unknown:?}; did you mean {meant:?}? The tools are {names}"),
            None => format!("there is no tool {unknown:?}; the tools are {names}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Policy;
    use crate::catalogue::HostBody;
    use std::time::Duration;

    fn table(names: &[&str]) -> Result<ToolTable, TableError> {
        let tool = |name: &&str| ToolSpec::new(ToolName::new(*name).unwrap(), "", Body::Compiled);
        ToolTable::new(names.iter().map(tool).collect())
    }

    #[test]
    fn tools_are_found_by_name_and_kept_in_order() {
        let tools = table(&["zoo", "apple", "Apple"]).unwrap();
        assert_eq!(tools.names().collect::<Vec<_>>(), ["zoo", "apple", "Apple"]);
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["zoo", "apple", "Apple"]);
        assert_eq!(tools.get("apple").map(|tool| tool.name.as_str()), Some("apple"));
        assert!(tools.get("APPLE").is_none());
        assert_eq!((tools.len(), tools.is_empty()), (3, false));
        let none = ToolTable::default();
        assert_eq!((none.len(), none.is_empty()), (0, true));
    }

    #[test]
    fn all_duplicates_are_listed_and_none_is_picked() {
        let error = table(&["b", "a", "b", "c", "a", "b"]).unwrap_err();
        assert_eq!(error, TableError::Duplicates(DuplicateTools(vec!["b".into(), "a".into()])));
        assert_eq!(error.to_string(), "declared more than once: b, a");
    }

    #[test]
    fn duplicates_are_told_before_what_one_of_them_says() {
        let zero = || {
            let policy = Policy { timeout: Some(Duration::ZERO), ..Policy::default() };
            ToolSpec { policy, ..ToolSpec::new(ToolName::new("a").unwrap(), "", Body::Compiled) }
        };
        let error = ToolTable::new(vec![zero(), zero()]).unwrap_err();
        assert_eq!(error.to_string(), "declared more than once: a");
        let error = ToolTable::new(vec![zero()]).unwrap_err();
        let expected =
            "the tool a cannot be declared so: a timeout of zero is refused; leave it out for no limit".to_owned();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_limit_that_can_only_ask_is_warned_about() {
        let tool = |name: &str, body, limit: Option<u64>| {
            let policy = Policy { timeout: limit.map(Duration::from_secs), ..Policy::default() };
            ToolSpec { policy, ..ToolSpec::new(ToolName::new(name).unwrap(), "", body) }
        };
        let blocking = || HostBody::blocking(|_, _| Ok("1".into()));
        let tools = ToolTable::new(vec![
            tool("isolated", Body::Compiled, Some(1)),
            tool("unlimited", Body::Host(blocking()), None),
            tool("cooperative", Body::Host(blocking().cooperative()), Some(1)),
            tool("future", Body::Host(HostBody::asynchronous(async |_, _| Ok("1".into()))), Some(1)),
            tool("deaf", Body::Host(blocking()), Some(1)),
        ]);
        let warnings: Vec<String> = tools.unwrap().warnings().collect();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("the tool deaf has a time limit"), "{warnings:?}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_there_is() {
        let tools = table(&["find_in_text", "word_count"]).unwrap();
        let check = |name: &str, expected: &str| assert_eq!(tools.unknown(name), expected);
        check(
            "find_in_txt",
            r#"there is no tool "find_in_txt"; did you mean "find_in_text"? The tools are find_in_text, word_count"#,
        );
        check("launch", r#"there is no tool "launch"; the tools are find_in_text, word_count"#);
        check("", r#"there is no tool ""; the tools are find_in_text, word_count"#);
        check("a\n\"b", r#"there is no tool "a\n\"b"; the tools are find_in_text, word_count"#);
        let long = "é".repeat(100_000);
        check(&long, &format!(r#"there is no tool "{}…"; the tools are find_in_text, word_count"#, "é".repeat(32)));
        assert_eq!(ToolTable::default().unknown("x"), r#"there is no tool "x"; no tools are declared"#);
    }

    #[test]
    fn the_list_of_names_is_bounded() {
        let names: Vec<String> = (0..53).map(|number| format!("tool{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let answer = table(&names).unwrap().unknown("launch");
        assert!(answer.ends_with("tool48, tool49, 3 more"), "{answer}");
    }
}
