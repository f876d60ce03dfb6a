//! What was typed, and what this program says to itself when it starts itself again.

use crate::cpus::Cpus;
use crate::figures::Figure;
use crate::role::Role;
use crate::table::Form;
use clap::Parser;
use std::ffi::OsString;

/// Which part this process plays.
#[derive(Debug)]
pub(crate) enum Part {
    /// The benchmark as a whole.
    Whole(Scope, Form),
    /// The measuring under one placement of all processes; the rows go to standard output as JSON.
    Measure(Cpus, Scope),
    /// A process that a baseline or a load needs.
    Role(Role),
}

/// What is measured, and how thoroughly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scope {
    pub(crate) figures: Vec<Figure>,
    pub(crate) effort: Effort,
}

/// How many samples are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// Enough for figures to be quoted.
    Full,
    /// A tenth of it: to see that everything runs, and roughly how fast.
    Quick,
}

impl Effort {
    /// This many of what a full run takes so many of.
    pub(crate) fn of(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full.div_ceil(10),
        }
    }
}

impl Scope {
    /// The same as arguments of this program.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let quick = (self.effort == Effort::Quick).then(|| "--quick".into());
        self.figures.iter().map(|figure| figure.as_str().into()).chain(quick).collect()
    }
}

/// Measures toolexec's speed as ratios to what the kernel alone costs, once with every process on one CPU and once free.
#[derive(Parser, Debug)]
#[command(
    name = "toolexec-bench",
    after_help = "A figure that misses its aim is told and is not a failure of the program."
)]
struct Typed {
    /// The figures to measure; all if none is named.
    #[arg(value_enum)]
    figures: Vec<Figure>,
    /// Takes a tenth of the samples.
    #[arg(long)]
    quick: bool,
    /// Prints one JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    #[arg(long, hide = true, value_enum)]
    measure: Option<Cpus>,
    #[arg(long, hide = true, value_enum)]
    role: Option<Role>,
}

/// Reads the arguments of this process; ends it where they are wrong.
pub(crate) fn read() -> Part {
    let Typed { figures, quick, json, measure, role } = Typed::parse();
    let figures = if figures.is_empty() { Figure::ALL.to_vec() } else { figures };
    let scope = Scope { figures, effort: if quick { Effort::Quick } else { Effort::Full } };
    match (role, measure) {
        (Some(role), _) => Part::Role(role),
        (None, Some(cpus)) => Part::Measure(cpus, scope),
        (None, None) => Part::Whole(scope, if json { Form::Json } else { Form::Table }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_survives_being_typed() {
        let scope = Scope { figures: vec![Figure::Kill, Figure::RoundTrip], effort: Effort::Quick };
        let typed = Typed::parse_from([OsString::from("toolexec-bench")].into_iter().chain(scope.to_arguments()));
        assert_eq!((typed.figures, typed.quick), (scope.figures, true));
    }
}
