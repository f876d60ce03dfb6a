//! The way in: from what was typed to the exit code.

use super::args::Arguments;
use super::host::Host;
use super::settings::{Settings, UsageError};
use super::{batch, check, completions, doctor, exit_code, list, log, report, run};
use crate::Tools;
use std::process::ExitCode;

/// The whole `toolexec` command, for a program that wants to be it, with tools of its own.
///
/// To be called at the top of `main`, before any thread exists: the same program serves as the zygote from which
/// workers are forked, and this is where it becomes one.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     toolexec::cli::main(toolexec::Tools::new())
/// }
/// ```
pub fn main(tools: Tools) -> ExitCode {
    let host = match Host::of(tools) {
        Ok(host) => host,
        Err(error) => {
            report::complain(&error.to_string());
            return ExitCode::from(exit_code::REFUSED);
        }
    };
    let code = match Arguments::read(std::env::args_os()) {
        Err(code) => code,
        Ok(typed) => act(typed, host).unwrap_or_else(|error| {
            report::complain(&error.to_string());
            exit_code::REFUSED
        }),
    };
    ExitCode::from(code)
}

fn act(typed: Arguments, host: Host) -> Result<u8, UsageError> {
    log::start(typed.log.as_deref())?;
    Ok(match Settings::from_arguments(typed)? {
        Settings::Run(settings) => run::run(*settings, host),
        Settings::Batch(settings) => batch::batch(*settings, host),
        Settings::List(settings) => list::list(&settings, host),
        Settings::Check(settings) => check::check(&settings, &host),
        Settings::Doctor(settings) => doctor::doctor(&settings, host.program),
        Settings::Completions(shell) => completions::completions(shell),
    })
}
