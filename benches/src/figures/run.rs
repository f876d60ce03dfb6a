//! The whole of `toolexec run`, beside a sandbox that starts and ends with its command.

use super::Figure;
use crate::arguments::Effort;
use crate::command;
use crate::cpus::Cpus;
use crate::pair::{in_turns, since};
use crate::table::{Aim, Entry, Row, Unit};
use anyhow::ensure;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 200;

/// The peer, and what it is told: to unshare what it can, and to change nothing else.
const PEER: &str = "bwrap";
const PEER_ARGUMENTS: [&str; 6] = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "/bin/true"];

pub(crate) fn measure(cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
    let toolexec = command::program()?;
    if let Err(why) = peer() {
        return Ok(vec![Entry::Skipped { figure: Figure::Run, why }]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let paired = runtime.block_on(in_turns(
        effort.of(ROUNDS),
        &mut (),
        async |()| Ok(vec![whole_process(&toolexec, &["run", "--", "/bin/true"])?]),
        async |()| Ok(vec![whole_process(Path::new(PEER), &PEER_ARGUMENTS)?]),
    ))?;
    let baseline = format!("{PEER} {}", PEER_ARGUMENTS.join(" "));
    let row = Row::paired(Figure::Run, "toolexec run -- /bin/true", cpus, Unit::Microseconds, &paired, &baseline);
    Ok(vec![row.aiming(Aim::AtMost(1.0))])
}

/// Whether the peer is there and can do here what it is to do; if not, why not.
fn peer() -> Result<(), String> {
    match Command::new(PEER).args(PEER_ARGUMENTS).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{PEER} cannot work here: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("{PEER} is not installed (on Debian: apt-get install bubblewrap)"))
        }
        Err(error) => Err(format!("{PEER} cannot be started: {error}")),
    }
}

fn whole_process(program: &Path, arguments: &[&str]) -> anyhow::Result<f64> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let begun = Instant::now();
    let status = command.status()?;
    let took = since(begun);
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(took)
}
