//! Passing a tool's output on as it comes, with back-pressure.
//!
//! When the call is over, or should be, what is left of the output is taken at once and held here: so the executor has
//! not to guess how long a slow reader may be waited for, and the answer is not late.

use super::bound::{Bound, Dropped};
use super::lane::{Lane, Room, Target, WriteEnd};
use crate::call::{OutputChunk, OutputStream};
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// How many bytes are held for slow readers when the call should be over: 1 MiB. What is left then is what both pipes
/// hold, 64 KiB each unless the tool has made them larger, and what the executor has just read.
const HELD: usize = 1024 * 1024;

/// How many chunks may be on their way between the executor and the threads that write. More would only be memory:
/// the tool's pipe is a buffer already.
const CHUNKS: usize = 1;

/// Passes chunks on, each to its lane.
pub(super) struct Relay {
    chunks: mpsc::Receiver<OutputChunk>,
    /// What waits for room in its lane, in this order.
    waiting: VecDeque<OutputChunk>,
    waiting_bytes: usize,
    /// How many bytes may wait before no more chunks are taken.
    room: usize,
    /// Whether no more chunks come.
    ended: bool,
    output: Side,
    error: Side,
}

/// One of the two streams.
#[derive(Default)]
struct Side {
    /// Its bound, until its end is passed on.
    bound: Option<Bound>,
    dropped: Dropped,
}

/// Something about each of the two streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Both<T> {
    pub(super) output: T,
    pub(super) error: T,
}

impl Relay {
    /// A relay, and the end that the executor writes to. With `bound`, no more than that of each stream is passed on.
    pub(super) fn new(bound: Option<usize>) -> (mpsc::Sender<OutputChunk>, Self) {
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let side = || Side { bound: bound.map(Bound::new), dropped: Dropped::default() };
        let (output, error) = (side(), side());
        (sender, Self { chunks, waiting: VecDeque::new(), waiting_bytes: 0, room: 1, ended: false, output, error })
    }

    /// Passes chunks on until there are no more, or until one of the lanes can write no more: then the receiver is
    /// closed, by which the executor ends the call. May be dropped and called again at any time.
    pub(super) async fn pass_on(&mut self, output: &Lane, error: &Lane) {
        tokio::select! {
            () = self.pass_all(output, error) => return,
            _ = output.ended() => {}
            _ = error.ended() => {}
        }
        self.chunks.close();
    }

    /// Takes what comes from now on without waiting for the readers, up to [`HELD`]: the call should be over.
    pub(super) fn hold_the_rest(&mut self) {
        self.room = HELD;
    }

    /// Takes nothing more that is not on its way already.
    pub(super) fn close(&mut self) {
        self.chunks.close();
    }

    /// What the bound has dropped, as far as everything was passed on.
    pub(super) fn dropped(&self) -> Both<Dropped> {
        Both { output: self.output.dropped, error: self.error.dropped }
    }

    /// Ends it, and counts the bytes that were not passed on.
    pub(super) fn left(mut self) -> Both<u64> {
        let mut left = Both::default();
        self.chunks.close();
        while let Some(OutputChunk { stream, bytes }) = self.waiting.pop_front().or_else(|| self.chunks.try_recv().ok())
        {
            match stream {
                OutputStream::Stdout => left.output += bytes.len() as u64,
                OutputStream::Stderr => left.error += bytes.len() as u64,
            }
        }
        left.output += self.output.end().len() as u64;
        left.error += self.error.end().len() as u64;
        left
    }

    async fn pass_all(&mut self, output: &Lane, error: &Lane) {
        loop {
            if self.ended && self.waiting.is_empty() {
                for stream in [OutputStream::Stdout, OutputStream::Stderr] {
                    let bytes = self.side(stream).end();
                    self.wait(OutputChunk { stream, bytes });
                }
                if self.waiting.is_empty() {
                    return;
                }
            }
            let lane = self.waiting.front().map(|chunk| target(chunk).of(output, error));
            let may_take = !self.ended && self.waiting_bytes < self.room;
            tokio::select! {
                biased;
                room = ready(lane) => {
                    let Ok(room) = room else {
                        self.chunks.close();
                        return;
                    };
                    if let Some(chunk) = self.waiting.pop_front() {
                        self.waiting_bytes -= chunk.bytes.len();
                        room.fill(chunk.bytes);
                    }
                }
                chunk = self.chunks.recv(), if may_take => match chunk {
                    Some(OutputChunk { stream, bytes }) => {
                        let bytes = self.side(stream).push(bytes);
                        self.wait(OutputChunk { stream, bytes });
                    }
                    None => self.ended = true,
                },
            }
        }
    }

    fn wait(&mut self, chunk: OutputChunk) {
        if !chunk.bytes.is_empty() {
            self.waiting_bytes += chunk.bytes.len();
            self.waiting.push_back(chunk);
        }
    }

    fn side(&mut self, stream: OutputStream) -> &mut Side {
        match stream {
            OutputStream::Stdout => &mut self.output,
            OutputStream::Stderr => &mut self.error,
        }
    }
}

impl Side {
    fn push(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.bound {
            None => bytes,
            Some(bound) => bound.push(bytes),
        }
    }

    fn end(&mut self) -> Vec<u8> {
        let Some(bound) = self.bound.take() else { return Vec::new() };
        let (rest, dropped) = bound.finish();
        self.dropped = dropped;
        rest
    }
}

/// Waits until a lane has room; for ever, if there is none.
async fn ready(lane: Option<&Lane>) -> Result<Room<'_>, WriteEnd> {
    match lane {
        Some(lane) => lane.room().await,
        None => std::future::pending().await,
    }
}

impl Target {
    fn of<'l>(self, output: &'l Lane, error: &'l Lane) -> &'l Lane {
        match self {
            Self::Output => output,
            Self::Error => error,
        }
    }
}

fn target(chunk: &OutputChunk) -> Target {
    match chunk.stream {
        OutputStream::Stdout => Target::Output,
        OutputStream::Stderr => Target::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::time::Duration;

    fn block_on<F: Future>(work: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    fn chunk(stream: OutputStream, bytes: &[u8]) -> OutputChunk {
        OutputChunk { stream, bytes: bytes.to_vec() }
    }

    #[test]
    fn chunks_reach_their_lanes_in_order() {
        block_on(async {
            let ((output, read_output), (error, read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            let send = async move {
                for letter in *b"abc" {
                    sender.send(chunk(OutputStream::Stdout, &[letter])).await.unwrap();
                    sender.send(chunk(OutputStream::Stderr, &[letter - 32])).await.unwrap();
                }
            };
            let ((), ()) = tokio::join!(send, relay.pass_on(&output, &error));
            drop((output, error));
            let all = |read| std::io::read_to_string(File::from(read)).unwrap();
            assert_eq!((all(read_output), all(read_error)), ("abc".into(), "ABC".into()));
        });
    }

    #[test]
    fn passing_on_may_be_interrupted_at_any_time_without_a_loss() {
        block_on(async {
            let ((output, read), (error, _read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            let reader = std::thread::spawn(move || {
                let mut all = Vec::new();
                File::from(read).read_to_end(&mut all).unwrap();
                all
            });
            let sending = tokio::spawn(async move {
                for number in 0..200_u8 {
                    sender.send(chunk(OutputStream::Stdout, &vec![number; 10_000])).await.unwrap();
                }
            });
            while tokio::time::timeout(Duration::from_micros(50), relay.pass_on(&output, &error)).await.is_err() {}
            sending.await.unwrap();
            output.flushed().await.unwrap();
            drop((output, error));
            let expected: Vec<u8> = (0..200_u8).flat_map(|number| vec![number; 10_000]).collect();
            assert!(reader.join().unwrap() == expected);
        });
    }

    #[test]
    fn a_reader_that_went_away_closes_the_channel_though_nothing_more_is_sent() {
        block_on(async {
            let ((output, read), (error, _read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            drop(read);
            sender.send(chunk(OutputStream::Stdout, b"x")).await.unwrap();
            relay.pass_on(&output, &error).await;
            assert!(sender.is_closed());
        });
    }

    #[test]
    fn what_was_not_passed_on_is_counted() {
        block_on(async {
            let ((output, _read), (error, _read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            let big = vec![0; 1 << 20];
            let fill = async {
                loop {
                    sender.send(chunk(OutputStream::Stdout, &big)).await.unwrap();
                }
            };
            let full = async { tokio::join!(fill, relay.pass_on(&output, &error)) };
            tokio::time::timeout(Duration::from_millis(100), full).await.unwrap_err();
            // One is written, one waits in the lane, one in the relay, one in the channel.
            assert_eq!(relay.left(), Both { output: 2 << 20, error: 0 });
            assert!(output.behind() > 1 << 20);
        });
    }

    #[test]
    fn what_is_left_at_the_end_is_held_without_waiting_for_the_reader() {
        block_on(async {
            let ((output, read), (error, _read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            relay.hold_the_rest();
            let send = async move {
                for _ in 0..8 {
                    sender.send(chunk(OutputStream::Stdout, &[b'x'; 64 * 1024])).await.unwrap();
                }
            };
            tokio::select! {
                () = send => {}
                () = relay.pass_on(&output, &error) => panic!("nobody has read"),
            }
            let reader = std::thread::spawn(move || {
                let mut all = Vec::new();
                File::from(read).read_to_end(&mut all).unwrap();
                all.len()
            });
            relay.pass_on(&output, &error).await;
            output.flushed().await.unwrap();
            drop((output, error));
            assert_eq!(reader.join().unwrap(), 8 * 64 * 1024);
        });
    }

    #[test]
    fn what_is_held_is_bounded() {
        block_on(async {
            let ((output, _read), (error, _read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            relay.hold_the_rest();
            let sent = std::cell::Cell::new(0);
            let flood = async {
                loop {
                    sender.send(chunk(OutputStream::Stdout, &[b'x'; 64 * 1024])).await.unwrap();
                    sent.set(sent.get() + 64 * 1024);
                }
            };
            let full = async { tokio::join!(flood, relay.pass_on(&output, &error)) };
            tokio::time::timeout(Duration::from_millis(200), full).await.unwrap_err();
            assert!(sent.get() > HELD && sent.get() < HELD + 8 * 64 * 1024, "{}", sent.get());
        });
    }

    #[test]
    fn a_bound_keeps_head_and_tail_of_each_stream() {
        block_on(async {
            let ((output, read_output), (error, read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(Some(4));
            let send = async move {
                for letter in *b"abcdef" {
                    sender.send(chunk(OutputStream::Stdout, &[letter])).await.unwrap();
                }
                sender.send(chunk(OutputStream::Stderr, b"123")).await.unwrap();
            };
            let ((), ()) = tokio::join!(send, relay.pass_on(&output, &error));
            let dropped = Both { output: Dropped { bytes: 2, of: 6 }, error: Dropped { bytes: 0, of: 3 } };
            assert_eq!(relay.dropped(), dropped);
            assert_eq!(relay.left(), Both::default());
            drop((output, error));
            let all = |read| std::io::read_to_string(File::from(read)).unwrap();
            assert_eq!(all(read_output), "ab\n[… 2 bytes dropped …]\nef");
            assert_eq!(all(read_error), "123");
        });
    }

    #[test]
    fn a_sender_that_is_left_alive_is_not_waited_for() {
        block_on(async {
            let ((output, _read), (error, _read_error)) = (Lane::to_pipe(), Lane::to_pipe());
            let (sender, mut relay) = Relay::new(None);
            relay.close();
            relay.pass_on(&output, &error).await;
            assert!(sender.is_closed());
        });
    }
}
