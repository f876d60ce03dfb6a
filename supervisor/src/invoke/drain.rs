//! A running call's output: read as it comes, collected or passed on.

use super::isolated::cancelled;
use crate::call::{Captured, Collector, OutputChunk, OutputMode, OutputStream};
use std::cell::RefCell;
use std::io;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many bytes one read takes: what a pipe holds by default; see pipe(7).
const READ_SIZE: usize = 64 * 1024;

/// How many reads the last look into a pipe takes at most. Where the whole tree is dead a pipe holds at most
/// `/proc/sys/fs/pipe-max-size` (1 MiB by default); where something may still write, this ends the reading.
const LAST_READS: usize = 64;

/// After a kill, how long a reader that takes nothing is waited for: 250 ms, so that an outcome is never late for it.
const READER_BOUND: Duration = Duration::from_millis(250);

thread_local! {
    /// Where pipes are read into, one for each thread: no call allocates for it.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_SIZE]);
}

/// Where both output streams of a call go.
#[derive(Debug)]
pub(super) struct Drain {
    stdout: Side,
    stderr: Side,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    Collectors,
    Reader(mpsc::Sender<OutputChunk>),
    /// The reader is not waited for any more: what still comes is counted.
    Nobody,
}

#[derive(Debug)]
struct Side {
    collector: Collector,
    /// A chunk that the reader has not taken yet; nothing more is read meanwhile.
    pending: Option<Vec<u8>>,
    /// All that was read, where it is not collected.
    passed: u64,
    /// What of that the reader did not get.
    dropped: u64,
    ended: bool,
}

/// What a wait for output has led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    /// Something was read, or taken.
    Moved,
    /// The reader has gone away.
    ReaderGone,
}

impl Drain {
    pub(super) fn new(mode: OutputMode, limit: usize) -> Self {
        let destination = match mode {
            OutputMode::Collect => Destination::Collectors,
            OutputMode::Stream(reader) => Destination::Reader(reader),
        };
        Self { stdout: Side::new(limit), stderr: Side::new(limit), destination }
    }

    /// Waits until something can be moved, and moves it. Never resolves when both streams have ended and nothing
    /// waits for the reader.
    pub(super) async fn flow(&mut self, stdout: &pipe::Receiver, stderr: &pipe::Receiver) -> Flow {
        let Self { stdout: out, stderr: err, destination } = self;
        let pending = out.pending.is_some() || err.pending.is_some();
        tokio::select! {
            biased;
            () = gone(destination) => Flow::ReaderGone,
            permit = reserve(destination), if pending => {
                let Some(permit) = permit else {
                    return Flow::ReaderGone;
                };
                let (stream, side) = if out.pending.is_some() { (OutputStream::Stdout, out) } else { (OutputStream::Stderr, err) };
                if let Some(bytes) = side.pending.take() {
                    permit.send(OutputChunk { stream, bytes });
                }
                Flow::Moved
            }
            _ready = stdout.readable(), if out.wants_more() => {
                out.read(destination, |buffer| stdout.try_read(buffer));
                Flow::Moved
            }
            _ready = stderr.readable(), if err.wants_more() => {
                err.read(destination, |buffer| stderr.try_read(buffer));
                Flow::Moved
            }
        }
    }

    /// Takes what is left in the pipes, without waiting for an end that somebody may hold open. With `patient`, the
    /// reader may take its time for it until the call is cancelled or the executor closed; else it is waited for only while it takes something.
    pub(super) async fn finish(
        &mut self,
        stdout: &pipe::Receiver,
        stderr: &pipe::Receiver,
        patient: bool,
        cancel: Option<&CancellationToken>,
        closing: &CancellationToken,
    ) {
        for _ in 0..LAST_READS {
            let Self { stdout: out, stderr: err, destination } = self;
            // Past what tokio believes about readiness: after a death nothing announces itself any more.
            let mut moved = out.read(destination, |buffer| Ok(rustix::io::read(stdout, buffer)?));
            moved |= err.read(destination, |buffer| Ok(rustix::io::read(stderr, buffer)?));
            self.pass_on(patient, cancel, closing).await;
            if !moved {
                return;
            }
        }
    }

    async fn pass_on(&mut self, patient: bool, cancel: Option<&CancellationToken>, closing: &CancellationToken) {
        for (stream, side) in [(OutputStream::Stdout, &mut self.stdout), (OutputStream::Stderr, &mut self.stderr)] {
            let Some(bytes) = side.pending.take() else {
                continue;
            };
            let count = bytes.len() as u64;
            let chunk = OutputChunk { stream, bytes };
            let delivered = match &self.destination {
                Destination::Reader(reader) if patient => tokio::select! {
                    biased;
                    sent = reader.send(chunk) => sent.is_ok(),
                    () = cancelled(cancel) => false,
                    () = closing.cancelled() => false,
                },
                Destination::Reader(reader) => {
                    tokio::time::timeout(READER_BOUND, reader.send(chunk)).await.is_ok_and(|sent| sent.is_ok())
                }
                Destination::Collectors | Destination::Nobody => false,
            };
            if !delivered {
                side.dropped += count;
                self.destination = Destination::Nobody;
            }
        }
    }

    /// What came of both streams.
    pub(super) fn captured(self) -> (Captured, Captured) {
        let collected = matches!(self.destination, Destination::Collectors);
        (self.stdout.captured(collected), self.stderr.captured(collected))
    }
}

impl Side {
    fn new(limit: usize) -> Self {
        Self { collector: Collector::new(limit), pending: None, passed: 0, dropped: 0, ended: false }
    }

    fn wants_more(&self) -> bool {
        !self.ended && self.pending.is_none()
    }

    /// Reads once, unless a chunk still waits for the reader. True when there was, or is, something.
    fn read(&mut self, destination: &Destination, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> bool {
        if !self.wants_more() {
            return self.pending.is_some();
        }
        BUFFER.with_borrow_mut(|buffer| match read(buffer) {
            Ok(0) => {
                self.ended = true;
                false
            }
            Ok(count) => {
                match destination {
                    Destination::Collectors => self.collector.push(&buffer[..count]),
                    Destination::Reader(_) => {
                        self.passed += count as u64;
                        self.pending = Some(buffer[..count].to_vec());
                    }
                    Destination::Nobody => {
                        self.passed += count as u64;
                        self.dropped += count as u64;
                    }
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                self.ended = true;
                false
            }
        })
    }

    fn captured(self, collected: bool) -> Captured {
        if collected {
            return self.collector.finish();
        }
        let Self { pending, passed, dropped, .. } = self;
        let never_taken = pending.map_or(0, |bytes| bytes.len() as u64);
        Captured { bytes: passed, dropped: dropped + never_taken, ..Captured::default() }
    }
}

async fn gone(destination: &Destination) {
    match destination {
        Destination::Reader(reader) => reader.closed().await,
        Destination::Collectors | Destination::Nobody => std::future::pending().await,
    }
}

async fn reserve(destination: &Destination) -> Option<mpsc::Permit<'_, OutputChunk>> {
    match destination {
        Destination::Reader(reader) => reader.reserve().await.ok(),
        Destination::Collectors | Destination::Nobody => std::future::pending().await,
    }
}
