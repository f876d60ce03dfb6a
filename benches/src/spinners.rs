//! A load: processes that use all the time that they get.

use crate::role::Role;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::process::{Child, Stdio};

/// Processes that spin until this is dropped.
#[derive(Debug)]
pub(crate) struct Spinners(Vec<Child>);

impl Spinners {
    /// Starts so many.
    pub(crate) fn start(count: usize) -> anyhow::Result<Self> {
        let mut spinners = Self(Vec::new());
        for _ in 0..count {
            spinners.0.push(Role::Spin.command()?.stdin(Stdio::null()).spawn()?);
        }
        Ok(spinners)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both can only fail for a child that was waited for already, and nobody else does that.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Spins. Ends with the thread that started it, should that not get to end it.
pub(crate) fn spin() -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    loop {
        std::hint::spin_loop();
    }
}
