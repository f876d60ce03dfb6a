//! The rows that were measured, and how they are shown.

use crate::cpus::Cpus;
use crate::figures::Figure;
use crate::machine::Machine;
use crate::pair::{Paired, Samples};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{self, Write};

/// How the result is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// For a reader.
    Table,
    /// For a program: one JSON object a line.
    Json,
}

/// What came of one figure under one placement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// It was measured.
    Measured(Row),
    /// It was not.
    Skipped {
        /// Which.
        figure: Figure,
        /// Why not.
        why: String,
    },
}

/// One line of the table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) figure: Figure,
    /// What exactly is told here.
    pub(crate) what: String,
    pub(crate) cpus: Cpus,
    pub(crate) ours: f64,
    pub(crate) unit: Unit,
    pub(crate) samples: usize,
    pub(crate) baseline: Option<Baseline>,
    /// `None`: it is told for comparison only.
    pub(crate) aim: Option<Aim>,
}

/// What ours is held against.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Baseline {
    pub(crate) what: String,
    pub(crate) value: f64,
    /// Ours through the baseline, round by round.
    pub(crate) ratio: f64,
}

/// What a value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Microseconds,
    PerSecond,
    Kibibytes,
}

/// A bound on the ratio, or on ours where there is no baseline.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Row {
    /// The medians of two things that were measured in turns.
    pub(crate) fn paired(figure: Figure, what: &str, cpus: Cpus, unit: Unit, paired: &Paired, baseline: &str) -> Self {
        Self {
            figure,
            what: what.into(),
            cpus,
            ours: paired.ours.median(),
            unit,
            samples: paired.ours.len(),
            baseline: Some(Baseline { what: baseline.into(), value: paired.baseline.median(), ratio: paired.ratio }),
            aim: None,
        }
    }

    /// A value by itself.
    pub(crate) fn alone(figure: Figure, what: &str, cpus: Cpus, unit: Unit, samples: &Samples, percent: usize) -> Self {
        let ours = samples.percentile(percent);
        Self { figure, what: what.into(), cpus, ours, unit, samples: samples.len(), baseline: None, aim: None }
    }

    /// The same with an aim.
    pub(crate) fn aiming(self, aim: Aim) -> Entry {
        Entry::Measured(Self { aim: Some(aim), ..self })
    }

    /// The same without one.
    pub(crate) fn for_comparison(self) -> Entry {
        Entry::Measured(self)
    }

    /// Whether the aim was met, where there is one.
    pub(crate) fn met(&self) -> Option<bool> {
        let judged = self.baseline.as_ref().map_or(self.ours, |baseline| baseline.ratio);
        self.aim.map(|aim| match aim {
            Aim::AtMost(bound) => judged <= bound,
            Aim::AtLeast(bound) => judged >= bound,
        })
    }
}

/// Writes the result.
pub(crate) fn write(out: &mut impl Write, form: Form, machine: &Machine, entries: &[Entry]) -> io::Result<()> {
    match form {
        Form::Json => write_json(out, machine, entries),
        Form::Table => write_table(out, machine, entries),
    }
}

fn write_json(out: &mut impl Write, machine: &Machine, entries: &[Entry]) -> io::Result<()> {
    writeln!(out, "{}", json!({ "version": 1, "kind": "machine", "machine": machine }))?;
    for entry in entries {
        let line = match entry {
            Entry::Measured(row) => json!({ "version": 1, "kind": "measured", "met": row.met(), "row": row }),
            Entry::Skipped { figure, why } => json!({ "version": 1, "kind": "skipped", "figure": figure, "why": why }),
        };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

const HEADER: [&str; 7] = ["figure", "cpus", "ours", "baseline", "ratio", "aim", ""];

fn write_table(out: &mut impl Write, machine: &Machine, entries: &[Entry]) -> io::Result<()> {
    let load = machine.load.map_or_else(|| "unknown".to_owned(), |load| load.to_string());
    let Machine { kernel, cpus, scratch, .. } = machine;
    writeln!(
        out,
        "Linux {kernel}, {cpus} CPUs, load {load} before the first figure, scratch directories on {scratch}"
    )?;
    let rows: Vec<&Row> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Measured(row) => Some(row),
            Entry::Skipped { .. } => None,
        })
        .collect();
    let mut lines = vec![HEADER.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| cells(row)));
    let widths: [usize; 7] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
    for line in &lines {
        writeln!(out)?;
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            match column {
                // Words to the left, numbers to the right.
                0 | 1 | 6 => write!(out, "{cell:width$}  ")?,
                _ => write!(out, "{cell:>width$}  ")?,
            }
        }
    }
    writeln!(out, "\n")?;
    let mut baselines: Vec<(Figure, &str)> = Vec::new();
    for row in &rows {
        if let Some(baseline) = &row.baseline
            && !baselines.iter().any(|(figure, _)| *figure == row.figure)
        {
            baselines.push((row.figure, &baseline.what));
        }
    }
    for (figure, baseline) in baselines {
        writeln!(out, "{}: the baseline is {baseline}", figure.as_str())?;
    }
    for entry in entries {
        if let Entry::Skipped { figure, why } = entry {
            writeln!(out, "SKIPPED {}: {why}", figure.as_str())?;
        }
    }
    let missed = rows.iter().filter(|row| row.met() == Some(false)).count();
    let aimed = rows.iter().filter(|row| row.aim.is_some()).count();
    writeln!(out, "{} of {aimed} aims met", aimed - missed)
}

fn cells(row: &Row) -> [String; 7] {
    let aim = |text: &str, bound: f64| match row.baseline {
        Some(_) => format!("{text} {bound}"),
        None => format!("{text} {}", quantity(bound, row.unit)),
    };
    [
        format!("{}: {}", row.figure.as_str(), row.what),
        row.cpus.as_str().into(),
        quantity(row.ours, row.unit),
        row.baseline.as_ref().map_or_else(String::new, |baseline| quantity(baseline.value, row.unit)),
        row.baseline.as_ref().map_or_else(String::new, |baseline| format!("{:.3}", baseline.ratio)),
        row.aim.map_or_else(String::new, |of| match of {
            Aim::AtMost(bound) => aim("≤", bound),
            Aim::AtLeast(bound) => aim("≥", bound),
        }),
        row.met().map_or("", |met| if met { "met" } else { "MISSED" }).into(),
    ]
}

fn quantity(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Microseconds if value >= 10_000.0 => format!("{:.1} ms", value / 1_000.0),
        Unit::Microseconds if value >= 1_000.0 => format!("{:.2} ms", value / 1_000.0),
        Unit::Microseconds => format!("{value:.1} µs"),
        Unit::PerSecond => format!("{value:.0} /s"),
        Unit::Kibibytes => format!("{value:.0} KiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let samples = |of: &[f64]| Samples::new(of.to_vec()).unwrap();
        let paired = Paired { ours: samples(&[15.0, 16.0, 90.0]), baseline: samples(&[10.0]), ratio: 1.5 };
        Row::paired(Figure::RoundTrip, "reused", Cpus::Pinned, Unit::Microseconds, &paired, "ping-pong")
    }

    #[test]
    fn an_aim_binds_the_ratio_where_there_is_one_and_the_value_elsewhere() {
        let met = |row: Row, aim| match row.aiming(aim) {
            Entry::Measured(row) => row.met(),
            Entry::Skipped { .. } => None,
        };
        assert_eq!(met(row(), Aim::AtMost(1.5)), Some(true));
        assert_eq!(met(row(), Aim::AtMost(1.4)), Some(false));
        assert_eq!(met(row(), Aim::AtLeast(1.6)), Some(false));
        assert_eq!(met(Row { baseline: None, ..row() }, Aim::AtMost(16.0)), Some(true));
        assert_eq!(row().met(), None);
    }

    #[test]
    fn a_table_is_read_from_left_to_right() {
        let machine = Machine { kernel: "6.1".into(), cpus: 2, load: Some(0.5), scratch: "ext4".into() };
        let entries = [
            row().aiming(Aim::AtMost(1.8)),
            Row { baseline: None, ours: 1500.0, cpus: Cpus::Free, ..row() }.aiming(Aim::AtMost(200.0)),
            Entry::Skipped { figure: Figure::Run, why: "bwrap is not installed".into() },
        ];
        let mut out = Vec::new();
        write(&mut out, Form::Table, &machine, &entries).unwrap();
        let expected = "\
Linux 6.1, 2 CPUs, load 0.5 before the first figure, scratch directories on ext4

figure              cpus       ours  baseline  ratio         aim
round-trip: reused  pinned  16.0 µs   10.0 µs  1.500       ≤ 1.8  met
round-trip: reused  free    1.50 ms                   ≤ 200.0 µs  MISSED

round-trip: the baseline is ping-pong
SKIPPED run: bwrap is not installed
1 of 2 aims met
";
        let trimmed: Vec<&str> = std::str::from_utf8(&out).unwrap().lines().map(str::trim_end).collect();
        assert_eq!(trimmed, expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn every_json_line_has_a_version() {
        let machine = Machine { kernel: "6.1".into(), cpus: 2, load: None, scratch: "tmpfs".into() };
        let mut out = Vec::new();
        write(&mut out, Form::Json, &machine, &[row().aiming(Aim::AtMost(1.8))]).unwrap();
        let lines: Vec<serde_json::Value> = out
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line["version"] == 1));
        let row = &lines[1]["row"];
        assert_eq!((&row["figure"], &lines[1]["met"]), (&"round-trip".into(), &true.into()));
        assert_eq!(row["aim"]["at_most"], 1.8);
    }
}
