//! The executor: wires the parts, and gives every call exactly one outcome.

use crate::call::{CallOptions, Code, Context, Outcome, OutputMode, Place, ToolCall, Work};
use crate::catalogue::{Body, Prepared, ToolTable};
use crate::deadline::{WatchdogError, WatchdogThread};
use crate::invoke::{self, HostPlan, HostSettings, HostThreads, Plan, task_of};
use crate::pool::{Pool, PoolOptions, Refusal, Want};
use crate::process::{ScratchRoot, ZygoteError};
use crate::{KillStrength, PoolSettings, Scheduling, WorkerProgram};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolexec_protocol::message::Task;

/// How long a death may take where nothing else is said: 5 s. A process that SIGKILL does not end within that is in an
/// uninterruptible sleep, and how long that lasts nobody can tell.
const DEFAULT_KILL_BOUND: Duration = Duration::from_secs(5);

/// How much longer than a death a close may take: 5 s for the zygote to end and clean up.
const CLOSE_MARGIN: Duration = Duration::from_secs(5);

/// How long a close waits until what dead supervisors had left is removed: 2 s. It is rare, mostly little, and no reason
/// to keep a short-lived program much longer than it would be.
const STALE_BOUND: Duration = Duration::from_secs(2);

/// Runs tool calls. Cheap to share behind an `Arc`; dropping it kills whatever still runs.
#[derive(Debug)]
pub struct Executor {
    tools: ToolTable,
    /// Cancelled by [`Executor::close`]: the calls that run then end as `CLOSED`.
    closing: CancellationToken,
    kill_bound: Duration,
    /// Resolves when what dead supervisors had left is removed.
    stale: Mutex<Option<oneshot::Receiver<()>>>,
    // In the order in which they are dropped: the pool ends its zygote, then the watchdog's thread ends.
    pool: Pool,
    watchdog: WatchdogThread,
    /// The threads of tools that run in this process.
    host: HostThreads,
}

/// How an executor is to be made.
#[derive(Debug)]
pub struct ExecutorBuilder {
    program: WorkerProgram,
    tools: ToolTable,
    pool: PoolSettings,
    host: HostSettings,
    strength: Option<KillStrength>,
    kill_bound: Duration,
}

/// Why an executor could not be started, or has no worker.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no watchdog.
    #[error(transparent)]
    Watchdog(#[from] WatchdogError),
    /// There is no zygote.
    #[error(transparent)]
    Zygote(#[from] ZygoteError),
    /// The zygote could not make a worker.
    #[error("no worker could be made: {0}")]
    Worker(Arc<str>),
    /// The executor was closed.
    #[error("the executor is closed")]
    Closed,
}

/// What closing an executor found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CloseReport {
    /// Workers whose death could not be confirmed within the bound.
    pub unconfirmed: usize,
    /// Tools in this process that have not ended though they were asked to, and may still be running.
    pub abandoned: usize,
}

impl ExecutorBuilder {
    /// The declared tools that calls may name.
    #[must_use]
    pub fn tools(mut self, tools: ToolTable) -> Self {
        self.tools = tools;
        self
    }

    /// How many workers run and wait.
    #[must_use]
    pub fn pool(mut self, pool: PoolSettings) -> Self {
        self.pool = pool;
        self
    }

    /// How many tools run in this process, and how many of their calls wait.
    #[must_use]
    pub fn host(mut self, host: HostSettings) -> Self {
        self.host = host;
        self
    }

    /// The program that becomes the zygote; [`WorkerProgram::this_program`] unless told.
    #[must_use]
    pub fn program(mut self, program: WorkerProgram) -> Self {
        self.program = program;
        self
    }

    /// The kill mechanism to use instead of the strongest that works here.
    #[must_use]
    pub fn strength(mut self, strength: KillStrength) -> Self {
        self.strength = Some(strength);
        self
    }

    /// How long a death may take before the call is answered as `unkillable`. Default 5 s.
    #[must_use]
    pub fn kill_bound(mut self, bound: Duration) -> Self {
        self.kill_bound = bound;
        self
    }

    /// Starts the watchdog, the zygote and the spares, in the async runtime of the caller, which needs its I/O and time
    /// drivers.
    ///
    /// # Errors
    /// [`StartError`] says what this machine or the worker program lacks; nothing is left running then.
    pub async fn start(self) -> Result<Executor, StartError> {
        let Self { program, tools, pool, host, strength, kill_bound } = self;
        for warning in tools.warnings() {
            tracing::warn!("{warning}");
        }
        if cfg!(panic = "abort") && tools.iter().any(|tool| matches!(tool.body, Body::Host(_))) {
            tracing::warn!(
                "this program is built with panic = \"abort\": a panic of a tool in its own process ends it"
            );
        }
        let watchdog = WatchdogThread::start(kill_bound)?;
        let stale = remove_stale();
        let scratch = ScratchRoot::default();
        let options = PoolOptions { settings: pool, program, strength, watchdog: watchdog.handle(), scratch };
        let pool = Pool::start(options).await?;
        let stale = Mutex::new(stale);
        let (closing, host) = (CancellationToken::new(), HostThreads::new(host));
        Ok(Executor { tools, closing, kill_bound, stale, pool, watchdog, host })
    }
}

/// Removes what dead supervisors left, on a thread of its own since that may be much.
fn remove_stale() -> Option<oneshot::Receiver<()>> {
    let parent = ScratchRoot::parent().ok().filter(|parent| ScratchRoot::has_neighbours(parent))?;
    let (done, removed) = oneshot::channel();
    let remove = move || {
        ScratchRoot::remove_stale(&parent);
        // Nobody waits where the executor was dropped and not closed.
        let _nobody_waits = done.send(());
    };
    // Where no thread can be had, the next start does it.
    thread::Builder::new().name("toolexec-stale".into()).spawn(remove).ok().map(|_detached| removed)
}

impl Executor {
    /// A builder with the defaults.
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder {
            program: WorkerProgram::this_program(),
            tools: ToolTable::default(),
            pool: PoolSettings::default(),
            host: HostSettings::default(),
            strength: None,
            kill_bound: DEFAULT_KILL_BOUND,
        }
    }

    /// Runs one call to its one outcome. Dropping the future in the middle kills the call's whole tree.
    pub async fn call(&self, call: ToolCall) -> Outcome {
        let ToolCall { id, work, options } = call;
        let CallOptions { cancel, timeout, output, context, answer: _ } = options;
        let (tool, prepared, mut policy, schema, reads_context): (Arc<str>, _, _, _, _) = match work {
            Work::Command { command, policy } => {
                (last_part(&command.program).into(), Prepared::Command(command), policy, None, false)
            }
            Work::Tool { name, arguments } => {
                let Some(spec) = self.tools.get(&name) else {
                    return Outcome::rejected(id, &name, Code::UnknownTool, self.tools.unknown(&name));
                };
                match spec.prepare(&arguments) {
                    Ok(prepared) => {
                        (name.into(), prepared, spec.policy.clone(), spec.output.clone(), spec.declared.context)
                    }
                    Err(error) => return Outcome::rejected(id, &name, Code::InvalidArguments, error.to_string()),
                }
            }
        };
        policy.timeout = timeout.or(policy.timeout);
        let place = match &prepared {
            Prepared::Command(_) => Place::Command,
            Prepared::Tool { .. } => Place::Worker,
            Prepared::Host { .. } => Place::Host,
        };
        if let Err(error) = policy.check(place) {
            return Outcome::rejected(id, &tool, Code::InvalidArguments, error.to_string());
        }
        if let (Prepared::Command(_), Some(_), OutputMode::Stream(_)) = (&prepared, &schema, &output) {
            let text = "the tool's output is its result, which is checked before anybody reads it: collect it, do not stream it";
            return Outcome::rejected(id, &tool, Code::InvalidArguments, text.into());
        }
        let (task, stdin) = match prepared {
            Prepared::Tool { arguments } => {
                let (name, arguments) = (tool.to_string(), arguments.into_bytes());
                let task = match context.to_json().filter(|_| reads_context) {
                    Some(context) => Task::ToolInContext { name, arguments, context: context.into_bytes() },
                    None => Task::Tool { name, arguments },
                };
                (task, None)
            }
            Prepared::Host { body, arguments } => {
                let context = if reads_context { context } else { Context::default() };
                let plan = HostPlan { id, tool, body, arguments, policy, schema, cancel, context };
                return invoke::run_on_host(&self.host, plan, &self.closing).await;
            }
            Prepared::Command(command) => match task_of(command) {
                Ok(task) => task,
                Err(error) => return Outcome::rejected(id, &tool, Code::InvalidArguments, error.to_string()),
            },
        };
        let plan = Plan { id, tool, task, stdin, policy, output, schema, cancel };
        invoke::run(&self.pool, plan, &self.closing).await
    }

    /// How surely this executor kills: the mechanism that its workers really got.
    ///
    /// # Errors
    /// [`StartError`] when no worker can be made.
    pub async fn kill_strength(&self) -> Result<KillStrength, StartError> {
        match self.pool.lease(Want::Fresh, None, Some(&self.closing)).await {
            Ok(mut lease) => {
                let strength = lease.worker().map(|worker| worker.process.strength);
                lease.finish();
                strength.ok_or(StartError::Closed)
            }
            Err(Refusal::Spawn(why)) => Err(StartError::Worker(why)),
            Err(Refusal::QueueFull) => Err(StartError::Worker("too many calls wait for a worker".into())),
            Err(Refusal::QueueTimeout(_) | Refusal::TooManyAbandoned(_) | Refusal::Withdrawn | Refusal::Closed) => {
                Err(StartError::Closed)
            }
        }
    }

    /// The watchdog thread's scheduling class.
    pub fn watchdog_scheduling(&self) -> Scheduling {
        self.watchdog.scheduling()
    }

    /// How many calls in this process were abandoned and still run. It goes down when one of them ends after all.
    pub fn abandoned(&self) -> usize {
        self.host.abandoned()
    }

    /// The declared tools.
    pub fn tools(&self) -> &ToolTable {
        &self.tools
    }

    /// Refuses new calls, kills what runs, and waits until all of it is gone, the zygote and its directories too. Tools in
    /// this process are asked to stop; those that do not are counted and no longer waited for. The calls that are cut off
    /// so end as `CLOSED`.
    pub async fn close(&self) -> CloseReport {
        self.closing.cancel();
        let bound = self.kill_bound.saturating_add(CLOSE_MARGIN);
        let (unconfirmed, abandoned) = tokio::join!(self.pool.close(bound), self.host.close());
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(removed) = stale {
            // What is not removed by then is left to the next start, which goes on where this one stopped.
            let _left_to_the_next_start = tokio::time::timeout(STALE_BOUND, removed).await;
        }
        CloseReport { unconfirmed, abandoned }
    }
}

/// The name of a command in its outcome: the last part of its program's path.
fn last_part(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}
