//! One `[tool.NAME]` of a catalogue.

use super::file::Defaults;
use super::problem::{Noted, Problems};
use super::schema_value::json;
use super::section::{Declared, Keys, Section, kind};
use crate::call::{Directory, Policy, WorkerPolicy};
use crate::catalogue::arguments::MAX_ELEMENT;
use crate::catalogue::environment::{EnvRule, base_environment};
use crate::catalogue::excerpt::excerpt;
use crate::catalogue::{Body, CommandTemplate, InputSchema, StdinTemplate, Template, ToolSpec};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeString, DeValue};
use toolexec_protocol::id::ToolName;

const TOOL: Keys = Keys {
    known: &[
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
    ],
    unsupported: &["retry", "serial", "sensitive", "return_direct", "sandbox"],
};

const LIMITS: Keys =
    Keys { known: &["output"], unsupported: &["memory", "cpu", "processes", "file_size", "open_files"] };

/// The calls of a reused worker where the catalogue does not say how many.
const DEFAULT_MAX_CALLS: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

const MAX_CALLS: RangeInclusive<usize> = 1..=1_000_000;

/// Reads one tool, and notes every problem of it.
pub(super) fn read(
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
    isolation?;
    let spec = ToolSpec::new(tool_name?, description?, Body::Command(command?));
    Ok(ToolSpec { policy: policy?, input: input?, ..spec })
}

/// A tool's table.
struct Tool<'a> {
    section: Section<'a>,
    /// Where its name stands: the place of whatever is missing.
    name: Range<usize>,
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

    fn input(&self, problems: &mut Problems<'_>) -> Result<Option<InputSchema>, Noted> {
        let Some(value) = self.section.get("input") else { return Ok(None) };
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            let message =
                format!("has {}, and has to be a table, the JSON Schema of the arguments", kind(value.get_ref()));
            return Err(self.section.note("input", &value.span(), message, problems));
        }
        let schema = json(value, problems)?;
        let schema = InputSchema::new(schema);
        schema
            .map(Some)
            .map_err(|error| self.section.note("input", &value.span(), format_args!("is {error}"), problems))
    }

    fn command(
        &self,
        input: Option<&InputSchema>,
        directory: &Path,
        problems: &mut Problems<'_>,
    ) -> Result<CommandTemplate, Noted> {
        let stdin = self.stdin(input, problems);
        let cwd = self.cwd(directory, problems);
        let environment = self.environment(problems);
        let what = "an array of strings, the program and its arguments";
        let Some(elements) = self.section.texts("command", what, problems)? else {
            return Err(problems.note(&self.name, "`command` is missing; declare the program and its arguments"));
        };
        let Some((program, arguments)) = elements.value.split_first() else {
            let message = "is empty; declare the program and its arguments";
            return Err(self.section.note("command", &elements.at, message, problems));
        };
        let program = self.program(program, directory, problems);
        let arguments: Vec<Result<Template, Noted>> =
            arguments.iter().map(|element| self.element(element, input, problems)).collect();
        Ok(CommandTemplate {
            program: program?,
            arguments: arguments.into_iter().collect::<Result<_, _>>()?,
            stdin: stdin?,
            directory: cwd?,
            environment: environment?,
        })
    }

    /// The program: a name for `PATH`, or a path that a relative one is made absolute of.
    fn program(
        &self,
        element: &Declared<&str>,
        directory: &Path,
        problems: &mut Problems<'_>,
    ) -> Result<OsString, Noted> {
        let template = self.template(element, problems)?;
        match template.literal() {
            Some("") => Err(self.section.note("command", &element.at, "has an empty program", problems)),
            Some(program) if program.contains('/') => Ok(directory.join(program).into_os_string()),
            Some(program) => Ok(program.into()),
            None => {
                let message = "has a placeholder in its program; a model does not choose which program runs";
                Err(self.section.note("command", &element.at, message, problems))
            }
        }
    }

    /// An argument of the program.
    fn element(
        &self,
        element: &Declared<&str>,
        input: Option<&InputSchema>,
        problems: &mut Problems<'_>,
    ) -> Result<Template, Noted> {
        let template = self.template(element, problems)?;
        let unknown = template.placeholders().find(|name| is_unknown(name, input));
        match unknown {
            Some(name) => Err(self.unknown_placeholder("command", &element.at, name, problems)),
            None => Ok(template),
        }
    }

    fn template(&self, element: &Declared<&str>, problems: &mut Problems<'_>) -> Result<Template, Noted> {
        match Template::parse(element.value) {
            Ok(template) if template.literal_length() > MAX_ELEMENT => {
                let message =
                    format!("has an element of more than {MAX_ELEMENT} bytes, the most that the kernel takes");
                Err(self.section.note("command", &element.at, message, problems))
            }
            Ok(template) => Ok(template),
            Err(error) => Err(self.section.note("command", &element.at, format_args!("has {error}"), problems)),
        }
    }

    fn stdin(&self, input: Option<&InputSchema>, problems: &mut Problems<'_>) -> Result<StdinTemplate, Noted> {
        let what = "\"json\", \"none\" or one placeholder such as \"{text}\"";
        let Some(text) = self.section.text("stdin", what, problems)? else { return Ok(StdinTemplate::Empty) };
        let Some(stdin) = StdinTemplate::parse(text.value) else {
            let message = format!("is {:?}, and has to be {what}", excerpt(text.value, 64));
            return Err(self.section.note("stdin", &text.at, message, problems));
        };
        match stdin.placeholder() {
            Some(name) if is_unknown(name, input) => Err(self.unknown_placeholder("stdin", &text.at, name, problems)),
            _ => Ok(stdin),
        }
    }

    fn unknown_placeholder(&self, key: &str, at: &Range<usize>, name: &str, problems: &mut Problems<'_>) -> Noted {
        let message = format!("has {{{name}}}, and `input` has no property of that name");
        self.section.note(key, at, message, problems)
    }

    fn cwd(&self, catalogue: &Path, problems: &mut Problems<'_>) -> Result<Directory, Noted> {
        let what = "\"scratch\", or a directory, relative to the catalogue's own";
        let Some(text) = self.section.text("cwd", what, problems)? else {
            return Ok(Directory::Path(catalogue.to_owned()));
        };
        match text.value {
            "scratch" => Ok(Directory::Scratch),
            "" => Err(self.section.note("cwd", &text.at, format_args!("is empty, and has to be {what}"), problems)),
            path if path.contains('\0') => Err(self.section.note("cwd", &text.at, "has a NUL character", problems)),
            path => Ok(Directory::Path(catalogue.join(path))),
        }
    }

    fn environment(&self, problems: &mut Problems<'_>) -> Result<Vec<(OsString, OsString)>, Noted> {
        let what = "an array of strings such as \"NAME\" or \"NAME=VALUE\"";
        let Some(texts) = self.section.texts("env", what, problems)? else { return Ok(base_environment(&[])) };
        let mut rules: Vec<EnvRule> = Vec::new();
        let mut noted = None;
        for text in &texts.value {
            match EnvRule::parse(text.value) {
                Ok(rule) if rules.iter().any(|known| known.name() == rule.name()) => {
                    let message = format!("has {:?} more than once", excerpt(rule.name().display(), 64));
                    noted = Some(self.section.note("env", &text.at, message, problems));
                }
                Ok(rule) => rules.push(rule),
                Err(error) => noted = Some(self.section.note("env", &text.at, format_args!("has {error}"), problems)),
            }
        }
        noted.map_or_else(|| Ok(base_environment(&rules)), Err)
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

    fn policy(&self, defaults: Defaults, problems: &mut Problems<'_>) -> Result<Policy, Noted> {
        let timeout = self.section.duration("timeout", problems);
        let grace = self.grace(&timeout, defaults, problems);
        let worker = self.worker(problems);
        let kill = self.section.kill("kill", problems);
        let output = self.output(problems);
        let undeclared = Policy::default();
        Ok(Policy {
            timeout: timeout?.map(|declared| declared.value).or(defaults.timeout),
            grace: grace?,
            queue_timeout: defaults.queue_timeout,
            output: output?,
            kill: kill?.map_or(undeclared.kill, |declared| declared.value),
            worker: worker?,
        })
    }

    /// The grace period lies inside the time limit, so it has to be the shorter of the two.
    fn grace(
        &self,
        timeout: &Result<Option<Declared<Duration>>, Noted>,
        defaults: Defaults,
        problems: &mut Problems<'_>,
    ) -> Result<Option<Duration>, Noted> {
        let Some(grace) = self.section.duration("grace", problems)? else { return Ok(None) };
        let (limit, whose) = match (timeout, defaults.timeout) {
            // What is wrong with the limit was noted; there is nothing to compare with.
            (Err(Noted), _) => return Err(Noted),
            (Ok(Some(own)), _) => (own.value, "its `timeout`"),
            (Ok(None), Some(default)) => (default, "the `timeout` of [defaults]"),
            (Ok(None), None) => {
                let message = "needs a time limit; declare `timeout` here or in [defaults]";
                return Err(self.section.note("grace", &grace.at, message, problems));
            }
        };
        if grace.value < limit {
            return Ok(Some(grace.value));
        }
        let message = format!("is {:?}, and has to be shorter than {whose}, {limit:?}", grace.value);
        Err(self.section.note("grace", &grace.at, message, problems))
    }

    fn worker(&self, problems: &mut Problems<'_>) -> Result<WorkerPolicy, Noted> {
        let parse = |text: &str| match text {
            "fresh" => Ok(false),
            "reuse" => Ok(true),
            _ => Err("not a kind of worker; write \"fresh\" or \"reuse\""),
        };
        let reuse = self.section.parsed("worker", "\"fresh\" or \"reuse\"", parse, problems);
        let max_calls = self.section.number("max_calls", MAX_CALLS, problems);
        let reuse = reuse?.is_some_and(|declared| declared.value);
        match (reuse, max_calls?) {
            (false, None) => Ok(WorkerPolicy::Fresh),
            (false, Some(declared)) => {
                let message = "needs worker = \"reuse\"; a fresh worker serves one call";
                Err(self.section.note("max_calls", &declared.at, message, problems))
            }
            (true, declared) => {
                let declared = declared.and_then(|declared| u32::try_from(declared.value).ok());
                let max_calls = declared.and_then(NonZeroU32::new).unwrap_or(DEFAULT_MAX_CALLS);
                Ok(WorkerPolicy::Reuse { max_calls })
            }
        }
    }

    fn output(&self, problems: &mut Problems<'_>) -> Result<Option<usize>, Noted> {
        match self.section.section("limits", "limits.", LIMITS, problems)? {
            Some(limits) => Ok(limits.size("output", problems)?.map(|declared| declared.value)),
            None => Ok(None),
        }
    }
}

/// Whether a placeholder names nothing that the schema has. Without a schema every name may be meant.
fn is_unknown(name: &str, input: Option<&InputSchema>) -> bool {
    input.is_some_and(|input| !input.has(name))
}

#[cfg(test)]
mod tests {
    use crate::call::{Command, Directory, Input, Policy, WorkerPolicy};
    use crate::catalogue::{Catalogue, Prepared, ToolSpec};
    use std::ffi::{OsStr, OsString};
    use std::num::NonZeroU32;
    use std::path::Path;
    use std::time::Duration;
    use toolexec_protocol::strength::KillStrength;

    /// A catalogue of one tool with these lines; the keys that every tool needs are put before them unless they are there.
    fn catalogue(lines: &str) -> Result<Catalogue, String> {
        let needs = |key: &str| !lines.lines().any(|line| line.starts_with(key));
        let description = if needs("description") { "description = 'does a'\n" } else { "\n" };
        let command = if needs("command") { "command = ['prog', '{text}']\n" } else { "\n" };
        let text = format!("[tool.a]\n{description}{command}{lines}\n");
        Catalogue::parse(&text, Path::new("/cat/toolexec.toml"))
            .map_err(|error| error.to_string().replace("/cat/toolexec.toml:", ""))
    }

    fn with_tool<T>(lines: &str, look: impl FnOnce(&ToolSpec) -> T) -> T {
        let catalogue = catalogue(lines).unwrap_or_else(|error| panic!("{lines}\n{error}"));
        look(catalogue.tools.get("a").unwrap())
    }

    fn command(lines: &str, arguments: &str) -> Command {
        with_tool(lines, |tool| match tool.prepare(arguments).unwrap() {
            Prepared::Command(command) => command,
            Prepared::Tool { .. } | Prepared::Host { .. } => panic!("not a command"),
        })
    }

    fn stdin(command: Command) -> Vec<u8> {
        match command.stdin {
            Input::Empty => Vec::new(),
            Input::Bytes(bytes) => bytes,
            Input::Descriptor(_) => panic!("a descriptor"),
        }
    }

    const ARGUMENTS: &str = r#"{"text": "hello"}"#;

    // One test a key: the key is there, and something that can be seen is different (C1).

    #[test]
    fn description_is_what_the_model_reads() {
        assert_eq!(with_tool("description = 'does b'", |tool| tool.description.clone()), "does b");
    }

    #[test]
    fn command_is_what_runs() {
        let command = command("command = ['other', '-n', 'x{text}y', '{{}}', '']", ARGUMENTS);
        assert_eq!(command.program, "other");
        assert_eq!(command.arguments, ["-n", "xhelloy", "{}", ""]);
    }

    #[test]
    fn stdin_is_what_the_command_reads() {
        assert_eq!(stdin(command("", ARGUMENTS)), b"");
        assert_eq!(stdin(command("stdin = 'none'", ARGUMENTS)), b"");
        assert_eq!(stdin(command("stdin = 'json'", ARGUMENTS)), br#"{"text":"hello"}"#);
        assert_eq!(stdin(command("stdin = '{text}'", ARGUMENTS)), b"hello");
    }

    #[test]
    fn input_is_what_arguments_are_checked_against() {
        let schema = "input = { properties = { text = { type = 'integer' } } }";
        let error = with_tool(schema, |tool| tool.prepare(ARGUMENTS).unwrap_err().to_string());
        assert_eq!(error, r#"the arguments do not fit: /text: "hello" is not of type "integer""#);
        with_tool("", |tool| assert!(tool.input.is_none()));
    }

    #[test]
    fn cwd_is_where_the_command_starts() {
        let path = |path: &str| Directory::Path(path.into());
        assert_eq!(command("", ARGUMENTS).directory, path("/cat"));
        assert_eq!(command("cwd = 'scratch'", ARGUMENTS).directory, Directory::Scratch);
        assert_eq!(command("cwd = './scratch'", ARGUMENTS).directory, path("/cat/scratch"));
        assert_eq!(command("cwd = 'data'", ARGUMENTS).directory, path("/cat/data"));
        assert_eq!(command("cwd = '/srv'", ARGUMENTS).directory, path("/srv"));
    }

    #[test]
    fn env_adds_to_the_environment() {
        let value = |lines: &str, name: &str| {
            let environment = command(lines, ARGUMENTS).environment;
            environment.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
        };
        assert_eq!(value("env = ['MODE=fast=1']", "MODE"), Some("fast=1".into()));
        // Cargo sets this one for its tests; without being named it does not get through.
        let name = "CARGO_MANIFEST_DIR";
        assert!(std::env::var_os(name).is_some());
        assert_eq!(value("", name), None);
        assert_eq!(value("env = ['CARGO_MANIFEST_DIR']", name), std::env::var_os(name));
        assert_eq!(value("env = ['MODE=fast']", "PATH"), std::env::var_os("PATH"), "the base is still there");
    }

    #[test]
    fn timeout_grace_worker_kill_and_output_make_the_policy() {
        let milliseconds = |milliseconds| Some(Duration::from_millis(milliseconds));
        let reuse = |calls| WorkerPolicy::Reuse { max_calls: NonZeroU32::new(calls).unwrap() };
        let default = Policy::default();
        let cases = [
            ("", default.clone()),
            ("timeout = '2s'", Policy { timeout: milliseconds(2000), ..default.clone() }),
            ("timeout = 2", Policy { timeout: milliseconds(2000), ..default.clone() }),
            ("timeout = 0.25", Policy { timeout: milliseconds(250), ..default.clone() }),
            (
                "timeout = '2s'\ngrace = '200ms'",
                Policy { timeout: milliseconds(2000), grace: milliseconds(200), ..default.clone() },
            ),
            ("worker = 'fresh'", default.clone()),
            ("worker = 'reuse'", Policy { worker: reuse(100), ..default.clone() }),
            ("worker = 'reuse'\nmax_calls = 3", Policy { worker: reuse(3), ..default.clone() }),
            ("kill = 'tree'", Policy { kill: KillStrength::Subreaper, ..default.clone() }),
            ("kill = 'pid-namespace'", Policy { kill: KillStrength::PidNamespace, ..default.clone() }),
            ("limits = { output = '64KiB' }", Policy { output: Some(65_536), ..default.clone() }),
            ("limits = { output = 5 }", Policy { output: Some(5), ..default.clone() }),
            ("limits = {}", default.clone()),
            ("isolation = 'isolated'", default),
        ];
        for (lines, expected) in cases {
            assert_eq!(with_tool(lines, |tool| tool.policy.clone()), expected, "{lines}");
        }
    }

    #[test]
    fn grace_is_compared_with_the_limit_that_holds() {
        let parse = |defaults: &str, own: &str| {
            let text = format!("[defaults]\n{defaults}\n[tool.a]\ndescription = 'x'\ncommand = ['true']\n{own}\n");
            let catalogue = Catalogue::parse(&text, Path::new("/c.toml")).map_err(|error| error.to_string())?;
            Ok::<_, String>(catalogue.tools.get("a").and_then(|tool| tool.policy.grace))
        };
        let second = Ok(Some(Duration::from_secs(1)));
        assert_eq!(parse("timeout = 2", "grace = 1"), second);
        assert_eq!(parse("timeout = 1", "grace = 1\ntimeout = 2"), second);
        let check = |defaults: &str, own: &str, expected: &str| {
            assert_eq!(parse(defaults, own), Err(format!("/c.toml:6:9: tool \"a\": `grace` {expected}")));
        };
        check("", "grace = 1", "needs a time limit; declare `timeout` here or in [defaults]");
        check("timeout = 1", "grace = 1", "is 1s, and has to be shorter than the `timeout` of [defaults], 1s");
        check("timeout = 9", "grace = 1\ntimeout = '500ms'", "is 1s, and has to be shorter than its `timeout`, 500ms");
        // An illegal limit is told once; nothing is said of a comparison with it.
        assert_eq!(
            parse("", "grace = 1\ntimeout = 0"),
            Err("/c.toml:7:11: tool \"a\": `timeout` is 0: zero is not a limit; leave it out for no limit".into())
        );
    }

    #[test]
    fn what_this_version_does_not_do_is_refused_by_name() {
        let check = |line: &str, expected: &str| {
            let expected = format!("4:{expected} is not supported by this version of toolexec; remove it");
            assert_eq!(catalogue(line).map(|_| ()), Err(expected), "{line}");
        };
        check("retry = { max = 2, initial = '200ms' }", "1: tool \"a\": `retry`");
        check("serial = false", "1: tool \"a\": `serial`");
        check("sensitive = false", "1: tool \"a\": `sensitive`");
        check("return_direct = false", "1: tool \"a\": `return_direct`");
        check("sandbox = {}", "1: tool \"a\": `sandbox`");
        for key in ["memory", "cpu", "processes", "file_size", "open_files"] {
            check(&format!("limits = {{ {key} = 1 }}"), &format!("12: tool \"a\": `limits.{key}`"));
        }
        check("isolation = 'in-process'", "13: tool \"a\": `isolation` = \"in-process\"");
    }

    #[test]
    fn what_is_wrong_with_a_tool_is_told_in_words() {
        let cases = [
            ("timout = 1", "4:1: tool \"a\": unknown key `timout`; did you mean `timeout`?"),
            (
                "limits = { outputs = 1 }",
                "4:12: tool \"a\": unknown key `limits.outputs`; did you mean `limits.output`?",
            ),
            ("limits = { pids = 1 }", "4:12: tool \"a\": unknown key `limits.pids`; known are output"),
            ("limits = 1", "4:10: tool \"a\": `limits` has a whole number, and has to be a table"),
            (
                "limits = { output = 0 }",
                "4:21: tool \"a\": `limits.output` is 0: zero is not a limit; leave it out for the default",
            ),
            (
                "limits = { output = '1.5MiB' }",
                "4:21: tool \"a\": `limits.output` is \"1.5MiB\": not a size; write 1MiB, 64KiB or 1MB, or a number of bytes",
            ),
            (
                "limits = { output = 1.0 }",
                "4:21: tool \"a\": `limits.output` is 1.0: not a size; write 1MiB, 64KiB or 1MB, or a number of bytes",
            ),
            ("timeout = '0s'", "4:11: tool \"a\": `timeout` is \"0s\": zero is not a limit; leave it out for no limit"),
            (
                "timeout = -1",
                "4:11: tool \"a\": `timeout` is -1: a negative time is not a limit; leave it out for no limit",
            ),
            (
                "timeout = 1e20",
                "4:11: tool \"a\": `timeout` is 1e20: not a time; write 500ms, 2s, 1m or 1h, or a number of seconds",
            ),
            (
                "timeout = 99999999999",
                "4:11: tool \"a\": `timeout` is 99999999999: longer than 100 years; leave it out for no limit",
            ),
            (
                "timeout = ['2s']",
                "4:11: tool \"a\": `timeout` has an array, and has to be a time such as \"500ms\", \"2s\" or \"1m\", or a \
                 number of seconds",
            ),
            (
                "timeout = 2026-01-01",
                "4:11: tool \"a\": `timeout` has a date or time, and has to be a time such as \"500ms\", \"2s\" or \"1m\", or \
                 a number of seconds",
            ),
            (
                "kill = 'tre'",
                "4:8: tool \"a\": `kill` is \"tre\": not a kill strength; write tree, pid-namespace, cgroup, subreaper or \
                 process-group",
            ),
            ("kill = true", "4:8: tool \"a\": `kill` has a boolean, and has to be a kill strength such as \"tree\""),
            ("isolation = 'none'", "4:13: tool \"a\": `isolation` is \"none\", and has to be \"isolated\""),
            (
                "worker = 'warm'",
                "4:10: tool \"a\": `worker` is \"warm\": not a kind of worker; write \"fresh\" or \"reuse\"",
            ),
            ("max_calls = 5", "4:13: tool \"a\": `max_calls` needs worker = \"reuse\"; a fresh worker serves one call"),
            (
                "worker = 'fresh'\nmax_calls = 5",
                "5:13: tool \"a\": `max_calls` needs worker = \"reuse\"; a fresh worker serves one call",
            ),
            (
                "worker = 'reuse'\nmax_calls = 0",
                "5:13: tool \"a\": `max_calls` is 0, and has to be a whole number from 1 to 1000000",
            ),
            ("description = ' '", "4:15: tool \"a\": `description` is empty; tell the model what the tool does"),
            (
                "description = 1",
                "4:15: tool \"a\": `description` has a whole number, and has to be a text that tells the model what the tool \
                 does",
            ),
            ("command = []", "4:11: tool \"a\": `command` is empty; declare the program and its arguments"),
            (
                "command = 'wc -w'",
                "4:11: tool \"a\": `command` has a string, and has to be an array of strings, the program and its arguments",
            ),
            (
                "command = ['wc', 1]",
                "4:18: tool \"a\": `command` has a whole number, and has to be an array of strings, the program and its \
                 arguments",
            ),
            ("command = ['']", "4:12: tool \"a\": `command` has an empty program"),
            (
                "command = ['{program}']",
                "4:12: tool \"a\": `command` has a placeholder in its program; a model does not choose which program runs",
            ),
            (
                "command = ['awk', '{print $1}']",
                "4:19: tool \"a\": `command` has {print $1} is not a placeholder: a name has letters, digits, _ - and . only; \
                 a literal brace is written {{",
            ),
            (
                "command = ['x', \"a\\u0000\"]",
                "4:17: tool \"a\": `command` has a NUL character, which a command line cannot carry",
            ),
            (
                "input = { properties = { other = {} } }",
                "3:20: tool \"a\": `command` has {text}, and `input` has no property of that name",
            ),
            (
                "command = ['x']\nstdin = '{txt}'\ninput = { properties = { text = {} } }",
                "5:9: tool \"a\": `stdin` has {txt}, and `input` has no property of that name",
            ),
            (
                "stdin = '{a}{b}'",
                "4:9: tool \"a\": `stdin` is \"{a}{b}\", and has to be \"json\", \"none\" or one placeholder such as \"{text}\"",
            ),
            (
                "input = true",
                "4:9: tool \"a\": `input` has a boolean, and has to be a table, the JSON Schema of the arguments",
            ),
            (
                "input = { type = 'string' }",
                "4:9: tool \"a\": `input` is the schema of something else than an object: `type` has to be \"object\" or left out",
            ),
            (
                "input = { properties = { text = { type = 'strin' } } }",
                "4:9: tool \"a\": `input` is not a JSON Schema: /properties/text/type: \"strin\" is not valid under any of the \
                 schemas listed in the 'anyOf' keyword",
            ),
            (
                "input = { properties = { text = { '$ref' = 'https://example.com/a' } } }",
                "4:9: tool \"a\": `input` is a reference to \"https://example.com/a\": other documents are never fetched; put \
                 what it needs under `$defs`",
            ),
            (
                "input = { properties = { text = { const = 2026-01-01 } } }",
                "4:43: tool \"a\": `input` has a date or time, which JSON cannot express; put quotes around it",
            ),
            (
                "input = { properties = { text = { const = inf } } }",
                "4:43: tool \"a\": `input` has inf, which JSON cannot express",
            ),
            (
                "cwd = ''",
                "4:7: tool \"a\": `cwd` is empty, and has to be \"scratch\", or a directory, relative to the catalogue's own",
            ),
            ("cwd = \"\\u0000\"", "4:7: tool \"a\": `cwd` has a NUL character"),
            (
                "env = ['=x']",
                "4:8: tool \"a\": `env` has a variable without a name; write NAME to pass it through, or NAME=VALUE",
            ),
            ("env = ['A', 'A=1']", "4:13: tool \"a\": `env` has \"A\" more than once"),
            (
                "env = 'A'",
                "4:7: tool \"a\": `env` has a string, and has to be an array of strings such as \"NAME\" or \"NAME=VALUE\"",
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(catalogue(lines).map(|_| ()), Err(expected.to_owned()), "{lines}");
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

    #[test]
    fn numbers_of_a_schema_keep_their_digits() {
        let lines = "input = { properties = { text = { enum = [18446744073709551615, 0x10, -9223372036854775808, 0.10, +1.5, 1e-320] } } }";
        let json = with_tool(lines, |tool| tool.input.as_ref().unwrap().as_json().to_string());
        let expected = r#"{"properties":{"text":{"enum":[18446744073709551615,16,-9223372036854775808,0.10,1.5,1e-320]}},"type":"object"}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn model_text_reaches_the_command_line_as_one_element() {
        let text = "a$(touch /tmp/x)b`touch /tmp/x`;touch /tmp/x #\"' \n\t*?~ -rf 🦀";
        let arguments = serde_json::json!({ "text": text }).to_string();
        let command = command("", &arguments);
        assert_eq!(command.arguments, [OsString::from(text)]);
        assert_eq!(command.program, OsStr::new("prog"));
    }
}
