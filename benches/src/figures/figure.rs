//! Which figures there are.

use super::{after_kill, fresh_rate, fresh_worker, kill, memory, round_trip, run};
use crate::arguments::Effort;
use crate::cpus::Cpus;
use crate::table::Entry;
use serde::{Deserialize, Serialize};

/// Something that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    /// A call to a worker that serves many.
    RoundTrip,
    /// A call to a worker of its own that was ready.
    FreshWorker,
    /// Such calls one after the other, four at a time.
    FreshRate,
    /// How late a kill is.
    Kill,
    /// The call after a kill.
    AfterKill,
    /// The whole of `toolexec run`.
    Run,
    /// What an idle worker holds.
    Memory,
}

impl Figure {
    /// All, in the order of the table.
    pub(crate) const ALL: [Self; 7] =
        [Self::RoundTrip, Self::FreshWorker, Self::FreshRate, Self::Kill, Self::AfterKill, Self::Run, Self::Memory];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::RoundTrip => "round-trip",
            Self::FreshWorker => "fresh-worker",
            Self::FreshRate => "fresh-rate",
            Self::Kill => "kill",
            Self::AfterKill => "after-kill",
            Self::Run => "run",
            Self::Memory => "memory",
        }
    }

    /// Whether the `toolexec` command is part of it.
    pub(crate) fn needs_the_command(self) -> bool {
        match self {
            Self::Run | Self::Memory => true,
            Self::RoundTrip | Self::FreshWorker | Self::FreshRate | Self::Kill | Self::AfterKill => false,
        }
    }

    /// Measures it in this process, which was placed already.
    pub(crate) fn measure(self, cpus: Cpus, effort: Effort) -> anyhow::Result<Vec<Entry>> {
        match self {
            Self::RoundTrip => round_trip::measure(cpus, effort),
            Self::FreshWorker => fresh_worker::measure(cpus, effort),
            Self::FreshRate => fresh_rate::measure(cpus, effort),
            Self::Kill => kill::measure(cpus, effort),
            Self::AfterKill => after_kill::measure(cpus, effort),
            Self::Run => run::measure(cpus, effort),
            Self::Memory => memory::measure(cpus, effort),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_figure_is_listed_and_typed_by_the_name_it_has_in_the_table() {
        assert_eq!(Figure::value_variants(), Figure::ALL);
        for figure in Figure::ALL {
            assert_eq!(Figure::from_str(figure.as_str(), false), Ok(figure));
            assert_eq!(serde_json::to_value(figure).unwrap(), figure.as_str());
        }
    }
}
