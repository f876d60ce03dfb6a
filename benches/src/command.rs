//! The `toolexec` command beside this program, which some figures measure as it is.

use anyhow::{Context as _, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where it is.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let program = this.with_file_name("toolexec");
    ensure!(program.exists(), "{} is missing: cargo build --release -p toolexec", program.display());
    Ok(program)
}

/// Builds it, or brings it up to date, where `cargo run` has started this program; else what is there is taken.
///
/// Cargo builds the programs of other packages for nobody, and an old one would be measured without a word.
pub(crate) fn build() -> anyhow::Result<()> {
    let Some(cargo) = std::env::var_os("CARGO") else {
        eprintln!("not started by cargo: the toolexec command is measured as it is");
        return Ok(());
    };
    eprintln!("building the toolexec command, if it is not up to date");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--package", "toolexec", "--manifest-path", manifest]).stdin(Stdio::null());
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "the toolexec command cannot be built: {status}");
    Ok(())
}
