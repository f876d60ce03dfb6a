//! Random numbers that can be had again: a test prints its seed, and the seed brings the same numbers back.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The variable that brings a seed back.
const VARIABLE: &str = "TOOLEXEC_TEST_SEED";

/// A generator of 64-bit numbers: splitmix64. Good enough to mix cases, and nothing else.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator whose numbers nobody needs again.
    pub fn unseeded() -> Self {
        Self(RandomState::new().hash_one(std::process::id()))
    }

    /// A generator for a test: its seed is printed, and taken from `TOOLEXEC_TEST_SEED` where that is set.
    pub fn for_test(name: &str) -> Self {
        let given = std::env::var(VARIABLE).ok();
        let seed = match given {
            Some(text) => text.parse().unwrap_or_else(|_| panic!("{VARIABLE} is not a number: {text}")),
            None => Self::unseeded().next(),
        };
        eprintln!("{name}: {VARIABLE}={seed}");
        Self(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is not to be iterated over")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number of whole milliseconds below `end`.
    pub fn milliseconds_below(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}
