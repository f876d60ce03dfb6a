//! What toolexec itself says beside what the tool says: lines on standard error.

use anstyle::{AnsiColor, Style};
use std::fmt::Write;

/// How much a remark matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Weight {
    /// Good to know.
    Note,
    /// The call did not go well.
    Failure,
    /// toolexec itself refused or failed: said even with `--quiet`.
    Error,
}

/// One thing that toolexec says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Remark {
    /// How much it matters.
    pub(crate) weight: Weight,
    /// What is said, without the program's name.
    pub(crate) text: String,
}

impl Remark {
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self { weight: Weight::Note, text: text.into() }
    }

    pub(crate) fn failure(text: impl Into<String>) -> Self {
        Self { weight: Weight::Failure, text: text.into() }
    }

    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { weight: Weight::Error, text: text.into() }
    }
}

/// The lines on standard error. Each begins with `toolexec:`, also those of a text of several lines, so that they
/// are told apart from the tool's own.
pub(crate) fn render(remarks: &[Remark], quiet: bool, colours: bool) -> String {
    let mut lines = String::new();
    for remark in remarks.iter().filter(|remark| !quiet || remark.weight == Weight::Error) {
        let style = if colours { style(remark.weight) } else { Style::new() };
        for line in remark.text.lines() {
            // Writing to a string does not fail.
            let _infallible = writeln!(lines, "{style}toolexec:{style:#} {}", printable(line));
        }
    }
    lines
}

fn style(weight: Weight) -> Style {
    match weight {
        Weight::Note => Style::new().dimmed(),
        Weight::Failure => AnsiColor::Yellow.on_default().bold(),
        Weight::Error => AnsiColor::Red.on_default().bold(),
    }
}

/// A line without control characters: a tool's message may not move the cursor or change the colours of a terminal
/// in toolexec's name.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_bears_the_name() {
        let remarks = [Remark::note("a"), Remark::error("b\nc\u{1b}[31m")];
        assert_eq!(render(&remarks, false, false), "toolexec: a\ntoolexec: b\ntoolexec: c\u{fffd}[31m\n");
    }

    #[test]
    fn quiet_leaves_errors_of_toolexec_itself() {
        let remarks = [Remark::note("a"), Remark::failure("b"), Remark::error("c")];
        assert_eq!(render(&remarks, true, false), "toolexec: c\n");
    }

    #[test]
    fn colours_are_there_only_when_asked_for() {
        let remarks = [Remark::note("a"), Remark::failure("b"), Remark::error("c")];
        assert!(!render(&remarks, false, false).contains('\u{1b}'));
        let coloured = render(&remarks, false, true);
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), render(&remarks, false, false));
    }
}
