//! A thread that writes to standard output or standard error, so that nobody else waits for their reader.
//!
//! A reader that goes away is noticed at the next write, and soon also without one, from the first piece on: a tool that
//! has not said anything yet is left alone, as it would be without toolexec.
//!
//! The writes block: that is the back-pressure by which a slow reader slows a tool down. Standard output is never
//! made non-blocking, because that would change it for every other program that shares it.

use super::screen::Screen;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};

/// How many pieces wait for the thread beside the one that it writes.
const WAITING: usize = 1;

/// How long a reader that went away is gone before that counts, should nothing be written meanwhile: half a second. A
/// tool that was about to end after its last line, as with `head -n 1` behind it, ends by itself and keeps its status.
const GONE_AFTER: Duration = Duration::from_millis(500);

/// How many bytes are given to one write: what a pipe takes in one go (`PIPE_BUF`, pipe(7)), so that a reader is
/// seen to move as soon as it does.
const PIECE: usize = 4096;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl Target {
    /// Its name in a message.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Output => "standard output",
            Self::Error => "standard error",
        }
    }

    /// Whether both lead to the same file, pipe or terminal, so that what is written to one appears behind the other.
    pub(super) fn are_one() -> bool {
        let place = |target: Self| rustix::fs::fstat(target.descriptor()).map(|found| (found.st_dev, found.st_ino));
        place(Self::Output).is_ok_and(|output| place(Self::Error) == Ok(output))
    }

    fn descriptor(self) -> BorrowedFd<'static> {
        match self {
            Self::Output => rustix::stdio::stdout(),
            Self::Error => rustix::stdio::stderr(),
        }
    }
}

/// Why nothing more is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WriteEnd {
    /// The reader went away.
    ReaderGone,
    /// Something else: what the system says.
    Failed(String),
}

/// How far the thread has come.
#[derive(Clone, Debug, Default)]
struct Progress {
    started: bool,
    written: u64,
    moved: Option<Instant>,
    end: Option<WriteEnd>,
}

/// A writer to standard output or standard error. Its thread starts with the first piece.
pub(super) struct Lane {
    pieces: mpsc::Sender<Vec<u8>>,
    progress: watch::Receiver<Progress>,
    accepted: Cell<u64>,
    last: Cell<Option<u8>>,
    screen: Option<Arc<Screen>>,
    not_started: RefCell<Option<Writer>>,
    destination: Arc<Destination>,
    reader_is_gone: Cell<bool>,
}

impl Lane {
    /// A lane to `target`; `screen` is the terminal, should it be one.
    pub(super) fn to(target: Target, screen: &Arc<Screen>) -> Self {
        let terminal = target.descriptor().is_terminal().then(|| Arc::clone(screen));
        Self::over(Destination::Standard(target), terminal)
    }

    /// A lane to a pipe of its own, and the pipe's other end.
    #[cfg(test)]
    pub(super) fn to_pipe() -> (Self, OwnedFd) {
        let (read, write) = rustix::pipe::pipe().unwrap();
        (Self::over(Destination::Own(write), None), read)
    }

    fn over(destination: Destination, screen: Option<Arc<Screen>>) -> Self {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (told, progress) = watch::channel(Progress::default());
        let destination = Arc::new(destination);
        let writer = Writer { destination: Arc::clone(&destination), waiting, told, screen: screen.clone() };
        Self {
            pieces,
            progress,
            accepted: Cell::new(0),
            last: Cell::new(None),
            screen,
            not_started: RefCell::new(Some(writer)),
            destination,
            reader_is_gone: Cell::new(false),
        }
    }

    /// Waits until the thread has room for a piece. Dropped before it is done, nothing is lost.
    pub(super) async fn room(&self) -> Result<Room<'_>, WriteEnd> {
        let not_started = self.not_started.borrow_mut().take();
        if let Some(writer) = not_started {
            writer.start().map_err(|error| WriteEnd::Failed(error.to_string()))?;
        }
        // The thread says that it has ended before it is gone.
        if let Some(end) = self.end() {
            return Err(end);
        }
        match self.pieces.reserve().await {
            Ok(permit) => Ok(Room { lane: self, permit }),
            Err(_) => Err(self.ended().await),
        }
    }

    /// Gives a piece to the thread, as soon as it has room.
    pub(super) async fn write(&self, bytes: Vec<u8>) -> Result<(), WriteEnd> {
        if !bytes.is_empty() {
            self.room().await?.fill(bytes);
        }
        Ok(())
    }

    /// Whether something else than a whole line was written last.
    pub(super) fn is_in_a_line(&self) -> bool {
        match &self.screen {
            Some(screen) => screen.is_in_a_line(),
            None => self.last.get().is_some_and(|last| last != b'\n'),
        }
    }

    /// Waits until nothing more can be written; for ever, if all goes well.
    pub(super) async fn ended(&self) -> WriteEnd {
        let mut progress = self.progress.clone();
        // Fails where the thread has ended without a word; it was asked to, then.
        let started = progress.wait_for(|progress| progress.started).await.is_ok();
        tokio::select! {
            biased;
            ended = progress.wait_for(|progress| progress.end.is_some()) => {
                if let Some(end) = ended.ok().and_then(|progress| progress.end.clone()) {
                    return end;
                }
            }
            () = self.reader_gone(), if started => return WriteEnd::ReaderGone,
        }
        std::future::pending().await
    }

    /// Waits until the reader of a pipe or a socket goes away; for ever, where the kernel does not tell.
    async fn reader_gone(&self) {
        let target = self.destination.as_fd();
        #[expect(
            deprecated,
            reason = "its replacement is unsafe, for the sake of types that may close their descriptor; a borrowed one \
                      stays open"
        )]
        let watched = AsyncFd::with_interest(target, Interest::ERROR);
        // Refused for files, which have no reader.
        if let Ok(watched) = watched {
            while let Ok(mut ready) = watched.ready(Interest::ERROR).await {
                let mut now = [PollFd::from_borrowed_fd(target, PollFlags::empty())];
                let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
                if poll(&mut now, Some(&at_once)).is_ok() && now[0].revents().contains(PollFlags::ERR) {
                    tokio::time::sleep(GONE_AFTER).await;
                    self.reader_is_gone.set(true);
                    return;
                }
                ready.clear_ready();
            }
        }
        std::future::pending().await
    }

    /// Waits until all is written, however long that takes.
    pub(super) async fn flushed(&self) -> Result<(), WriteEnd> {
        let mut progress = self.progress.clone();
        let accepted = self.accepted.get();
        let reached = progress.wait_for(|progress| progress.end.is_some() || progress.written >= accepted).await;
        match reached.ok().and_then(|progress| progress.end.clone()) {
            Some(end) => Err(end),
            None => Ok(()),
        }
    }

    /// Why nothing more is written, if that is so.
    pub(super) fn end(&self) -> Option<WriteEnd> {
        let noticed = || self.reader_is_gone.get().then_some(WriteEnd::ReaderGone);
        self.progress.borrow().end.clone().or_else(noticed)
    }

    /// How many bytes were given to the thread and are not written.
    pub(super) fn behind(&self) -> u64 {
        self.accepted.get().saturating_sub(self.progress.borrow().written)
    }
}

/// Room for one piece in a [`Lane`].
pub(super) struct Room<'l> {
    lane: &'l Lane,
    permit: mpsc::Permit<'l, Vec<u8>>,
}

impl Room<'_> {
    /// Gives the piece to the thread.
    pub(super) fn fill(self, bytes: Vec<u8>) {
        if let Some(last) = bytes.last() {
            self.lane.last.set(Some(*last));
        }
        self.lane.accepted.set(self.lane.accepted.get().saturating_add(bytes.len() as u64));
        self.permit.send(bytes);
    }
}

/// Does `work`, which waits for `lanes`, to its end as long as the reader of one of them takes something at least
/// every `patience`, counted from `since` or from when it last did. `None` where that was given up.
pub(super) async fn while_moving<F: Future>(
    lanes: [&Lane; 2],
    since: Instant,
    patience: Duration,
    work: F,
) -> Option<F::Output> {
    let moved = || lanes.iter().filter_map(|lane| lane.progress.borrow().moved).max();
    let mut work = pin!(work);
    loop {
        let before = moved();
        let until = before.map_or(since, |moved| moved.max(since)) + patience;
        match tokio::time::timeout_at(until.into(), &mut work).await {
            Ok(output) => return Some(output),
            Err(_) if moved() == before => return None,
            Err(_) => {}
        }
    }
}

/// Where a lane leads.
enum Destination {
    Standard(Target),
    #[cfg_attr(not(test), expect(dead_code, reason = "tests write to pipes of their own"))]
    Own(OwnedFd),
}

impl AsFd for Destination {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Standard(target) => target.descriptor(),
            Self::Own(descriptor) => descriptor.as_fd(),
        }
    }
}

/// What the thread owns.
struct Writer {
    destination: Arc<Destination>,
    waiting: mpsc::Receiver<Vec<u8>>,
    told: watch::Sender<Progress>,
    screen: Option<Arc<Screen>>,
}

impl Writer {
    /// Starts the thread. It ends when the lane is dropped; one that is blocked in a write ends with the process,
    /// which does not wait for it.
    fn start(mut self) -> io::Result<()> {
        self.told.send_modify(|progress| progress.started = true);
        let work = move || {
            while let Some(bytes) = self.waiting.blocking_recv() {
                if let Err(error) = self.write(&bytes) {
                    let end = match error {
                        Errno::PIPE => WriteEnd::ReaderGone,
                        other => WriteEnd::Failed(io::Error::from(other).to_string()),
                    };
                    // Before the receiver is dropped: whoever then finds it gone also finds out why.
                    self.told.send_modify(|progress| progress.end = Some(end));
                    return;
                }
            }
        };
        std::thread::Builder::new().name("output".into()).spawn(work).map(drop)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        for piece in bytes.chunks(PIECE) {
            match &self.screen {
                None => self.write_piece(piece)?,
                Some(screen) => screen.write(|| self.write_piece(piece).map(|()| piece.last().copied()))?,
            }
        }
        Ok(())
    }

    fn write_piece(&self, mut piece: &[u8]) -> Result<(), Errno> {
        let to = self.destination.as_fd();
        while !piece.is_empty() {
            match rustix::io::write(to, piece) {
                Ok(written) => {
                    piece = piece.get(written..).unwrap_or_default();
                    self.told.send_modify(|progress| {
                        progress.written += written as u64;
                        progress.moved = Some(Instant::now());
                    });
                }
                Err(Errno::INTR) => {}
                // Somebody else has made the shared descriptor non-blocking; Node does.
                Err(Errno::AGAIN) => match poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(other) => return Err(other),
                },
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    /// More than a pipe takes: 64 KiB is its capacity unless somebody changes it; see pipe(7).
    const TOO_MUCH: usize = 256 * 1024;

    fn block_on<F: Future>(work: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_slow_reader_gets_everything() {
        block_on(async {
            let (lane, read) = Lane::to_pipe();
            let reader = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                let mut all = Vec::new();
                File::from(read).read_to_end(&mut all).unwrap();
                all
            });
            for letter in *b"abc" {
                lane.write(vec![letter; TOO_MUCH]).await.unwrap();
            }
            lane.flushed().await.unwrap();
            drop(lane);
            let expected = [[b'a'; TOO_MUCH], [b'b'; TOO_MUCH], [b'c'; TOO_MUCH]].concat();
            assert!(reader.join().unwrap() == expected);
        });
    }

    #[test]
    fn a_reader_that_stands_still_is_given_up_and_the_rest_counted() {
        block_on(async {
            let (lane, read) = Lane::to_pipe();
            lane.write(vec![b'x'; TOO_MUCH]).await.unwrap();
            let patience = Duration::from_millis(50);
            assert_eq!(while_moving([&lane, &lane], Instant::now(), patience, lane.flushed()).await, None);
            let taken = rustix::io::ioctl_fionread(&read).unwrap();
            assert_eq!(lane.behind(), TOO_MUCH as u64 - taken);
        });
    }

    #[test]
    fn a_reader_that_moves_is_waited_for() {
        block_on(async {
            let (lane, read) = Lane::to_pipe();
            lane.write(vec![b'x'; TOO_MUCH]).await.unwrap();
            let reader = std::thread::spawn(move || {
                let mut read = File::from(read);
                let mut piece = [0; 16 * 1024];
                let mut taken = 0;
                while taken < TOO_MUCH {
                    std::thread::sleep(Duration::from_millis(10));
                    taken += read.read(&mut piece).unwrap();
                }
            });
            let patience = Duration::from_secs(5);
            assert_eq!(while_moving([&lane, &lane], Instant::now(), patience, lane.flushed()).await, Some(Ok(())));
            assert_eq!(lane.behind(), 0);
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_reader_that_goes_away_is_noticed_in_the_middle_of_a_write() {
        block_on(async {
            let (lane, read) = Lane::to_pipe();
            lane.write(vec![b'x'; TOO_MUCH]).await.unwrap();
            drop(read);
            assert_eq!(lane.ended().await, WriteEnd::ReaderGone);
            assert_eq!(lane.flushed().await, Err(WriteEnd::ReaderGone));
            assert_eq!(lane.write(vec![b'x']).await, Err(WriteEnd::ReaderGone));
        });
    }

    #[test]
    fn a_reader_that_goes_away_is_noticed_though_nothing_is_written() {
        block_on(async {
            let (lane, read) = Lane::to_pipe();
            lane.write(b"x".to_vec()).await.unwrap();
            lane.flushed().await.unwrap();
            let soon = Duration::from_millis(50);
            tokio::time::timeout(soon, lane.ended()).await.expect_err("the reader is there");
            assert_eq!(lane.end(), None);
            drop(read);
            assert_eq!(lane.ended().await, WriteEnd::ReaderGone);
            assert_eq!(lane.end(), Some(WriteEnd::ReaderGone));
        });
    }

    #[test]
    fn a_reader_that_goes_away_before_there_is_anything_to_read_does_not_matter() {
        block_on(async {
            let (lane, read) = Lane::to_pipe();
            drop(read);
            let soon = Duration::from_millis(50);
            tokio::time::timeout(soon, lane.ended()).await.expect_err("nothing was written");
            assert_eq!(lane.end(), None);
        });
    }

    #[test]
    fn a_file_has_no_reader_that_could_go_away() {
        block_on(async {
            let file = tempfile::tempfile().unwrap();
            let lane = Lane::over(Destination::Own(file.into()), None);
            lane.write(b"x".to_vec()).await.unwrap();
            let soon = Duration::from_millis(50);
            tokio::time::timeout(soon, lane.ended()).await.expect_err("a file is always there");
        });
    }

    #[test]
    fn a_full_disk_is_told_apart_from_a_reader_that_went_away() {
        block_on(async {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let lane = Lane::over(Destination::Own(full.into()), None);
            lane.write(b"x".to_vec()).await.unwrap();
            let WriteEnd::Failed(why) = lane.ended().await else { panic!("the reader is there") };
            assert!(why.contains("No space left"), "{why}");
        });
    }

    #[test]
    fn a_descriptor_that_somebody_made_non_blocking_is_waited_for() {
        block_on(async {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
            let lane = Lane::over(Destination::Own(write), None);
            lane.write(vec![b'x'; TOO_MUCH]).await.unwrap();
            let reader = std::thread::spawn(move || {
                let mut taken = 0;
                let mut piece = [0; 4096];
                while taken < TOO_MUCH {
                    match rustix::io::read(&read, &mut piece) {
                        Ok(length) => taken += length,
                        Err(Errno::AGAIN) => std::thread::yield_now(),
                        Err(other) => panic!("{other}"),
                    }
                }
            });
            lane.flushed().await.unwrap();
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_begun_line_is_remembered() {
        block_on(async {
            let (lane, _read) = Lane::to_pipe();
            assert!(!lane.is_in_a_line());
            lane.write(b"abc".to_vec()).await.unwrap();
            assert!(lane.is_in_a_line());
            lane.write(b"\n".to_vec()).await.unwrap();
            assert!(!lane.is_in_a_line());
        });
    }
}
