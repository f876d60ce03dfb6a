//! Who approves the calls of sensitive tools.

use super::Approve;
use crate::batch::{Context, Gate, Verdict};
use crate::call::RequestedCall;
use crate::catalogue::ToolTable;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest part of the arguments that a question shows: 2000 characters.
const MOST_SHOWN: usize = 2000;

/// Where nothing is said: by asking, if there is somebody to ask.
pub(super) fn as_here() -> Approve {
    if std::io::stderr().is_terminal() && terminal().is_some() { Approve::Ask } else { Approve::None }
}

/// A gate that lets every call pass but those of sensitive tools.
pub(super) fn gate(approve: Approve, tools: &ToolTable) -> Arc<dyn Gate> {
    let sensitive: HashSet<String> =
        tools.iter().filter(|tool| tool.declared.sensitive).map(|tool| tool.name.as_str().to_owned()).collect();
    let terminal = Mutex::new(if approve == Approve::Ask { terminal() } else { None });
    Arc::new(move |call: &RequestedCall, _: &Context| {
        if !sensitive.contains(&call.name) {
            return Verdict::Proceed;
        }
        match approve {
            Approve::All => Verdict::Proceed,
            Approve::Pause => Verdict::Pause,
            Approve::None => Verdict::RejectBecause("nobody was there to approve it".into()),
            Approve::Ask => {
                // Nothing under this lock can panic half-way through a change.
                let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
                match terminal.as_mut().and_then(|terminal| ask(terminal, call)) {
                    Some(true) => Verdict::Proceed,
                    Some(false) => Verdict::RejectBecause("the user has refused it".into()),
                    None => Verdict::RejectBecause("nobody was there to approve it".into()),
                }
            }
        }
    })
}

/// The terminal, whatever standard input is.
fn terminal() -> Option<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok()
}

/// `None` where no answer came.
fn ask(terminal: &mut File, call: &RequestedCall) -> Option<bool> {
    let arguments: String = call.arguments.chars().take(MOST_SHOWN).flat_map(shown).collect();
    let more = if call.arguments.chars().count() > MOST_SHOWN { " ..." } else { "" };
    let name: String = call.name.chars().flat_map(shown).collect();
    write!(terminal, "toolexec: run {name} with {arguments}{more} ? [y/N] ").ok()?;
    let mut line = String::new();
    let count = BufReader::new(&*terminal).read_line(&mut line).ok()?;
    (count > 0).then(|| matches!(line.trim(), "y" | "Y" | "yes"))
}

/// What a model has written must not move the cursor: the question would show something else than what is run.
fn shown(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Body, Declared, ToolSpec};
    use toolexec_protocol::id::ToolName;

    fn verdict(approve: Approve, tool: &str) -> Verdict {
        let spec = |name: &str, sensitive| {
            let declared = Declared { sensitive, ..Declared::default() };
            ToolSpec { declared, ..ToolSpec::new(ToolName::new(name).unwrap(), "", Body::Compiled) }
        };
        let tools = ToolTable::new(vec![spec("read", false), spec("write", true)]).unwrap();
        let call = RequestedCall { id: "1".into(), name: tool.into(), arguments: String::new() };
        gate(approve, &tools).judge(&call, &Context::default())
    }

    #[test]
    fn only_sensitive_tools_are_asked_about() {
        for approve in [Approve::All, Approve::None, Approve::Pause] {
            assert_eq!(verdict(approve, "read"), Verdict::Proceed);
        }
        assert_eq!(verdict(Approve::All, "write"), Verdict::Proceed);
        assert_eq!(verdict(Approve::Pause, "write"), Verdict::Pause);
        assert!(matches!(verdict(Approve::None, "write"), Verdict::RejectBecause(_)));
    }

    #[test]
    fn a_question_cannot_be_painted_over() {
        let shown: String = "a\x1b[2K\rb\u{9b}".chars().flat_map(shown).collect();
        assert_eq!(shown, "a\\u{1b}[2K\\rb\\u{9b}");
    }
}
