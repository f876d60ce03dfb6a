//! What the program that this command line is a part of brings along: its worker program and its own tools.

use crate::catalogue::{Catalogue, DuplicateTools, TableError, ToolSpec, ToolTable};
use crate::{AssemblyError, Tools, WorkerProgram};
use toolexec_worker::become_zygote_if_asked;

/// The program around the command line.
#[derive(Debug)]
pub(super) struct Host {
    /// What its workers are forked from.
    pub(super) program: WorkerProgram,
    tools: Vec<ToolSpec>,
}

impl Host {
    /// Becomes a zygote here if it is asked to, and does not come back then.
    pub(super) fn of(tools: Tools) -> Result<Self, AssemblyError> {
        let toolbox = tools.toolbox()?;
        become_zygote_if_asked(&toolbox);
        let program = if toolbox.is_empty() { WorkerProgram::for_commands() } else { WorkerProgram::this_program() };
        Ok(Self { program, tools: tools.into_specs() })
    }

    /// Whether it has no tools.
    pub(super) fn has_no_tools(&self) -> bool {
        self.tools.is_empty()
    }

    /// Refuses a catalogue that has names of its own tools.
    pub(super) fn check_names(&self, catalogue: &Catalogue) -> Result<(), DuplicateTools> {
        DuplicateTools::check(self.tools.iter().map(|tool| tool.name.as_str()).chain(catalogue.tools.names()))
    }

    /// Its own tools, and those of a catalogue.
    pub(super) fn table(self, catalogue: Option<Catalogue>) -> Result<ToolTable, TableError> {
        let mut tools = self.tools;
        tools.extend(catalogue.into_iter().flat_map(|catalogue| catalogue.tools.into_specs()));
        ToolTable::new(tools)
    }
}
