//! The terminal while a call runs: a line that shows elapsed and remaining time, and how it keeps out of the way of
//! what the tool prints.
//!
//! The line is drawn by a thread of its own, because a terminal may block its writers for as long as it likes
//! (Ctrl-S), and nothing of that may delay an answer.

use super::report::quantity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};

/// A call that is over sooner shows no line: a flicker tells nobody anything.
pub(super) const APPEARS_AFTER: Duration = Duration::from_millis(500);

/// How often the line is drawn anew.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// How long the end of a call waits for a terminal that does not take the clearing of the line.
const CLEARED_WITHIN: Duration = Duration::from_millis(100);

/// The columns of the bar.
const BAR_WIDTH: u64 = 24;

/// The terminal, shared between whoever writes to it.
#[derive(Default)]
pub(super) struct Screen {
    state: Mutex<State>,
    closed: AtomicBool,
}

struct State {
    /// The line that is there now.
    line: Option<ProgressBar>,
    /// Whether the cursor is at the beginning of a line. A line that was begun is not drawn over.
    at_line_start: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { line: None, at_line_start: true }
    }
}

impl State {
    fn clear(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

impl Screen {
    /// Writes to the terminal with the line out of the way; `write` gives back the last byte that it wrote.
    pub(super) fn write<E>(&self, write: impl FnOnce() -> Result<Option<u8>, E>) -> Result<(), E> {
        let mut state = self.lock();
        state.clear();
        if let Some(last) = write()? {
            state.at_line_start = last == b'\n';
        }
        Ok(())
    }

    /// Whether a new line has to be begun before something else is said. A terminal that is busy is left alone.
    pub(super) fn is_in_a_line(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => !state.at_line_start,
            Err(TryLockError::Poisoned(poisoned)) => !poisoned.into_inner().at_line_start,
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Shows `line` where nothing else is on its way to the terminal.
    fn show(&self, line: &Line) {
        // Somebody who writes, and may be blocked in it, has cleared the line and holds the lock.
        let Ok(mut state) = self.state.try_lock() else { return };
        if !state.at_line_start || self.closed.load(Ordering::Acquire) {
            return;
        }
        let bar = state.line.get_or_insert_with(|| line.bar());
        if let Some(elapsed) = line.elapsed_share() {
            bar.set_position(elapsed);
        }
        bar.set_message(line.text());
        bar.tick();
    }

    /// Takes the line away for good. A terminal that does not move is given up after [`CLEARED_WITHIN`].
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let given_up = Instant::now() + CLEARED_WITHIN;
        loop {
            match self.state.try_lock() {
                Ok(mut state) => return state.clear(),
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner().clear(),
                Err(TryLockError::WouldBlock) if Instant::now() < given_up => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is two values that are right after every step, whoever panicked meanwhile.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the line tells.
struct Line {
    label: String,
    started: Instant,
    timeout: Option<Duration>,
}

impl Line {
    fn bar(&self) -> ProgressBar {
        let (length, template) = match self.timeout {
            Some(_) => (Some(BAR_WIDTH), format!("{{spinner}} {{msg}} [{{bar:{BAR_WIDTH}}}]")),
            None => (None, "{spinner} {msg}".to_owned()),
        };
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        // The template is a constant; with indicatif's own one the line would only look plainer.
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.with_message(self.text()).with_position(self.elapsed_share().unwrap_or_default())
    }

    /// How much of the bar is full.
    fn elapsed_share(&self) -> Option<u64> {
        let share = self.started.elapsed().as_secs_f64() / self.timeout?.as_secs_f64();
        // The share is between 0 and 1, and the width a small number.
        Some((share.min(1.0) * BAR_WIDTH as f64) as u64)
    }

    fn text(&self) -> String {
        line_text(&self.label, self.started.elapsed(), self.timeout)
    }
}

fn line_text(label: &str, elapsed: Duration, timeout: Option<Duration>) -> String {
    let elapsed_text = quantity::clock(elapsed);
    match timeout.map(|timeout| timeout.saturating_sub(elapsed)) {
        None => format!("{label}: {elapsed_text}"),
        Some(Duration::ZERO) => format!("{label}: {elapsed_text}, the time is up"),
        Some(left) => format!("{label}: {elapsed_text}, {} left", quantity::clock(left)),
    }
}

/// The thread that draws the line; dropping this ends it.
pub(super) struct StatusLine {
    screen: Arc<Screen>,
    _thread_ends_with_it: mpsc::Sender<()>,
}

impl StatusLine {
    /// Begins to show the line of a call that has started at `started`. Without a thread there is no line, and
    /// nothing else is lost.
    pub(super) fn show(screen: Arc<Screen>, label: &str, started: Instant, timeout: Option<Duration>) -> Option<Self> {
        let line = Line { label: printable(label), started, timeout };
        let (stop, stopped) = mpsc::channel();
        let theirs = Arc::clone(&screen);
        let draw = move || {
            loop {
                theirs.show(&line);
                match stopped.recv_timeout(DRAWN_EVERY) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        std::thread::Builder::new().name("status-line".into()).spawn(draw).ok()?;
        Some(Self { screen, _thread_ends_with_it: stop })
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.screen.close();
    }
}

/// A name without what could move the cursor.
fn printable(label: &str) -> String {
    label.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_elapsed_and_remaining_time() {
        let text = |elapsed, timeout: Option<u64>| {
            line_text("find", Duration::from_millis(elapsed), timeout.map(Duration::from_millis))
        };
        assert_eq!(text(1234, Some(2000)), "find: 1.2 s, 0.8 s left");
        assert_eq!(text(1234, None), "find: 1.2 s");
        assert_eq!(text(2100, Some(2000)), "find: 2.1 s, the time is up");
        assert_eq!(text(75_000, Some(600_000)), "find: 1:15, 8:45 left");
    }

    #[test]
    fn the_bar_is_full_at_the_deadline_and_not_beyond() {
        let line = |timeout| Line { label: String::new(), started: Instant::now(), timeout };
        assert_eq!(line(None).elapsed_share(), None);
        assert_eq!(line(Some(Duration::from_secs(3600))).elapsed_share(), Some(0));
        assert_eq!(line(Some(Duration::from_nanos(1))).elapsed_share(), Some(BAR_WIDTH));
    }

    #[test]
    fn a_label_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }

    #[test]
    fn a_begun_line_is_remembered_and_never_drawn_over() {
        let screen = Screen::default();
        assert!(!screen.is_in_a_line());
        let write = |bytes: &[u8]| screen.write(|| Ok::<_, ()>(bytes.last().copied())).unwrap();
        write(b"abc");
        assert!(screen.is_in_a_line());
        write(b"");
        assert!(screen.is_in_a_line());
        screen.show(&Line { label: "x".into(), started: Instant::now(), timeout: None });
        assert!(screen.lock().line.is_none());
        write(b"\n");
        assert!(!screen.is_in_a_line());
        screen.close();
        screen.show(&Line { label: "x".into(), started: Instant::now(), timeout: None });
        assert!(screen.lock().line.is_none());
    }

    #[test]
    fn closing_does_not_wait_for_a_blocked_writer() {
        let screen = Screen::default();
        let _blocked = screen.lock();
        let before = Instant::now();
        screen.close();
        assert!(before.elapsed() < CLEARED_WITHIN * 20);
    }
}
