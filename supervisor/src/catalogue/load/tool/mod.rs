//! One `[tool.NAME]` of a catalogue.

mod command;
mod policy;
mod read;
mod schemas;

pub(super) use read::read;
