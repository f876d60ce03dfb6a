//! `toolexec check`: whether a catalogue is right, without running anything.

use super::exit_code;
use super::host::Host;
use super::report::{self, quantity};
use super::settings::CheckSettings;
use crate::catalogue::{Catalogue, CatalogueError, DuplicateTools};
use anstyle::AnsiColor;
use serde::Serialize;
use std::error::Error;
use std::path::Path;

/// What was found, as programs read it.
#[derive(Debug, Serialize)]
struct Report {
    version: u32,
    catalogue: String,
    ok: bool,
    tools: Vec<String>,
    problems: Vec<Finding>,
    /// How many more problems there are than are listed.
    more_problems: usize,
}

/// One thing that is wrong.
#[derive(Debug, Serialize)]
struct Finding {
    line: Option<usize>,
    column: Option<usize>,
    tool: Option<String>,
    message: String,
}

/// Checks the catalogue, prints what was found, and gives back the exit code.
pub(super) fn check(settings: &CheckSettings, host: &Host) -> u8 {
    let path = settings.catalogue.path();
    let loaded = Catalogue::load(path);
    let namesakes = loaded.as_ref().ok().and_then(|catalogue| host.check_names(catalogue).err());
    let verdict = if loaded.is_ok() && namesakes.is_none() { exit_code::OK } else { exit_code::REFUSED };
    let printed = match (&loaded, namesakes, settings.json) {
        (_, Some(namesakes), true) => report::json(&with_namesakes(path, namesakes)),
        (loaded, None, true) => report::json(&json(path, loaded.as_ref())),
        (_, Some(namesakes), false) => {
            report::complain(&format!("{}: {namesakes}, by the catalogue and by this program itself", path.display()));
            exit_code::OK
        }
        (Ok(catalogue), None, false) => report::print(&text(path, catalogue)),
        (Err(error), None, false) => {
            report::complain(&in_full(error));
            exit_code::OK
        }
    };
    verdict.max(printed)
}

fn text(path: &Path, catalogue: &Catalogue) -> String {
    let good = AnsiColor::Green.on_default();
    let tools = quantity::count(catalogue.tools.len() as u64, "tool", "tools");
    format!("{}: {good}{tools}{good:#}\n", path.display())
}

fn json(path: &Path, loaded: Result<&Catalogue, &CatalogueError>) -> Report {
    let (tools, problems, more_problems) = match loaded {
        Ok(catalogue) => (catalogue.tools.names().map(str::to_owned).collect(), Vec::new(), 0),
        Err(error) => {
            let (problems, more) = findings(error);
            (Vec::new(), problems, more)
        }
    };
    let catalogue = path.display().to_string();
    Report { version: 1, catalogue, ok: loaded.is_ok(), tools, problems, more_problems }
}

/// What is found where tools of a catalogue have names of the program's own.
fn with_namesakes(path: &Path, DuplicateTools(names): DuplicateTools) -> Report {
    let message = "declared more than once, by the catalogue and by this program itself";
    let finding = |name| Finding { line: None, column: None, tool: Some(name), message: message.to_owned() };
    let problems = names.into_iter().map(finding).collect();
    let catalogue = path.display().to_string();
    Report { version: 1, catalogue, ok: false, tools: Vec::new(), problems, more_problems: 0 }
}

/// The error and what it came from.
fn in_full(error: &CatalogueError) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {source}"),
    }
}

/// The problems one by one, and how many more there are.
fn findings(error: &CatalogueError) -> (Vec<Finding>, usize) {
    let of_the_file = |line| Finding { line, column: None, tool: None, message: in_full(error) };
    match error {
        CatalogueError::Read { .. } | CatalogueError::TooLarge { .. } | CatalogueError::Directory { .. } => {
            (vec![of_the_file(None)], 0)
        }
        CatalogueError::NotUtf8 { line, .. } => (vec![of_the_file(Some(*line))], 0),
        CatalogueError::Duplicates { tools, .. } => {
            let finding = |tool: &crate::catalogue::DuplicateTool| Finding {
                line: Some(tool.line),
                column: Some(tool.column),
                tool: Some(tool.name.clone()),
                message: "declared more than once".to_owned(),
            };
            (tools.iter().map(finding).collect(), 0)
        }
        CatalogueError::Invalid { problems, more, .. } => {
            let finding = |problem: &crate::catalogue::Problem| Finding {
                line: Some(problem.line),
                column: Some(problem.column),
                tool: problem.tool.clone(),
                message: problem.message.clone(),
            };
            (problems.iter().map(finding).collect(), *more)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Catalogue, CatalogueError> {
        Catalogue::parse(text, Path::new("/c/toolexec.toml"))
    }

    fn as_json(loaded: &Result<Catalogue, CatalogueError>) -> serde_json::Value {
        serde_json::to_value(json(Path::new("/c/toolexec.toml"), loaded.as_ref())).unwrap()
    }

    const TOOL: &str = "description = \"x\"\ncommand = [\"true\"]\n";

    #[test]
    fn a_right_catalogue_is_counted() {
        let catalogue = parsed(&format!("[tool.a]\n{TOOL}[tool.b]\n{TOOL}")).unwrap();
        let text = text(Path::new("toolexec.toml"), &catalogue);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "toolexec.toml: 2 tools\n");
        let json = as_json(&Ok(catalogue));
        let expected = serde_json::json!({
            "version": 1, "catalogue": "/c/toolexec.toml", "ok": true, "tools": ["a", "b"], "problems": [],
            "more_problems": 0,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn every_problem_has_its_place() {
        let json = as_json(&parsed(&format!("[tool.a]\n{TOOL}timeout = 0\n[tool.b]\n{TOOL}nonsense = 1\n")));
        assert_eq!(json["ok"], false);
        let problems = json["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!((&problems[0]["line"], &problems[0]["tool"]), (&4.into(), &"a".into()));
        assert_eq!((&problems[1]["line"], &problems[1]["tool"]), (&8.into(), &"b".into()));
    }

    #[test]
    fn a_file_that_is_not_there_is_one_problem() {
        let path = Path::new("/nowhere/toolexec.toml");
        let json = serde_json::to_value(json(path, Catalogue::load(path).as_ref())).unwrap();
        assert_eq!(json["problems"].as_array().map(Vec::len), Some(1));
        let message = json["problems"][0]["message"].as_str().unwrap();
        assert_eq!(message, "cannot read the catalogue /nowhere/toolexec.toml: No such file or directory (os error 2)");
    }
}
