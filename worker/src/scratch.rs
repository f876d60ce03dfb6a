//! Removing a scratch directory, whatever a tool left in it.
