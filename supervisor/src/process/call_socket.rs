//! The socket between a call and its worker.

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The supervisor's end of a call socket.
#[derive(Debug)]
pub(crate) struct CallSocket {
    socket: UnixStream,
}

impl CallSocket {
    /// Registers it with the runtime that this is called in.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UnixStream::from_std(socket)? })
    }

    /// Waits until something may have come.
    pub(crate) async fn readable(&self) {
        if self.socket.readable().await.is_err() {
            // Only when the runtime is shutting down, and then this future is dropped.
            std::future::pending().await
        }
    }

    /// Reads what has come; the end of the connection is 0 bytes.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.try_read(buffer)
    }

    /// As [`CallSocket::read`], past what the runtime believes: after a death nothing announces itself any more.
    pub(crate) fn read_unannounced(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(received(recv(&self.socket, buffer, RecvFlags::DONTWAIT))?)
    }

    /// Looks at what has come without taking it, past what the runtime believes. If nothing has, the runtime knows it
    /// from then on, so that the next wait is one and not a read for nothing.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut looked = false;
        let seen = self.socket.try_io(Interest::READABLE, || {
            looked = true;
            Ok(received(recv(&self.socket, &mut *buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT))?)
        });
        if looked { seen } else { Ok(received(recv(&self.socket, buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT))?) }
    }

    /// How many bytes have come and were not read.
    pub(crate) fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.socket).unwrap_or(0)
    }

    /// Sends what there is room for, and with the first byte the descriptor. `WouldBlock` where there is no room, and then
    /// [`CallSocket::writable`] waits for it.
    pub(crate) fn send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<usize> {
        // Past the runtime's readiness first: an idle worker's socket has room for a small call.
        match self.send_now(bytes, descriptor) {
            // Once more through the runtime, so that it waits for the next change: the worker may have made room since,
            // and that change is not announced twice.
            Err(rustix::io::Errno::AGAIN) => {
                self.socket.try_io(Interest::WRITABLE, || Ok(self.send_now(bytes, descriptor)?))
            }
            sent => Ok(sent?),
        }
    }

    /// Waits until there may be room.
    pub(crate) async fn writable(&self) {
        if self.socket.writable().await.is_err() {
            // As above.
            std::future::pending().await
        }
    }

    fn send_now(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> rustix::io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let Some(descriptor) = descriptor else {
            return send(&self.socket, bytes, flags);
        };
        let descriptors = [descriptor];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, flags)
    }
}

impl AsFd for CallSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn received(result: rustix::io::Result<(usize, usize)>) -> rustix::io::Result<usize> {
    result.map(|(_, count)| count)
}
