//! `toolexec run`: one call to its one outcome.

mod deliver;
mod perform;
mod prepare;

use super::exit_code::{self, Asked};
use super::host::Host;
use super::interrupts::Interrupts;
use super::lane::{Lane, Target};
use super::report;
use super::screen::Screen;
use super::settings::RunSettings;
use prepare::Prepared;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long the reader of a killed command's output may stand still before the rest of it is given up. The caller of
/// a call with a time limit waits for the answer and not for the output; what is on its way to a reader that still
/// reads takes a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(250);

/// How the outcome is told.
#[derive(Clone, Copy, Debug)]
struct Manner {
    json: bool,
    quiet: bool,
    /// Whether standard error takes colours.
    colours: bool,
    /// Whether the terminal shows how long the call has run.
    status_line: bool,
}

/// Where things are said.
struct Outlets {
    output: Lane,
    error: Lane,
    screen: Arc<Screen>,
}

impl Outlets {
    /// Whether what is said next would be behind a line that was begun.
    fn are_in_a_line(&self) -> bool {
        self.error.is_in_a_line() || (self.output.is_in_a_line() && Target::are_one())
    }
}

/// What is known of a call beside its outcome.
struct Facts {
    asked: Asked,
    /// What the call is called on a terminal.
    label: String,
    timeout: Option<Duration>,
}

/// Runs one call, tells its outcome, and gives back the exit code.
pub(super) fn run(settings: RunSettings, host: Host) -> u8 {
    let manner = Manner::of(&settings);
    // What blocks without bound on somebody else (arguments that are typed, or come through a pipe) comes first, while
    // a signal still does what it does to every program.
    let prepared = match prepare::prepare(settings, host) {
        Ok(prepared) => prepared,
        Err((tool, refusal)) => {
            let outcome = refusal.into_outcome(&tool);
            if manner.json {
                report::json(&outcome);
            } else {
                report::complain(outcome.message.as_deref().unwrap_or_default());
            }
            return exit_code::of(&outcome, Asked::Tool, None);
        }
    };
    // One thread is enough: all that may block has its own, and starting more would only take time.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report::complain(&format!("cannot start: {error}"));
            return exit_code::REFUSED;
        }
    };
    runtime.block_on(conduct(prepared, manner))
}

impl Manner {
    fn of(settings: &RunSettings) -> Self {
        let stderr = io::stderr();
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Self {
            json: settings.json,
            quiet: settings.quiet,
            colours: anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never,
            status_line: stderr.is_terminal() && !dumb && !settings.json && !settings.quiet,
        }
    }
}

async fn conduct(prepared: Prepared, manner: Manner) -> u8 {
    let mut interrupts = match Interrupts::listen() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            report::complain(&format!("cannot listen for signals: {error}"));
            return exit_code::REFUSED;
        }
    };
    let screen = Arc::new(Screen::default());
    let outlets = Outlets {
        output: Lane::to(Target::Output, &screen),
        error: Lane::to(Target::Error, &screen),
        screen: Arc::clone(&screen),
    };
    let Prepared { call, executor, facts, mut relay } = prepared;
    let cancel = CancellationToken::new();

    let performing = perform::perform(executor, call, relay.as_mut(), &cancel, &facts, manner, &outlets);
    let (performed, interrupt) = interrupts.withdraw(&cancel, || screen.close(), performing).await;
    let delivering = deliver::deliver(performed, relay, &facts, interrupt, manner, &outlets);
    interrupts.end_at(|| screen.close(), delivering).await
}
