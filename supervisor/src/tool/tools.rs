//! The tools of a program.

use super::Tool;
use crate::catalogue::{DuplicateTools, TableError, ToolSpec, ToolTable};
use std::sync::Arc;
use toolexec_protocol::failure::Failure;
use toolexec_worker::{AlreadyThere, Handler, Returned, Toolbox};

/// The tools that a program has in Rust: what its workers do, and what its executor knows of it.
///
/// ```no_run
/// # fn tool() -> toolexec::Tool { unimplemented!() }
/// let tools = toolexec::Tools::new().with(tool());
/// // At the top of `main`, before any thread exists.
/// toolexec::worker::become_zygote_if_asked(&tools.toolbox()?);
/// let table = tools.into_table()?;
/// # Ok::<(), toolexec::AssemblyError>(())
/// ```
#[derive(Debug, Default)]
pub struct Tools {
    tools: Vec<Tool>,
}

/// Why tools cannot be used together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AssemblyError {
    /// Their declarations do not make a table.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Tools {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// These and one more.
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// What the workers do: the isolated ones among the tools.
    ///
    /// # Errors
    /// [`TableError::Duplicates`] where two tools have one name, of whatever kind they are.
    pub fn toolbox(&self) -> Result<Toolbox, AssemblyError> {
        DuplicateTools::check(self.tools.iter().map(|tool| tool.spec.name.as_str())).map_err(TableError::from)?;
        let mut toolbox = Toolbox::new();
        for tool in &self.tools {
            if let Some(handler) = &tool.handler {
                let added = toolbox.add(tool.spec.name.as_str(), Shared(Arc::clone(handler)));
                added.map_err(|AlreadyThere(name)| TableError::from(DuplicateTools(vec![name])))?;
            }
        }
        Ok(toolbox)
    }

    /// The declarations, one by one, to be put into a table together with others.
    pub fn into_specs(self) -> Vec<ToolSpec> {
        self.tools.into_iter().map(|tool| tool.spec).collect()
    }

    /// The declarations as a table.
    ///
    /// # Errors
    /// [`AssemblyError::Table`].
    pub fn into_table(self) -> Result<ToolTable, AssemblyError> {
        Ok(ToolTable::new(self.into_specs())?)
    }
}

struct Shared(Arc<dyn Handler + Send + Sync>);

impl Handler for Shared {
    fn call(&self, arguments: &[u8]) -> Result<Vec<u8>, Failure> {
        self.0.call(arguments)
    }

    fn call_in_context(&self, arguments: &[u8], context: &[u8]) -> Result<Returned, Failure> {
        self.0.call_in_context(arguments, context)
    }
}
