//! The catalogue's file: read within its bound, and all of it checked.

use super::duplicates::{self, Complaints};
use super::error::CatalogueError;
use super::problem::{Noted, Problems};
use super::section::{Keys, Section, kind};
use super::settings::{Defaults, defaults, pool};
use super::tool;
use crate::PoolSettings;
use crate::catalogue::ToolTable;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The largest catalogue: 1 MiB, some thousands of tools.
const MAX_FILE: usize = 1024 * 1024;

const ROOT: Keys = Keys { known: &["defaults", "pool", "tool"], unsupported: &[], elsewhere: &[] };

/// A loaded catalogue. All of it was checked.
#[derive(Debug)]
pub struct Catalogue {
    /// The file, as it was named.
    pub path: PathBuf,
    /// Its tools, with the defaults applied.
    pub tools: ToolTable,
    /// The size of the pool.
    pub pool: PoolSettings,
    /// What holds for tools that do not say otherwise.
    pub defaults: Defaults,
}

impl Catalogue {
    /// Reads and checks a catalogue.
    ///
    /// # Errors
    /// [`CatalogueError`] lists all that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, CatalogueError> {
        let read = |source| CatalogueError::Read { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        // One byte more than the bound tells a file that is over it; its length is not asked, as it may be a pipe.
        let bound = u64::try_from(MAX_FILE).unwrap_or(u64::MAX).saturating_add(1);
        File::open(path).map_err(read)?.take(bound).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() > MAX_FILE {
            return Err(CatalogueError::TooLarge { path: path.to_owned() });
        }
        match str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text, path),
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
                Err(CatalogueError::NotUtf8 { path: path.to_owned(), line })
            }
        }
    }

    /// Checks the text of a catalogue. `path` is the file that it is from, or would be: relative paths in it are
    /// taken from there.
    ///
    /// # Errors
    /// [`CatalogueError`] lists all that is wrong with it.
    pub fn parse(text: &str, path: &Path) -> Result<Self, CatalogueError> {
        let absolute =
            std::path::absolute(path).map_err(|source| CatalogueError::Directory { path: path.to_owned(), source })?;
        let directory = absolute.parent().unwrap_or(Path::new("/"));
        let mut problems = Problems::new(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return match duplicates::sort(text, &errors, &mut problems) {
                Complaints::Duplicates(tools) => Err(CatalogueError::Duplicates { path: path.to_owned(), tools }),
                Complaints::Syntax => Err(invalid(path, problems)),
            };
        }
        match read(document.get_ref(), directory, &mut problems) {
            Ok((tools, pool, defaults)) if problems.is_empty() => {
                Ok(Self { path: path.to_owned(), tools, pool, defaults })
            }
            Ok(_) | Err(Noted) => Err(invalid(path, problems)),
        }
    }
}

fn invalid(path: &Path, problems: Problems<'_>) -> CatalogueError {
    let (problems, more) = problems.finish();
    CatalogueError::Invalid { path: path.to_owned(), problems, more }
}

/// Reads the whole document, and notes every problem of it.
fn read(
    document: &DeTable<'_>,
    directory: &Path,
    problems: &mut Problems<'_>,
) -> Result<(ToolTable, PoolSettings, Defaults), Noted> {
    let root = Section::new(document, "", ROOT, problems);
    let defaults = defaults(root, problems);
    let pool = pool(root, problems);
    // Tools are read even where the defaults are wrong: all problems of a file are told at once.
    let tools = tools(root, defaults.unwrap_or_default(), directory, problems);
    Ok((tools?, pool?, defaults?))
}

fn tools(
    root: Section<'_>,
    defaults: Defaults,
    directory: &Path,
    problems: &mut Problems<'_>,
) -> Result<ToolTable, Noted> {
    let Some(value) = root.get("tool") else { return Ok(ToolTable::default()) };
    let DeValue::Table(declared) = value.get_ref() else {
        let message = format!("`tool` is {}; a tool is declared as [tool.NAME]", kind(value.get_ref()));
        return Err(problems.note(&value.span(), message));
    };
    // The parser sorts keys by name; models and people get the tools in the order of the file.
    let mut declared: Vec<_> = declared.iter().collect();
    declared.sort_by_key(|(name, _)| name.span().start);
    let mut tools = Vec::with_capacity(declared.len());
    let mut noted = None;
    for (name, value) in declared {
        problems.in_tool(Some(name.get_ref()));
        match tool::read(name, value, defaults, directory, problems) {
            Ok(tool) => tools.push(tool),
            Err(Noted) => noted = Some(Noted),
        }
    }
    problems.in_tool(None);
    if let Some(noted) = noted {
        return Err(noted);
    }
    ToolTable::new(tools).map_err(|error| problems.note(&value.span(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Directory;
    use crate::catalogue::Prepared;
    use crate::catalogue::load::sample::{PATH, TOOL, complaint, parse};
    use proptest::prelude::*;
    use std::io::Write;

    #[test]
    fn an_empty_catalogue_has_no_tools_and_the_defaults() {
        for text in ["", "# nothing\n", "[defaults]\n[pool]\n[tool]\n"] {
            let catalogue = parse(text).unwrap();
            assert!(catalogue.tools.is_empty());
            assert_eq!(catalogue.path, Path::new(PATH));
            assert_eq!(catalogue.pool, PoolSettings::default());
            assert_eq!(catalogue.defaults, Defaults::default());
        }
    }

    #[test]
    fn tools_keep_the_order_of_the_file() {
        let tool = |name: &str| TOOL.replace("tool.a", &format!("tool.{name}"));
        let text = format!("{}{}[tool.b.limits]\noutput = 1\n{}", tool("z"), tool("c"), tool("b"));
        assert_eq!(parse(&text).unwrap().tools.names().collect::<Vec<_>>(), ["z", "c", "b"]);
    }

    #[test]
    fn all_problems_of_a_file_are_told_in_its_order() {
        let text = "[tool.b]\ndescription = ''\n[pool]\nworkers = 0\n[tool.a]\ntimeout = 0\nretry = false\n[defaults]\ntimeout = 'x'\n";
        let expected = "\
1:7: tool \"b\": `command` is missing; declare the program and its arguments
2:15: tool \"b\": `description` is empty; tell the model what the tool does
4:11: `pool.workers` is 0, and has to be a whole number from 1 to 10000
5:7: tool \"a\": `description` is missing; tell the model what the tool does
5:7: tool \"a\": `command` is missing; declare the program and its arguments
6:11: tool \"a\": `timeout` is 0: zero is not a limit; leave it out for no limit
7:9: tool \"a\": `retry` is false; leave it out for no retry
9:11: `defaults.timeout` is \"x\": not a time; write 500ms, 2s, 1m or 1h, or a number of seconds";
        assert_eq!(complaint(text), expected);
        let error = parse(text).unwrap_err().to_string();
        assert!(error.lines().all(|line| line.starts_with("/cat/toolexec.toml:")), "{error}");
    }

    #[test]
    fn relative_paths_are_taken_from_the_catalogues_directory() {
        let text = TOOL.replace("'true'", "'tools/x.py', 'tools/y.py'");
        let check = |path: &str, program: &str, directory: &str| {
            let catalogue = Catalogue::parse(&text, Path::new(path)).unwrap();
            let Prepared::Command(command) = catalogue.tools.get("a").unwrap().prepare("").unwrap() else { panic!() };
            assert_eq!(command.program, program);
            assert_eq!(command.arguments, ["tools/y.py"], "an argument stays as it is");
            assert_eq!(command.directory, Directory::Path(directory.into()));
        };
        check("/cat/toolexec.toml", "/cat/tools/x.py", "/cat");
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        check("toolexec.toml", &format!("{here}/tools/x.py"), here);
        check("sub/toolexec.toml", &format!("{here}/sub/tools/x.py"), &format!("{here}/sub"));
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(TOOL.as_bytes()).unwrap();
        let path = file.path().to_owned();
        assert_eq!(Catalogue::load(&path).unwrap().tools.len(), 1);

        file.write_all(&vec![b'\n'; MAX_FILE - TOOL.len()]).unwrap();
        assert_eq!(Catalogue::load(&path).unwrap().tools.len(), 1, "1 MiB is not too large");

        file.write_all(b"\n").unwrap();
        let error = Catalogue::load(&path).unwrap_err().to_string();
        let expected = "is larger than 1 MiB; split it, or make its texts shorter";
        assert_eq!(error, format!("the catalogue {} {expected}", path.display()));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = Catalogue::load(Path::new("/nowhere/toolexec.toml")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the catalogue /nowhere/toolexec.toml");
        let source = std::error::Error::source(&error).unwrap();
        assert_eq!(source.to_string(), "No such file or directory (os error 2)");
        assert!(Catalogue::load(Path::new("/")).is_err());

        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"# one\n# \xff\n").unwrap();
        let error = Catalogue::load(file.path()).unwrap_err().to_string();
        assert_eq!(error, format!("{}:2: not UTF-8, which a catalogue has to be", file.path().display()));
    }

    #[test]
    fn the_example_catalogue_loads_and_its_tools_take_calls() {
        let text = include_str!("../../../../examples/toolexec.toml");
        let catalogue = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let cases = [
            ("find_in_text", r#"{"pattern": "w.r", "text": "hello world"}"#, "python3 tools/find_in_text.py"),
            ("word_count", r#"{"text": "one two"}"#, "wc -w"),
            ("list_directory", "", "ls -l -- ."),
        ];
        assert_eq!(catalogue.tools.names().collect::<Vec<_>>(), cases.map(|(name, _, _)| name));
        for (name, arguments, expected) in cases {
            let Prepared::Command(command) = catalogue.tools.get(name).unwrap().prepare(arguments).unwrap() else {
                panic!("{name}")
            };
            let elements = [&command.program].into_iter().chain(&command.arguments);
            let elements: Vec<_> = elements.map(|element| element.to_str().unwrap()).collect();
            assert_eq!(elements.join(" "), expected);
        }
    }

    #[test]
    fn no_path_makes_the_reader_panic() {
        for path in ["", "/", "..", "."] {
            let _ = Catalogue::parse(TOOL, Path::new(path));
        }
    }

    /// Text that is often TOML and sometimes a catalogue.
    fn text() -> impl Strategy<Value = String> {
        let header = prop::sample::select(vec![
            "[tool.a]",
            "[tool.b]",
            "[tool]",
            "[[tool.a]]",
            "[tool.a.limits]",
            "[tool.a.input]",
            "[pool]",
            "[defaults]",
            "[tool.\"\"]",
            "[tool.a.input.properties.x]",
            "[",
            "]]",
            "[tool.a",
            "",
        ]);
        let key = prop::sample::select(vec![
            "description",
            "command",
            "stdin",
            "input",
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
            "tags",
            "category",
            "output",
            "type",
            "a.timeout",
            "tool.a",
            "x",
            "\"",
            "$ref",
            "default",
            "queue",
        ]);
        let value = prop::sample::select(vec![
            "1",
            "0",
            "-1",
            "1.5",
            "nan",
            "-inf",
            "1e400",
            "true",
            "'x'",
            "\"2s\"",
            "\"{x}\"",
            "\"{\"",
            "['a', '{x}']",
            "[]",
            "[1, [2]]",
            "{}",
            "{ output = 1 }",
            "{ max = 3, initial = '1s' }",
            "1979-05-27",
            "'reuse'",
            "0xffffffffffffffffffffffffffffffffffffffff",
            "{ type = 'object', properties = { x = { type = 'string', default = 1 } } }",
            "{ a = 1, a = 2 }",
            "\"\"\"",
            "'''",
            "{ properties = { x = { pattern = '(' } }, minimum = 1e999 }",
            "\"\\u0000\"",
            "\"json\"",
            "\"🦀\"",
            "[",
            "{",
        ]);
        let pair = (key, value).prop_map(|(key, value)| format!("{key} = {value}"));
        let line = prop_oneof![header.prop_map(str::to_owned), pair, "\\PC{0,12}"];
        prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_catalogue_makes_the_reader_panic(text in text()) {
            match parse(&text) {
                Ok(catalogue) => for tool in catalogue.tools.iter() {
                    let _ = tool.prepare("{\"x\": 1}");
                },
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
