//! What calls that are dropped in the middle leave open. One test alone in its process, since it counts the process's
//! descriptors.

use std::time::Duration;
use toolexec_tests::bound::assert_within;
use toolexec_tests::house::{House, builder};
use toolexec_tests::marker::Marker;
use toolexec_tests::{process, shell};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

/// Far longer than the test: a deadline that is not disarmed would hold its worker's descriptors all that time.
const LONG: u64 = 20_000;

#[test]
fn dropped_calls_leave_no_descriptor_open_until_their_deadlines() {
    let house = House::new(builder(PROGRAM, 1));
    house.assert_next_call_works();
    let open = || process::descriptors(std::process::id());
    let before = open();
    for _ in 0..20 {
        let marker = Marker::new(40662);
        let call = house.begin(shell::call(&format!("sleep {marker}"), LONG));
        assert_within(Duration::from_secs(5), "the tool", || !marker.sleeping().is_empty());
        call.abort();
        house.assert_next_call_works();
    }
    // A spare or two may just be coming or going, four descriptors each.
    assert_within(Duration::from_secs(2), "descriptors of dropped calls are closed", || open() <= before + 8);
}
