//! The catalogue as a whole: the file, its defaults, its pool and its tools.

use super::duplicates::{self, Complaints};
use super::problem::{DuplicateTool, Noted, Problem, Problems};
use super::section::{Keys, Section, kind};
use super::tool;
use crate::PoolSettings;
use crate::catalogue::ToolTable;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// The largest catalogue: 1 MiB, some thousands of tools.
const MAX_FILE: usize = 1024 * 1024;

const ROOT: Keys = Keys { known: &["defaults", "pool", "tool"], unsupported: &[] };
const DEFAULTS: Keys = Keys { known: &["timeout", "queue_timeout"], unsupported: &[] };
const POOL: Keys = Keys { known: &["workers", "spares", "queue"], unsupported: &[] };

/// How many workers a pool may have, and how many spares. More is a slip of the keyboard: each is a process.
const WORKERS: RangeInclusive<usize> = 1..=10_000;
const SPARES: RangeInclusive<usize> = 0..=10_000;

/// How many calls may be allowed to wait. Each holds its arguments in memory.
const QUEUE: RangeInclusive<usize> = 0..=1_000_000;

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

/// What holds for the tools of a catalogue that do not say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Defaults {
    /// The time limit; `None` is no limit.
    pub timeout: Option<Duration>,
    /// How long a call may wait for a worker; `None` is no limit.
    pub queue_timeout: Option<Duration>,
}

/// Why a catalogue could not be loaded.
#[derive(Debug)]
pub enum CatalogueError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is over 1 MiB.
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8, which TOML has to be.
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is not.
        line: usize,
    },
    /// The directory that the catalogue is in cannot be told, because the current directory is gone.
    Directory {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Tools are declared more than once; all further declarations are listed. Nothing else was looked at, because it
    /// is not known which declaration is meant.
    Duplicates {
        /// The file.
        path: PathBuf,
        /// All further declarations, in the order of the file.
        tools: Vec<DuplicateTool>,
    },
    /// Something in it is wrong; all problems are listed, up to 100.
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problems in the order of the file.
        problems: Vec<Problem>,
        /// How many more there are.
        more: usize,
    },
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

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, .. } => write!(f, "cannot read the catalogue {}", path.display()),
            Self::TooLarge { path } => {
                write!(f, "the catalogue {} is larger than 1 MiB; split it, or make its texts shorter", path.display())
            }
            Self::NotUtf8 { path, line } => {
                write!(f, "{}:{line}: not UTF-8, which a catalogue has to be", path.display())
            }
            Self::Directory { path, .. } => {
                write!(f, "cannot tell the directory that the catalogue {} is in", path.display())
            }
            Self::Duplicates { path, tools } => lines(f, path, tools),
            Self::Invalid { path, problems, more } => {
                lines(f, path, problems)?;
                if *more > 0 {
                    write!(f, "\n{}: and {more} more problems", path.display())?;
                }
                Ok(())
            }
        }
    }
}

/// One line for each, beginning with the file's name.
fn lines(f: &mut fmt::Formatter<'_>, path: &Path, all: &[impl fmt::Display]) -> fmt::Result {
    for (index, one) in all.iter().enumerate() {
        let newline = if index == 0 { "" } else { "\n" };
        write!(f, "{newline}{}:{one}", path.display())?;
    }
    Ok(())
}

impl std::error::Error for CatalogueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } | Self::Directory { source, .. } => Some(source),
            Self::TooLarge { .. } | Self::NotUtf8 { .. } | Self::Duplicates { .. } | Self::Invalid { .. } => None,
        }
    }
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

fn defaults(root: Section<'_>, problems: &mut Problems<'_>) -> Result<Defaults, Noted> {
    let Some(section) = root.section("defaults", "defaults.", DEFAULTS, problems)? else {
        return Ok(Defaults::default());
    };
    let timeout = section.duration("timeout", problems);
    let queue_timeout = section.duration("queue_timeout", problems);
    Ok(Defaults {
        timeout: timeout?.map(|declared| declared.value),
        queue_timeout: queue_timeout?.map(|declared| declared.value),
    })
}

fn pool(root: Section<'_>, problems: &mut Problems<'_>) -> Result<PoolSettings, Noted> {
    let mut pool = PoolSettings::default();
    let Some(section) = root.section("pool", "pool.", POOL, problems)? else { return Ok(pool) };
    let workers = section.number("workers", WORKERS, problems);
    let spares = section.number("spares", SPARES, problems);
    let queue = section.number("queue", QUEUE, problems);
    if let Some(workers) = workers?.and_then(|declared| NonZeroUsize::new(declared.value)) {
        pool.workers = workers;
    }
    if let Some(spares) = spares? {
        pool.spares = spares.value;
    }
    if let Some(queue) = queue? {
        pool.queue = queue.value;
    }
    Ok(pool)
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
    use crate::call::{Directory, Policy};
    use crate::catalogue::Prepared;
    use proptest::prelude::*;
    use std::io::Write;

    const PATH: &str = "/cat/toolexec.toml";

    fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
        Catalogue::parse(text, Path::new(PATH))
    }

    /// What is said of a catalogue, without the file's name.
    fn complaint(text: &str) -> String {
        parse(text).unwrap_err().to_string().replace("/cat/toolexec.toml:", "")
    }

    const TOOL: &str = "[tool.a]\ndescription = 'x'\ncommand = ['true']\n";

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
    fn every_key_of_the_pool_changes_the_pool() {
        let number = |number| NonZeroUsize::new(number).unwrap();
        let default = PoolSettings::default();
        let cases = [
            ("workers = 7", PoolSettings { workers: number(7), ..default }),
            ("spares = 0", PoolSettings { spares: 0, ..default }),
            ("spares = 9", PoolSettings { spares: 9, ..default }),
            ("queue = 0", PoolSettings { queue: 0, ..default }),
            ("queue = 5", PoolSettings { queue: 5, ..default }),
            ("workers = 0x10", PoolSettings { workers: number(16), ..default }),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(&format!("[pool]\n{line}")).unwrap().pool, expected, "{line}");
        }
    }

    #[test]
    fn every_default_changes_the_tools_that_do_not_say_otherwise() {
        let policy = |defaults: &str, own: &str| {
            let catalogue = parse(&format!("[defaults]\n{defaults}\n{TOOL}{own}\n")).unwrap();
            let tool = catalogue.tools.get("a").unwrap();
            (catalogue.defaults, tool.policy.clone())
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));

        let (defaults, tool) = policy("", "");
        assert_eq!((defaults, tool), (Defaults::default(), Policy::default()), "nothing is limited");

        let (defaults, tool) = policy("timeout = '30s'", "");
        assert_eq!(defaults, Defaults { timeout: seconds(30), queue_timeout: None });
        assert_eq!(tool, Policy { timeout: seconds(30), ..Policy::default() });

        let (_, tool) = policy("timeout = '30s'", "timeout = '2s'");
        assert_eq!(tool.timeout, seconds(2), "a tighter limit of the tool's own holds");

        let (_, tool) = policy("timeout = '30s'", "timeout = '10m'");
        assert_eq!(tool.timeout, seconds(600), "and so does a wider one");

        let (defaults, tool) = policy("queue_timeout = 5", "");
        assert_eq!(defaults, Defaults { timeout: None, queue_timeout: seconds(5) });
        assert_eq!(tool, Policy { queue_timeout: seconds(5), ..Policy::default() });
    }

    #[test]
    fn what_is_wrong_with_the_sections_is_told_in_words() {
        let cases = [
            ("[pool]\nworkers = 0", "2:11: `pool.workers` is 0, and has to be a whole number from 1 to 10000"),
            ("[pool]\nworkers = -1", "2:11: `pool.workers` is -1, and has to be a whole number from 1 to 10000"),
            (
                "[pool]\nworkers = '4'",
                "2:11: `pool.workers` has a string, and has to be a whole number from 1 to 10000",
            ),
            ("[pool]\nspares = -2", "2:10: `pool.spares` is -2, and has to be a whole number from 0 to 10000"),
            (
                "[pool]\nqueue = 99999999999999999999",
                "2:9: `pool.queue` is 99999999999999999999, and has to be a whole number from 0 to 1000000",
            ),
            ("[pool]\nworker = 1", "2:1: unknown key `pool.worker`; did you mean `pool.workers`?"),
            ("pool = 1", "1:8: `pool` has a whole number, and has to be a table"),
            (
                "[defaults]\ntimeout = 0",
                "2:11: `defaults.timeout` is 0: zero is not a limit; leave it out for no limit",
            ),
            (
                "[defaults]\ntimeout = -1.5",
                "2:11: `defaults.timeout` is -1.5: a negative time is not a limit; leave it out for no limit",
            ),
            (
                "[defaults]\ntimeout = nan",
                "2:11: `defaults.timeout` is nan: not a time; write 500ms, 2s, 1m or 1h, or a number of seconds",
            ),
            (
                "[defaults]\nqueue_timeout = 0xffffffffffffffffffffffffffffffffffff",
                "2:17: `defaults.queue_timeout` is 0xffffffffffffffffffffffffffffffffffff: not a time; write 500ms, 2s, \
                 1m or 1h, or a number of seconds",
            ),
            (
                "[defaults]\ntimeout = true",
                "2:11: `defaults.timeout` has a boolean, and has to be a time such as \"500ms\", \"2s\" or \"1m\", or a \
                 number of seconds",
            ),
            ("[defaults]\ngrace = 1", "2:1: unknown key `defaults.grace`; known are timeout, queue_timeout"),
            ("[tools.a]", "1:2: unknown key `tools`; did you mean `tool`?"),
            ("[server]", "1:2: unknown key `server`; known are defaults, pool, tool"),
            ("tool = 'x'", "1:8: `tool` is a string; a tool is declared as [tool.NAME]"),
            ("[[tool]]", "1:1: `tool` is an array; a tool is declared as [tool.NAME]"),
        ];
        for (text, expected) in cases {
            assert_eq!(complaint(text), expected, "{text}");
        }
    }

    #[test]
    fn all_problems_of_a_file_are_told_in_its_order() {
        let text = "[tool.b]\ndescription = ''\n[pool]\nworkers = 0\n[tool.a]\ntimeout = 0\nretry = true\n[defaults]\ntimeout = 'x'\n";
        let expected = "\
1:7: tool \"b\": `command` is missing; declare the program and its arguments
2:15: tool \"b\": `description` is empty; tell the model what the tool does
4:11: `pool.workers` is 0, and has to be a whole number from 1 to 10000
5:7: tool \"a\": `description` is missing; tell the model what the tool does
5:7: tool \"a\": `command` is missing; declare the program and its arguments
6:11: tool \"a\": `timeout` is 0: zero is not a limit; leave it out for no limit
7:1: tool \"a\": `retry` is not supported by this version of toolexec; remove it
9:11: `defaults.timeout` is \"x\": not a time; write 500ms, 2s, 1m or 1h, or a number of seconds";
        assert_eq!(complaint(text), expected);
        let error = parse(text).unwrap_err().to_string();
        assert!(error.lines().all(|line| line.starts_with("/cat/toolexec.toml:")), "{error}");
    }

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
