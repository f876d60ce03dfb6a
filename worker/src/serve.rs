//! A worker's life: take a call, do it, leave nothing behind, reply.

use crate::channel::{Channel, ChannelError};
use crate::sweep::sweep;
use crate::sys::signals;
use crate::sys::wait::{Wait, wait_any};
use crate::tool::{Returned, Toolbox, command};
use nix::sys::resource::{UsageWho, getrusage};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use toolexec_protocol::failure::Failure;
use toolexec_protocol::id::Nonce;
use toolexec_protocol::limits::MAX_BODY;
use toolexec_protocol::message::{FromWorker, Report, Stdin, Task, ToWorker, Usage};

/// How much a worker's largest resident set may grow over its first call's before it is retired: 64 MiB. A tool
/// that leaks is so restarted long before it is a nuisance, one that merely caches is not.
const GROWTH_BOUND: u64 = 64 * 1024 * 1024;

/// The exit status of a worker that could not go on; its call is then answered as lost.
const BROKEN: i32 = 70;

/// Serves calls until the supervisor ends this process, or closes the socket. Returns the exit status.
///
/// Behind its last call, too, it waits for that: an end of its own would take the processor from whoever waits for the
/// reply, while the supervisor ends it behind the caller's back.
pub(crate) fn serve(mut channel: Channel<std::os::unix::net::UnixStream>, toolbox: &Toolbox) -> i32 {
    let mut worker =
        Worker { scratch: scratch(), lowest_descriptor: lowest_free_descriptor(), first_rss: None, cpu_us: 0 };
    if std::process::id() == 1 {
        signals::tell_abort();
    }
    // Only speed is lost without it.
    let _slower_first_call = rehearse(toolbox);
    loop {
        match channel.receive::<ToWorker>() {
            Ok(Some(ToWorker::Call { nonce, last, task })) => {
                let Ok(reply) = worker.call(nonce, last, &task, &mut channel, toolbox) else {
                    return BROKEN;
                };
                if channel.send(&reply).is_err() {
                    return BROKEN;
                }
            }
            Ok(None) => return 0,
            Err(_) => return BROKEN,
        }
    }
}

/// Plays one call of a tool that is not there, through a socket of its own, while nobody waits: so the page faults of a
/// process that was just forked are not the first call's.
fn rehearse(toolbox: &Toolbox) -> Result<(), ChannelError> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(ChannelError::Io)?;
    let mut supervisor = Channel::new(ours);
    let mut channel = Channel::new(theirs);
    let mut worker = Worker { scratch: PathBuf::new(), lowest_descriptor: None, first_rss: None, cpu_us: 0 };
    let task = Task::Tool { name: String::new(), arguments: b"{}".to_vec() };
    supervisor.send(&ToWorker::Call { nonce: Nonce(0), last: true, task })?;
    if let Some(ToWorker::Call { nonce, last, task }) = channel.receive()? {
        let reply = worker.call(nonce, last, &task, &mut channel, toolbox).map_err(ChannelError::Io)?;
        channel.send(&reply)?;
    }
    Ok(())
}

struct Worker {
    scratch: PathBuf,
    /// The lowest free descriptor before the first call: a higher one later means that a call left some open.
    lowest_descriptor: Option<i32>,
    first_rss: Option<u64>,
    /// What earlier calls of this worker had used.
    cpu_us: u64,
}

impl Worker {
    fn call(
        &mut self,
        nonce: Nonce,
        last: bool,
        task: &Task,
        channel: &mut Channel<std::os::unix::net::UnixStream>,
        toolbox: &Toolbox,
    ) -> io::Result<FromWorker> {
        let stdin = match task {
            Task::Command(task) if task.stdin == Stdin::Descriptor => channel.take_descriptor(),
            Task::Command(_) | Task::Tool { .. } | Task::ToolInContext { .. } => None,
        };
        match task {
            Task::Command(task) => self.command(nonce, last, task, stdin, channel),
            Task::Tool { name, arguments } => self.tool(nonce, last, name, arguments, &[], toolbox),
            Task::ToolInContext { name, arguments, context } => {
                self.tool(nonce, last, name, arguments, context, toolbox)
            }
        }
    }

    fn command(
        &mut self,
        nonce: Nonce,
        last: bool,
        task: &toolexec_protocol::message::CommandTask,
        stdin: Option<OwnedFd>,
        channel: &Channel<std::os::unix::net::UnixStream>,
    ) -> io::Result<FromWorker> {
        let ended = command::run(task, stdin, &self.scratch, channel.as_fd())?;
        // Back into the scratch directory, so that no directory of the user's is held between two calls. A tool may
        // have removed it (case O13): then this worker stays where it is and serves no other call.
        let reusable = !last
            && std::env::set_current_dir(&self.scratch).is_ok()
            && ended.background_killed == 0
            && self.descriptors_unchanged();
        Ok(FromWorker::Reply {
            nonce,
            report: ended.report,
            background_killed: ended.background_killed,
            usage: ended.usage,
            reusable,
        })
    }

    fn tool(
        &mut self,
        nonce: Nonce,
        last: bool,
        name: &str,
        arguments: &[u8],
        context: &[u8],
        toolbox: &Toolbox,
    ) -> io::Result<FromWorker> {
        let (report, panicked) = match toolbox.get(name) {
            None => (Report::UnknownTool, false),
            Some(tool) => {
                match catch_unwind(AssertUnwindSafe(|| with_clean_mask(|| tool.call_in_context(arguments, context)))) {
                    Ok(Ok(returned)) => (report(returned), false),
                    Ok(Err(failure)) => (Report::Failure(Failure::new(failure.class, failure.message)), false),
                    Err(panic) => (Report::Failure(Failure::of_panic(panic)), true),
                }
            }
        };
        // A failure to flush means that the supervisor has closed the pipe, and then nobody wants the output.
        let _nobody_reads = io::stdout().flush();
        let left = match wait_any(false)? {
            Wait::NoChildren => crate::sweep::Swept::default(),
            Wait::AllAlive | Wait::Reaped(_) => sweep()?,
        };
        let (usage, grown) = self.usage(left.usage)?;
        let reusable = !last && !panicked && !grown && left.killed == 0 && self.descriptors_unchanged();
        Ok(FromWorker::Reply { nonce, report, background_killed: left.killed, usage, reusable })
    }

    /// What this call used, and whether the worker has grown too much.
    fn usage(&mut self, children: Usage) -> io::Result<(Usage, bool)> {
        let own = getrusage(UsageWho::RUSAGE_SELF)?;
        let microseconds = |time: nix::sys::time::TimeVal| (time.tv_sec() as u64) * 1_000_000 + time.tv_usec() as u64;
        let total = microseconds(own.user_time()) + microseconds(own.system_time());
        let rss = (own.max_rss() as u64) * 1024;
        let used = total.saturating_sub(self.cpu_us) + children.cpu_us;
        self.cpu_us = total;
        let first = *self.first_rss.get_or_insert(rss);
        let usage = Usage { cpu_us: used, max_rss_bytes: rss.max(children.max_rss_bytes) };
        Ok((usage, rss > first + GROWTH_BOUND))
    }

    fn descriptors_unchanged(&self) -> bool {
        self.lowest_descriptor.is_some() && self.lowest_descriptor == lowest_free_descriptor()
    }
}

/// The lowest free descriptor: two system calls instead of reading `/proc/self/fd`. A call that leaves descriptors
/// open takes the lowest ones first.
fn lowest_free_descriptor() -> Option<i32> {
    io::stdin().as_fd().try_clone_to_owned().ok().map(|copy| copy.as_raw_fd())
}

/// Runs `tool` with the signal mask that a program starts with. A panic in it ends the worker after the reply, so nothing
/// depends on the mask afterwards.
fn with_clean_mask<T>(tool: impl FnOnce() -> T) -> T {
    let signals = command::worker_signals();
    // Neither can fail: the set is whole, and the ways are known.
    let _cannot_fail = signals.thread_unblock();
    let result = tool();
    let _cannot_fail = signals.thread_block();
    result
}

fn scratch() -> PathBuf {
    // The zygote has put this worker into its scratch directory; only a directory that is gone has no name.
    std::env::current_dir().unwrap_or_else(|_| "/".into())
}

fn report(Returned { value, writes }: Returned) -> Report {
    match value.len().saturating_add(writes.len()) {
        length if length > MAX_BODY => Report::Failure(Failure::of_large_result(length)),
        _ if writes.is_empty() => Report::Value(value),
        _ => Report::Written { value, writes },
    }
}
