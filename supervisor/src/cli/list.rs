//! `toolexec list`: which tools there are, and what their deadline does on this machine.

use super::exit_code;
use super::host::Host;
use super::report::{self, quantity};
use super::settings::{CatalogueFile, ListSettings};
use crate::call::WorkerPolicy;
use crate::catalogue::{Body, Catalogue, Declared, RetryPolicy, Selection, ToolSpec, ToolTable};
use crate::{Executor, KillStrength, PoolSettings, WorkerProgram};
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use serde::Serialize;
use std::fmt::Write;
use std::num::NonZeroUsize;

/// What a deadline does on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kill {
    /// The mechanism that the workers really got.
    By(KillStrength),
    /// Why that could not be told.
    Unknown(String),
}

/// The list, as programs read it.
#[derive(Debug, Serialize)]
struct List<'c> {
    version: u32,
    kill_strength: Option<&'static str>,
    tools: Vec<Entry<'c>>,
}

#[derive(Debug, Serialize)]
struct Entry<'c> {
    name: &'c str,
    description: &'c str,
    timeout_ms: Option<u128>,
    grace_ms: Option<u128>,
    queue_timeout_ms: Option<u128>,
    /// The weakest kill that the tool accepts.
    kill: &'static str,
    deadline: Deadline,
    worker: Worker,
    retry: Option<Retry>,
    serial: bool,
    sensitive: bool,
    return_direct: bool,
    context: bool,
    tags: &'c [String],
    category: Option<&'c str>,
}

#[derive(Debug, Serialize)]
struct Retry {
    /// The most further attempts after the first.
    max: u32,
    initial_ms: u128,
}

/// What the deadline does here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Deadline {
    /// There is none.
    None,
    /// The whole tree is killed, and its death is confirmed.
    TreeKilled,
    /// The process group is killed, and its death is confirmed; what has left the group is missed.
    GroupKilled,
    /// It runs in this process, is asked to stop, and has promised to.
    AskedToStop,
    /// It runs in this process and is asked to stop; it may keep running.
    MayKeepRunning,
    /// The tool demands a surer kill than this machine has, and its calls are refused.
    Refused,
    /// It could not be told.
    Unknown,
}

#[derive(Debug, Serialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
enum Worker {
    /// It runs in this process.
    None,
    Fresh,
    Reuse {
        max_calls: u32,
    },
}

/// Prints the list and gives back the exit code.
pub(super) fn list(settings: &ListSettings, host: Host) -> u8 {
    let made = load(&settings.catalogue, &host).and_then(|catalogue| {
        let kill = kill(settings.strength, host.program.clone())?;
        Ok((kill, host.table(catalogue)?))
    });
    let selection = &settings.selection;
    match made {
        Ok((kill, tools)) if settings.json => report::json(&json(&tools.select(selection), &kill)),
        Ok((kill, tools)) => report::print(&text(tools, selection, &kill)),
        Err(error) => {
            report::complain(&format!("{error:#}"));
            exit_code::REFUSED
        }
    }
}

/// The catalogue; none is needed where the program has tools of its own.
pub(super) fn load(file: &CatalogueFile, host: &Host) -> anyhow::Result<Option<Catalogue>> {
    let path = file.path();
    if *file == CatalogueFile::Default && !path.exists() {
        if !host.has_no_tools() {
            return Ok(None);
        }
        anyhow::bail!("there is no catalogue: ./{} is missing; name one with --catalogue FILE", path.display());
    }
    Ok(Some(Catalogue::load(path)?))
}

/// Asks an executor for its mechanism: what is told is what a worker really got.
fn kill(strength: Option<KillStrength>, program: WorkerProgram) -> anyhow::Result<Kill> {
    let pool = PoolSettings { workers: NonZeroUsize::MIN, spares: 0, queue: 0 };
    let mut builder = Executor::builder().program(program).pool(pool);
    if let Some(strength) = strength {
        builder = builder.strength(strength);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    Ok(runtime.block_on(async {
        let executor = match builder.start().await {
            Ok(executor) => executor,
            Err(error) => return Kill::Unknown(format!("{:#}", anyhow::Error::new(error))),
        };
        let kill = match executor.kill_strength().await {
            Ok(strength) => Kill::By(strength),
            Err(error) => Kill::Unknown(format!("{:#}", anyhow::Error::new(error))),
        };
        executor.close().await;
        kill
    }))
}

fn deadline(tool: &ToolSpec, kill: &Kill) -> Deadline {
    let policy = &tool.policy;
    if let (Body::Host(body), Some(_)) = (&tool.body, policy.timeout) {
        return if body.is_cooperative() { Deadline::AskedToStop } else { Deadline::MayKeepRunning };
    }
    match kill {
        Kill::By(strength) if *strength < policy.kill => Deadline::Refused,
        _ if policy.timeout.is_none() => Deadline::None,
        Kill::By(KillStrength::PidNamespace | KillStrength::Cgroup | KillStrength::Subreaper) => Deadline::TreeKilled,
        Kill::By(KillStrength::ProcessGroup) => Deadline::GroupKilled,
        Kill::Unknown(_) => Deadline::Unknown,
    }
}

fn json<'c>(tools: &'c ToolTable, kill: &Kill) -> List<'c> {
    let kill_strength = match kill {
        Kill::By(strength) => Some(strength.as_str()),
        Kill::Unknown(_) => None,
    };
    List { version: 1, kill_strength, tools: tools.iter().map(|tool| entry(tool, kill)).collect() }
}

fn entry<'c>(tool: &'c ToolSpec, kill: &Kill) -> Entry<'c> {
    // By name, so that a further declaration is not forgotten here.
    let Declared { retry, serial, sensitive, return_direct, context, tags, category } = &tool.declared;
    Entry {
        name: tool.name.as_str(),
        description: &tool.description,
        timeout_ms: tool.policy.timeout.map(|timeout| timeout.as_millis()),
        grace_ms: tool.policy.grace.map(|grace| grace.as_millis()),
        queue_timeout_ms: tool.policy.queue_timeout.map(|timeout| timeout.as_millis()),
        kill: tool.policy.kill.as_str(),
        deadline: deadline(tool, kill),
        worker: match (&tool.body, tool.policy.worker) {
            (Body::Host(_), _) => Worker::None,
            (_, WorkerPolicy::Fresh) => Worker::Fresh,
            (_, WorkerPolicy::Reuse { max_calls }) => Worker::Reuse { max_calls: max_calls.get() },
        },
        retry: retry.map(|RetryPolicy { max, initial }| Retry { max: max.get(), initial_ms: initial.as_millis() }),
        serial: *serial,
        sensitive: *sensitive,
        return_direct: *return_direct,
        context: *context,
        tags,
        category: category.as_deref(),
    }
}

fn text(tools: ToolTable, selection: &Selection, kill: &Kill) -> String {
    let declared = tools.len();
    let tools = tools.select(selection);
    let name_style = Style::new().bold();
    let mut text = String::new();
    for tool in tools.iter() {
        let description = tool.description.lines().next().unwrap_or_default();
        let _infallible = writeln!(text, "{name_style}{}{name_style:#}  {description}", tool.name);
        let _infallible = writeln!(text, "    {}; {}", deadline_text(tool, kill), worker_text(tool));
        if let Some(declared) = declared_text(tool) {
            let _infallible = writeln!(text, "    {declared}");
        }
    }
    match declared {
        0 => text.push_str("no tools are declared\n"),
        declared if tools.is_empty() => {
            let declared = quantity::count(u64::try_from(declared).unwrap_or(u64::MAX), "tool", "tools");
            let _infallible = writeln!(text, "none of {declared} has these tags and this category");
        }
        _ => {}
    }
    if let Kill::Unknown(why) = kill {
        let warning = AnsiColor::Yellow.on_default();
        let _infallible = writeln!(text, "{warning}What a deadline does here could not be told: {why}{warning:#}");
    }
    text
}

fn deadline_text(tool: &ToolSpec, kill: &Kill) -> String {
    let policy = &tool.policy;
    let limit = policy.timeout.map(quantity::limit);
    let within = |limit: Option<String>| limit.map_or("no time limit".to_owned(), |limit| format!("{limit} at most"));
    let grace =
        policy.grace.map(|grace| format!("SIGTERM {} before its end, ", quantity::limit(grace))).unwrap_or_default();
    match (deadline(tool, kill), kill) {
        (Deadline::None, _) => "no time limit".to_owned(),
        (Deadline::AskedToStop, _) => format!("{}, then asked to stop, as it has promised to", within(limit)),
        (Deadline::MayKeepRunning, _) => format!("{}, then asked to stop; may keep running", within(limit)),
        (Deadline::TreeKilled, Kill::By(strength)) => {
            format!("{}, {grace}then killed: tree, confirmed ({strength})", within(limit))
        }
        (Deadline::GroupKilled, Kill::By(strength)) => {
            format!("{}, {grace}then killed: process group only, confirmed ({strength})", within(limit))
        }
        (Deadline::Refused, Kill::By(strength)) => {
            format!("{}, refused here: it demands {}, and this machine has {strength}", within(limit), policy.kill)
        }
        (_, _) => within(limit),
    }
}

fn worker_text(tool: &ToolSpec) -> String {
    if let Body::Host(_) = tool.body {
        return "in this process".to_owned();
    }
    match tool.policy.worker {
        WorkerPolicy::Fresh => "a fresh worker for each call".to_owned(),
        WorkerPolicy::Reuse { max_calls } => {
            format!("a worker serves up to {}", quantity::count(max_calls.get(), "call", "calls"))
        }
    }
}

/// What a tool says of itself beside its limits, where it says something.
fn declared_text(tool: &ToolSpec) -> Option<String> {
    let Declared { retry, serial, sensitive, return_direct, context, tags, category } = &tool.declared;
    let attempts = |RetryPolicy { max, initial }: &RetryPolicy| {
        let attempts = quantity::count(max.get(), "further attempt", "further attempts");
        format!("up to {attempts}, the first after {}", quantity::limit(*initial))
    };
    let flag = |flag: &bool, text: &str| flag.then(|| text.to_owned());
    let parts = [
        category.as_ref().map(|category| format!("category {category}")),
        (!tags.is_empty()).then(|| format!("tags {}", tags.join(", "))),
        retry.as_ref().map(attempts),
        flag(serial, "serial: its batch runs in order"),
        flag(sensitive, "sensitive: asks for approval"),
        flag(return_direct, "its result is the answer"),
        flag(context, "reads the conversation's context"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Policy;
    use crate::catalogue::{CommandTemplate, HostBody};
    use std::num::NonZeroU32;
    use std::time::Duration;
    use toolexec_protocol::id::ToolName;

    fn tool(name: &str, description: &str, policy: Policy) -> ToolSpec {
        let name = ToolName::new(name).unwrap();
        let command = CommandTemplate::new("prog", []).unwrap();
        ToolSpec { policy, ..ToolSpec::new(name, description, Body::Command(command)) }
    }

    #[test]
    fn the_list_tells_who_can_only_be_asked() {
        let policy = Policy { timeout: Some(Duration::from_secs(2)), ..Policy::default() };
        let body = || HostBody::blocking(|_, _| Ok("1".into()));
        let tool = |name, body| ToolSpec { body: Body::Host(body), ..tool(name, "", policy.clone()) };
        let tools = || ToolTable::new(vec![tool("deaf", body()), tool("polite", body().cooperative())]).unwrap();
        let all = Selection::default();
        let kill = Kill::By(KillStrength::PidNamespace);
        assert_eq!(
            anstream::adapter::strip_str(&text(tools(), &all, &kill)).to_string(),
            "deaf  \n    2s at most, then asked to stop; may keep running; in this process\n\
             polite  \n    2s at most, then asked to stop, as it has promised to; in this process\n"
        );
        let value = serde_json::to_value(json(&tools(), &kill)).unwrap();
        assert_eq!(value["tools"][0]["deadline"], "may-keep-running");
        assert_eq!(value["tools"][1]["deadline"], "asked-to-stop");
        assert_eq!(value["tools"][1]["worker"], serde_json::json!({ "policy": "none" }));
    }

    fn tools() -> ToolTable {
        let limited = Policy { timeout: Some(Duration::from_secs(2)), ..Policy::default() };
        let reused = Policy {
            worker: WorkerPolicy::Reuse { max_calls: NonZeroU32::new(10).unwrap() },
            grace: Some(Duration::from_millis(200)),
            kill: KillStrength::PidNamespace,
            ..limited.clone()
        };
        ToolTable::new(vec![
            tool("find", "Find a pattern\nin a text", limited),
            tool("free", "Runs as long as it likes", Policy::default()),
            tool("warm", "", reused),
        ])
        .unwrap()
    }

    #[test]
    fn the_list_tells_what_a_deadline_does_here() {
        let plain = |kill: &Kill| anstream::adapter::strip_str(&text(tools(), &Selection::default(), kill)).to_string();
        assert_eq!(
            plain(&Kill::By(KillStrength::PidNamespace)),
            "find  Find a pattern\n    2s at most, then killed: tree, confirmed (pid-namespace); a fresh worker for each call\n\
             free  Runs as long as it likes\n    no time limit; a fresh worker for each call\n\
             warm  \n    2s at most, SIGTERM 200ms before its end, then killed: tree, confirmed (pid-namespace); a worker serves up to 10 calls\n"
        );
        let subreaper = plain(&Kill::By(KillStrength::Subreaper));
        assert!(subreaper.contains("2s at most, then killed: tree, confirmed (subreaper)"), "{subreaper}");
        assert!(
            subreaper.contains("2s at most, refused here: it demands pid-namespace, and this machine has subreaper"),
            "{subreaper}"
        );
        let group = plain(&Kill::By(KillStrength::ProcessGroup));
        assert!(group.contains("killed: process group only") && !group.contains("killed: tree"), "{group}");
        let unknown = plain(&Kill::Unknown("no zygote".into()));
        assert!(!unknown.contains("killed") && unknown.ends_with("could not be told: no zygote\n"), "{unknown}");
    }

    #[test]
    fn the_list_is_json_with_a_version() {
        let value = serde_json::to_value(json(&tools(), &Kill::By(KillStrength::Subreaper))).unwrap();
        assert_eq!(value["version"], 1);
        assert_eq!(value["kill_strength"], "subreaper");
        let expected = serde_json::json!({
            "name": "warm", "description": "", "timeout_ms": 2000, "grace_ms": 200, "queue_timeout_ms": null,
            "kill": "pid-namespace", "deadline": "refused", "worker": { "policy": "reuse", "max_calls": 10 },
            "retry": null, "serial": false, "sensitive": false, "return_direct": false, "context": false, "tags": [],
            "category": null,
        });
        assert_eq!(value["tools"][2], expected);
        assert_eq!(value["tools"][0]["deadline"], "tree-killed");
        assert_eq!(value["tools"][1]["deadline"], "none");
        assert_eq!(value["tools"][1]["worker"], serde_json::json!({ "policy": "fresh" }));
    }

    #[test]
    fn an_empty_list_says_so() {
        let said = text(ToolTable::default(), &Selection::default(), &Kill::By(KillStrength::Subreaper));
        assert_eq!(said, "no tools are declared\n");
    }

    // One case a field: flipped, it is another line and another key (C1).
    #[test]
    fn every_declaration_changes_both_lists() {
        let none = Declared::default();
        let retry = |max, initial| Declared {
            retry: Some(RetryPolicy { max: NonZeroU32::new(max).unwrap(), initial: Duration::from_millis(initial) }),
            ..Declared::default()
        };
        let tags = vec!["read".to_owned(), "text".to_owned()];
        let cases = [
            (
                retry(1, 1500),
                "up to 1 further attempt, the first after 1.5s",
                "retry",
                r#"{"max":1,"initial_ms":1500}"#,
            ),
            (
                retry(2, 200),
                "up to 2 further attempts, the first after 200ms",
                "retry",
                r#"{"max":2,"initial_ms":200}"#,
            ),
            (Declared { serial: true, ..none.clone() }, "serial: its batch runs in order", "serial", "true"),
            (Declared { sensitive: true, ..none.clone() }, "sensitive: asks for approval", "sensitive", "true"),
            (Declared { return_direct: true, ..none.clone() }, "its result is the answer", "return_direct", "true"),
            (Declared { context: true, ..none.clone() }, "reads the conversation's context", "context", "true"),
            (Declared { tags, ..none.clone() }, "tags read, text", "tags", r#"["read","text"]"#),
            (Declared { category: Some("files".into()), ..none }, "category files", "category", "\"files\""),
        ];
        let kill = Kill::By(KillStrength::Subreaper);
        for (declared, line, key, value) in cases {
            let body = Body::Host(HostBody::blocking(|_, _| Ok("1".into())));
            let declared = ToolSpec { declared, ..ToolSpec::new(ToolName::new("a").unwrap(), "", body) };
            let tools = ToolTable::new(vec![declared]).unwrap();
            let listed = serde_json::to_value(json(&tools, &kill)).unwrap();
            assert_eq!(listed["tools"][0][key], serde_json::from_str::<serde_json::Value>(value).unwrap());
            assert_eq!(text(tools, &Selection::default(), &kill).lines().last(), Some(format!("    {line}").as_str()));
        }
    }

    #[test]
    fn the_list_is_of_what_was_selected() {
        let kill = Kill::By(KillStrength::Subreaper);
        let declared = |name: &str, tag: &str, category: &str| {
            let declared = Declared { tags: vec![tag.into()], category: Some(category.into()), ..Declared::default() };
            ToolSpec { declared, ..tool(name, "", Policy::default()) }
        };
        let tools =
            || ToolTable::new(vec![declared("find", "read", "files"), declared("remove", "write", "files")]).unwrap();
        let names = |selection: Selection| {
            let listed = serde_json::to_value(json(&tools().select(&selection), &kill)).unwrap();
            let names: Vec<String> =
                listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().into()).collect();
            (names, text(tools(), &selection, &kill))
        };
        let (listed, text) = names(Selection { tags: vec!["write".into()], ..Selection::default() });
        assert_eq!(listed, ["remove"]);
        assert!(text.contains("remove") && !text.contains("find"), "{text}");
        let (listed, text) = names(Selection { category: Some("web".into()), ..Selection::default() });
        assert_eq!((listed.len(), text.as_str()), (0, "none of 2 tools has these tags and this category\n"));
    }
}
