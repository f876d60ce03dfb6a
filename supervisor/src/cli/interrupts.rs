//! Being asked to end: SIGINT, SIGTERM and SIGHUP while a call runs.
//!
//! The first one withdraws the call, which is then answered as always, after its confirmed death. A second SIGINT
//! ends toolexec at once; the workers die with it.

use super::exit_code;
use rustix::process::Signal;
use std::future::Future;
use std::io;
use std::pin::pin;
use tokio::signal::unix::{self, SignalKind};
use tokio_util::sync::CancellationToken;

/// A signal that asks toolexec to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interrupt {
    /// SIGHUP: the terminal went away.
    Hangup,
    /// SIGINT: the user pressed Ctrl-C.
    Keyboard,
    /// SIGTERM.
    Terminate,
}

impl Interrupt {
    /// The signal.
    pub(super) fn signal(self) -> Signal {
        match self {
            Self::Hangup => Signal::HUP,
            Self::Keyboard => Signal::INT,
            Self::Terminate => Signal::TERM,
        }
    }

    /// The signal's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hangup => "SIGHUP",
            Self::Keyboard => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// Listens for [`Interrupt`]s from when it is made.
pub(super) struct Interrupts {
    hangup: Option<unix::Signal>,
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
}

impl Interrupts {
    /// Starts to listen. A signal that is ignored stays so: that is how `nohup`, and a shell that runs something in
    /// the background, ask to be left alone.
    pub(super) fn listen() -> io::Result<Self> {
        let ignored = ignored_signals();
        let listen = |interrupt: Interrupt| {
            let number = interrupt.signal().as_raw();
            if ignored & (1 << (number - 1)) != 0 {
                return Ok(None);
            }
            unix::signal(SignalKind::from_raw(number)).map(Some)
        };
        Ok(Self {
            hangup: listen(Interrupt::Hangup)?,
            interrupt: listen(Interrupt::Keyboard)?,
            terminate: listen(Interrupt::Terminate)?,
        })
    }

    /// Does `work` to its end. The first interrupt withdraws it through `cancel` and is given back; a second SIGINT
    /// calls `leave` and ends the process.
    pub(super) async fn withdraw<F: Future>(
        &mut self,
        cancel: &CancellationToken,
        leave: impl Fn(),
        work: F,
    ) -> (F::Output, Option<Interrupt>) {
        let mut work = pin!(work);
        let mut first = None;
        loop {
            tokio::select! {
                biased;
                interrupt = self.next() => match first {
                    None => {
                        first = Some(interrupt);
                        cancel.cancel();
                    }
                    Some(_) if interrupt == Interrupt::Keyboard => end_now(interrupt, &leave),
                    Some(_) => {}
                },
                output = &mut work => return (output, first),
            }
        }
    }

    /// Does `work` to its end, unless an interrupt comes: that ends the process, after `leave`.
    pub(super) async fn end_at<F: Future>(&mut self, leave: impl Fn(), work: F) -> F::Output {
        tokio::select! {
            biased;
            interrupt = self.next() => end_now(interrupt, &leave),
            output = work => output,
        }
    }

    async fn next(&mut self) -> Interrupt {
        tokio::select! {
            () = received(&mut self.interrupt) => Interrupt::Keyboard,
            () = received(&mut self.terminate) => Interrupt::Terminate,
            () = received(&mut self.hangup) => Interrupt::Hangup,
        }
    }
}

fn end_now(interrupt: Interrupt, leave: &impl Fn()) -> ! {
    leave();
    std::process::exit(exit_code::of_interrupt(interrupt).into())
}

async fn received(signal: &mut Option<unix::Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}

/// The set of signals that this process was started to ignore: bit n - 1 stands for signal n; see proc_pid_status(5).
/// Where it cannot be read nothing counts as ignored, as nothing usually is.
fn ignored_signals() -> u64 {
    std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_in(&status))
}

fn ignored_in(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert_eq!(ignored_in(status), 0x1001);
        assert_eq!(ignored_in(""), 0);
        assert_eq!(ignored_in("SigIgn:\tnonsense\n"), 0);
    }

    #[test]
    fn the_first_interrupt_withdraws_and_is_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut interrupts = Interrupts::listen().unwrap();
            let cancel = CancellationToken::new();
            let work = async {
                rustix::process::kill_process(rustix::process::getpid(), Signal::TERM).unwrap();
                cancel.cancelled().await;
                7
            };
            let (output, interrupt) = interrupts.withdraw(&cancel, || (), work).await;
            assert_eq!((output, interrupt), (7, Some(Interrupt::Terminate)));
        });
    }
}
