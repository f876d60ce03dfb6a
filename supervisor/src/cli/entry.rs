//! The way in: from what was typed to the exit code.

use super::args::Arguments;
use super::settings::{Settings, UsageError};
use super::{check, completions, doctor, exit_code, list, log, report, run};
use crate::WorkerProgram;
use std::process::ExitCode;
use toolexec_worker::Toolbox;

/// The whole `toolexec` command, for a program that wants to be it, with tools of its own in `toolbox`.
///
/// To be called at the top of `main`, before any thread exists: the same program serves as the zygote from which
/// workers are forked, and this is where it becomes one.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     toolexec::cli::main(&toolexec::worker::Toolbox::default())
/// }
/// ```
pub fn main(toolbox: &Toolbox) -> ExitCode {
    toolexec_worker::become_zygote_if_asked(toolbox);
    let code = match Arguments::read(std::env::args_os()) {
        Err(code) => code,
        Ok(typed) => act(typed, toolbox).unwrap_or_else(|error| {
            report::complain(&error.to_string());
            exit_code::REFUSED
        }),
    };
    ExitCode::from(code)
}

fn act(typed: Arguments, toolbox: &Toolbox) -> Result<u8, UsageError> {
    log::start(typed.log.as_deref())?;
    let program = if toolbox.is_empty() { WorkerProgram::for_commands() } else { WorkerProgram::this_program() };
    Ok(match Settings::from_arguments(typed)? {
        Settings::Run(settings) => run::run(*settings, program),
        Settings::List(settings) => list::list(&settings, program),
        Settings::Check(settings) => check::check(&settings),
        Settings::Doctor(settings) => doctor::doctor(&settings, program),
        Settings::Completions(shell) => completions::completions(shell),
    })
}
