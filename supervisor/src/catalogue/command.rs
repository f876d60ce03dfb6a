//! A tool that is an external program: its command line with placeholders, and what fills them.

use super::InputSchema;
use super::arguments::{ArgumentError, Arguments, MAX_ELEMENT};
use super::template::{Template, TemplateError};
use crate::call::{Command, Directory, Input};
use std::ffi::OsString;
use toolexec_protocol::limits::MAX_BODY;

/// An external program and how a call's arguments reach it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandTemplate {
    /// A path, or a name to be looked up in the `PATH` of `environment`. Never made of arguments: a model does not
    /// choose which program runs.
    pub program: OsString,
    /// The elements of its command line after its name.
    ///
    /// Every placeholder needs its argument, with one exception: an element that is one placeholder and nothing
    /// else is left out when its argument is absent, if the tool's input schema has the property and does not
    /// require it.
    pub arguments: Vec<Template>,
    /// What it reads.
    pub stdin: StdinTemplate,
    /// Where it starts.
    pub directory: Directory,
    /// Its whole environment; see [`base_environment`](super::environment::base_environment).
    pub environment: Vec<(OsString, OsString)>,
}

/// What a command reads from its standard input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StdinTemplate {
    /// Nothing. Written `none`.
    Empty,
    /// All arguments as one JSON object, the defaults filled in, without a newline at its end. Written `json`.
    Json,
    /// The text of one argument. Written `{name}`. Without that argument, where the tool's input schema has the
    /// property and does not require it, there is nothing to read.
    Argument(String),
}

impl StdinTemplate {
    /// Reads `json`, `none` or `{name}`; `None` for everything else.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::Empty),
            "json" => Some(Self::Json),
            _ => Template::parse(text).ok()?.sole_placeholder().map(|name| Self::Argument(name.to_owned())),
        }
    }

    /// The argument that it is made of, if it is made of one.
    pub fn placeholder(&self) -> Option<&str> {
        match self {
            Self::Argument(name) => Some(name),
            Self::Empty | Self::Json => None,
        }
    }
}

impl CommandTemplate {
    /// A program with these elements as its arguments, which reads nothing, starts in the scratch directory and has
    /// the [base environment](super::environment::base_environment).
    ///
    /// # Errors
    /// [`TemplateError`] of the first element that is not a [`Template`].
    pub fn new<'a>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TemplateError> {
        Ok(Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Template::parse).collect::<Result<_, _>>()?,
            stdin: StdinTemplate::Empty,
            directory: Directory::Scratch,
            environment: super::environment::base_environment(&[]),
        })
    }

    /// The command of one call.
    pub(super) fn fill(&self, arguments: Arguments, schema: Option<&InputSchema>) -> Result<Command, ArgumentError> {
        let optional = |name: &str| schema.is_some_and(|schema| schema.has(name) && !schema.requires(name));
        let is_absent = |name: &str| !arguments.has(name) && optional(name);
        let mut elements = Vec::with_capacity(self.arguments.len());
        for template in &self.arguments {
            if !template.sole_placeholder().is_some_and(is_absent) {
                elements.push(OsString::from(element(template, &arguments)?));
            }
        }
        let stdin = match &self.stdin {
            StdinTemplate::Empty => Input::Empty,
            StdinTemplate::Argument(name) if is_absent(name) => Input::Empty,
            StdinTemplate::Argument(name) => Input::Bytes(arguments.text(name)?.into_owned().into_bytes()),
            StdinTemplate::Json => Input::Bytes(arguments.into_json().into_bytes()),
        };
        let command = Command {
            program: self.program.clone(),
            arguments: elements,
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            stdin,
        };
        let length = length(&command);
        if length > MAX_BODY { Err(ArgumentError::TooLarge { length }) } else { Ok(command) }
    }
}

/// One element of the command line.
fn element(template: &Template, arguments: &Arguments) -> Result<String, ArgumentError> {
    let mut room = MAX_ELEMENT.saturating_sub(template.literal_length());
    template.fill(|name| {
        let text = arguments.text(name)?;
        if text.contains('\0') {
            return Err(ArgumentError::Nul(name.to_owned()));
        }
        room = room
            .checked_sub(text.len())
            .ok_or_else(|| ArgumentError::TooLong { argument: name.to_owned(), length: text.len() })?;
        Ok(text)
    })
}

/// How much of a frame's room a command takes.
fn length(command: &Command) -> usize {
    let stdin = match &command.stdin {
        Input::Bytes(bytes) => bytes.len(),
        Input::Empty | Input::Descriptor(_) => 0,
    };
    let arguments = command.arguments.iter().map(|argument| argument.len());
    let environment = command.environment.iter().map(|(name, value)| name.len() + value.len());
    stdin + arguments.chain(environment).sum::<usize>()
}
