//! The environment that a command gets: a short list, and what was asked for by name.
//!
//! A tool never inherits the supervisor's environment, where keys and tokens live. `HOME` and `TMPDIR` are set
//! by the worker to the call's scratch directory, unless a rule sets them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The variables that every command gets from the supervisor's own environment, where they are set there: how
/// programs are found, and the language and the time zone of what they print.
pub const PASSED_THROUGH: [&str; 6] = ["PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ"];

/// The variables that every command gets with these values, unless a rule says otherwise. A Python program buffers what
/// it prints to a pipe, and what is in a buffer is lost when the program is killed: so it is told not to.
pub const ALWAYS_SET: [(&str, &str); 1] = [("PYTHONUNBUFFERED", "1")];

/// One variable beside [`PASSED_THROUGH`] and [`ALWAYS_SET`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EnvRule {
    /// Written `NAME`: the supervisor's own value, where it has one.
    Pass(OsString),
    /// Written `NAME=VALUE`: this value.
    Set(OsString, OsString),
}

/// Why a text is not an [`EnvRule`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidEnvRule {
    /// There is nothing before the `=`, or nothing at all.
    #[error("a variable without a name; write NAME to pass it through, or NAME=VALUE")]
    NoName,
    /// It has a NUL character.
    #[error("a NUL character, which an environment cannot carry")]
    Nul,
}

impl EnvRule {
    /// Reads `NAME` or `NAME=VALUE`; the value is all that follows the first `=`.
    ///
    /// # Errors
    /// [`InvalidEnvRule`] when there is no name, or when a NUL character is in it.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self, InvalidEnvRule> {
        let bytes = text.as_ref().as_bytes();
        if bytes.contains(&0) {
            return Err(InvalidEnvRule::Nul);
        }
        let owned = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let equals = bytes.iter().position(|byte| *byte == b'=');
        match equals.map(|at| (&bytes[..at], &bytes[at + 1..])) {
            Some(([], _)) => Err(InvalidEnvRule::NoName),
            Some((name, value)) => Ok(Self::Set(owned(name), owned(value))),
            None if bytes.is_empty() => Err(InvalidEnvRule::NoName),
            None => Ok(Self::Pass(owned(bytes))),
        }
    }

    /// The variable's name.
    pub fn name(&self) -> &OsStr {
        match self {
            Self::Pass(name) | Self::Set(name, _) => name,
        }
    }
}

/// The whole environment of a command: [`PASSED_THROUGH`], [`ALWAYS_SET`] and `extra`, where a later rule for the same name
/// replaces an earlier one. The supervisor's own environment is read now.
pub fn base_environment(extra: &[EnvRule]) -> Vec<(OsString, OsString)> {
    environment_from(|name| std::env::var_os(name), extra)
}

/// [`base_environment`] over another environment than the process's own.
fn environment_from(own: impl Fn(&OsStr) -> Option<OsString>, extra: &[EnvRule]) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    let passed = PASSED_THROUGH.map(|name| EnvRule::Pass(name.into()));
    let set = ALWAYS_SET.map(|(name, value)| EnvRule::Set(name.into(), value.into()));
    for rule in passed.iter().chain(&set).chain(extra) {
        let value = match rule {
            EnvRule::Pass(name) => own(name),
            EnvRule::Set(_, value) => Some(value.clone()),
        };
        environment.retain(|(name, _)| name != rule.name());
        environment.extend(value.map(|value| (rule.name().to_owned(), value)));
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_or_refused() {
        let set = |name: &str, value: &str| Ok(EnvRule::Set(name.into(), value.into()));
        let cases = [
            ("NAME", Ok(EnvRule::Pass("NAME".into()))),
            ("NAME=VALUE", set("NAME", "VALUE")),
            ("NAME=", set("NAME", "")),
            ("NAME=a=b", set("NAME", "a=b")),
            ("name with spaces=x", set("name with spaces", "x")),
            ("", Err(InvalidEnvRule::NoName)),
            ("=VALUE", Err(InvalidEnvRule::NoName)),
            ("=", Err(InvalidEnvRule::NoName)),
            ("A=\0", Err(InvalidEnvRule::Nul)),
            ("A\0", Err(InvalidEnvRule::Nul)),
        ];
        for (text, expected) in cases {
            assert_eq!(EnvRule::parse(text), expected, "{text:?}");
        }
        let bytes = OsStr::from_bytes(b"N=\xff");
        assert_eq!(EnvRule::parse(bytes), Ok(EnvRule::Set("N".into(), OsStr::from_bytes(b"\xff").into())));
    }

    #[test]
    fn only_listed_and_named_variables_reach_a_command() {
        let own = |name: &OsStr| match name.to_str() {
            Some("PATH") => Some("/bin".into()),
            Some("TZ") => Some("UTC".into()),
            Some("TERM") => Some("xterm".into()),
            Some("API_KEY") => Some("secret".into()),
            _ => None,
        };
        let check = |extra: &[&str], expected: &[(&str, &str)]| {
            let extra: Vec<_> = extra.iter().map(|text| EnvRule::parse(text).unwrap()).collect();
            let expected: Vec<(OsString, OsString)> =
                expected.iter().map(|(name, value)| (name.into(), value.into())).collect();
            assert_eq!(environment_from(own, &extra), expected, "{extra:?}");
        };
        let unbuffered = ("PYTHONUNBUFFERED", "1");
        check(&[], &[("PATH", "/bin"), ("TZ", "UTC"), unbuffered]);
        check(&["API_KEY", "UNSET"], &[("PATH", "/bin"), ("TZ", "UTC"), unbuffered, ("API_KEY", "secret")]);
        check(&["TZ=CET", "A=1", "A=2"], &[("PATH", "/bin"), unbuffered, ("TZ", "CET"), ("A", "2")]);
        check(&["A=1", "A"], &[("PATH", "/bin"), ("TZ", "UTC"), unbuffered]);
        check(&["PYTHONUNBUFFERED"], &[("PATH", "/bin"), ("TZ", "UTC")]);
    }
}
