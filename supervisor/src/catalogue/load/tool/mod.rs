//! One `[tool.NAME]` of a catalogue.

mod command;
mod declared;
mod policy;
mod read;
mod schemas;

pub(super) use read::read;
