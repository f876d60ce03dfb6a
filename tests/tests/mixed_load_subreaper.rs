//! The five hundred random calls once more, by the mechanism for machines without namespaces.
//!
//! One test alone in its process, since it counts the process's descriptors.

use toolexec::KillStrength;

#[test]
fn every_call_of_a_random_mix_has_its_one_right_outcome() {
    toolexec_tests::five_hundred::check(
        env!("CARGO_BIN_EXE_toolexec_under_test").as_ref(),
        Some(KillStrength::Subreaper),
    );
}
