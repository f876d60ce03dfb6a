//! The command line as it is typed: names, help and examples. What the values mean is settled in `settings.rs`.

use super::exit_code;
use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Everything that can be typed.
#[derive(Debug, Parser)]
#[command(
    name = "toolexec",
    version,
    about = "Runs the tool calls of LLM agents so that a time limit is a fact instead of a wish",
    long_about = "Runs the tool calls of LLM agents so that a time limit is a fact instead of a wish: at its \
                  deadline the whole process tree of a call gets SIGKILL, and the call is answered after the kernel \
                  has confirmed that nothing of it is left.",
    after_help = "Examples:
  toolexec run --timeout 2s -- python3 x.py     a command, for two seconds at most
  toolexec run find_in_text --args @call.json   a tool of ./toolexec.toml
  toolexec batch response.json                  the tool calls of a model's response
  toolexec list                                 the tools of ./toolexec.toml
  toolexec doctor                               what this machine can do",
    after_long_help = AFTER_LONG_HELP,
    max_term_width = 110,
    disable_help_subcommand = true
)]
pub(super) struct Arguments {
    /// The catalogue of tools [default: ./toolexec.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) catalogue: Option<PathBuf>,

    /// Use this kill mechanism instead of the strongest that works here; for tests: pid-namespace or subreaper
    #[arg(long, global = true, value_name = "MECHANISM")]
    pub(super) strength: Option<String>,

    /// Write a log to standard error, such as `debug` or `toolexec=trace` [default: the variable TOOLEXEC_LOG, else none]
    #[arg(long, global = true, value_name = "FILTER")]
    pub(super) log: Option<String>,

    #[command(subcommand)]
    pub(super) command: CommandArguments,
}

const AFTER_LONG_HELP: &str = "\
Examples:
  toolexec run --timeout 2s -- python3 x.py     a command, for two seconds at most
  toolexec run find_in_text --args @call.json   a tool of ./toolexec.toml
  toolexec batch response.json                  the tool calls of a model's response
  toolexec list                                 the tools of ./toolexec.toml
  toolexec doctor                               what this machine can do

Exit codes:
  0          the tool succeeded
  1 to 255   with `run -- CMD`: the command's own status
  1          a tool of the catalogue answered with an error
  75         `batch` waits for a decision
  124        timed out
  125        toolexec refused or failed: usage, catalogue, arguments, start
  126, 127   the command cannot be executed, cannot be found
  128 + n    ended by signal n; 130 interrupted by the user, 143 by SIGTERM
  141        whoever read the output went away
A command may itself exit with 124 or more: --json tells the two apart, and so
does a line on standard error.

Colours appear on a terminal only, and never with NO_COLOR.";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(super) enum CommandArguments {
    Run(Box<RunArguments>),
    Batch(Box<BatchArguments>),
    List(ListArguments),
    Check(CheckArguments),
    Doctor(DoctorArguments),
    Completions(CompletionsArguments),
}

/// Run a tool of the catalogue, or a command
#[derive(Debug, Args)]
#[command(
    override_usage = "toolexec run [OPTIONS] TOOL [--args JSON|@FILE|-]\n       toolexec run [OPTIONS] -- CMD [ARG]...",
    long_about = "Runs a tool of the catalogue, or a command, to its one outcome.

The tool's standard output goes to standard output and its standard error to standard error; what toolexec itself \
says goes to standard error, each line beginning with `toolexec:`. The output of a command is passed on as it comes: \
a slow reader slows the command down, and a reader that goes away ends it. The output of a tool of the catalogue, \
and everything with --json, is collected and bounded (1 MiB of each stream unless --output or the catalogue says \
otherwise).

A command gets an empty standard input, no terminal, a scrubbed environment (see --env) and a session of its own. \
What it leaves running in the background is killed when it is over.",
    after_help = "Examples:
  toolexec run --timeout 1s -- sh -c 'sleep 100 & wait'   both die after a second
  toolexec run --timeout 10s --grace 2s -- ./server       SIGTERM 2 s before SIGKILL
  toolexec run --stdin - -- wc -c < file                  it reads what toolexec would
  toolexec run --env HTTP_PROXY --env LANG=C -- ./fetch   two more variables
  toolexec run --json -- make | jq .timing                one JSON object, one line
  toolexec run find_in_text --args '{\"pattern\":\"a+\",\"text\":\"caat\"}'
  ./arguments | toolexec run find_in_text --args -        too long for a command line

Durations are 500ms, 2s, 1m; a bare number is seconds. Sizes are 4096, 64KiB, 1MiB."
)]
pub(super) struct RunArguments {
    /// A tool of the catalogue
    pub(super) tool: Option<String>,

    /// A command and its arguments, byte for byte; no shell is between
    #[arg(last = true, value_names = ["CMD", "ARG"], num_args = 1..)]
    pub(super) command: Vec<OsString>,

    /// The tool's arguments: a JSON object, a file that has one, or `-` for standard input [default: {}]
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(super) args: Option<OsString>,

    /// How long the tool's body may take [default: what the catalogue says; a command has no limit]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = "Limits")]
    pub(super) timeout: Option<String>,

    /// Send SIGTERM this long before the end of the time limit
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = "Limits")]
    pub(super) grace: Option<String>,

    /// How long the call may wait for a worker
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = "Limits")]
    pub(super) queue_timeout: Option<String>,

    /// How many bytes of each of standard output and standard error are kept [default: all; 1MiB with --json]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Limits")]
    pub(super) output: Option<String>,

    /// The weakest kill to accept: tree, process-group, subreaper, cgroup or pid-namespace [default: process-group]
    #[arg(long, value_name = "LEVEL", help_heading = "Limits")]
    pub(super) kill: Option<String>,

    /// Give the command a variable: toolexec's own of this name, where it has one, or this value; may be repeated.
    /// Without it there are PATH, LANG, LANGUAGE, LC_ALL, LC_CTYPE and TZ, and HOME and TMPDIR name a scratch directory
    #[arg(long, value_name = "NAME|NAME=VALUE", action = ArgAction::Append, help_heading = "The command's surroundings")]
    pub(super) env: Vec<OsString>,

    /// Where the command starts: a directory, or `scratch` for an empty one of its own that is removed afterwards
    /// [default: the current directory]
    #[arg(long, value_name = "DIR|scratch", help_heading = "The command's surroundings")]
    pub(super) cwd: Option<PathBuf>,

    /// What the command reads: a file, or `-` for what toolexec itself would read [default: nothing]
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true, help_heading = "The command's surroundings")]
    pub(super) stdin: Option<PathBuf>,

    /// Print the outcome as one JSON object on one line, and nothing else
    #[arg(long)]
    pub(super) json: bool,

    /// Say nothing but errors of toolexec itself
    #[arg(long, short)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) later: LaterArguments,
}

/// Options of a later version. They are known here so that they are refused in words: an unenforced limit that is
/// accepted in silence would be a lie.
#[derive(Debug, Args, Default)]
pub(super) struct LaterArguments {
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append, allow_negative_numbers = true)]
    pub(super) memory: Option<Vec<OsString>>,
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append, allow_negative_numbers = true)]
    pub(super) cpu: Option<Vec<OsString>>,
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append, allow_negative_numbers = true)]
    pub(super) processes: Option<Vec<OsString>>,
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append, allow_negative_numbers = true)]
    pub(super) file_size: Option<Vec<OsString>>,
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append)]
    pub(super) read: Option<Vec<OsString>>,
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append)]
    pub(super) write: Option<Vec<OsString>>,
    #[arg(long, hide = true, num_args = 0..=1, action = ArgAction::Append)]
    pub(super) network: Option<Vec<OsString>>,
}

/// Run the tool calls of a model's response, and print the messages to send back
#[derive(Debug, Args)]
#[command(
    override_usage = "toolexec batch [OPTIONS] [RESPONSE]\n       toolexec batch [OPTIONS] --resume KEY --verdict VERDICT --pause-store DIR --provider NAME",
    long_about = "Reads a provider's complete response (OpenAI Chat Completions and Responses, Anthropic Messages, Gemini), runs the \
tool calls in it with the tools of the catalogue, and prints the messages to send back: a JSON array, one message or item \
for each call or one for all, as the provider wants it. Every call has its answer there, in the order in which the model \
asked, whatever became of it.

A call of a tool that is declared `sensitive` is approved first; see --approve. With --approve pause the whole batch waits \
in a store until somebody has decided, maybe in another process.",
    after_help = "Examples:
  toolexec batch response.json                        the messages, on one line
  curl ... | toolexec batch --engine concurrent       from standard input, all calls at once
  toolexec batch --json response.json | jq .errors    everything that is known
  toolexec batch --approve pause --pause-store pauses response.json
  toolexec batch --resume msg_01 --verdict approve --pause-store pauses --provider anthropic

Exits with 0 if the messages were printed, whatever became of the calls; with 75 if the batch waits for a decision; with 125 if
nothing was run."
)]
pub(super) struct BatchArguments {
    /// A file with the response [default: standard input]
    pub(super) response: Option<PathBuf>,

    /// Whose response it is: openai, openai-responses, anthropic or gemini [default: told by its shape]
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,

    /// How many calls run at once: sequential, concurrent, or a number [default: sequential]
    #[arg(long, value_name = "ENGINE")]
    pub(super) engine: Option<String>,

    /// The time limit of tools that declare none
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(super) timeout: Option<String>,

    /// What becomes of calls of sensitive tools: ask, all, none or pause [default: ask on a terminal, else none]
    #[arg(long, value_name = "HOW")]
    pub(super) approve: Option<String>,

    /// What becomes of failures that somebody has to mend first: proceed or pause [default: proceed]
    #[arg(long, value_name = "HOW")]
    pub(super) on_error: Option<String>,

    /// Where paused batches wait: a directory
    #[arg(long, value_name = "DIR")]
    pub(super) pause_store: Option<PathBuf>,

    /// What a paused batch is called in the store [default: the response's own id]
    #[arg(long, value_name = "KEY", conflicts_with = "resume", value_parser = NonEmptyStringValueParser::new())]
    pub(super) key: Option<String>,

    /// Go on with a paused batch instead of reading a response
    #[arg(long, value_name = "KEY", conflicts_with = "response", requires = "verdict", value_parser = NonEmptyStringValueParser::new())]
    pub(super) resume: Option<String>,

    /// What somebody has decided about it: approve, reject, reject:REASON; after a failure retry or proceed; or cancel
    #[arg(long, value_name = "VERDICT", requires = "resume")]
    pub(super) verdict: Option<String>,

    /// Print one JSON object on one line with everything that is known
    #[arg(long)]
    pub(super) json: bool,
}

/// List the catalogue's tools, and what their deadline does on this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolexec list
  toolexec list --catalogue tools/toolexec.toml
  toolexec list --tag read --tag search   those with one of these tags
  toolexec list --json | jq -r '.tools[].name'")]
pub(super) struct ListArguments {
    /// List tools with this tag only; given more than once, tools with one of them
    #[arg(long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub(super) tag: Vec<String>,

    /// List tools of this category only
    #[arg(long, value_name = "CATEGORY", value_parser = NonEmptyStringValueParser::new())]
    pub(super) category: Option<String>,

    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// Validate a catalogue without running anything
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolexec check                      ./toolexec.toml
  toolexec check tools/toolexec.toml
  toolexec check --json | jq .problems

Exits with 0 if the catalogue is right and with 125 if it is not.")]
pub(super) struct CheckArguments {
    /// The catalogue [default: what --catalogue names, else ./toolexec.toml]
    pub(super) file: Option<PathBuf>,

    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// Tell what this machine can do for a time limit, what is missing, and how to get it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolexec doctor
  toolexec doctor --strength subreaper      as if there were no namespaces
  toolexec doctor --json | jq .kill_strength

Exits with 0 if calls can run here and with 125 if they cannot.")]
pub(super) struct DoctorArguments {
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// Print a script that completes toolexec's options in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolexec completions bash > ~/.local/share/bash-completion/completions/toolexec
  toolexec completions zsh > \"${fpath[1]}/_toolexec\"
  toolexec completions fish > ~/.config/fish/completions/toolexec.fish")]
pub(super) struct CompletionsArguments {
    /// The shell
    pub(super) shell: Shell,
}

impl Arguments {
    /// Reads the command line. What cannot be read is told at once, and the exit code is given back: 0 where help
    /// or the version was asked for, and [`exit_code::REFUSED`] for a mistake (clap's own would be 2).
    pub(super) fn read(typed: impl IntoIterator<Item = OsString>) -> Result<Self, u8> {
        let typed: Vec<OsString> = typed.into_iter().collect();
        Self::try_parse_from(&typed).map_err(|error| {
            // A reader that is gone needs no help; there is nobody to tell.
            let _reader_gone = error.print();
            if !error.use_stderr() {
                return exit_code::OK;
            }
            if forgot_the_dashes(error.kind(), &typed) {
                anstream::eprintln!("\nA command is run with `--` before it: toolexec run [OPTIONS] -- CMD [ARG]...");
            }
            exit_code::REFUSED
        })
    }
}

/// Whether somebody has typed `toolexec run ls -l`.
fn forgot_the_dashes(kind: ErrorKind, typed: &[OsString]) -> bool {
    kind == ErrorKind::UnknownArgument
        && typed.iter().any(|word| word == OsStr::new("run"))
        && !typed.iter().any(|word| word == OsStr::new("--"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn run(words: &[&str]) -> RunArguments {
        let words = ["toolexec", "run"].iter().chain(words).map(OsString::from);
        match Arguments::try_parse_from(words).unwrap().command {
            CommandArguments::Run(arguments) => *arguments,
            other => panic!("not run: {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_belongs_to_the_command() {
        let arguments = run(&["--timeout", "1s", "--", "sh", "-c", "exit 3", "--json", "--", "-x"]);
        assert_eq!(arguments.command, ["sh", "-c", "exit 3", "--json", "--", "-x"]);
        assert_eq!(arguments.timeout.as_deref(), Some("1s"));
        assert!(!arguments.json);
    }

    #[test]
    fn a_negative_value_reaches_the_validation() {
        for value in ["-1", "-1s", "-0.5", "-inf"] {
            assert_eq!(run(&["--timeout", value, "--", "true"]).timeout.as_deref(), Some(value));
        }
    }

    #[test]
    fn options_of_a_later_version_are_known_in_every_form() {
        assert!(run(&["--memory", "1GiB", "--", "true"]).later.memory.is_some());
        assert!(run(&["--network", "--", "true"]).later.network.is_some());
        assert_eq!(run(&["--read", "/a", "--read=/b", "--", "true"]).later.read.map(|paths| paths.len()), Some(2));
        assert!(run(&["--", "true"]).later.memory.is_none());
    }

    #[test]
    fn help_and_version_succeed_and_mistakes_are_refused() {
        let read = |words: &[&str]| Arguments::read(words.iter().map(OsString::from)).map(|_| ());
        assert_eq!(read(&["toolexec", "--help"]), Err(exit_code::OK));
        assert_eq!(read(&["toolexec", "--version"]), Err(exit_code::OK));
        assert_eq!(read(&["toolexec", "run", "--help"]), Err(exit_code::OK));
        assert_eq!(read(&["toolexec"]), Err(exit_code::REFUSED));
        assert_eq!(read(&["toolexec", "--nonsense"]), Err(exit_code::REFUSED));
        assert_eq!(read(&["toolexec", "run", "ls", "-l"]), Err(exit_code::REFUSED));
        assert_eq!(read(&["toolexec", "completions", "tcsh"]), Err(exit_code::REFUSED));
    }

    #[test]
    fn every_command_has_examples() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", command.get_name());
        }
    }
}
