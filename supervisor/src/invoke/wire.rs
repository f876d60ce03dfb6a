//! What a call and its worker say to each other.

use crate::process::{CallSocket, WorkerProcess};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use toolexec_protocol::frame::FrameReader;
use toolexec_protocol::id::Nonce;
use toolexec_protocol::message::{FromWorker, Report, Usage};

use super::classify::Broken;

/// How many bytes one read of a call socket takes.
const READ_SIZE: usize = 16 * 1024;

thread_local! {
    /// Where call sockets are read into, one for each thread: no call allocates for it.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_SIZE]);
}

/// A worker's reply, whose nonce was the call's.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) report: Report,
    pub(super) background_killed: u32,
    pub(super) usage: Usage,
    pub(super) reusable: bool,
    /// It was asked to end before it replied, since its time was nearly up.
    pub(super) asked_to_end: bool,
}

/// What is still to be written of a call's frame.
#[derive(Debug)]
pub(super) struct Outgoing {
    frame: Vec<u8>,
    sent: usize,
    /// Rides with the first byte.
    descriptor: Option<OwnedFd>,
}

impl Outgoing {
    pub(super) fn new(frame: Vec<u8>, descriptor: Option<OwnedFd>) -> Self {
        Self { frame, sent: 0, descriptor }
    }

    /// Writes as much as there is room for; true when nothing is left to be written.
    pub(super) fn write(&mut self, socket: &CallSocket) -> bool {
        loop {
            let rest = self.frame.get(self.sent..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match socket.send(rest, self.descriptor.as_ref().map(AsFd::as_fd)) {
                Ok(count) => {
                    self.sent += count;
                    self.descriptor = None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // The worker is gone. What it said before, or its end, is read from the socket.
                Err(_) => break,
            }
        }
        self.frame = Vec::new();
        true
    }
}

/// Waits for the worker's next message.
pub(super) async fn receive(process: &WorkerProcess, frames: &mut FrameReader) -> Result<FromWorker, Broken> {
    loop {
        match frames.next::<FromWorker>() {
            Ok(Some(message)) => return Ok(message),
            Ok(None) => {}
            Err(error) => return Err(Broken::Protocol(error.to_string())),
        }
        process.socket.readable().await;
        match take(frames, |buffer| process.socket.read(buffer)) {
            Ok(0) => {
                return Err(match frames.end() {
                    Ok(()) => Broken::Closed,
                    Err(error) => Broken::Protocol(error.to_string()),
                });
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Err(Broken::Closed),
        }
    }
}

/// Takes in what lies unread in a dead worker's socket, and gives back the reply among it that was complete at the
/// deadline: it was in time, so it counts, although nobody had come to read it.
pub(super) fn last_words(process: &WorkerProcess, frames: &mut FrameReader, call: Nonce) -> Option<Reply> {
    let mut reply = None;
    let mut taken: u64 = 0;
    loop {
        match frames.next::<FromWorker>() {
            Ok(Some(FromWorker::Reply { nonce, report, background_killed, usage, .. })) if nonce == call => {
                let last_byte = taken.saturating_sub(frames.buffered() as u64);
                if last_byte <= process.unread_at_deadline() {
                    let asked_to_end = process.asked_to_end();
                    reply = Some(Reply { report, background_killed, usage, reusable: false, asked_to_end });
                }
            }
            Ok(Some(FromWorker::Swept)) => process.on_swept(),
            Ok(Some(FromWorker::Reply { .. } | FromWorker::SetupFailed(_))) => {}
            Ok(None) => match take(frames, |buffer| process.socket.read_unannounced(buffer)) {
                Ok(0) | Err(_) => return reply,
                Ok(count) => taken += count as u64,
            },
            // Behind garbage nothing is believed.
            Err(_) => return reply,
        }
    }
}

fn take(frames: &mut FrameReader, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
    BUFFER.with_borrow_mut(|buffer| {
        let count = read(buffer)?;
        frames.push(buffer.get(..count).unwrap_or_default());
        Ok(count)
    })
}
