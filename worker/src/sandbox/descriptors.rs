//! Which descriptors a worker has: 0 to 2 and its call socket, which is close-on-exec. A tool has 0 to 2.

use crate::sys::close_range;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// Puts the pipes where the tool writes.
pub(super) fn place(stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> io::Result<()> {
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}

/// Closes everything but 0 to 2 and `socket`: the zygote's control connection, other workers' ends, whatever the
/// host program had left open before it became the zygote.
pub(super) fn close_others(socket: RawFd) -> io::Result<()> {
    close_range::close_all_but(Some(socket))
}
