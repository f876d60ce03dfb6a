//! Five hundred random calls on four workers: five hundred right outcomes, and nothing left over.
//!
//! One test alone in its process, since it counts the process's descriptors.

#[test]
fn every_call_of_a_random_mix_has_its_one_right_outcome() {
    toolexec_tests::five_hundred::check(env!("CARGO_BIN_EXE_toolexec_under_test").as_ref(), None);
}
