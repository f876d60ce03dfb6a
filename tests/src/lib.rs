//! What the integration tests of toolexec share.
//!
//! The tests see toolexec from outside: through its binary, through its library, and through `/proc`. Nothing here
//! trusts what toolexec says about itself; that is compared with what the kernel says.

pub mod bodies;
pub mod bound;
pub mod five_hundred;
pub mod house;
pub mod kill_tree;
pub mod kinds;
pub mod launch;
pub mod marker;
pub mod mix;
pub mod process;
pub mod random;
pub mod room;
pub mod shell;
pub mod told;
