//! What a tool runs: its command, and where and with what that starts.

use super::read::Tool;
use crate::call::Directory;
use crate::catalogue::arguments::MAX_ELEMENT;
use crate::catalogue::environment::{EnvRule, base_environment};
use crate::catalogue::excerpt::excerpt;
use crate::catalogue::load::problem::{Noted, Problems};
use crate::catalogue::load::section::Placed;
use crate::catalogue::{CommandTemplate, InputSchema, StdinTemplate, Template};
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

impl Tool<'_> {
    pub(super) fn command(
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
        element: &Placed<&str>,
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
        element: &Placed<&str>,
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

    fn template(&self, element: &Placed<&str>, problems: &mut Problems<'_>) -> Result<Template, Noted> {
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
}

/// Whether a placeholder names nothing that the schema has. Without a schema every name may be meant.
fn is_unknown(name: &str, input: Option<&InputSchema>) -> bool {
    input.is_some_and(|input| !input.has(name))
}

#[cfg(test)]
mod tests {
    use crate::call::{Command, Directory, Input};
    use crate::catalogue::Prepared;
    use crate::catalogue::load::sample::{ARGUMENTS, refused, with_tool};
    use std::ffi::{OsStr, OsString};

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
    fn what_is_wrong_with_a_command_is_told_in_words() {
        let cases = [
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
            assert_eq!(refused(lines), expected, "{lines}");
        }
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
