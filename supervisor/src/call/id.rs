//! The name of one call.

use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Names one call in outcomes, events and logs. A caller brings its own or takes a fresh one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CallId(Arc<str>);

impl CallId {
    /// The caller's own id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// An id that no other call on this machine has: the process, the time of its start and a counter.
    pub fn fresh() -> Self {
        use std::sync::LazyLock;
        use std::sync::atomic::{AtomicU64, Ordering};
        use std::time::{SystemTime, UNIX_EPOCH};
        static PREFIX: LazyLock<u128> = LazyLock::new(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (u128::from(std::process::id()) << 64) | (now.as_nanos() & u128::from(u64::MAX))
        });
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{:x}-{number:x}", *PREFIX).into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
