//! Running one call to its one outcome.
