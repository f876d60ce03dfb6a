//! Starting a program under test and seeing it through to its end: bounded, observed, with all its output.
//!
//! What the program started is noted while it runs, from `/proc`, so that the end of all of it can be checked
//! afterwards and no check is empty.

use crate::bound::{GONE, PATIENCE, assert_gone, assert_in_time, wait_in_time, wait_until};
use crate::marker::Marker;
use crate::process::{self, Process};
use crate::room::Room;
use crate::told::Told;
use assert_cmd::assert::OutputAssertExt as _;
use std::ffi::OsStr;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at `/proc` while a program runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A toolexec binary, a room for it, and the way in which it is to kill.
#[derive(Debug)]
pub struct Toolexec {
    binary: PathBuf,
    room: Room,
    strength: Option<&'static str>,
}

impl Toolexec {
    /// The binary with the strongest kill of this machine. Tests find the path in `env!("CARGO_BIN_EXE_…")`.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), room: Room::new(), strength: None }
    }

    /// The binary with a kill that is named.
    pub fn killing_by(binary: impl Into<PathBuf>, strength: &'static str) -> Self {
        Self { strength: Some(strength), ..Self::new(binary) }
    }

    /// Its room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// The kill that was named.
    pub fn strength(&self) -> Option<&'static str> {
        self.strength
    }

    /// The binary's path.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// `toolexec ARGUMENTS…`.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Launch {
        Launch::new(&self.binary, &self.room).arguments(arguments)
    }

    /// `toolexec run ARGUMENTS…`, with the named kill.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Launch {
        let launch = self.command(["run"]);
        let launch = match self.strength {
            Some(strength) => launch.arguments(["--strength", strength]),
            None => launch,
        };
        launch.arguments(arguments)
    }

    /// `toolexec run --json OPTIONS… -- sh -c SCRIPT`.
    pub fn run_shell(&self, options: &[&str], script: &str) -> Launch {
        self.run(["--json"]).arguments(options).arguments(["--", "sh", "-c", script])
    }

    /// The next call works, and has nothing of an earlier one: rule R3.
    #[track_caller]
    pub fn assert_next_call_works(&self) {
        let next = self.run(["--timeout", "20", "--", "echo", "next"]).finish();
        next.assert_code(0);
        assert_eq!(next.stdout(), "next\n");
    }
}

/// A program that is about to be started.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    input: Option<Vec<u8>>,
    reads_stdout: bool,
    marker: Option<Marker>,
}

impl Launch {
    /// A program with the room's `TMPDIR`.
    ///
    /// Unless told otherwise its standard input is a pipe that stays open and into which nothing is ever written:
    /// whoever reads it without being asked to, hangs.
    pub fn new(program: &Path, room: &Room) -> Self {
        let mut command = Command::new(program);
        command.env("TMPDIR", room.temporary()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, input: None, reads_stdout: true, marker: None }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it in this directory.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Gives it these bytes as its standard input, and then the end.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Leaves its standard output to the test, who may be slow or go away.
    #[must_use]
    pub fn unread(mut self) -> Self {
        self.reads_stdout = false;
        self
    }

    /// Notes all processes with this marker too, wherever they stand.
    #[must_use]
    pub fn watching(mut self, marker: &Marker) -> Self {
        self.marker = Some(marker.clone());
        self
    }

    /// Starts it.
    #[track_caller]
    pub fn start(mut self) -> Running {
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("start {:?}: {error}", self.command));
        let started = Instant::now();
        let mut stdin = child.stdin.take();
        if let Some(input) = self.input {
            let mut pipe = stdin.take().expect("its standard input is a pipe");
            // In a thread: nobody says that it reads all of it before it writes.
            thread::spawn(move || drop(pipe.write_all(&input)));
        }
        let (stdout, unread_stdout) = match child.stdout.take() {
            Some(pipe) if self.reads_stdout => (Some(Collected::from(pipe)), None),
            pipe => (None, pipe),
        };
        let stderr = child.stderr.take().map(Collected::from);
        Running {
            name: format!("{:?}", self.command),
            child,
            started,
            stdin,
            unread_stdout,
            stdout,
            stderr,
            marker: self.marker,
            seen: Vec::new(),
            peak_memory: 0,
            next_look: started,
        }
    }

    /// Starts it and waits for its end.
    ///
    /// # Panics
    /// When it does not end within [`PATIENCE`]; it is killed then.
    #[track_caller]
    pub fn finish(self) -> Finished {
        self.start().finish()
    }
}

/// A program that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    started: Instant,
    /// Open as long as nobody drops it; see [`Launch::new`].
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if it was started [`Launch::unread`].
    pub unread_stdout: Option<ChildStdout>,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
    marker: Option<Marker>,
    seen: Vec<Process>,
    peak_memory: u64,
    next_look: Instant,
}

impl Running {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far, bytes that are no text replaced.
    pub fn stdout_so_far(&self) -> String {
        String::from_utf8_lossy(&self.stdout.as_ref().map(Collected::so_far).unwrap_or_default()).into_owned()
    }

    /// What it has written to its standard error so far.
    pub fn stderr_so_far(&self) -> String {
        String::from_utf8_lossy(&self.stderr.as_ref().map(Collected::so_far).unwrap_or_default()).into_owned()
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Looks at `/proc`, notes what is there of this program, and gives it back.
    pub fn look(&mut self) -> Vec<Process> {
        let mut present = process::descendants(self.child.id());
        if let Some(marker) = &self.marker {
            let more = marker.anywhere().into_iter().filter(|process| process.pid != self.child.id());
            present.extend(
                more.filter(|process| present.iter().all(|other| other.pid != process.pid)).collect::<Vec<_>>(),
            );
        }
        let supervisor = Process::of(self.child.id());
        let program = supervisor.as_ref().and_then(Process::program);
        for process in present.iter().chain(&supervisor).filter(|process| process.program() == program) {
            self.peak_memory = self.peak_memory.max(process.peak_memory().unwrap_or(0));
        }
        for process in &present {
            let known = |old: &Process| old.pid == process.pid && old.started == process.started;
            match self.seen.iter_mut().find(|old| known(old)) {
                // A process executes another program; the later name tells more. A zombie's tells nothing.
                Some(old) if !process.arguments.is_empty() => old.clone_from(process),
                Some(_) => {}
                None => self.seen.push(process.clone()),
            }
        }
        present
    }

    /// Waits until this many `sleep`s with the watched marker run, and gives them back.
    #[track_caller]
    pub fn await_sleeps(&mut self, count: usize) -> Vec<Process> {
        let marker = self.marker.clone().expect("a marker is watched");
        let mut sleeping = Vec::new();
        wait_until(PATIENCE, || {
            sleeping = self.look();
            sleeping.retain(|process| marker.is_sleep(process));
            sleeping.len() >= count || !self.is_running()
        });
        assert!(sleeping.len() >= count, "{}: {sleeping:#?} of {count} sleeps: {}", self.name, self.stderr_so_far());
        sleeping
    }

    /// Waits until this text was written to its standard output.
    #[track_caller]
    pub fn await_stdout(&mut self, text: &str) {
        let seen = wait_until(PATIENCE, || self.stdout_so_far().contains(text) || !self.is_running());
        let so_far = self.stdout_so_far();
        assert!(
            seen && so_far.contains(text),
            "{}: {text:?} is not in {so_far:?}; {}",
            self.name,
            self.stderr_so_far()
        );
    }

    /// Kills the program itself with SIGKILL and reaps it. What it has started is its own business.
    pub fn kill(&mut self) -> ExitStatus {
        self.look();
        // An error says that it has ended already, which is as well.
        drop(self.child.kill());
        self.child.wait().expect("a child can be waited for")
    }

    /// Sends a signal to the program.
    #[track_caller]
    pub fn signal(&self, signal: rustix::process::Signal) {
        // Not reaped yet, so the number is still its own.
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("a child can be signalled");
    }

    /// What it was seen to start so far.
    pub fn seen(&self) -> &[Process] {
        &self.seen
    }

    /// Waits for its end and the end of its output.
    ///
    /// # Panics
    /// When it does not end within [`PATIENCE`], or somebody holds its output open after its end.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        let mut status = None;
        let ended = wait_until(PATIENCE, || {
            status = self.child.try_wait().expect("a child can be waited for");
            if status.is_none() && Instant::now() >= self.next_look {
                self.look();
                self.next_look = Instant::now() + LOOK_EVERY;
            }
            status.is_some()
        });
        let took = self.started.elapsed();
        if !ended {
            let present = self.look();
            self.kill();
            panic!(
                "{} did not end within {PATIENCE:?}; it said {:?} and {:?}; there were {present:#?}",
                self.name,
                self.stdout_so_far(),
                self.stderr_so_far()
            );
        }
        self.unread_stdout = None;
        let stdout = self.stdout.take().map(|pipe| pipe.to_its_end(&self.name, "output")).unwrap_or_default();
        let stderr = self.stderr.take().map(|pipe| pipe.to_its_end(&self.name, "error output")).unwrap_or_default();
        let status = status.expect("it has ended");
        Finished {
            name: self.name.clone(),
            output: Output { status, stdout, stderr },
            took,
            seen: std::mem::take(&mut self.seen),
            peak_memory: self.peak_memory,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            self.kill();
        }
    }
}

/// How a program ended, what it wrote, and what it was seen to start.
#[derive(Debug)]
pub struct Finished {
    name: String,
    output: Output,
    /// From its start to its end.
    pub took: Duration,
    /// Every process that was seen below it, or with the watched marker.
    pub seen: Vec<Process>,
    /// The largest resident set of the program's own processes that was seen, in bytes.
    pub peak_memory: u64,
}

impl Finished {
    /// Its exit status, if it exited.
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// What it wrote.
    pub fn stdout_bytes(&self) -> &[u8] {
        &self.output.stdout
    }

    /// What it wrote, which has to be text.
    #[track_caller]
    pub fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).expect("the output is text")
    }

    /// What it wrote to its standard error, which has to be text.
    #[track_caller]
    pub fn stderr(&self) -> &str {
        std::str::from_utf8(&self.output.stderr).expect("the error output is text")
    }

    /// The outcome that `--json` has printed.
    #[track_caller]
    pub fn told(&self) -> Told {
        Told::from_line(self.stdout(), self.stderr())
    }

    /// It exited with this status. On a failure all of its output is shown.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        self.output.clone().assert().append_context("command", self.name.clone()).code(code);
        assert!(!self.stderr().contains("panicked"), "{}: {}", self.name, self.stderr());
        self
    }

    /// It took the time limit and hardly more: rule R1.
    #[track_caller]
    pub fn assert_took(&self, limit: Duration) -> &Self {
        assert!(self.took >= limit, "{} ended after {:?}, before its limit of {limit:?}", self.name, self.took);
        assert_in_time(&self.name, limit, self.took);
        self
    }

    /// It ended long before any limit.
    #[track_caller]
    pub fn assert_was_quick(&self) -> &Self {
        assert_in_time(&self.name, Duration::ZERO, self.took);
        self
    }

    /// How many `sleep`s with the marker were seen while it ran.
    pub fn sleeps(&self, marker: &Marker) -> usize {
        self.seen.iter().filter(|process| marker.is_sleep(process)).count()
    }

    /// Nothing that it was seen to start is in `/proc`, not even as a zombie: rule R2.
    #[track_caller]
    pub fn assert_nothing_runs(&self) -> &Self {
        assert_gone(GONE, &self.name, || {
            self.seen
                .iter()
                .filter(|process| process.is_still_there())
                .map(|process| Process::of(process.pid))
                .collect()
        });
        self
    }

    /// Nothing with the marker is in `/proc`: rule R2.
    #[track_caller]
    pub fn assert_marker_gone(&self, marker: &Marker) -> &Self {
        assert_gone(GONE, &self.name, || marker.anywhere());
        self.assert_nothing_runs()
    }
}

/// A pipe that a thread reads to its end.
#[derive(Debug)]
struct Collected(Arc<Mutex<(Vec<u8>, bool)>>);

impl Collected {
    fn from(mut pipe: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Mutex::new((Vec::new(), false)));
        let writer = Arc::clone(&shared);
        thread::spawn(move || {
            let mut buffer = [0; 64 * 1024];
            loop {
                let read = pipe.read(&mut buffer);
                let mut collected = writer.lock().unwrap_or_else(PoisonError::into_inner);
                match read {
                    Ok(0) => break collected.1 = true,
                    Ok(count) => collected.0.extend_from_slice(&buffer[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break collected.1 = true,
                }
            }
        });
        Self(shared)
    }

    fn so_far(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// The whole of it; a descendant that still holds the pipe's other end breaks rule R2.
    #[track_caller]
    fn to_its_end(&self, name: &str, what: &str) -> Vec<u8> {
        let ended =
            wait_in_time(GONE, "the end of an output", || self.0.lock().unwrap_or_else(PoisonError::into_inner).1);
        assert!(ended, "{name} has ended, and its {what} is still held open");
        self.so_far()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// What makes the checks of this crate worth something: they do find what they look for.
    #[test]
    fn process_that_is_left_behind_is_found() {
        let room = Room::new();
        let marker = Marker::new(40600);
        // It lives until its standard input ends, which is when this test drops the pipe.
        let script = format!("setsid -f sh -c 'read line' {marker} >/dev/null 2>&1; sleep 0.3");
        let launch = Launch::new("sh".as_ref(), &room).arguments(["-c", &script]).watching(&marker);
        let mut running = launch.start();
        let pipe = running.stdin.take();
        let finished = running.finish();
        finished.assert_code(0);
        let found = |check: &dyn Fn()| catch_unwind(AssertUnwindSafe(check)).is_err();
        assert!(found(&|| _ = finished.assert_marker_gone(&marker)));
        assert!(found(&|| _ = finished.assert_nothing_runs()));
        drop(pipe);
        assert_gone(PATIENCE, "what was left behind", || marker.anywhere());
    }

    #[test]
    fn output_that_is_held_open_is_found() {
        let room = Room::new();
        let launch = Launch::new("sh".as_ref(), &room).arguments(["-c", "setsid -f sh -c 'read line'"]);
        let mut running = launch.start();
        let pipe = running.stdin.take();
        assert!(catch_unwind(AssertUnwindSafe(|| running.finish())).is_err());
        drop(pipe);
    }

    #[test]
    fn zombie_is_found() {
        let mut child = Command::new("true").spawn().expect("true starts");
        assert!(wait_until(PATIENCE, || Process::of(child.id()).is_some_and(|process| process.is_zombie())));
        let zombie = Process::of(child.id()).expect("it was there a moment ago");
        assert!(zombie.is_still_there() && !zombie.is_alive());
        child.wait().expect("it can be waited for");
        assert!(!zombie.is_still_there());
    }

    #[test]
    fn file_that_is_left_is_found() {
        let room = Room::new();
        room.assert_swept();
        let folder = room.temporary().join(format!("toolexec-{}", rustix::process::getuid().as_raw()));
        std::fs::create_dir(&folder).expect("make a folder");
        room.assert_swept();
        std::fs::write(folder.join("left"), "").expect("write a file");
        assert_eq!(room.left(), [folder.join("left")]);
    }
}
