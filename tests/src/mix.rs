//! A random mix of calls that each know how they have to end.
//!
//! Every call writes or carries its own number, so that an answer that belongs to another call is found out.

use crate::marker::Marker;
use crate::random::Random;
use crate::shell;
use crate::told::Told;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolexec::call::{Command, Policy, ToolCall};
use toolexec::{Executor, KillStrength};

/// What a call of the mix does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Says its number and succeeds.
    Success,
    /// Says its number and fails with a status of its own.
    Failure,
    /// Sleeps past its time limit, with a child in a session of its own.
    Deadline,
    /// Is withdrawn by its caller.
    Cancel,
    /// Ends itself with a signal.
    Crash,
    /// Writes far more than is kept of it.
    Flood,
    /// Leaves a daemon behind and succeeds.
    Daemon,
}

/// All kinds.
pub const KINDS: [Kind; 7] =
    [Kind::Success, Kind::Failure, Kind::Deadline, Kind::Cancel, Kind::Crash, Kind::Flood, Kind::Daemon];

/// How many bytes a flood writes.
const FLOOD: u64 = 3_000_000;

/// How much of it is kept.
const KEPT: usize = 4096;

/// One call of the mix.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What it does.
    pub kind: Kind,
    number: u64,
    marker: Marker,
    after: Duration,
}

impl Planned {
    /// Draws a call. Its processes can be found by the marker.
    pub fn draw(random: &mut Random, number: u64, marker: &Marker) -> Self {
        let kind = KINDS[usize::try_from(random.below(KINDS.len() as u64)).unwrap_or(0)];
        Self { kind, number, marker: marker.clone(), after: Duration::from_millis(20) + random.milliseconds_below(180) }
    }

    /// Makes the call and compares its outcome with what it has to be.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub async fn run(&self, executor: &Executor) -> Result<(), String> {
        self.check(&self.call(executor).await)
    }

    /// As [`Planned::run`], while somebody kills workers and zygotes: the call may also be lost, which has to be said
    /// so. Gives back whether it was.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub async fn run_among_losses(&self, executor: &Executor) -> Result<bool, String> {
        let told = self.call(executor).await;
        if told.at("/code") == "WORKER_LOST" && told.at("/started") == true {
            return Ok(true);
        }
        self.check(&told).map(|()| false)
    }

    async fn call(&self, executor: &Executor) -> Told {
        let mut call = ToolCall::command(self.command(), self.policy());
        let mut withdrawal = None;
        if self.kind == Kind::Cancel {
            let token = CancellationToken::new();
            call = call.cancelled_by(token.clone());
            let after = self.after;
            withdrawal = Some(tokio::spawn(async move {
                tokio::time::sleep(after).await;
                token.cancel();
            }));
        }
        let outcome = executor.call(call).await;
        if let Some(task) = withdrawal {
            task.abort();
        }
        Told::of(&outcome)
    }

    fn check(&self, told: &Told) -> Result<(), String> {
        self.compare(told).map_err(|what| format!("{self:?}: {what} of {:#}", told.0))
    }

    fn command(&self) -> Command {
        let Self { number, marker, .. } = self;
        shell::script(&match self.kind {
            Kind::Success => format!("echo {number}; echo not {number} >&2"),
            Kind::Failure => format!("echo {number}; exit {}", self.status()),
            Kind::Deadline | Kind::Cancel => format!("setsid -f sleep {marker}; sleep {marker}"),
            Kind::Crash => format!("printf {number}; kill -SEGV $$; sleep {marker}"),
            Kind::Flood => format!("printf {number:012}; head -c {FLOOD} /dev/zero | tr '\\0' z"),
            Kind::Daemon => format!("setsid -f sleep {marker}; echo {number}"),
        })
    }

    fn policy(&self) -> Policy {
        let timeout = (self.kind == Kind::Deadline).then_some(self.after);
        let output = (self.kind == Kind::Flood).then_some(KEPT);
        Policy { timeout, output, kill: KillStrength::Subreaper, ..Policy::default() }
    }

    fn status(&self) -> u64 {
        1 + self.number % 100
    }

    fn compare(&self, told: &Told) -> Result<(), String> {
        let started = told.at("/started") == true;
        let end = match self.kind {
            Kind::Success | Kind::Flood | Kind::Daemon => "ok - returned",
            Kind::Failure => "error TOOL_ERROR returned",
            Kind::Deadline => "timed_out TOOL_TIMEOUT killed",
            Kind::Cancel if started => "cancelled CANCELLED killed",
            Kind::Cancel => "cancelled CANCELLED -",
            Kind::Crash => "crashed TOOL_CRASHED returned",
        };
        require("end", told.end().as_str(), end)?;
        let line = format!("{}\n", self.number);
        let stdout = told.text("/stdout/text");
        match self.kind {
            Kind::Success => {
                require("stdout", stdout, line.as_str())?;
                require("stderr", told.text("/stderr/text"), format!("not {line}").as_str())?;
            }
            Kind::Failure => {
                require("stdout", stdout, line.as_str())?;
                require("exit", told.number("/exit/code"), self.status())?;
            }
            Kind::Deadline | Kind::Cancel => require("stdout", stdout, "")?,
            Kind::Crash => {
                require("stdout", stdout, self.number.to_string().as_str())?;
                require("signal", told.text("/exit/signal"), "SIGSEGV")?;
            }
            Kind::Flood => {
                require("bytes", told.number("/stdout/bytes"), FLOOD + 12)?;
                require("head", stdout.get(..12).unwrap_or_default(), format!("{:012}", self.number).as_str())?;
                require("bytes dropped", told.number("/stdout/dropped"), FLOOD + 12 - KEPT as u64)?;
            }
            Kind::Daemon => {
                require("stdout", stdout, line.as_str())?;
                require("background", told.number("/receipt/background_killed"), 1)?;
            }
        }
        if started {
            require("confirmed", told.at("/receipt/confirmed") == true, true)?;
            require("survivors", told.number("/receipt/survivors"), 0)?;
        }
        Ok(())
    }
}

fn require<T: PartialEq + std::fmt::Debug>(what: &str, is: T, wanted: T) -> Result<(), String> {
    if is == wanted { Ok(()) } else { Err(format!("{what} is {is:?} instead of {wanted:?}")) }
}
