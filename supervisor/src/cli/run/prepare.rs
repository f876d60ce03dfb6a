//! From what `run` is to do to a call and an executor that are ready to start.

use super::super::exit_code::Asked;
use super::super::host::Host;
use super::super::refusal::Refusal;
use super::super::relay::Relay;
use super::super::settings::{
    ArgumentSource, CatalogueFile, DEFAULT_CATALOGUE, DirectorySource, InputSource, RunSettings, WorkSettings,
};
use super::Facts;
use crate::call::{Code, Command, Directory, Input, OutputMode, ToolCall};
use crate::catalogue::Catalogue;
use crate::catalogue::environment::base_environment;
use crate::{Executor, ExecutorBuilder, PoolSettings};
use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toolexec_protocol::limits::MAX_BODY;

/// A call, ready to be made.
pub(super) struct Prepared {
    pub(super) call: ToolCall,
    pub(super) executor: ExecutorBuilder,
    pub(super) facts: Facts,
    /// Where the output is passed on as it comes.
    pub(super) relay: Option<Relay>,
}

/// One call, one worker, and nothing waits for a second one.
const POOL: PoolSettings = PoolSettings { workers: NonZeroUsize::MIN, spares: 0, queue: 1 };

/// Reads and opens what the call needs. Where it cannot be made, the tool's name and the reason are given back.
pub(super) fn prepare(settings: RunSettings, host: Host) -> Result<Prepared, (String, Refusal)> {
    let builder = Executor::builder().program(host.program.clone()).pool(POOL);
    let builder = match settings.strength {
        None => builder,
        Some(strength) => builder.strength(strength),
    };
    match settings.work {
        WorkSettings::Tool { name, arguments, catalogue, timeout } => {
            let refused = |refusal| (name.clone(), refusal);
            let arguments = read_arguments(&arguments).map_err(refused)?;
            let catalogue = load(&catalogue, &name, &host).map_err(refused)?;
            let tools = host.table(catalogue);
            let tools = tools.map_err(|error| refused(Refusal::of_the_host(error.to_string())))?;
            let declared = tools.get(&name).and_then(|tool| tool.policy.timeout);
            let mut call = ToolCall::new(name.clone(), arguments);
            call.options.timeout = timeout;
            let facts = Facts { asked: Asked::Tool, label: name, timeout: timeout.or(declared) };
            Ok(Prepared { call, executor: builder.tools(tools), facts, relay: None })
        }
        WorkSettings::Command { program, arguments, environment, directory, stdin, policy } => {
            let label = Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned();
            let refused = |error: anyhow::Error| (label.clone(), Refusal::of_the_host(format!("{error:#}")));
            let directory = starting_directory(directory).map_err(refused)?;
            let stdin = input(stdin).map_err(refused)?;
            let environment = base_environment(&environment);
            let command = Command { program, arguments, environment, directory, stdin };
            let facts = Facts { asked: Asked::Command, label, timeout: policy.timeout };
            let bound = policy.output;
            let mut call = ToolCall::command(command, policy);
            let relay = (!settings.json).then(|| {
                let (sender, relay) = Relay::new(bound);
                call.options.output = OutputMode::Stream(sender);
                relay
            });
            Ok(Prepared { call, executor: builder, facts, relay })
        }
    }
}

/// The catalogue; none is needed where the program has tools of its own.
fn load(file: &CatalogueFile, tool: &str, host: &Host) -> Result<Option<Catalogue>, Refusal> {
    if *file == CatalogueFile::Default && !Path::new(DEFAULT_CATALOGUE).exists() {
        if !host.has_no_tools() {
            return Ok(None);
        }
        return Err(Refusal::of_the_call(
            Code::UnknownTool,
            format!(
                "there is no tool {tool:?}, because there is no catalogue: ./{DEFAULT_CATALOGUE} is missing; name one with \
                 --catalogue FILE, or run a command with `toolexec run -- CMD`"
            ),
        ));
    }
    let catalogue = Catalogue::load(file.path());
    catalogue.map(Some).map_err(|error| Refusal::of_the_host(format!("{:#}", anyhow::Error::new(error))))
}

fn read_arguments(source: &ArgumentSource) -> Result<String, Refusal> {
    let (bytes, from) = match source {
        ArgumentSource::Text(text) => return Ok(text.clone()),
        ArgumentSource::StandardInput => (read_bounded(io::stdin().lock()), "standard input".to_owned()),
        ArgumentSource::File(path) => (File::open(path).and_then(read_bounded), path.display().to_string()),
    };
    let bytes = bytes.map_err(|error| Refusal::of_the_host(format!("--args: cannot read {from}: {error}")))?;
    let invalid = |problem: String| Refusal::of_the_call(Code::InvalidArguments, format!("--args: {from} {problem}"));
    if bytes.len() > MAX_BODY {
        return Err(invalid(format!("has more than the {MAX_BODY} bytes that a call may carry")));
    }
    let text = String::from_utf8(bytes).map_err(|_| invalid("is not UTF-8, which JSON has to be".into()))?;
    if text.trim().is_empty() {
        return Err(invalid("is empty; leave --args out for {}".into()));
    }
    Ok(text)
}

/// Reads all, but not more than one byte over what a call may carry.
fn read_bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BODY as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn starting_directory(source: DirectorySource) -> anyhow::Result<Directory> {
    match source {
        DirectorySource::Scratch => Ok(Directory::Scratch),
        DirectorySource::Current => match std::env::current_dir() {
            Ok(path) => Ok(Directory::Path(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let name = std::env::var_os("PWD").map(PathBuf::from).unwrap_or_default();
                anyhow::bail!(
                    "the current directory {} is missing: it was removed; go to another one, or name one with --cwd",
                    name.display()
                )
            }
            Err(error) => Err(error).context("cannot tell the current directory"),
        },
        DirectorySource::Path(path) => match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Directory::Path(path)),
            Ok(_) => anyhow::bail!("--cwd: {} is not a directory", path.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                anyhow::bail!("--cwd: the directory {} is missing", path.display())
            }
            Err(error) => Err(error).with_context(|| format!("--cwd: cannot use the directory {}", path.display())),
        },
    }
}

fn input(source: InputSource) -> anyhow::Result<Input> {
    match source {
        InputSource::Empty => Ok(Input::Empty),
        InputSource::StandardInput => {
            let own = io::stdin().as_fd().try_clone_to_owned().context("--stdin: cannot use standard input")?;
            Ok(Input::Descriptor(own))
        }
        InputSource::File(path) => {
            let name = path.display();
            let open = || -> io::Result<(File, Metadata)> {
                let mut how = File::options();
                // A pipe without a writer would not open for as long as there is none. On files it changes nothing.
                let file = how.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&path)?;
                let found = file.metadata()?;
                Ok((file, found))
            };
            let (file, found) = open().with_context(|| format!("--stdin: cannot open {name}"))?;
            anyhow::ensure!(!found.is_dir(), "--stdin: {name} is a directory");
            let file = if found.file_type().is_fifo() {
                through_a_pipe(file).with_context(|| format!("--stdin: cannot read {name}"))?
            } else {
                blocking(&file).with_context(|| format!("--stdin: cannot use {name}"))?;
                OwnedFd::from(file)
            };
            Ok(Input::Descriptor(file))
        }
    }
}

fn blocking(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags.difference(OFlags::NONBLOCK))?)
}

/// What comes from a named pipe, from its first writer on. Until then the tool waits, and its time runs: were the pipe
/// itself handed over, a tool that is faster than the writer would find an end there.
fn through_a_pipe(named: File) -> io::Result<OwnedFd> {
    let (reader, mut writer) = io::pipe()?;
    let pass_on = move || -> io::Result<()> {
        // Linux has no hang-up to tell of before there was a writer; see pipe_poll() in the kernel's fs/pipe.c.
        while let Err(error) = poll(&mut [PollFd::new(&named, PollFlags::IN)], None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        blocking(&named)?;
        io::copy(&mut &named, &mut writer).map(drop)
    };
    // Ends with the process at the latest. Where it fails the tool is gone, or its input is at an end.
    std::thread::Builder::new().name("input".into()).spawn(pass_on)?;
    Ok(reader.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(refusal: Refusal) -> (Option<Code>, String) {
        let outcome = refusal.into_outcome("x");
        (outcome.code, outcome.message.unwrap_or_default())
    }

    fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("call.json");
        std::fs::write(&path, bytes).unwrap();
        (directory, path)
    }

    #[test]
    fn arguments_are_read_from_a_file_of_a_bounded_size() {
        let read = |bytes: &[u8]| {
            let (_directory, path) = file(bytes);
            read_arguments(&ArgumentSource::File(path)).map_err(refused)
        };
        assert_eq!(read(b"{\"a\":1}\n"), Ok("{\"a\":1}\n".into()));
        assert_eq!(read(&[b'1'; MAX_BODY]).map(|text| text.len()), Ok(MAX_BODY));
        let problems: [(&[u8], &str); 3] =
            [(&[b'1'; MAX_BODY + 1], "has more than"), (b"\xff", "is not UTF-8"), (b" \n", "is empty")];
        for (bytes, problem) in problems {
            let (code, message) = read(bytes).unwrap_err();
            assert_eq!(code, Some(Code::InvalidArguments));
            assert!(message.starts_with("--args: ") && message.contains(problem), "{message}");
        }
    }

    #[test]
    fn a_file_of_arguments_that_is_not_there_is_named() {
        let (code, message) =
            read_arguments(&ArgumentSource::File("/nowhere/call.json".into())).map_err(refused).unwrap_err();
        assert_eq!(code, Some(Code::SpawnFailed));
        assert!(message.contains("/nowhere/call.json"), "{message}");
    }

    #[test]
    fn a_missing_directory_is_named_as_missing() {
        let told = |path: &str| starting_directory(DirectorySource::Path(path.into())).unwrap_err().to_string();
        assert_eq!(told("/nowhere/at/all"), "--cwd: the directory /nowhere/at/all is missing");
        assert_eq!(told("/dev/null"), "--cwd: /dev/null is not a directory");
        assert_eq!(starting_directory(DirectorySource::Scratch).unwrap(), Directory::Scratch);
        assert_eq!(
            starting_directory(DirectorySource::Current).unwrap(),
            Directory::Path(std::env::current_dir().unwrap())
        );
    }

    fn descriptor_of(path: impl Into<PathBuf>) -> OwnedFd {
        match input(InputSource::File(path.into())).unwrap() {
            Input::Descriptor(descriptor) => descriptor,
            other => panic!("no descriptor: {other:?}"),
        }
    }

    #[test]
    fn a_named_pipe_is_waited_for_by_whoever_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        // Returns though there is no writer.
        let descriptor = descriptor_of(path.clone());
        let mut ready = [PollFd::new(&descriptor, PollFlags::IN)];
        let soon = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        assert_eq!(poll(&mut ready, Some(&soon)), Ok(0), "there was an end before there was a writer");
        let writer = std::thread::spawn(move || std::fs::write(path, "x".repeat(300_000)).unwrap());
        assert_eq!(io::read_to_string(File::from(descriptor)).unwrap().len(), 300_000);
        writer.join().unwrap();
    }

    #[test]
    fn input_is_a_file_that_can_be_read() {
        assert!(matches!(input(InputSource::Empty).unwrap(), Input::Empty));
        let (_directory, path) = file(b"hello");
        let Input::Descriptor(descriptor) = input(InputSource::File(path)).unwrap() else { panic!("no descriptor") };
        assert_eq!(io::read_to_string(File::from(descriptor)).unwrap(), "hello");
        let flags = fcntl_getfl(descriptor_of("/dev/null")).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
        let told = |path: &str| format!("{:#}", input(InputSource::File(path.into())).unwrap_err());
        assert!(told("/nowhere/file").starts_with("--stdin: cannot open /nowhere/file: No such file"));
        assert_eq!(told("/"), "--stdin: / is a directory");
    }
}
