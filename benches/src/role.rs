//! What this program is when it starts itself again as somebody else's other half.

use crate::figures::{fresh_rate, round_trip};
use crate::spinners;
use anyhow::Context as _;
use clap::ValueEnum;
use std::process::Command;

/// A process that a baseline or a load needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Sends back what comes on the socket that is its standard input.
    Answer,
    /// Forks and reaps as often as each line of its standard input says, and prints how long that took.
    Clone,
    /// Uses a CPU until it is killed.
    Spin,
}

impl Role {
    /// Plays it in this process.
    pub(crate) fn play(self) -> anyhow::Result<()> {
        match self {
            Self::Answer => round_trip::answer(),
            Self::Clone => fresh_rate::clone_on_demand(),
            Self::Spin => spinners::spin(),
        }
    }

    /// A command that plays it.
    pub(crate) fn command(self) -> anyhow::Result<Command> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        let name = self.to_possible_value().context("a role without a name")?;
        command.arg("--role").arg(name.get_name());
        Ok(command)
    }
}
