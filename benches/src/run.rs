//! The whole: measures under both placements, each in a process of its own, and shows what came of it.

use crate::arguments::Scope;
use crate::cpus::Cpus;
use crate::machine::Machine;
use crate::table::{self, Entry, Form};
use anyhow::{Context as _, ensure};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

/// Measures everything and prints it.
pub(crate) fn whole(scope: &Scope, form: Form) -> anyhow::Result<()> {
    let machine = Machine::now();
    let mut entries = Vec::new();
    for cpus in Cpus::ALL {
        for entry in measured(cpus, scope)? {
            // What is skipped is so under both placements, for the same reason.
            if matches!(entry, Entry::Measured(_)) || !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    // Both placements of a figure beside one another; the order of the figures is otherwise the order of the rows.
    let place = |entry: &Entry| match entry {
        Entry::Measured(row) => (scope.figures.iter().position(|figure| *figure == row.figure), Some(row.what.clone())),
        Entry::Skipped { figure, .. } => (scope.figures.iter().position(|known| known == figure), None),
    };
    let mut order: Vec<_> = Vec::new();
    for entry in &entries {
        if !order.contains(&place(entry)) {
            order.push(place(entry));
        }
    }
    entries.sort_by_key(|entry| order.iter().position(|known| *known == place(entry)));
    let mut out = std::io::stdout().lock();
    table::write(&mut out, form, &machine, &entries)?;
    Ok(out.flush()?)
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
