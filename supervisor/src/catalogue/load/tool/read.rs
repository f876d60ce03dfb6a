//! The keys that say what a tool is, and its declaration as a whole.

use crate::catalogue::excerpt::excerpt;
use crate::catalogue::load::problem::{Noted, Problems};
use crate::catalogue::load::section::{Keys, Section, kind};
use crate::catalogue::load::settings::Defaults;
use crate::catalogue::{Body, ToolSpec};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeString, DeValue};
use toolexec_protocol::id::ToolName;

const TOOL: Keys = Keys {
    known: &[
        "description",
        "command",
        "stdin",
        "input",
        "output",
        "cwd",
        "env",
        "isolation",
        "timeout",
        "grace",
        "worker",
        "max_calls",
        "kill",
        "limits",
        "retry",
        "serial",
        "sensitive",
        "return_direct",
        "tags",
        "category",
    ],
    unsupported: &["sandbox"],
    elsewhere: &[(
        "context",
        "is for tools that are written in Rust: a command is handed its arguments and nothing else",
    )],
};

/// Reads one tool, and notes every problem of it.
pub(in crate::catalogue::load) fn read(
    name: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    defaults: Defaults,
    directory: &Path,
    problems: &mut Problems<'_>,
) -> Result<ToolSpec, Noted> {
    let tool_name =
        ToolName::new(name.get_ref().as_ref()).map_err(|error| problems.note(&name.span(), error.to_string()));
    let DeValue::Table(table) = value.get_ref() else {
        let message = format!("a tool is a table, [tool.NAME] with single brackets, and not {}", kind(value.get_ref()));
        return Err(problems.note(&value.span(), message));
    };
    let tool = Tool { section: Section::new(table, "", TOOL, problems), name: name.span() };
    let description = tool.description(problems);
    let input = tool.input(problems);
    let command = tool.command(input.as_ref().ok().and_then(Option::as_ref), directory, problems);
    let isolation = tool.isolation(problems);
    let policy = tool.policy(defaults, problems);
    let output = tool.output(problems);
    let declared = tool.declared(problems);
    isolation?;
    Ok(ToolSpec {
        name: tool_name?,
        description: description?,
        body: Body::Command(command?),
        policy: policy?,
        input: input?,
        output: output?,
        declared: declared?,
    })
}

/// A tool's table.
pub(super) struct Tool<'a> {
    pub(super) section: Section<'a>,
    /// Where its name stands: the place of whatever is missing.
    pub(super) name: Range<usize>,
}

impl Tool<'_> {
    fn description(&self, problems: &mut Problems<'_>) -> Result<String, Noted> {
        let what = "a text that tells the model what the tool does";
        match self.section.text("description", what, problems)? {
            Some(text) if text.value.trim().is_empty() => {
                Err(self.section.note("description", &text.at, "is empty; tell the model what the tool does", problems))
            }
            Some(text) => Ok(text.value.to_owned()),
            None => Err(problems.note(&self.name, "`description` is missing; tell the model what the tool does")),
        }
    }

    /// Commands are always isolated; the key is there to say so.
    fn isolation(&self, problems: &mut Problems<'_>) -> Result<(), Noted> {
        let Some(text) = self.section.text("isolation", "\"isolated\"", problems)? else { return Ok(()) };
        let message = match text.value {
            "isolated" => return Ok(()),
            "in-process" => "= \"in-process\" is not supported by this version of toolexec; remove it".to_owned(),
            other => format!("is {:?}, and has to be \"isolated\"", excerpt(other, 64)),
        };
        Err(self.section.note("isolation", &text.at, message, problems))
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;
    use crate::catalogue::load::sample::{catalogue, refused, with_tool};
    use std::path::Path;

    // One test a key: the key is there, and something that can be seen is different (C1).

    #[test]
    fn description_is_what_the_model_reads() {
        assert_eq!(with_tool("description = 'does b'", |tool| tool.description.clone()), "does b");
    }

    #[test]
    fn what_this_version_does_not_do_is_refused_by_name() {
        let check = |line: &str, expected: &str| {
            let expected = format!("4:{expected} is not supported by this version of toolexec; remove it");
            assert_eq!(catalogue(line).map(|_| ()), Err(expected), "{line}");
        };
        check("sandbox = {}", "1: tool \"a\": `sandbox`");
        for key in ["memory", "cpu", "processes", "file_size", "open_files"] {
            check(&format!("limits = {{ {key} = 1 }}"), &format!("12: tool \"a\": `limits.{key}`"));
        }
        check("isolation = 'in-process'", "13: tool \"a\": `isolation` = \"in-process\"");
    }

    #[test]
    fn what_is_wrong_with_a_tool_is_told_in_words() {
        let cases = [
            (
                "context = true",
                "4:1: tool \"a\": `context` is for tools that are written in Rust: a command is handed its arguments and nothing else",
            ),
            ("timout = 1", "4:1: tool \"a\": unknown key `timout`; did you mean `timeout`?"),
            ("isolation = 'none'", "4:13: tool \"a\": `isolation` is \"none\", and has to be \"isolated\""),
            ("description = ' '", "4:15: tool \"a\": `description` is empty; tell the model what the tool does"),
            (
                "description = 1",
                "4:15: tool \"a\": `description` has a whole number, and has to be a text that tells the model what the tool \
                 does",
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(refused(lines), expected, "{lines}");
        }
    }

    #[test]
    fn a_tool_is_a_table_with_a_name_that_providers_take() {
        let check = |text: &str, expected: &str| {
            let error = Catalogue::parse(text, Path::new("/c.toml")).unwrap_err().to_string();
            assert_eq!(error, format!("/c.toml:{expected}"));
        };
        check(
            "[tool.\"a b\"]\ndescription = 'x'\ncommand = ['true']",
            "1:7: tool \"a b\": a tool's name has ' '; allowed are A-Z a-z 0-9 _ - .",
        );
        check(
            "[tool]\na = 1",
            "2:5: tool \"a\": a tool is a table, [tool.NAME] with single brackets, and not a whole number",
        );
        check(
            "[[tool.a]]\ndescription = 'x'",
            "1:1: tool \"a\": a tool is a table, [tool.NAME] with single brackets, and not an array",
        );
    }
}
