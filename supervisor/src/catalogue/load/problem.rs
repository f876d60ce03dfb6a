//! What is wrong with a catalogue, and where.

use crate::catalogue::excerpt::excerpt;
use std::fmt;
use std::ops::Range;

/// The most problems that one error lists.
const MAX_PROBLEMS: usize = 100;

/// One thing that is wrong with a catalogue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The tool in whose declaration it is.
    pub tool: Option<String>,
    /// What is wrong, and the way out.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if let Some(tool) = &self.tool {
            write!(f, "tool {tool:?}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A further declaration of a tool that is declared already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DuplicateTool {
    /// Its name.
    pub name: String,
    /// The line of this declaration, counted from 1.
    pub line: usize,
    /// The column of the name in characters, counted from 1.
    pub column: usize,
    /// The line of the first declaration, where that could be found.
    pub first: Option<usize>,
}

impl fmt::Display for DuplicateTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: tool {:?} is declared more than once", self.line, self.column, self.name)?;
        match self.first {
            Some(first) => write!(f, ", first in line {first}; keep one declaration, or give it another name"),
            None => f.write_str("; keep one declaration, or give it another name"),
        }
    }
}

/// The problems found so far.
pub(super) struct Problems<'t> {
    lines: Lines<'t>,
    tool: Option<String>,
    found: Vec<(usize, Option<String>, String)>,
}

/// A problem was found and noted; there is no value to go on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Noted;

impl<'t> Problems<'t> {
    /// None so far, in this catalogue's text.
    pub(super) fn new(text: &'t str) -> Self {
        Self { lines: Lines::of(text), tool: None, found: Vec::new() }
    }

    /// Says in which tool's declaration the next problems are.
    pub(super) fn in_tool(&mut self, tool: Option<&str>) {
        self.tool = tool.map(|name| excerpt(name, 64));
    }

    /// Notes a problem at a place in the text.
    pub(super) fn note(&mut self, at: &Range<usize>, message: impl Into<String>) -> Noted {
        self.found.push((at.start, self.tool.clone(), message.into()));
        Noted
    }

    /// Whether there are none so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The problems in the order of the text, at most 100 of them, and how many more there are.
    pub(super) fn finish(mut self) -> (Vec<Problem>, usize) {
        self.found.sort_by_key(|(offset, _, _)| *offset);
        let more = self.found.len().saturating_sub(MAX_PROBLEMS);
        self.found.truncate(MAX_PROBLEMS);
        let lines = self.lines;
        let problem = |(offset, tool, message)| {
            let (line, column) = lines.position(offset);
            Problem { line, column, tool, message }
        };
        (self.found.into_iter().map(problem).collect(), more)
    }
}

/// A text and where its lines begin.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// The lines of a text.
    pub(super) fn of(text: &'t str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// The line and the column of a place, both counted from 1, the column in characters.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or_default();
        (line, self.text[start..offset].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "ab\né🦀x\n";
        let cases = [
            (0, (1, 1)),
            (1, (1, 2)),
            (2, (1, 3)),
            (3, (2, 1)),
            (5, (2, 2)),
            (6, (2, 2)),
            (9, (2, 3)),
            (11, (3, 1)),
            (99, (3, 1)),
        ];
        assert_eq!(Lines::of("").position(0), (1, 1));
        for (offset, expected) in cases {
            assert_eq!(Lines::of(text).position(offset), expected, "{offset}");
        }
    }

    #[test]
    fn problems_come_in_the_order_of_the_text_and_are_bounded() {
        let text = "x\n".repeat(150);
        let mut problems = Problems::new(&text);
        for line in (0..150).rev() {
            problems.note(&(2 * line..2 * line + 1), format!("problem {line}"));
        }
        assert!(!problems.is_empty());
        let (found, more) = problems.finish();
        assert_eq!((found.len(), more), (100, 50));
        assert_eq!(found[0].to_string(), "1:1: problem 0");
        assert_eq!(found[99].to_string(), "100:1: problem 99");
        assert!(Problems::new("").is_empty());
    }
}
