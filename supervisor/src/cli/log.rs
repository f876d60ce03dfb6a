//! The log on standard error, for whoever asks for it; nobody else pays for it.

use super::settings::UsageError;
use tracing_subscriber::EnvFilter;

/// The variable that asks for a log where the command line does not.
const VARIABLE: &str = "TOOLEXEC_LOG";

/// Starts the log if the command line or [`VARIABLE`] asks for it.
pub(super) fn start(typed: Option<&str>) -> Result<(), UsageError> {
    let (asked_by, filter) = match typed {
        Some(filter) => ("--log", filter.to_owned()),
        None => match std::env::var_os(VARIABLE) {
            None => return Ok(()),
            Some(filter) if filter.is_empty() => return Ok(()),
            Some(filter) => (VARIABLE, filter.to_string_lossy().into_owned()),
        },
    };
    let filter = EnvFilter::try_new(&filter).map_err(|error| UsageError::new(asked_by, error.to_string()))?;
    let colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    // A log that another part of the host program has already set up is left as it is.
    let _already_there =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).try_init();
    Ok(())
}
