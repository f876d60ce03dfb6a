//! A blocking, framed socket that can carry descriptors.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, send, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use toolexec_protocol::encoding::EncodeError;
use toolexec_protocol::frame::{self, FrameError, FrameReader};
use toolexec_protocol::message::FORKED_DESCRIPTORS;

/// How many bytes one read asks for.
const READ_SIZE: usize = 4 * 1024;

/// Why nothing more can be said or heard on a channel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// The socket failed, or the peer is gone (`EPIPE`, `ECONNRESET`).
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The peer sent something else than messages.
    #[error("the peer broke the protocol")]
    Frame(#[from] FrameError),
    /// The message does not fit into a frame.
    #[error("the message cannot be sent")]
    Encode(#[from] EncodeError),
}

impl ChannelError {
    /// Whether the peer has simply gone: its end is closed, or was with something of ours unread in it.
    pub(crate) fn is_peer_gone(&self) -> bool {
        match self {
            Self::Io(error) => matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
            Self::Frame(_) | Self::Encode(_) => false,
        }
    }
}

/// A framed socket.
#[derive(Debug)]
pub(crate) struct Channel<S> {
    socket: S,
    reader: FrameReader,
    /// The newest descriptor that came and was not taken; an older one is closed.
    received: Option<OwnedFd>,
    /// Kept between frames, so that a call allocates nothing.
    outgoing: Vec<u8>,
}

impl<S: AsFd> Channel<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, reader: FrameReader::new(), received: None, outgoing: Vec::new() }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The descriptor that came with the newest frame, if one did.
    pub(crate) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.received.take()
    }

    /// Waits for the next message; `None` when the peer has closed the connection between two frames.
    pub(crate) fn receive<T: toolexec_protocol::Decode>(&mut self) -> Result<Option<T>, ChannelError> {
        loop {
            if let Some(message) = self.reader.next()? {
                return Ok(Some(message));
            }
            if !self.fill()? {
                self.reader.end()?;
                return Ok(None);
            }
        }
    }

    /// A message that has already come, without waiting for one.
    pub(crate) fn next_received<T: toolexec_protocol::Decode>(&mut self) -> Result<Option<T>, ChannelError> {
        Ok(self.reader.next()?)
    }

    /// Waits for bytes and takes them in; false at the end of the connection.
    pub(crate) fn fill(&mut self) -> Result<bool, ChannelError> {
        let mut bytes = [0; READ_SIZE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let count = loop {
            let buffers = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.socket, buffers, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) => break received.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.received = descriptors.last();
            }
        }
        self.reader.push(&bytes[..count]);
        Ok(count > 0)
    }

    /// Sends a whole frame, waiting until the peer has room for it.
    pub(crate) fn send(&mut self, message: &impl toolexec_protocol::Encode) -> Result<(), ChannelError> {
        self.send_with(message, &[])
    }

    /// Sends a whole frame with descriptors on its first byte.
    pub(crate) fn send_with(
        &mut self,
        message: &impl toolexec_protocol::Encode,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        self.outgoing.clear();
        frame::write(message, &mut self.outgoing)?;
        let mut sent = 0;
        while sent < self.outgoing.len() {
            let rest = &self.outgoing[sent..];
            let result = if sent == 0 && !descriptors.is_empty() {
                send_descriptors(self.socket.as_fd(), rest, descriptors)
            } else {
                send(&self.socket, rest, SendFlags::NOSIGNAL)
            };
            match result {
                Ok(count) => sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => wait_writable(self.socket.as_fd())?,
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        self.outgoing.shrink_to(READ_SIZE);
        Ok(())
    }
}

fn send_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<usize, rustix::io::Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FORKED_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(rustix::io::Errno::INVAL);
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

fn wait_writable(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut ready = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
    match poll(&mut ready, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
