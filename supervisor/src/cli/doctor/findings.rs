//! What is to be said about a machine: what is there, what is missing, what that means, and how to get it.

use super::facts::{Facts, Setting};
use crate::{KillStrength, PoolSettings, Scheduling};
use serde::Serialize;

/// The oldest kernel on which toolexec is promised to work: it has `clone3` with pidfds, `close_range` and
/// `pidfd_open`.
const OLDEST_KERNEL: (u32, u32) = (5, 10);

/// Descriptors that a worker takes of the supervisor: pidfd, call socket, stdout, stderr.
const DESCRIPTORS_OF_A_WORKER: u64 = 4;

/// Descriptors that the rest of a supervisor takes, generously.
const DESCRIPTORS_OF_THE_REST: u64 = 64;

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    /// What is there.
    pub(super) found: String,
    /// What that means for a call.
    pub(super) means: String,
    /// How to get what is missing.
    pub(super) remedy: Option<String>,
}

/// How good it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// As good as it gets.
    Ok,
    /// Calls run, and something is weaker than it could be.
    Limited,
    /// Calls cannot run.
    Missing,
}

/// All that is to be said.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    vec![kernel(facts), pidfd(facts), kill_strength(facts), namespaces(facts), watchdog(facts), descriptors(facts)]
}

fn kernel(facts: &Facts) -> Finding {
    let (major, minor) = OLDEST_KERNEL;
    let (verdict, means, remedy) = match version(&facts.kernel) {
        Some(version) if version >= OLDEST_KERNEL => {
            (Verdict::Ok, format!("{major}.{minor} or newer, as is needed"), None)
        }
        Some(_) => (
            Verdict::Limited,
            format!("older than {major}.{minor}: nothing is promised here, and what fails is told where it fails"),
            Some(format!("a kernel of {major}.{minor} or newer")),
        ),
        None => (
            Verdict::Limited,
            format!("the release does not begin with a version; whether it is {major}.{minor} or newer cannot be told"),
            None,
        ),
    };
    Finding { name: "kernel", verdict, found: facts.kernel.clone(), means, remedy }
}

/// The first two numbers of a release such as `6.18.44-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn pidfd(facts: &Facts) -> Finding {
    let (verdict, found, means, remedy) = match &facts.pidfd {
        Ok(()) => (
            Verdict::Ok,
            "there".to_owned(),
            "a process is signalled and waited for by descriptor, never by a number that another may have by then",
            None,
        ),
        Err(error) => (
            Verdict::Missing,
            error.clone(),
            "no process can be killed without the danger of killing another one",
            Some("a kernel of 5.3 or newer, and a container profile that allows pidfd_open (seccomp)".to_owned()),
        ),
    };
    Finding { name: "pidfd", verdict, found, means: means.to_owned(), remedy }
}

fn kill_strength(facts: &Facts) -> Finding {
    let (verdict, found, means, remedy) = match &facts.strength {
        Err(why) => (
            Verdict::Missing,
            why.clone(),
            "no worker could be made, so that nothing can be run",
            Some("what is named here; `toolexec --log debug doctor` tells more".to_owned()),
        ),
        Ok(strength @ KillStrength::PidNamespace) => (
            Verdict::Ok,
            strength.to_string(),
            "a deadline kills everything that a call has started in one stroke, and the kernel confirms the end of all of it",
            None,
        ),
        Ok(strength @ KillStrength::Cgroup) => (
            Verdict::Limited,
            strength.to_string(),
            "a deadline kills everything that did not leave the call's control group",
            Some("PID namespaces, see below".to_owned()),
        ),
        Ok(strength @ KillStrength::Subreaper) => (
            Verdict::Limited,
            strength.to_string(),
            "a deadline kills everything that a call has started, though not in one stroke: what forks fast enough is hunted",
            Some("PID namespaces, see below".to_owned()),
        ),
        Ok(strength @ KillStrength::ProcessGroup) => (
            Verdict::Limited,
            strength.to_string(),
            "a deadline misses what has called setsid(2): it lives on; `kill = \"tree\"` is refused here",
            Some("PID namespaces, see below".to_owned()),
        ),
    };
    let (found, remedy) = match facts.forced {
        Some(forced) => (format!("{found} (asked for with --strength {forced})"), None),
        None => (found, remedy),
    };
    Finding { name: "kill strength", verdict, found, means: means.to_owned(), remedy }
}

fn namespaces(facts: &Facts) -> Finding {
    let name = "PID and user namespaces";
    let settings: Vec<String> =
        facts.settings.iter().map(|setting| format!("{} = {}", setting.name, setting.value)).collect();
    let settings = settings.join(", ");
    if facts.strength == Ok(KillStrength::PidNamespace) {
        let found = format!("a worker got them ({settings})");
        let means = "each worker is process 1 of its own; its end is the end of all in it".to_owned();
        return Finding { name, verdict: Verdict::Ok, found, means, remedy: None };
    }
    if facts.forced.is_some() {
        let found = format!("not tried ({settings})");
        let means = "--strength asks for another mechanism".to_owned();
        return Finding { name, verdict: Verdict::Limited, found, means, remedy: None };
    }
    let found = format!("a worker did not get them ({settings})");
    let means = "kills are as sure as the kill strength above says, and no surer".to_owned();
    let remedy = Some(namespace_remedy(facts));
    Finding { name, verdict: Verdict::Limited, found, means, remedy }
}

fn namespace_remedy(facts: &Facts) -> String {
    let refusing = |setting: &&Setting| match setting.name {
        "user.max_user_namespaces" | "user.max_pid_namespaces" => setting.value == "0",
        "kernel.unprivileged_userns_clone" => setting.value == "0" && !facts.root,
        "kernel.apparmor_restrict_unprivileged_userns" => setting.value != "0" && !facts.root,
        _ => false,
    };
    let remedies: Vec<&str> = facts
        .settings
        .iter()
        .filter(refusing)
        .map(|setting| match setting.name {
            "user.max_user_namespaces" => "`sysctl user.max_user_namespaces=15000`",
            "user.max_pid_namespaces" => "`sysctl user.max_pid_namespaces=15000`",
            "kernel.unprivileged_userns_clone" => "`sysctl kernel.unprivileged_userns_clone=1`",
            _ => {
                "an AppArmor profile for toolexec with `userns,` in it, or \
                 `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
            }
        })
        .collect();
    if remedies.is_empty() {
        return "no kernel setting refuses them, so it is probably a container's seccomp profile or a security module: \
                let it allow clone3 with CLONE_NEWUSER and CLONE_NEWPID (docker: --security-opt seccomp=PROFILE)"
            .to_owned();
    }
    format!("{}, as root", remedies.join(", and "))
}

fn watchdog(facts: &Facts) -> Finding {
    let raise = || {
        Some(
            "CAP_SYS_NICE, or a real-time limit of 1 or more (`ulimit -r 1`; LimitRTPRIO=1 in a systemd unit)"
                .to_owned(),
        )
    };
    let (verdict, found, means, remedy) = match facts.watchdog {
        Some(Scheduling::Fifo) => (
            Verdict::Ok,
            "SCHED_FIFO".to_owned(),
            "deadlines are kept however busy the processors are with ordinary work",
            None,
        ),
        Some(Scheduling::Nice(nice)) if nice < 0 => (
            Verdict::Limited,
            format!("an ordinary thread, preferred (nice {nice})"),
            "deadlines are kept closely; with many busy processes a kill may come some milliseconds late",
            raise(),
        ),
        Some(Scheduling::Nice(nice)) => (
            Verdict::Limited,
            format!("an ordinary thread (nice {nice})"),
            "with many busy processes a kill may come some milliseconds late; the receipt tells how late it was",
            raise(),
        ),
        None => (Verdict::Limited, "not started".to_owned(), "there was nothing to look at", None),
    };
    Finding { name: "watchdog", verdict, found, means: means.to_owned(), remedy }
}

fn descriptors(facts: &Facts) -> Finding {
    let workers = PoolSettings::DEFAULT_WORKERS.get() + PoolSettings::DEFAULT_SPARES;
    let needed = DESCRIPTORS_OF_THE_REST + DESCRIPTORS_OF_A_WORKER * workers as u64;
    let (soft, hard) = facts.descriptors;
    let shown = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    let found = format!("{} (may be raised to {})", shown(soft), shown(hard));
    let room = soft.map(|soft| soft.saturating_sub(DESCRIPTORS_OF_THE_REST) / DESCRIPTORS_OF_A_WORKER);
    let means = match room {
        None => "any number of workers".to_owned(),
        Some(room) => format!("room for about {room} workers at once; each takes {DESCRIPTORS_OF_A_WORKER}"),
    };
    let enough = soft.is_none_or(|soft| soft >= needed);
    let (verdict, remedy) = match enough {
        true => (Verdict::Ok, None),
        false => (Verdict::Limited, Some(format!("`ulimit -n {}` or more", needed.next_power_of_two()))),
    };
    Finding { name: "open descriptors", verdict, found, means, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str, facts: &Facts) -> Finding {
        findings(facts).into_iter().find(|finding| finding.name == name).unwrap()
    }

    fn good() -> Facts {
        Facts::of_a_good_machine()
    }

    fn without_namespaces(settings: &[(&'static str, &str)], root: bool) -> Facts {
        let settings = settings.iter().map(|(name, value)| Setting { name, value: (*value).into() }).collect();
        Facts { strength: Ok(KillStrength::Subreaper), settings, root, ..good() }
    }

    #[test]
    fn nothing_is_amiss_on_a_good_machine() {
        for finding in findings(&good()) {
            assert_eq!((finding.verdict, &finding.remedy), (Verdict::Ok, &None), "{finding:?}");
        }
    }

    #[test]
    fn what_is_missing_can_be_got() {
        let facts = Facts {
            kernel: "4.19.0-26-amd64".into(),
            pidfd: Err("Function not implemented".into()),
            watchdog: Some(Scheduling::Nice(0)),
            descriptors: (Some(64), Some(64)),
            ..without_namespaces(&[], false)
        };
        for finding in findings(&facts) {
            assert_ne!(finding.verdict, Verdict::Ok, "{finding:?}");
            assert!(finding.remedy.is_some(), "{finding:?}");
        }
    }

    #[test]
    fn kernels_are_judged_by_their_version() {
        let verdict = |kernel: &str| finding("kernel", &Facts { kernel: kernel.into(), ..good() }).verdict;
        for kernel in ["5.10", "5.10.0-33-amd64", "5.15.153.1-microsoft-standard-WSL2", "6.1-rc3", "10.0"] {
            assert_eq!(verdict(kernel), Verdict::Ok, "{kernel}");
        }
        for kernel in ["5.9.16", "4.19.0", "3.10.0-1160.el7", "", "newest", "6"] {
            assert_eq!(verdict(kernel), Verdict::Limited, "{kernel}");
        }
    }

    #[test]
    fn the_setting_that_refuses_namespaces_is_named() {
        let remedy = |settings: &[(&'static str, &str)], root| {
            finding("PID and user namespaces", &without_namespaces(settings, root)).remedy.unwrap()
        };
        assert_eq!(
            remedy(&[("user.max_user_namespaces", "0")], true),
            "`sysctl user.max_user_namespaces=15000`, as root"
        );
        assert!(remedy(&[("kernel.unprivileged_userns_clone", "0")], false).contains("unprivileged_userns_clone=1"));
        assert!(remedy(&[("kernel.apparmor_restrict_unprivileged_userns", "1")], false).contains("AppArmor"));
        for settings in [
            &[("user.max_user_namespaces", "15000"), ("kernel.apparmor_restrict_unprivileged_userns", "0")][..],
            &[("kernel.unprivileged_userns_clone", "0")][..],
        ] {
            assert!(remedy(settings, true).contains("seccomp"), "{settings:?}");
        }
    }

    #[test]
    fn a_mechanism_that_was_asked_for_is_no_defect_of_the_machine() {
        let facts = Facts { forced: Some(KillStrength::Subreaper), ..without_namespaces(&[], false) };
        let strength = finding("kill strength", &facts);
        assert_eq!(strength.found, "subreaper (asked for with --strength subreaper)");
        assert_eq!(strength.remedy, None);
        assert_eq!(finding("PID and user namespaces", &facts).remedy, None);
    }

    #[test]
    fn only_a_machine_without_workers_or_pidfds_is_told_to_be_unfit() {
        let missing = |facts: &Facts| findings(facts).iter().any(|finding| finding.verdict == Verdict::Missing);
        assert!(missing(&Facts { strength: Err("no".into()), ..good() }));
        assert!(missing(&Facts { pidfd: Err("no".into()), ..good() }));
        let weak = Facts {
            strength: Ok(KillStrength::ProcessGroup),
            watchdog: Some(Scheduling::Nice(19)),
            descriptors: (Some(32), Some(32)),
            ..good()
        };
        assert!(!missing(&weak));
    }

    #[test]
    fn descriptors_are_counted_in_workers() {
        let of = |descriptors| finding("open descriptors", &Facts { descriptors, ..good() });
        assert_eq!(of((Some(1024), None)).means, "room for about 240 workers at once; each takes 4");
        assert_eq!(of((None, None)).verdict, Verdict::Ok);
        assert_eq!(of((Some(80), Some(4096))).remedy.as_deref(), Some("`ulimit -n 128` or more"));
    }
}
