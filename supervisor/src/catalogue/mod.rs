//! The catalogue: which tools there are, what they declare, and whether a call's arguments fit.

mod arguments;
mod command;
mod declared;
pub mod duration;
pub mod environment;
mod excerpt;
mod host_body;
mod json;
pub mod kill;
mod load;
mod nearest;
mod schema;
mod selection;
pub mod size;
mod spec;
mod table;
mod template;

pub use arguments::ArgumentError;
pub use command::{CommandTemplate, StdinTemplate};
pub use declared::{Declared, DeclaredError, RetryPolicy};
pub(crate) use excerpt::excerpt;
pub(crate) use host_body::Work;
pub use host_body::{HostBody, Returned};
pub use load::{Catalogue, CatalogueError, Defaults, DuplicateTool, Problem};
pub use schema::{InputSchema, OutputSchema, SchemaError};
pub use selection::Selection;
pub use spec::{Body, Prepared, ToolSpec};
pub use table::{DuplicateTools, TableError, ToolTable};
pub use template::{Template, TemplateError};
