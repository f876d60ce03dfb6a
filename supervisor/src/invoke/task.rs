//! Turning what a caller asks for into what a worker is told.

use crate::call::{Command, Directory, Input};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use toolexec_protocol::limits::MAX_BODY;
use toolexec_protocol::message::{CommandTask, Stdin, Task, WorkingDirectory};

/// The longest argument of a command in bytes: the kernel's `MAX_ARG_STRLEN` of 32 pages, less the NUL; see execve(2).
const MAX_ARGUMENT: usize = 32 * 4096 - 1;

/// Why a command can never be started as it stands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error("the command has no program")]
    NoProgram,
    #[error(
        "argument {position} of the command has {length} bytes, more than the {MAX_ARGUMENT} that the kernel takes; give it on standard input or in a file instead"
    )]
    ArgumentTooLong { position: usize, length: usize },
    #[error("{what} has a NUL byte, which no program can be given")]
    Nul { what: String },
    #[error("the environment variable {name:?} is not a name with a value")]
    Environment { name: OsString },
    #[error(
        "the standard input has {length} bytes, more than the {MAX_BODY} that a call may carry; give it as a file instead"
    )]
    InputTooLong { length: usize },
    #[error("the working directory {} is not absolute, and the current directory cannot be read: {source}", directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
}

/// The task for a command, and the descriptor that goes with it.
pub(crate) fn task_of(command: Command) -> Result<(Task, Option<OwnedFd>), PrepareError> {
    let Command { program, arguments, environment, directory, stdin } = command;
    if program.is_empty() {
        return Err(PrepareError::NoProgram);
    }
    check_text(&program, || "the program's name".into())?;
    for (index, argument) in arguments.iter().enumerate() {
        let position = index + 1;
        check_text(argument, || format!("argument {position} of the command"))?;
        if argument.len() > MAX_ARGUMENT {
            return Err(PrepareError::ArgumentTooLong { position, length: argument.len() });
        }
    }
    for (name, value) in &environment {
        check_text(value, || format!("the environment variable {name:?}"))?;
        let bytes = name.as_encoded_bytes();
        if bytes.is_empty() || bytes.contains(&b'=') || bytes.contains(&0) {
            return Err(PrepareError::Environment { name: name.clone() });
        }
    }
    let (stdin, descriptor) = match stdin {
        Input::Empty => (Stdin::Empty, None),
        Input::Bytes(bytes) if bytes.len() > MAX_BODY => {
            return Err(PrepareError::InputTooLong { length: bytes.len() });
        }
        Input::Bytes(bytes) => (Stdin::Bytes(bytes), None),
        Input::Descriptor(descriptor) => (Stdin::Descriptor, Some(descriptor)),
    };
    let directory = match directory {
        Directory::Scratch => WorkingDirectory::Scratch,
        Directory::Path(path) => {
            // A worker starts elsewhere, so a relative path would mean another place there.
            let absolute =
                std::path::absolute(&path).map_err(|source| PrepareError::Directory { directory: path, source })?;
            WorkingDirectory::Path(absolute.into_os_string().into_vec())
        }
    };
    let task = CommandTask {
        program: program.into_vec(),
        arguments: arguments.into_iter().map(OsString::into_vec).collect(),
        environment: environment.into_iter().map(|(name, value)| (name.into_vec(), value.into_vec())).collect(),
        directory,
        stdin,
    };
    Ok((Task::Command(task), descriptor))
}

fn check_text(text: &OsString, what: impl FnOnce() -> String) -> Result<(), PrepareError> {
    if text.as_encoded_bytes().contains(&0) { Err(PrepareError::Nul { what: what() }) } else { Ok(()) }
}
