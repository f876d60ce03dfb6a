//! How the weakest acceptable kill is written, in the catalogue and on the command line alike.

use toolexec_protocol::strength::KillStrength;

/// A text is not the name of a kill strength.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a kill strength; write tree, pid-namespace, cgroup, subreaper or process-group")]
pub struct UnknownStrength;

/// Reads the name of a kill strength; `tree` is the weakest that catches a whole tree.
///
/// # Errors
/// [`UnknownStrength`] when there is no strength of that name.
pub fn parse(text: &str) -> Result<KillStrength, UnknownStrength> {
    KillStrength::from_name(text).ok_or(UnknownStrength)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_no_other() {
        use KillStrength::{Cgroup, PidNamespace, ProcessGroup, Subreaper};
        for strength in [ProcessGroup, Subreaper, Cgroup, PidNamespace] {
            assert_eq!(parse(strength.as_str()), Ok(strength));
            assert!(UnknownStrength.to_string().contains(strength.as_str()), "the error names {strength}");
        }
        assert_eq!(parse("tree"), Ok(Subreaper));
        for text in ["", "Tree", "tree ", "none"] {
            assert_eq!(parse(text), Err(UnknownStrength), "{text:?}");
        }
    }
}
