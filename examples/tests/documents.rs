//! What the README and the examples say is so.

use std::path::{Path, PathBuf};
use std::process::Command;
use toolexec::catalogue::Catalogue;

const README: &str = include_str!("../../README.md");

/// Runs an example; its own assertions say whether it shows what it says.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "a helper of tests, which fail by panicking")]
fn check(example: &str) {
    let output = Command::new(example).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {}\n{told}", output.status);
}

#[test]
fn a_command_is_embedded() {
    check(env!("CARGO_BIN_EXE_embed"));
}

#[test]
fn rust_tools_of_both_kinds_end_as_they_say() {
    check(env!("CARGO_BIN_EXE_rust_tools"));
}

#[test]
fn agent_loop_comes_to_its_answer() {
    check(env!("CARGO_BIN_EXE_agent_loop"));
}

#[test]
fn filter_of_ones_own_sees_every_call() {
    check(env!("CARGO_BIN_EXE_custom_filter"));
}

#[test]
fn delegate_is_cut_with_all_that_it_does() {
    check(env!("CARGO_BIN_EXE_delegate"));
}

#[test]
fn calls_are_withdrawn() {
    check(env!("CARGO_BIN_EXE_cancel"));
}

#[test]
fn the_catalogue_of_the_readme_is_right() {
    let (_, after) = README.split_once("```toml\n").unwrap();
    let (toml, _) = after.split_once("```").unwrap();
    let catalogue = Catalogue::parse(toml, Path::new("toolexec.toml")).unwrap_or_else(|error| panic!("{error}"));
    assert!(!catalogue.tools.is_empty());
}

#[test]
fn the_catalogue_of_the_examples_is_right_and_its_stored_calls_fit() {
    let text = include_str!("../toolexec.toml");
    let catalogue =
        Catalogue::parse(text, Path::new("examples/toolexec.toml")).unwrap_or_else(|error| panic!("{error}"));
    let tool = catalogue.tools.get("find_in_text").unwrap();
    for call in [include_str!("../calls/ordinary.json"), include_str!("../calls/runaway.json")] {
        tool.prepare(call).unwrap();
    }
}

#[test]
fn every_dependency_has_its_sentence() {
    let page = include_str!("../../docs/decisions/dependencies.md");
    let (_, dependencies) = include_str!("../../Cargo.toml").split_once("[workspace.dependencies]").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[").unwrap();
    let names = dependencies.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    let names: Vec<&str> = names.filter(|name| !name.starts_with("toolexec")).collect();
    assert!(names.len() > 10, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A link in a document that leads nowhere is worse than none.
#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    if !root.join("README.md").exists() {
        return eprintln!("SKIPPED: the sources are not where this was built");
    }
    let mut documents: Vec<PathBuf> = ["README.md", "CHANGELOG.md"].map(|name| root.join(name)).into();
    for directory in ["docs", "docs/decisions"] {
        let entries = root.join(directory).read_dir().unwrap().map(|entry| entry.unwrap().path());
        documents.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    assert!(documents.len() > 10, "{documents:?}");
    let mut broken = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|after| after.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !document.parent().unwrap().join(path).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
