//! What there is on this machine: tried where it can be tried, read where it can only be read.

use crate::{Executor, KillStrength, PoolSettings, Scheduling, WorkerProgram};
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};
use std::num::NonZeroUsize;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The kernel's release, as `uname -r` has it.
    pub(super) kernel: String,
    /// Whether a pidfd of one's own process could be opened, or why not.
    pub(super) pidfd: Result<(), String>,
    /// The mechanism that a worker really got, or why there was none.
    pub(super) strength: Result<KillStrength, String>,
    /// The mechanism that was asked for instead of the strongest.
    pub(super) forced: Option<KillStrength>,
    /// The watchdog thread's scheduling, where there was a watchdog.
    pub(super) watchdog: Option<Scheduling>,
    /// Kernel settings that bear on namespaces, where they are there.
    pub(super) settings: Vec<Setting>,
    /// Whether this is the superuser.
    pub(super) root: bool,
    /// How many descriptors a process may have open: what it has now, and what it may raise that to.
    pub(super) descriptors: (Option<u64>, Option<u64>),
}

/// A kernel setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Setting {
    /// Its name for sysctl(8).
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// The kernel settings that can refuse a namespace.
const SETTINGS: [(&str, &str); 4] = [
    ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces"),
    ("user.max_pid_namespaces", "/proc/sys/user/max_pid_namespaces"),
    ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone"),
    ("kernel.apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
];

impl Facts {
    /// Looks at this machine.
    pub(super) fn gather(forced: Option<KillStrength>, program: WorkerProgram) -> Self {
        let (strength, watchdog) = try_executor(forced, program);
        let limit = getrlimit(Resource::Nofile);
        Self {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            pidfd: pidfd_open(getpid(), PidfdFlags::empty()).map(drop).map_err(|error| error.to_string()),
            strength,
            forced,
            watchdog,
            settings: SETTINGS.iter().filter_map(|(name, path)| setting(name, path)).collect(),
            root: rustix::process::geteuid().is_root(),
            descriptors: (limit.current, limit.maximum),
        }
    }

    /// A machine on which all is well.
    #[cfg(test)]
    pub(super) fn of_a_good_machine() -> Self {
        Self {
            kernel: "6.18.44".into(),
            pidfd: Ok(()),
            strength: Ok(KillStrength::PidNamespace),
            forced: None,
            watchdog: Some(Scheduling::Fifo),
            settings: vec![Setting { name: "user.max_user_namespaces", value: "15000".into() }],
            root: false,
            descriptors: (Some(1024), Some(1 << 20)),
        }
    }
}

fn setting(name: &'static str, path: &str) -> Option<Setting> {
    let value = std::fs::read_to_string(path).ok()?.trim().to_owned();
    Some(Setting { name, value })
}

/// Starts an executor and asks it what its worker and its watchdog really got.
fn try_executor(
    forced: Option<KillStrength>,
    program: WorkerProgram,
) -> (Result<KillStrength, String>, Option<Scheduling>) {
    let told = |error: anyhow::Error| format!("{error:#}");
    let mut builder =
        Executor::builder().program(program).pool(PoolSettings { workers: NonZeroUsize::MIN, spares: 0, queue: 0 });
    if let Some(forced) = forced {
        builder = builder.strength(forced);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return (Err(told(error.into())), None),
    };
    runtime.block_on(async {
        let executor = match builder.start().await {
            Ok(executor) => executor,
            Err(error) => return (Err(told(error.into())), None),
        };
        let strength = executor.kill_strength().await.map_err(|error| told(error.into()));
        let watchdog = executor.watchdog_scheduling();
        executor.close().await;
        (strength, Some(watchdog))
    })
}
