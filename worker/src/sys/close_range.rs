//! Closing every descriptor but the wanted ones.

use std::io;
use std::os::fd::RawFd;

/// Closes all descriptors from 3 on, but `keep`; see close_range(2).
///
/// For a process that is about to live on with these: whoever still owns an `OwnedFd` of another number must not use
/// it again, so the caller leaves every such value undropped.
///
/// # Errors
/// What close_range says; `ENOSYS` before Linux 5.9.
pub(crate) fn close_all_but(keep: Option<RawFd>) -> io::Result<()> {
    let Some(keep) = keep.and_then(|keep| libc::c_uint::try_from(keep).ok()).filter(|keep| *keep >= 3) else {
        return close(3, libc::c_uint::MAX);
    };
    if keep > 3 {
        close(3, keep - 1)?;
    }
    close(keep + 1, libc::c_uint::MAX)
}

fn close(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory of this process; that no live owner of these
    // descriptors uses them again is what `close_all_but` asks of its caller.
    let result = unsafe { libc::close_range(first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
