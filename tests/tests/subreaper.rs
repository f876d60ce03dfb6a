//! Cases O01 to O04 and O06 once more, by the mechanism for machines without namespaces.

use toolexec_tests::launch::Toolexec;
use toolexec_tests::tree_kill_promises;

tree_kill_promises!(Toolexec::killing_by(env!("CARGO_BIN_EXE_toolexec_under_test"), "subreaper"));
