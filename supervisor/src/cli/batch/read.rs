//! Reading the response.

use crate::provider::Provider;
use anyhow::{Context as _, anyhow, bail};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

/// The longest response that is read: 64 MiB.
const MAX_RESPONSE: u64 = 64 * 1024 * 1024;

/// The response's text, from a file or from standard input.
pub(super) fn response(from: Option<&Path>) -> anyhow::Result<String> {
    match from {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            text(file, &path.display().to_string())
        }
        None if io::stdin().is_terminal() => {
            bail!("name a file with a model's response, or give it on standard input")
        }
        None => text(io::stdin().lock(), "standard input"),
    }
}

fn text(from: impl Read, what: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_RESPONSE + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {what}"))?;
    if bytes.len() as u64 > MAX_RESPONSE {
        bail!("{what} is longer than the {MAX_RESPONSE} bytes that a response may have");
    }
    String::from_utf8(bytes).map_err(|error| anyhow!("{what} is not UTF-8: {}", error.utf8_error()))
}

/// Whose response it is, as its shape tells.
pub(super) fn provider(response: &str) -> anyhow::Result<Provider> {
    let value = serde_json::from_str(response).context("the response is not JSON")?;
    Provider::detect(&value).ok_or_else(|| {
        let names = Provider::ALL.map(Provider::name).join(", ");
        anyhow!("the response has the shape of no provider that is known; say --provider with one of {names}")
    })
}

/// The response's own id, for a key.
pub(super) fn id(response: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(response).ok()?;
    let id = ["id", "responseId"].iter().find_map(|key| value[*key].as_str())?;
    (!id.is_empty()).then(|| id.to_owned())
}
