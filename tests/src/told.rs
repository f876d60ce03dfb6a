//! Reading an outcome's JSON form, as a user's program would.

use serde_json::Value;
use toolexec::call::Outcome;

/// An outcome as JSON.
#[derive(Clone, PartialEq, Debug)]
pub struct Told(pub Value);

/// The keys that an outcome always has, and those of the objects in it. More may be added, none may go.
const KEYS: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "version",
            "call_id",
            "tool",
            "status",
            "code",
            "class",
            "termination",
            "started",
            "side_effects_possible",
            "message",
            "result",
            "exit",
            "attempts",
            "stdout",
            "stderr",
            "timing",
            "usage",
            "receipt",
        ],
    ),
    ("/exit", &["code", "signal"]),
    ("/stdout", &["text", "bytes", "dropped", "lossy"]),
    ("/stderr", &["text", "bytes", "dropped", "lossy"]),
    ("/timing", &["queue_us", "start_us", "run_us", "kill_us", "total_us"]),
    ("/usage", &["cpu_us", "max_rss_bytes"]),
    (
        "/receipt",
        &["strength", "reason", "deadline_ms", "signalled_after_us", "dead_after_us", "confirmed", "survivors"],
    ),
];

impl Told {
    /// Reads the one line that `--json` prints. `context` is shown when it is none.
    #[track_caller]
    pub fn from_line(text: &str, context: &str) -> Self {
        let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("no whole line: {text:?}; {context}"));
        assert!(!line.contains('\n'), "more than one line: {text:?}; {context}");
        let told = Self(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}; {context}")));
        told.assert_keys();
        told
    }

    /// Reads what the library has returned, by way of the same JSON.
    #[track_caller]
    pub fn of(outcome: &Outcome) -> Self {
        let told = Self(serde_json::to_value(outcome).expect("an outcome has a JSON form"));
        told.assert_keys();
        told
    }

    /// What stands at a JSON pointer.
    #[track_caller]
    pub fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer} of {:#}", self.0))
    }

    /// The text at a pointer.
    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_else(|| panic!("no text at {pointer} of {:#}", self.0))
    }

    /// The number at a pointer.
    #[track_caller]
    pub fn number(&self, pointer: &str) -> u64 {
        self.at(pointer).as_u64().unwrap_or_else(|| panic!("no whole number at {pointer} of {:#}", self.0))
    }

    /// Status, code and termination in one line, such as `timed_out TOOL_TIMEOUT killed`; `-` stands for null.
    #[track_caller]
    pub fn end(&self) -> String {
        ["/status", "/code", "/termination"].map(|pointer| self.at(pointer).as_str().unwrap_or("-")).join(" ")
    }

    /// Asserts [`Told::end`]; on a failure the whole outcome is shown.
    #[track_caller]
    pub fn assert_end(&self, expected: &str) -> &Self {
        assert_eq!(self.end(), expected, "{:#}", self.0);
        self
    }

    /// Asserts the value at a pointer; on a failure the whole outcome is shown.
    #[track_caller]
    pub fn assert_at(&self, pointer: &str, expected: impl Into<Value>) -> &Self {
        assert_eq!(*self.at(pointer), expected.into(), "at {pointer} of {:#}", self.0);
        self
    }

    /// The receipt of a kill says that nothing is left.
    #[track_caller]
    pub fn assert_killed_for(&self, reason: &str) -> &Self {
        self.assert_at("/termination", "killed");
        self.assert_at("/receipt/reason", reason);
        self.assert_at("/receipt/confirmed", true);
        self.assert_at("/receipt/survivors", 0)
    }

    /// The receipt names a mechanism that reaches a whole tree.
    #[track_caller]
    pub fn assert_kills_trees(&self) -> &Self {
        let strength = self.text("/receipt/strength");
        assert!(["subreaper", "cgroup", "pid-namespace"].contains(&strength), "{strength} kills no tree: {:#}", self.0);
        self
    }

    #[track_caller]
    fn assert_keys(&self) {
        for (pointer, keys) in KEYS {
            match self.at(pointer) {
                Value::Object(object) => {
                    let missing: Vec<_> = keys.iter().filter(|key| !object.contains_key(**key)).collect();
                    assert!(missing.is_empty(), "{missing:?} is missing at {pointer:?} of {:#}", self.0);
                }
                Value::Null if ["/exit", "/usage", "/receipt"].contains(&pointer) => {}
                other => panic!("{other} at {pointer:?} of {:#}", self.0),
            }
        }
        self.assert_at("/version", 1);
    }
}
