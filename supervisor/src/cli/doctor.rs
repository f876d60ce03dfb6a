//! `toolexec doctor`: what this machine can do for a time limit, what is missing, what that means, and how to get it.
//!
//! What was found (`facts.rs`) and what is to be said about it (`findings.rs`) are apart, so that the second can be
//! tested for machines that are not there.

mod facts;
mod findings;

use super::exit_code;
use super::report;
use super::settings::DoctorSettings;
use crate::WorkerProgram;
use anstyle::{AnsiColor, Style};
use facts::Facts;
use findings::{Finding, Verdict, findings};
use serde::Serialize;
use std::fmt::Write;

/// What was found, as programs read it.
#[derive(Debug, Serialize)]
struct Report {
    version: u32,
    /// Whether calls can run here at all.
    ready: bool,
    kill_strength: Option<&'static str>,
    findings: Vec<Finding>,
}

/// Examines the machine, prints what was found, and gives back the exit code.
pub(super) fn doctor(settings: &DoctorSettings, program: WorkerProgram) -> u8 {
    let facts = Facts::gather(settings.strength, program);
    let report = examine(&facts);
    let printed = if settings.json { report::json(&report) } else { report::print(&text(&report)) };
    let verdict = if report.ready { exit_code::OK } else { exit_code::REFUSED };
    verdict.max(printed)
}

fn examine(facts: &Facts) -> Report {
    let findings = findings(facts);
    let ready = findings.iter().all(|finding| finding.verdict != Verdict::Missing);
    let kill_strength = facts.strength.as_ref().ok().map(|strength| strength.as_str());
    Report { version: 1, ready, kill_strength, findings }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let (word, style) = match finding.verdict {
            Verdict::Ok => ("ok", AnsiColor::Green.on_default()),
            Verdict::Limited => ("limited", AnsiColor::Yellow.on_default()),
            Verdict::Missing => ("missing", AnsiColor::Red.on_default().bold()),
        };
        let bold = Style::new().bold();
        let (name, found) = (finding.name, &finding.found);
        let _infallible = writeln!(text, "{style}{word:<9}{style:#}{bold}{name}{bold:#}: {found}");
        let _infallible = writeln!(text, "         {}", finding.means);
        if let Some(remedy) = &finding.remedy {
            let _infallible = writeln!(text, "         to get it: {remedy}");
        }
    }
    let summary = match (report.ready, report.kill_strength) {
        (true, Some(strength)) => format!("Calls can run here; a deadline kills by {strength}."),
        (true, None) => "Calls can run here.".to_owned(),
        (false, _) => "Calls cannot run here.".to_owned(),
    };
    text.push_str(&format!("\n{summary}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_machine_reads_well() {
        let text = text(&examine(&Facts::of_a_good_machine()));
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.starts_with("ok       kernel: 6.18.44"), "{plain}");
        assert!(!plain.contains("to get it"), "{plain}");
        assert!(plain.ends_with("\nCalls can run here; a deadline kills by pid-namespace.\n"), "{plain}");
    }

    #[test]
    fn a_machine_without_workers_is_not_ready() {
        let facts = Facts { strength: Err("the zygote did not answer".into()), ..Facts::of_a_good_machine() };
        let report = examine(&facts);
        assert!(!report.ready);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["kill_strength"], serde_json::Value::Null);
        assert!(text(&report).ends_with("Calls cannot run here.\n"));
    }
}
