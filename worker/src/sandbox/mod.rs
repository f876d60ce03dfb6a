//! What a new process goes through before it serves, in a fixed order.

mod apply;
mod descriptors;
mod identity;

pub(crate) use apply::{KEEP_USER, Start, apply, refuse};
pub(crate) use identity::Identity;
