//! The whole: measures under both placements, each in a process of its own, and shows what came of it.

use crate::arguments::Scope;
use crate::command;
use crate::cpus::Cpus;
use crate::machine::Machine;
use crate::table::{self, Entry, Form};
use anyhow::{Context as _, ensure};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

/// Measures everything and prints it.
pub(crate) fn whole(scope: &Scope, form: Form) -> anyhow::Result<()> {
    if scope.figures.iter().any(|figure| figure.needs_the_command()) {
        command::build()?;
    }
    let machine = Machine::now();
    let mut entries = Vec::new();
    for cpus in Cpus::ALL {
        entries.extend(measured(cpus, scope)?);
    }
    let mut out = std::io::stdout().lock();
    table::write(&mut out, form, &machine, &beside_one_another(entries))?;
    Ok(out.flush()?)
}

/// The same with both placements of a row beside one another, and with each skip told once.
fn beside_one_another(entries: Vec<Entry>) -> Vec<Entry> {
    let mut sorted: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let same = |other: &Entry| match (&entry, other) {
            (Entry::Measured(one), Entry::Measured(other)) => one.figure == other.figure && one.what == other.what,
            (Entry::Skipped { .. }, other) => entry == *other,
            (Entry::Measured(_), Entry::Skipped { .. }) => false,
        };
        match (sorted.iter().rposition(same), &entry) {
            (Some(last), Entry::Measured(_)) => sorted.insert(last + 1, entry),
            (Some(_), Entry::Skipped { .. }) => {}
            (None, _) => sorted.push(entry),
        }
    }
    sorted
}

/// Measures in another process, which is placed before it has any thread.
fn measured(cpus: Cpus, scope: &Scope) -> anyhow::Result<Vec<Entry>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["--measure", cpus.as_str()]).args(scope.to_arguments());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start the measuring")?;
    let out = child.stdout.take().context("the measuring has no output")?;
    let entries: anyhow::Result<Vec<Entry>> =
        BufReader::new(out).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect();
    let status = child.wait()?;
    let entries = entries.context("the measuring said something else than rows")?;
    ensure!(status.success(), "the measuring ended with {status}");
    Ok(entries)
}

/// Measures in this process, and writes what came of it as one JSON object a line.
pub(crate) fn measure(cpus: Cpus, scope: &Scope) -> anyhow::Result<()> {
    cpus.place_this_process()?;
    for figure in &scope.figures {
        eprintln!("measuring {}, {}", figure.as_str(), cpus.as_str());
        for entry in figure.measure(cpus, scope.effort)? {
            println!("{}", serde_json::to_string(&entry)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;
    use crate::pair::Samples;
    use crate::table::{Row, Unit};

    #[test]
    fn both_placements_of_a_row_stand_together_and_a_skip_is_told_once() {
        let one = Samples::new(vec![1.0]).unwrap();
        let row =
            |what: &str, cpus| Row::alone(Figure::Kill, what, cpus, Unit::Microseconds, &one, 50).for_comparison();
        let skipped = || Entry::Skipped { figure: Figure::Run, why: "no peer".into() };
        let (pinned, free) = (Cpus::Pinned, Cpus::Free);
        let measured = vec![row("a", pinned), skipped(), row("b", pinned), row("a", free), skipped(), row("b", free)];
        let shown = vec![row("a", pinned), row("a", free), skipped(), row("b", pinned), row("b", free)];
        assert_eq!(beside_one_another(measured), shown);
    }
}
