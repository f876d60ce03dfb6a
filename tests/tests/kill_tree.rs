//! Cases O01 to O04 and O06: the whole tree dies, by the strongest mechanism of this machine.

use toolexec_tests::launch::Toolexec;
use toolexec_tests::tree_kill_promises;

tree_kill_promises!(Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test")));
