//! Which tools of a table are offered.

use super::ToolSpec;

/// Which tools are offered, by their tags and their category. By default all are.
///
/// A tool that is not offered is not there: a call of it is answered as one of an unknown tool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Offered are tools with at least one of these; none demands no tag.
    pub tags: Vec<String>,
    /// Tools with one of these are not offered, whatever else they have.
    pub exclude_tags: Vec<String>,
    /// Offered are tools of this category.
    pub category: Option<String>,
}

impl Selection {
    /// Whether a tool is offered.
    pub fn offers(&self, tool: &ToolSpec) -> bool {
        let Self { tags, exclude_tags, category } = self;
        let has_one_of = |tags: &[String]| tags.iter().any(|tag| tool.declared.tags.contains(tag));
        (tags.is_empty() || has_one_of(tags))
            && !has_one_of(exclude_tags)
            && (category.is_none() || *category == tool.declared.category)
    }

    /// Whether all tools are offered.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Body, Declared, ToolTable};
    use toolexec_protocol::id::ToolName;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn offered(selection: &Selection) -> Vec<String> {
        let tool = |name: &str, tags: &[&str], category: Option<&str>| {
            let declared = Declared { tags: texts(tags), category: category.map(str::to_owned), ..Declared::default() };
            ToolSpec { declared, ..ToolSpec::new(ToolName::new(name).unwrap(), "", Body::Compiled) }
        };
        let tools = ToolTable::new(vec![
            tool("find", &["read", "text"], Some("files")),
            tool("write", &["write"], Some("files")),
            tool("fetch", &["read", "network"], Some("web")),
            tool("bare", &[], None),
        ]);
        tools.unwrap().select(selection).names().map(str::to_owned).collect()
    }

    #[test]
    fn every_part_of_a_selection_changes_what_is_offered() {
        let all = Selection::default();
        let cases = [
            (all.clone(), ["find", "write", "fetch", "bare"].as_slice()),
            (Selection { tags: texts(&["read"]), ..all.clone() }, &["find", "fetch"]),
            (Selection { tags: texts(&["write", "network"]), ..all.clone() }, &["write", "fetch"]),
            (Selection { tags: texts(&["rea"]), ..all.clone() }, &[]),
            (Selection { exclude_tags: texts(&["network", "write"]), ..all.clone() }, &["find", "bare"]),
            (Selection { tags: texts(&["read"]), exclude_tags: texts(&["network"]), ..all.clone() }, &["find"]),
            (Selection { category: Some("files".into()), ..all.clone() }, &["find", "write"]),
            (Selection { category: Some("web".into()), tags: texts(&["text"]), ..all }, &[]),
        ];
        for (selection, expected) in cases {
            assert_eq!(offered(&selection), expected, "{selection:?}");
        }
    }

    #[test]
    fn a_tool_that_is_not_offered_is_unknown() {
        let tool = |name: &str, tag: &str| {
            let declared = Declared { tags: texts(&[tag]), ..Declared::default() };
            ToolSpec { declared, ..ToolSpec::new(ToolName::new(name).unwrap(), "", Body::Compiled) }
        };
        let tools = ToolTable::new(vec![tool("find", "read"), tool("remove", "write"), tool("look", "read")]).unwrap();
        let tools = tools.select(&Selection { tags: texts(&["read"]), ..Selection::default() });
        assert!(tools.get("remove").is_none());
        assert_eq!(tools.get("look").map(|tool| tool.name.as_str()), Some("look"));
        assert_eq!(tools.unknown("remove"), r#"there is no tool "remove"; the tools are find, look"#);
    }
}
