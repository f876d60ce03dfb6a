//! What the command line means: typed, validated, and right from here on. Nothing was opened, read or started yet.

use super::args::{Arguments, BatchArguments, CheckArguments, CommandArguments, LaterArguments, RunArguments};
use crate::KillStrength;
use crate::batch::{Decision, OnError, Verdict};
use crate::call::{Policy, WorkerPolicy};
use crate::catalogue::environment::EnvRule;
use crate::catalogue::{Selection, duration, kill, size};
use crate::provider::Provider;
use clap_complete::Shell;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The catalogue that is used when none is named.
pub(super) const DEFAULT_CATALOGUE: &str = "toolexec.toml";

/// What is to be done.
#[derive(Debug)]
pub(super) enum Settings {
    Run(Box<RunSettings>),
    Batch(Box<BatchSettings>),
    List(ListSettings),
    Check(CheckSettings),
    Doctor(DoctorSettings),
    Completions(Shell),
}

/// What `run` is to do.
#[derive(Debug)]
pub(super) struct RunSettings {
    pub(super) work: WorkSettings,
    pub(super) strength: Option<KillStrength>,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

/// What `batch` is to do.
#[derive(Debug)]
pub(super) struct BatchSettings {
    pub(super) work: BatchWork,
    pub(super) engine: EngineChoice,
    /// The time limit of tools that declare none.
    pub(super) timeout: Option<Duration>,
    /// `None`: by asking on a terminal, where there is one.
    pub(super) approve: Option<Approve>,
    pub(super) on_error: OnError,
    pub(super) pause_store: Option<PathBuf>,
    pub(super) catalogue: CatalogueFile,
    pub(super) strength: Option<KillStrength>,
    pub(super) json: bool,
}

/// Which batch.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum BatchWork {
    /// The calls of a response.
    Response {
        /// A file, or standard input.
        from: Option<PathBuf>,
        /// `None`: as its shape tells.
        provider: Option<Provider>,
        /// What a pause is called; `None` is the response's own id.
        key: Option<String>,
    },
    /// One that was paused.
    Paused { key: String, provider: Provider, decision: Decision },
}

/// How many calls run at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EngineChoice {
    Sequential,
    Concurrent,
    Bounded(NonZeroUsize),
}

/// What becomes of calls of sensitive tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Approve {
    Ask,
    All,
    None,
    Pause,
}

/// What `run` runs.
#[derive(Debug)]
pub(super) enum WorkSettings {
    /// A tool of the catalogue.
    Tool { name: String, arguments: ArgumentSource, catalogue: CatalogueFile, timeout: Option<Duration> },
    /// A command.
    Command {
        program: OsString,
        arguments: Vec<OsString>,
        environment: Vec<EnvRule>,
        directory: DirectorySource,
        stdin: InputSource,
        policy: Policy,
    },
}

/// Where a tool's arguments come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ArgumentSource {
    /// The command line.
    Text(String),
    /// A file.
    File(PathBuf),
    /// toolexec's standard input.
    StandardInput,
}

/// Where a command is to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DirectorySource {
    /// The user's current directory.
    Current,
    /// A directory of the call's own.
    Scratch,
    /// This one.
    Path(PathBuf),
}

/// What a command is to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum InputSource {
    /// Nothing.
    Empty,
    /// A file.
    File(PathBuf),
    /// toolexec's standard input.
    StandardInput,
}

/// Which catalogue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CatalogueFile {
    /// This one, which has to be there.
    Named(PathBuf),
    /// [`DEFAULT_CATALOGUE`] in the current directory.
    Default,
}

/// What `list` is to do.
#[derive(Debug)]
pub(super) struct ListSettings {
    pub(super) catalogue: CatalogueFile,
    /// Which of its tools.
    pub(super) selection: Selection,
    pub(super) strength: Option<KillStrength>,
    pub(super) json: bool,
}

/// What `check` is to do.
#[derive(Debug)]
pub(super) struct CheckSettings {
    pub(super) catalogue: CatalogueFile,
    pub(super) json: bool,
}

/// What `doctor` is to do.
#[derive(Debug)]
pub(super) struct DoctorSettings {
    pub(super) strength: Option<KillStrength>,
    pub(super) json: bool,
}

/// A command line that says something that cannot be meant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{argument}: {problem}")]
pub(super) struct UsageError {
    /// The argument that is at fault, as it is typed.
    pub(super) argument: &'static str,
    /// What is wrong with it.
    pub(super) problem: String,
}

impl UsageError {
    pub(super) fn new(argument: &'static str, problem: impl Into<String>) -> Self {
        Self { argument, problem: problem.into() }
    }

    fn of_value(argument: &'static str, typed: &str, error: impl fmt::Display) -> Self {
        Self { argument, problem: format!("{typed:?}: {error}") }
    }
}

impl Settings {
    /// Validates what was typed.
    pub(super) fn from_arguments(typed: Arguments) -> Result<Self, UsageError> {
        let catalogue = typed.catalogue.map_or(CatalogueFile::Default, CatalogueFile::Named);
        let strength = typed.strength.as_deref().map(mechanism).transpose()?;
        Ok(match typed.command {
            CommandArguments::Run(run) => Self::Run(Box::new(RunSettings {
                json: run.json,
                quiet: run.quiet,
                work: work(*run, catalogue)?,
                strength,
            })),
            CommandArguments::Batch(batch) => Self::Batch(Box::new(batch_settings(*batch, catalogue, strength)?)),
            CommandArguments::List(list) => Self::List(ListSettings {
                catalogue,
                selection: Selection { tags: list.tag, category: list.category, ..Selection::default() },
                strength,
                json: list.json,
            }),
            CommandArguments::Check(check) => Self::Check(check_settings(check, catalogue)?),
            CommandArguments::Doctor(doctor) => Self::Doctor(DoctorSettings { strength, json: doctor.json }),
            CommandArguments::Completions(completions) => Self::Completions(completions.shell),
        })
    }
}

impl CatalogueFile {
    /// The file's path.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Default => Path::new(DEFAULT_CATALOGUE),
        }
    }
}

fn batch_settings(
    typed: BatchArguments,
    catalogue: CatalogueFile,
    strength: Option<KillStrength>,
) -> Result<BatchSettings, UsageError> {
    let BatchArguments {
        response,
        provider,
        engine,
        timeout,
        approve,
        on_error,
        pause_store,
        key,
        resume,
        verdict,
        json,
    } = typed;
    let provider = provider.as_deref().map(provider_name).transpose()?;
    let work = match (resume, verdict) {
        (Some(key), Some(verdict)) => BatchWork::Paused {
            key,
            provider: provider
                .ok_or_else(|| UsageError::new("--provider", "is missing; say whose messages are to be printed"))?,
            decision: decision(&verdict)?,
        },
        // Each needs the other, which was looked at when the line was read.
        (_, _) => BatchWork::Response { from: response.filter(|path| path != Path::new("-")), provider, key },
    };
    let engine = match engine.as_deref() {
        None | Some("sequential") => EngineChoice::Sequential,
        Some("concurrent") => EngineChoice::Concurrent,
        Some(number) => EngineChoice::Bounded(number.parse().map_err(|_| {
            UsageError::of_value("--engine", number, "not an engine; write sequential, concurrent or a number of calls")
        })?),
    };
    let approve = match approve.as_deref() {
        None => None,
        Some("ask") => Some(Approve::Ask),
        Some("all") => Some(Approve::All),
        Some("none") => Some(Approve::None),
        Some("pause") => Some(Approve::Pause),
        Some(other) => return Err(UsageError::of_value("--approve", other, "write ask, all, none or pause")),
    };
    let on_error = match on_error.as_deref() {
        None | Some("proceed") => OnError::Proceed,
        Some("pause") => OnError::Pause,
        Some(other) => return Err(UsageError::of_value("--on-error", other, "write proceed or pause")),
    };
    let may_pause = approve == Some(Approve::Pause) || on_error == OnError::Pause;
    if pause_store.is_none() && (may_pause || matches!(work, BatchWork::Paused { .. })) {
        return Err(UsageError::new("--pause-store", "is missing; say where paused batches wait"));
    }
    let timeout = positive_duration("--timeout", timeout.as_deref())?;
    Ok(BatchSettings { work, engine, timeout, approve, on_error, pause_store, catalogue, strength, json })
}

fn provider_name(typed: &str) -> Result<Provider, UsageError> {
    let names = Provider::ALL.map(Provider::name).join(", ");
    Provider::from_name(typed).ok_or_else(|| {
        UsageError::of_value("--provider", typed, format_args!("no provider that is known; there are {names}"))
    })
}

fn decision(typed: &str) -> Result<Decision, UsageError> {
    Ok(match typed {
        "approve" => Decision::Judged(Verdict::Proceed),
        "reject" => Decision::Judged(Verdict::Reject),
        "retry" => Decision::Retry,
        "proceed" => Decision::Proceed,
        "cancel" => Decision::Cancel,
        other => match other.strip_prefix("reject:").map(str::trim) {
            Some(reason) if !reason.is_empty() => Decision::Judged(Verdict::RejectBecause(reason.into())),
            Some(_) | None => {
                let known = "write approve, reject, reject:REASON, retry, proceed or cancel";
                return Err(UsageError::of_value("--verdict", other, known));
            }
        },
    })
}

fn check_settings(typed: CheckArguments, catalogue: CatalogueFile) -> Result<CheckSettings, UsageError> {
    let catalogue = match (typed.file, catalogue) {
        (None, catalogue) => catalogue,
        (Some(file), CatalogueFile::Default) => CatalogueFile::Named(file),
        (Some(_), CatalogueFile::Named(_)) => {
            return Err(UsageError::new("FILE", "a catalogue is named here and by --catalogue; one is enough"));
        }
    };
    Ok(CheckSettings { catalogue, json: typed.json })
}

fn work(typed: RunArguments, catalogue: CatalogueFile) -> Result<WorkSettings, UsageError> {
    refuse_later(&typed.later)?;
    let mut command = typed.command.iter().cloned();
    match (&typed.tool, command.next()) {
        (Some(_), Some(_)) => {
            Err(UsageError::new("TOOL", "either a tool of the catalogue or a command after `--` is run, not both"))
        }
        (None, None) => Err(UsageError::new(
            "TOOL",
            "nothing to run: name a tool of the catalogue, or put a command after `--` (see `toolexec run --help`)",
        )),
        (Some(name), None) => tool(name.clone(), typed, catalogue),
        (None, Some(program)) => {
            let arguments = command.collect();
            command_work(program, arguments, typed)
        }
    }
}

fn tool(name: String, typed: RunArguments, catalogue: CatalogueFile) -> Result<WorkSettings, UsageError> {
    // What a tool's own declaration says is not overridden here; accepted in silence these would be dead options.
    let only_for_commands = [
        ("--grace", typed.grace.is_some()),
        ("--queue-timeout", typed.queue_timeout.is_some()),
        ("--output", typed.output.is_some()),
        ("--kill", typed.kill.is_some()),
        ("--env", !typed.env.is_empty()),
        ("--cwd", typed.cwd.is_some()),
        ("--stdin", typed.stdin.is_some()),
    ];
    if let Some((argument, _)) = only_for_commands.into_iter().find(|(_, given)| *given) {
        return Err(UsageError::new(argument, "goes with `-- CMD` only; for a tool the catalogue says it"));
    }
    let arguments = match typed.args {
        None => ArgumentSource::Text(String::new()),
        Some(source) => argument_source(&source)?,
    };
    let timeout = positive_duration("--timeout", typed.timeout.as_deref())?;
    Ok(WorkSettings::Tool { name, arguments, catalogue, timeout })
}

fn command_work(program: OsString, arguments: Vec<OsString>, typed: RunArguments) -> Result<WorkSettings, UsageError> {
    if typed.args.is_some() {
        return Err(UsageError::new("--args", "goes with a tool of the catalogue; a command's arguments follow it"));
    }
    if program.is_empty() {
        return Err(UsageError::new("CMD", "the command's name is empty"));
    }
    let policy = Policy {
        timeout: positive_duration("--timeout", typed.timeout.as_deref())?,
        grace: positive_duration("--grace", typed.grace.as_deref())?,
        queue_timeout: positive_duration("--queue-timeout", typed.queue_timeout.as_deref())?,
        output: typed.output.as_deref().map(output_size).transpose()?,
        kill: typed.kill.as_deref().map_or(Ok(Policy::default().kill), kill_level)?,
        worker: WorkerPolicy::Fresh,
    };
    match (policy.grace, policy.timeout) {
        (Some(_), None) => {
            return Err(UsageError::new("--grace", "needs --timeout: it is the last part of the time limit"));
        }
        (Some(grace), Some(timeout)) if grace >= timeout => {
            return Err(UsageError::new("--grace", "has to be shorter than --timeout, of which it is the last part"));
        }
        (_, _) => {}
    }
    let directory = match typed.cwd {
        None => DirectorySource::Current,
        Some(path) if path == Path::new("scratch") => DirectorySource::Scratch,
        Some(path) => DirectorySource::Path(path),
    };
    let stdin = match typed.stdin {
        None => InputSource::Empty,
        Some(path) if path == Path::new("-") => InputSource::StandardInput,
        Some(path) => InputSource::File(path),
    };
    let environment = environment(typed.env)?;
    Ok(WorkSettings::Command { program, arguments, environment, directory, stdin, policy })
}

fn argument_source(typed: &OsStr) -> Result<ArgumentSource, UsageError> {
    let bytes = typed.as_bytes();
    if bytes == b"-" {
        return Ok(ArgumentSource::StandardInput);
    }
    match bytes.split_first() {
        Some((b'@', [])) => Err(UsageError::new("--args", "a file's name is missing after `@`")),
        Some((b'@', file)) => Ok(ArgumentSource::File(OsStr::from_bytes(file).into())),
        _ => match typed.to_str() {
            // JSON's white space alone is not a text of its own.
            Some(text) if text.trim().is_empty() => Err(UsageError::new("--args", "is empty; leave it out for {}")),
            Some(text) => Ok(ArgumentSource::Text(text.into())),
            None => Err(UsageError::new("--args", "is not UTF-8, which JSON has to be")),
        },
    }
}

fn environment(typed: Vec<OsString>) -> Result<Vec<EnvRule>, UsageError> {
    let mut rules: Vec<EnvRule> = Vec::with_capacity(typed.len());
    for word in typed {
        let rule = EnvRule::parse(&word).map_err(|error| UsageError::new("--env", error.to_string()))?;
        if rules.iter().any(|other| other.name() == rule.name()) {
            let problem = format!("{} is given more than once", rule.name().to_string_lossy());
            return Err(UsageError::new("--env", problem));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn positive_duration(argument: &'static str, typed: Option<&str>) -> Result<Option<Duration>, UsageError> {
    let parse = |typed| duration::parse(typed).map_err(|error| UsageError::of_value(argument, typed, error));
    typed.map(parse).transpose()
}

fn output_size(typed: &str) -> Result<usize, UsageError> {
    size::parse(typed).map_err(|error| UsageError::of_value("--output", typed, error))
}

fn kill_level(typed: &str) -> Result<KillStrength, UsageError> {
    kill::parse(typed).map_err(|error| UsageError::of_value("--kill", typed, error))
}

fn mechanism(typed: &str) -> Result<KillStrength, UsageError> {
    // `tree` is a demand and no mechanism.
    match KillStrength::from_name(typed).filter(|strength| strength.as_str() == typed) {
        Some(strength @ (KillStrength::PidNamespace | KillStrength::Subreaper)) => Ok(strength),
        Some(KillStrength::Cgroup | KillStrength::ProcessGroup) => {
            Err(UsageError::new("--strength", format!("{typed} is not supported by this version as a mechanism")))
        }
        None => Err(UsageError::new("--strength", format!("{typed:?} is not one of pid-namespace, subreaper"))),
    }
}

fn refuse_later(typed: &LaterArguments) -> Result<(), UsageError> {
    let LaterArguments { memory, cpu, processes, file_size, read, write, network } = typed;
    let later = [
        ("--memory", memory, "memory would not be limited"),
        ("--cpu", cpu, "processor time would not be limited (--timeout limits the time that passes)"),
        ("--processes", processes, "the number of processes would not be limited"),
        ("--file-size", file_size, "the size of files would not be limited"),
        ("--read", read, "reading would not be confined"),
        ("--write", write, "writing would not be confined"),
        ("--network", network, "the network is open as it is, and would not be confined"),
    ];
    match later.into_iter().find(|(_, given, _)| given.is_some()) {
        None => Ok(()),
        Some((argument, _, consequence)) => {
            Err(UsageError::new(argument, format!("is not supported by this version: {consequence}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &[&str]) -> Result<Settings, UsageError> {
        let words = ["toolexec"].iter().chain(words).map(OsString::from);
        Settings::from_arguments(Arguments::read(words).unwrap())
    }

    fn run(words: &[&str]) -> WorkSettings {
        match settings(&[&["run"], words].concat()).unwrap() {
            Settings::Run(run) => run.work,
            other => panic!("not run: {other:?}"),
        }
    }

    fn refused(words: &[&str]) -> String {
        settings(words).unwrap_err().to_string()
    }

    fn policy(words: &[&str]) -> Policy {
        match run(&[words, &["--", "true"]].concat()) {
            WorkSettings::Command { policy, .. } => policy,
            other @ WorkSettings::Tool { .. } => panic!("not a command: {other:?}"),
        }
    }

    #[test]
    fn limits_become_a_policy() {
        assert_eq!(policy(&[]), Policy::default());
        let words =
            ["--timeout", "1.5", "--grace=200ms", "--queue-timeout", "1m", "--output", "2KiB", "--kill", "tree"];
        let expected = Policy {
            timeout: Some(Duration::from_millis(1500)),
            grace: Some(Duration::from_millis(200)),
            queue_timeout: Some(Duration::from_secs(60)),
            output: Some(2048),
            kill: KillStrength::Subreaper,
            worker: WorkerPolicy::Fresh,
        };
        assert_eq!(policy(&words), expected);
    }

    #[test]
    fn no_limit_of_zero_or_less_or_beyond_measure_is_taken() {
        let values =
            ["0", "0s", "-1", "-1s", "0.0", "-0.0", "nan", "NaN", "inf", "-inf", "1e400", "", " ", "1y", "--json"];
        for argument in ["--timeout", "--grace", "--queue-timeout"] {
            for value in values.iter().copied().chain(["99999999999999999999999s"]) {
                let told = refused(&["run", argument, value, "--", "true"]);
                assert!(told.starts_with(&format!("{argument}: ")), "{told}");
            }
        }
        for value in ["0", "-1", "", "1.5", "nan", "99999999999999999999TiB", "1XB"] {
            let told = refused(&["run", "--output", value, "--", "true"]);
            assert!(told.starts_with("--output: "), "{told}");
        }
        assert!(refused(&["run", "--timeout", "0", "tool"]).starts_with("--timeout: "));
    }

    #[test]
    fn grace_is_the_last_part_of_the_time_limit() {
        assert!(refused(&["run", "--grace", "1s", "--", "true"]).starts_with("--grace: needs --timeout"));
        for timeout in ["1s", "500ms"] {
            let told = refused(&["run", "--grace", "1s", "--timeout", timeout, "--", "true"]);
            assert!(told.starts_with("--grace: has to be shorter"), "{told}");
        }
    }

    #[test]
    fn limits_of_a_later_version_are_refused_in_words() {
        let memory = "--memory: is not supported by this version: memory would not be limited";
        assert_eq!(refused(&["run", "--memory", "1GiB", "--", "true"]), memory);
        assert_eq!(refused(&["run", "--memory=1GiB", "tool"]), memory);
        for argument in ["--cpu", "--processes", "--file-size", "--read", "--write", "--network"] {
            let told = refused(&["run", argument, "1", "--", "true"]);
            assert!(told.starts_with(&format!("{argument}: is not supported by this version: ")), "{told}");
        }
    }

    #[test]
    fn one_thing_is_run() {
        assert!(refused(&["run"]).starts_with("TOOL: nothing to run"));
        assert!(refused(&["run", "tool", "--", "true"]).starts_with("TOOL: either"));
        assert!(refused(&["run", "--", ""]).starts_with("CMD: "));
        assert!(refused(&["run", "--args", "{}", "--", "true"]).starts_with("--args: "));
        assert!(refused(&["check", "a", "--catalogue", "b"]).starts_with("FILE: "));
    }

    #[test]
    fn what_only_a_command_takes_is_not_swallowed_for_a_tool() {
        let options = [
            ["--grace", "1s"],
            ["--queue-timeout", "1s"],
            ["--output", "1"],
            ["--kill", "tree"],
            ["--env", "A"],
            ["--cwd", "/"],
            ["--stdin", "-"],
        ];
        for option in options {
            let told = refused(&["run", "tool", option[0], option[1]]);
            assert!(told.starts_with(&format!("{}: goes with `-- CMD` only", option[0])), "{told}");
        }
    }

    #[test]
    fn arguments_come_from_three_places() {
        let source = |typed: &str| match run(&["tool", "--args", typed]) {
            WorkSettings::Tool { arguments, .. } => arguments,
            other @ WorkSettings::Command { .. } => panic!("not a tool: {other:?}"),
        };
        assert_eq!(source("{\"a\":1}"), ArgumentSource::Text("{\"a\":1}".into()));
        assert_eq!(source("@call.json"), ArgumentSource::File("call.json".into()));
        assert_eq!(source("-"), ArgumentSource::StandardInput);
        // Not an object: the tool's declaration is where that is found, so that the outcome tells it.
        assert_eq!(source("-1"), ArgumentSource::Text("-1".into()));
        assert!(refused(&["run", "tool", "--args", "@"]).starts_with("--args: "));
        assert!(refused(&["run", "tool", "--args", " "]).starts_with("--args: "));
    }

    #[test]
    fn variables_are_told_apart_and_given_once() {
        let WorkSettings::Command { environment, .. } =
            run(&["--env", "A", "--env", "B=", "--env", "C=x=y", "--", "true"])
        else {
            panic!("not a command")
        };
        let expected =
            [EnvRule::Pass("A".into()), EnvRule::Set("B".into(), "".into()), EnvRule::Set("C".into(), "x=y".into())];
        assert_eq!(environment, expected);
        assert!(refused(&["run", "--env", "=x", "--", "true"]).starts_with("--env: "));
        assert_eq!(refused(&["run", "--env", "A", "--env", "A=1", "--", "true"]), "--env: A is given more than once");
    }

    #[test]
    fn directory_and_input_have_their_special_words() {
        let surroundings = |words: &[&str]| match run(&[words, &["--", "true"]].concat()) {
            WorkSettings::Command { directory, stdin, .. } => (directory, stdin),
            other @ WorkSettings::Tool { .. } => panic!("not a command: {other:?}"),
        };
        assert_eq!(surroundings(&[]), (DirectorySource::Current, InputSource::Empty));
        assert_eq!(
            surroundings(&["--cwd", "scratch", "--stdin", "-"]),
            (DirectorySource::Scratch, InputSource::StandardInput)
        );
        assert_eq!(
            surroundings(&["--cwd", "./scratch", "--stdin", "./-"]),
            (DirectorySource::Path("./scratch".into()), InputSource::File("./-".into()))
        );
    }

    #[test]
    fn a_mechanism_is_one_that_this_version_has() {
        let strength = |typed: &str| match settings(&["--strength", typed, "doctor"])? {
            Settings::Doctor(doctor) => Ok::<_, UsageError>(doctor.strength),
            other => panic!("not doctor: {other:?}"),
        };
        assert_eq!(strength("pid-namespace"), Ok(Some(KillStrength::PidNamespace)));
        assert_eq!(strength("subreaper"), Ok(Some(KillStrength::Subreaper)));
        for typed in ["tree", "cgroup", "process-group", "", "Subreaper"] {
            assert_eq!(strength(typed).unwrap_err().argument, "--strength", "{typed}");
        }
        assert_eq!(refused(&["run", "--kill", "mild", "--", "true"]).split(':').next(), Some("--kill"));
    }
}
