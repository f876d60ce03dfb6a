//! What the kernel says about processes: `/proc`, see proc(5).

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::path::{Path, PathBuf};

/// A process as it was at one moment. A number may be used again; the number and the start time together are not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Its state: `R`, `S`, `D`, `T`, `Z`, and so on.
    pub state: char,
    /// The number of its session.
    pub session: u32,
    /// When it started, in clock ticks after the boot.
    pub started: u64,
    /// Its name; at most 15 bytes.
    pub name: String,
    /// Its arguments, the program's name first; none for a zombie.
    pub arguments: Vec<String>,
}

impl Process {
    /// The process of this number, if there is one.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold any character, parentheses too.
        let (head, tail) = stat.rsplit_once(") ")?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments = arguments.strip_suffix(b"\0").unwrap_or(&arguments);
        let arguments = match arguments {
            [] => Vec::new(),
            some => some.split(|&byte| byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect(),
        };
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            state: fields.first()?.chars().next()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            name,
            arguments,
        })
    }

    /// Whether it ended and nobody has asked how.
    pub fn is_zombie(&self) -> bool {
        self.state == 'Z'
    }

    /// Whether this very process is still in the table of processes, be it as a zombie.
    pub fn is_still_there(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// Whether this very process is still alive. A zombie whose parents are dead is for the machine's first process to
    /// reap, which takes its time on some machines.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.started == self.started && !now.is_zombie())
    }

    /// The file that it executes.
    pub fn program(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.pid)).ok()
    }

    /// The largest resident set that it ever had, in bytes.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }

    /// The processes between this process and one of its ancestors, the nearest first; `None` if that is no ancestor.
    pub fn line_up_to(&self, ancestor: u32) -> Option<Vec<Self>> {
        let mut line = Vec::new();
        let mut next = self.parent;
        while next != ancestor {
            let process = Self::of(next)?;
            next = process.parent;
            line.push(process);
        }
        Some(line)
    }

    /// Sends SIGKILL to a process that this test has started, itself or through a supervisor in it.
    ///
    /// # Panics
    /// When it is no descendant of this process, or is gone already.
    #[track_caller]
    pub fn kill(&self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).expect("a process has a number above zero");
        // First the handle and then the check: what the handle means cannot change any more.
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap_or_else(|error| panic!("open {self:?}: {error}"));
        assert!(self.is_still_there(), "{self:?} is gone already");
        assert!(self.line_up_to(std::process::id()).is_some(), "{self:?} is not of this test");
        pidfd_send_signal(handle, Signal::KILL).unwrap_or_else(|error| panic!("kill {self:?}: {error}"));
    }
}

/// All processes.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(Process::of).collect()
}

/// The children of a process.
pub fn children(parent: u32) -> Vec<Process> {
    all().into_iter().filter(|process| process.parent == parent).collect()
}

/// All that descends from a process, as far as the line of parents is unbroken.
pub fn descendants(ancestor: u32) -> Vec<Process> {
    let mut others = all();
    let mut found: Vec<Process> = Vec::new();
    let mut next = 0;
    let mut parent = ancestor;
    loop {
        found.extend(others.extract_if(.., |process| process.parent == parent));
        match found.get(next) {
            Some(process) => parent = process.pid,
            None => return found,
        }
        next += 1;
    }
}

/// All processes that execute this very file. A zombie executes nothing any more.
pub fn executing(program: &Path) -> Vec<Process> {
    all().into_iter().filter(|process| process.program().as_deref() == Some(program)).collect()
}

/// How many descriptors a process has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}
