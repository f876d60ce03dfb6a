//! Finding every tool that is declared more than once, before anything else is looked at.
//!
//! The TOML parser reports a second table of a name as a duplicate key and goes on, but says only where; which key
//! it is a duplicate of is read off the lines around it here.

use super::problem::{DuplicateTool, Lines, Problems};
use crate::catalogue::excerpt::excerpt;
use std::collections::HashMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue, Error};

/// What the parser calls a second declaration.
const DUPLICATE: &str = "duplicate key";

/// What the parser complained of.
pub(super) enum Complaints {
    /// Tools that are declared more than once. Whatever else is wrong can wait: it is not known which declaration
    /// is meant.
    Duplicates(Vec<DuplicateTool>),
    /// Everything that is not TOML.
    Syntax,
}

/// Sorts the parser's complaints. Those about syntax are noted as problems.
pub(super) fn sort(text: &str, errors: &[Error], problems: &mut Problems<'_>) -> Complaints {
    let lines = Lines::of(text);
    let headers = headers(text);
    let mut first: HashMap<&[String], usize> = HashMap::new();
    for header in &headers {
        first.entry(&header.path).or_insert(header.line.start);
    }
    let mut duplicates = Vec::new();
    for error in errors {
        let at = error.span().unwrap_or(text.len()..text.len());
        let is_duplicate = error.message() == DUPLICATE;
        let (path, is_whole) = path(text, &headers, &at);
        match path.as_slice() {
            [section, name] if is_duplicate && is_whole && section == "tool" => {
                let (line, column) = lines.position(at.start);
                let first = first.get(path.as_slice()).map(|start| lines.position(*start).0);
                let first = first.filter(|first| *first < line);
                duplicates.push(DuplicateTool { name: name.clone(), line, column, first });
                continue;
            }
            [section, name, ..] if section == "tool" => problems.in_tool(Some(name)),
            _ => problems.in_tool(None),
        }
        if is_duplicate {
            let key = excerpt(text.get(at.clone()).unwrap_or_default(), 64);
            problems.note(&at, format!("`{key}` is declared more than once; keep one of them"));
        } else {
            problems.note(&at, error.message());
        }
    }
    problems.in_tool(None);
    if duplicates.is_empty() { Complaints::Syntax } else { Complaints::Duplicates(duplicates) }
}

/// A line such as `[tool.find_in_text]`.
struct Header {
    line: Range<usize>,
    path: Vec<String>,
}

/// All lines that read as the header of a table.
fn headers(text: &str) -> Vec<Header> {
    let mut headers = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[')
            && let Some(path) = keys(line)
        {
            headers.push(Header { line: start..start + line.len(), path });
        }
        start += line.len();
    }
    headers
}

/// The path of the key at a place, of the header above it and of the dotted key in its own line; and whether that is
/// the whole of it, which it is not inside of an inline table.
fn path(text: &str, headers: &[Header], at: &Range<usize>) -> (Vec<String>, bool) {
    let above = headers.partition_point(|header| header.line.start <= at.start);
    let header = above.checked_sub(1).and_then(|index| headers.get(index));
    let mut path = header.map(|header| header.path.clone()).unwrap_or_default();
    if header.is_some_and(|header| header.line.contains(&at.start)) {
        return (path, true);
    }
    match own_path(text, at) {
        Some(own) => {
            path.extend(own);
            (path, true)
        }
        None => (path, false),
    }
}

/// The dotted key that ends at a place, where its line begins with it.
fn own_path(text: &str, at: &Range<usize>) -> Option<Vec<String>> {
    let line = text.get(..at.start)?.rfind('\n').map_or(0, |newline| newline + 1);
    keys(&format!("{} = 0", text.get(line..at.end)?))
}

/// The keys of a text that is one header, or one key with a value.
fn keys(line: &str) -> Option<Vec<String>> {
    let document = DeTable::parse(line).ok()?;
    let mut keys = Vec::new();
    let mut table = document.get_ref();
    while let Some((key, value)) = table.iter().next() {
        keys.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use crate::catalogue::CatalogueError;
    use crate::catalogue::load::sample::{TOOL, complaint, parse};

    #[test]
    fn duplicate_tools_are_told_before_anything_else() {
        let first_in = |position: &str, name: &str, first: u32| {
            format!(
                "{position}: tool {name:?} is declared more than once, first in line {first}; keep one declaration, or \
                 give it another name"
            )
        };
        let anywhere = |position: &str, name: &str| {
            format!(
                "{position}: tool {name:?} is declared more than once; keep one declaration, or give it another name"
            )
        };
        let cases = [
            (
                "[tool.a]\ntimeout = 0\n[tool.b]\n[tool.a]\ntimeout = 0\n[tool.b]\n[tool.a]\n",
                vec![first_in("4:7", "a", 1), first_in("6:7", "b", 3), first_in("7:7", "a", 1)],
            ),
            ("[tool.a]\n[pool]\nworkers = = 2\n[ tool . \"a\" ] # again\n", vec![first_in("4:10", "a", 1)]),
            ("[tool]\na = {}\na = {}\n", vec![anywhere("3:1", "a")]),
            ("tool.a = {}\ntool.a = {}\n", vec![anywhere("2:6", "a")]),
            ("[tool]\na.timeout = 0\n[tool.a]\n", vec![anywhere("3:7", "a")]),
            ("[tool.a.limits]\n[tool.a]\n[tool.a]\n", vec![first_in("3:7", "a", 2)]),
        ];
        for (text, expected) in cases {
            assert_eq!(complaint(text), expected.join("\n"), "{text}");
        }
        let error = parse("[tool.a]\n[tool.a]").unwrap_err();
        assert!(matches!(error, CatalogueError::Duplicates { tools, .. } if tools.len() == 1));
    }

    #[test]
    fn a_header_in_a_text_is_not_a_declaration() {
        let text =
            format!("{TOOL}stdin = 'none'\n[tool.b]\ndescription = '''\n[tool.a]\n[tool.b]\n'''\ncommand = ['true']\n");
        assert_eq!(parse(&text).unwrap().tools.names().collect::<Vec<_>>(), ["a", "b"]);
        let parts = "[tool.a.limits]\noutput = 1\n".to_owned() + TOOL;
        assert_eq!(parse(&parts).unwrap().tools.len(), 1, "a tool may be declared in parts");
    }

    #[test]
    fn what_is_not_toml_is_told_with_its_place() {
        let cases = [
            (
                "[tool.a]\ntimeout = 1\ntimeout = 2\n",
                "3:1: tool \"a\": `timeout` is declared more than once; keep one of them",
            ),
            (
                "[tool.a]\nlimits = { output = 1, output = 2 }\n",
                "2:24: tool \"a\": `output` is declared more than once; keep one of them",
            ),
            ("[pool]\n[pool]\n", "2:2: `pool` is declared more than once; keep one of them"),
            ("[tool.a]\ncommand = 'x\n", "2:13: tool \"a\": invalid literal string, expected `'`"),
            ("x y", "1:3: key with no value, expected `=`"),
        ];
        for (text, expected) in cases {
            assert_eq!(complaint(text).lines().next(), Some(expected), "{text}");
        }
    }
}
