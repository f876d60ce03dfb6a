//! The tools that are compiled into a worker program.

use super::Handler;
use std::collections::BTreeMap;
use std::fmt;

/// The compiled-in tools by name.
#[derive(Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Box<dyn Handler>>,
}

/// A name was given to two tools; no winner is picked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tool {0:?} is in the toolbox already")]
pub struct AlreadyThere(pub String);

impl Toolbox {
    /// A toolbox without tools: its program can still run commands.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// [`AlreadyThere`] when the name is taken.
    pub fn add(&mut self, name: impl Into<String>, tool: impl Handler + 'static) -> Result<(), AlreadyThere> {
        let name = name.into();
        if self.tools.contains_key(&name) {
            return Err(AlreadyThere(name));
        }
        self.tools.insert(name, Box::new(tool));
        Ok(())
    }

    /// Whether it holds no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Finds a tool.
    pub(crate) fn get(&self, name: &str) -> Option<&dyn Handler> {
        self.tools.get(name).map(AsRef::as_ref)
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
