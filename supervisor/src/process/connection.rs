//! The control connection to a zygote: frames with descriptors, over a local socket.

use interprocess::os::unix::uds_local_socket::tokio::Stream;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Mutex;
use tokio::io::Interest;
use toolexec_protocol::encoding::EncodeError;
use toolexec_protocol::frame::{self, FrameError, FrameReader};
use toolexec_protocol::message::FORKED_DESCRIPTORS;
use toolexec_protocol::{Decode, Encode};

/// Why nothing more can be heard from a zygote.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error("the connection to the zygote failed")]
    Io(#[from] io::Error),
    #[error("the zygote broke the protocol")]
    Frame(#[from] FrameError),
}

/// Why something could not be said to a zygote.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the connection to the zygote failed")]
    Io(#[from] io::Error),
    #[error("the message cannot be sent")]
    Encode(#[from] EncodeError),
}

/// The four descriptors of a forked worker, or why they did not arrive.
pub(crate) type Descriptors = Result<[OwnedFd; FORKED_DESCRIPTORS], DescriptorsLost>;

/// Descriptors did not arrive: this process may open no more of them (`RLIMIT_NOFILE`), or the zygote sent another
/// number of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a new worker's descriptors could not be received: too many open files (RLIMIT_NOFILE)")]
pub(crate) struct DescriptorsLost;

/// The reading half: one task owns it.
#[derive(Debug)]
pub(crate) struct Receiver {
    stream: Arc<Stream>,
    frames: FrameReader,
    descriptors: VecDeque<Descriptors>,
}

/// The writing half: whoever wants a worker writes for itself.
#[derive(Debug)]
pub(crate) struct Sender {
    stream: Arc<Stream>,
    /// Held for one write, so that two frames never mix.
    buffer: Mutex<Vec<u8>>,
}

/// Makes a connection of this process's end of a socket pair.
pub(crate) fn connect(socket: UnixStream) -> io::Result<(Sender, Receiver)> {
    socket.set_nonblocking(true)?;
    let stream = Arc::new(Stream::try_from(OwnedFd::from(socket))?);
    let sender = Sender { stream: Arc::clone(&stream), buffer: Mutex::new(Vec::new()) };
    Ok((sender, Receiver { stream, frames: FrameReader::new(), descriptors: VecDeque::new() }))
}

impl Sender {
    /// Writes a whole frame at once. What a supervisor says to a zygote is short and bounded by the pool, so a socket
    /// without room for it means a zygote that does not read: an error, not a wait.
    pub(crate) fn send(&self, message: &impl Encode) -> Result<(), SendError> {
        // A poisoned lock guards only a buffer that is cleared first.
        let mut buffer = self.buffer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        buffer.clear();
        frame::write(message, &mut buffer)?;
        loop {
            match send(self.stream.as_fd(), &buffer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) if count == buffer.len() => return Ok(()),
                Ok(_) => return Err(io::Error::from(io::ErrorKind::WouldBlock).into()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }
}

impl Drop for Sender {
    /// Ends the connection, although the reading half lives on until the zygote has said its last.
    fn drop(&mut self) {
        let _closed_already = rustix::net::shutdown(self.stream.as_fd(), rustix::net::Shutdown::Write);
    }
}

impl Receiver {
    /// Waits for the next message; `None` when the zygote has closed the connection.
    pub(crate) async fn receive<T: Decode>(&mut self) -> Result<Option<T>, ReceiveError> {
        loop {
            if let Some(message) = self.frames.next()? {
                return Ok(Some(message));
            }
            if !self.fill().await? {
                self.frames.end()?;
                return Ok(None);
            }
        }
    }

    /// The descriptors of the oldest `Forked` whose descriptors were not taken yet.
    pub(crate) fn take_descriptors(&mut self) -> Descriptors {
        self.descriptors.pop_front().unwrap_or(Err(DescriptorsLost))
    }

    async fn fill(&mut self) -> Result<bool, ReceiveError> {
        let Self { stream, frames, descriptors } = self;
        let socket = stream.inner();
        let count = socket
            .async_io(Interest::READABLE, || {
                let mut bytes = [0; 4096];
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FORKED_DESCRIPTORS))];
                let mut control = RecvAncillaryBuffer::new(&mut space);
                let buffers = &mut [IoSliceMut::new(&mut bytes)];
                let received = recvmsg(socket.as_fd(), buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
                // The kernel ends a read behind the bytes that descriptors ride on, so there is one set at most,
                // and sets come in the order of their frames; see unix(7), SCM_RIGHTS.
                let mut set = Vec::new();
                for message in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(received) = message {
                        set.extend(received);
                    }
                }
                if received.flags.contains(ReturnFlags::CTRUNC) {
                    descriptors.push_back(Err(DescriptorsLost));
                } else if !set.is_empty() {
                    descriptors.push_back(set.try_into().map_err(|_| DescriptorsLost));
                }
                frames.push(&bytes[..received.bytes]);
                Ok(received.bytes)
            })
            .await?;
        Ok(count > 0)
    }
}
