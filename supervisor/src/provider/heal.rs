//! Answers for the calls that a history has left open.
//!
//! A run that was interrupted, or a batch that was thrown away, leaves calls without results behind, and every provider
//! refuses such a history from then on. Each open call gets a result that says nothing but that there is none. An entry
//! that is not understood stays as it is.

use super::{Provider, anthropic, gemini, openai, responses};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;

/// What the model reads of a call that nobody has finished. It is not called a failure: what the tool did is not known.
pub(super) const NO_RESULT: &str = "The call was cancelled and has no result.";

/// What was mended in a history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[must_use]
pub struct Healed {
    /// How many calls had no result.
    pub count: usize,
}

pub(super) fn heal(provider: Provider, history: &mut Vec<Value>) -> Healed {
    let count = match provider {
        Provider::OpenAiChat => heal_list(history, &CHAT),
        Provider::OpenAiResponses => heal_list(history, &ITEMS),
        Provider::Anthropic => heal_turns(history, &MESSAGES),
        Provider::Gemini => heal_turns(history, &CONTENTS),
    };
    Healed { count }
}

/// A call's place among the results of its turn.
enum Slot<T> {
    /// It has none, and gets this.
    Open(T),
    /// Its result stands there in the run, or somewhere else.
    Answered(Option<usize>),
}

/// Puts what is missing into a run of results: behind the result of the call before it.
fn weave<T>(run: impl IntoIterator<Item = T>, slots: impl IntoIterator<Item = Slot<T>>) -> Vec<T> {
    let mut missing = Vec::new();
    let mut behind = 0;
    for slot in slots {
        match slot {
            Slot::Open(result) => missing.push((behind, result)),
            Slot::Answered(Some(position)) => behind = behind.max(position + 1),
            Slot::Answered(None) => {}
        }
    }
    let mut missing = missing.into_iter().peekable();
    let mut woven = Vec::new();
    for (position, result) in run.into_iter().enumerate() {
        while let Some((_, result)) = missing.next_if(|(behind, _)| *behind <= position) {
            woven.push(result);
        }
        woven.push(result);
    }
    woven.extend(missing.map(|(_, result)| result));
    woven
}

/// A call in a list of entries: whether it is a custom tool's, and its id.
type ListedCall = (bool, String);

/// How a provider writes calls and results that are entries of one list.
struct List {
    calls: fn(&Value) -> Vec<ListedCall>,
    answer: fn(&Value) -> Option<ListedCall>,
    write: fn(&ListedCall) -> Value,
    /// Whether entries with calls that follow each other are of one turn.
    entries_join: bool,
}

const CHAT: List = List {
    calls: |entry| {
        let calls = entry["tool_calls"].as_array().filter(|_| entry["role"] == "assistant");
        calls.into_iter().flatten().filter_map(|call| Some((false, text(call, "id")?))).collect()
    },
    answer: |entry| if entry["role"] == "tool" { Some((false, text(entry, "tool_call_id")?)) } else { None },
    write: |(_, id)| openai::message_of(id, NO_RESULT),
    entries_join: false,
};

const ITEMS: List = List {
    calls: |entry| match entry["type"].as_str() {
        Some("function_call") => text(entry, "call_id").map(|id| (false, id)).into_iter().collect(),
        Some("custom_tool_call") => text(entry, "call_id").map(|id| (true, id)).into_iter().collect(),
        _ => Vec::new(),
    },
    answer: |entry| match entry["type"].as_str() {
        Some("function_call_output") => Some((false, text(entry, "call_id")?)),
        Some("custom_tool_call_output") => Some((true, text(entry, "call_id")?)),
        _ => None,
    },
    write: |(is_custom, id)| responses::item_of(*is_custom, id, NO_RESULT),
    entries_join: true,
};

/// A member that is a text with something in it.
fn text(value: &Value, member: &str) -> Option<String> {
    value[member].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The entries of a list that ask for results together.
struct ListedTurn {
    /// The first entry behind them.
    end: usize,
    calls: Vec<ListedCall>,
    /// Those of the calls that no later entry answers.
    open: HashSet<ListedCall>,
}

fn heal_list(history: &mut Vec<Value>, list: &List) -> usize {
    let turns = listed_turns(history, list);
    let count = turns.iter().map(|turn| turn.open.len()).sum();
    if count == 0 {
        return 0;
    }
    let mut rest = mem::take(history).into_iter().peekable();
    let mut position = 0;
    for turn in turns {
        history.extend(rest.by_ref().take(turn.end - position));
        let mut run = Vec::new();
        let mut places = HashMap::new();
        while let Some(entry) = rest.next_if(|entry| (list.answer)(entry).is_some()) {
            if let Some(call) = (list.answer)(&entry) {
                places.entry(call).or_insert(run.len());
            }
            run.push(entry);
        }
        position = turn.end + run.len();
        let slots = turn.calls.iter().map(|call| match turn.open.contains(call) {
            true => Slot::Open((list.write)(call)),
            false => Slot::Answered(places.get(call).copied()),
        });
        history.extend(weave(run, slots));
    }
    history.extend(rest);
    count
}

fn listed_turns(history: &[Value], list: &List) -> Vec<ListedTurn> {
    let mut turns: Vec<ListedTurn> = Vec::new();
    for (position, entry) in history.iter().enumerate() {
        let calls = (list.calls)(entry);
        match turns.last_mut() {
            _ if calls.is_empty() => {}
            Some(turn) if list.entries_join && turn.end == position => {
                turn.end += 1;
                turn.calls.extend(calls);
            }
            _ => turns.push(ListedTurn { end: position + 1, calls, open: HashSet::new() }),
        }
    }
    // From the end: where an id is used again in a later turn, a result belongs to the call that is nearest before it.
    let mut answered = HashSet::new();
    let mut end = history.len();
    for turn in turns.iter_mut().rev() {
        answered.extend(history[turn.end..end].iter().filter_map(list.answer));
        end = turn.end;
        let mut known = HashSet::new();
        turn.calls.retain(|call| known.insert(call.clone()));
        turn.open = turn.calls.iter().filter(|call| !answered.remove(*call)).cloned().collect();
    }
    turns
}

/// How a provider writes turns: calls within the model's entries, results within the user's behind them.
struct Turns {
    is_model: fn(&Value) -> bool,
    is_user: fn(&Value) -> bool,
    /// Heals one turn: what the model said and what was answered. Tells how many calls were open.
    heal: fn(&[Value], &mut Vec<Value>) -> usize,
}

const MESSAGES: Turns = Turns {
    is_model: |entry| entry["role"] == "assistant",
    is_user: |entry| entry["role"] == "user",
    heal: heal_messages,
};

const CONTENTS: Turns = Turns {
    is_model: |entry| entry["role"] == "model",
    is_user: |entry| entry["role"] == "user" || entry["role"] == "function" || entry["role"].is_null(),
    heal: heal_contents,
};

fn heal_turns(history: &mut Vec<Value>, turns: &Turns) -> usize {
    let mut count = 0;
    let mut rest = mem::take(history).into_iter().peekable();
    // Neighbours of one role are one turn to both providers.
    while let Some(entry) = rest.next() {
        let first = history.len();
        let is_model = (turns.is_model)(&entry);
        history.push(entry);
        if !is_model {
            continue;
        }
        while let Some(entry) = rest.next_if(turns.is_model) {
            history.push(entry);
        }
        let mut answers = Vec::new();
        while let Some(entry) = rest.next_if(turns.is_user) {
            answers.push(entry);
        }
        count += (turns.heal)(&history[first..], &mut answers);
        history.append(&mut answers);
    }
    count
}

/// The items of a list that each of some entries has.
fn items<'a>(entries: &'a [Value], member: &'static str) -> impl Iterator<Item = &'a Value> {
    entries.iter().filter_map(move |entry| entry[member].as_array()).flatten()
}

/// The call that a block of a message answers.
fn answered_by(block: &Value) -> Option<String> {
    if block["type"] == "tool_result" { text(block, "tool_use_id") } else { None }
}

fn heal_messages(said: &[Value], answers: &mut Vec<Value>) -> usize {
    let answered: HashSet<String> = items(answers, "content").filter_map(answered_by).collect();
    let mut known = HashSet::new();
    let calls: Vec<String> = items(said, "content")
        .filter(|block| block["type"] == "tool_use")
        .filter_map(|block| text(block, "id"))
        .filter(|id| known.insert(id.clone()))
        .collect();
    let count = calls.iter().filter(|id| !answered.contains(*id)).count();
    if count == 0 {
        return 0;
    }
    // Results come first in the message, whatever else the user says in it.
    let content = match answers.first_mut().and_then(|message| message.get_mut("content")) {
        Some(Value::Array(blocks)) => mem::take(blocks),
        Some(Value::String(said)) if said.is_empty() => Vec::new(),
        Some(Value::String(said)) => vec![json!({ "type": "text", "text": said })],
        _ => {
            answers.insert(0, anthropic::message_of(Vec::new()));
            Vec::new()
        }
    };
    let leading = content.iter().take_while(|block| block["type"] == "tool_result").count();
    let mut places = HashMap::new();
    for (place, block) in content[..leading].iter().enumerate() {
        places.entry(answered_by(block)).or_insert(place);
    }
    let slots = calls.into_iter().map(|id| match answered.contains(&id) {
        true => Slot::Answered(places.get(&Some(id)).copied()),
        false => Slot::Open(anthropic::block_of(&id, NO_RESULT)),
    });
    let mut rest = content.into_iter();
    let mut blocks = weave(rest.by_ref().take(leading), slots);
    blocks.extend(rest);
    if let Some(content) = answers.first_mut().and_then(|message| message.get_mut("content")) {
        *content = blocks.into();
    }
    count
}

/// A call or a response in a content.
#[derive(Clone, Debug)]
struct Named {
    id: Option<String>,
    name: String,
}

fn named(part: &Value, kind: &str) -> Option<Named> {
    let part = &part[kind];
    Some(Named { id: text(part, "id"), name: text(part, "name")? })
}

/// Which response answers which call: one of the same id and name, else one of the same name where not both have ids.
fn paired(calls: &[Named], responses: &[Named]) -> Vec<Option<usize>> {
    let mut free: HashMap<(Option<&str>, &str), VecDeque<usize>> = HashMap::new();
    let mut free_by_name: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (position, response) in responses.iter().enumerate() {
        free.entry((response.id.as_deref(), &response.name)).or_default().push_back(position);
        free_by_name.entry(&response.name).or_default().push_back(position);
    }
    let mut taken = HashSet::new();
    let mut pairs = vec![None; calls.len()];
    // Whoever has the least choice chooses first; so a history that has enough results never lacks one.
    for with_own_id in [true, false] {
        for (call, pair) in calls.iter().zip(&mut pairs).filter(|(call, pair)| call.id.is_some() && pair.is_none()) {
            let id = call.id.as_deref().filter(|_| with_own_id);
            *pair = free.get_mut(&(id, call.name.as_str())).and_then(VecDeque::pop_front);
            taken.extend(*pair);
        }
    }
    for (call, pair) in calls.iter().zip(&mut pairs).filter(|(call, _)| call.id.is_none()) {
        let same_name = free_by_name.get_mut(call.name.as_str());
        *pair = same_name.and_then(|free| std::iter::from_fn(|| free.pop_front()).find(|free| !taken.contains(free)));
    }
    pairs
}

fn heal_contents(said: &[Value], answers: &mut Vec<Value>) -> usize {
    let calls: Vec<Named> = items(said, "parts").filter_map(|part| named(part, "functionCall")).collect();
    let responses: Vec<Named> = items(answers, "parts").filter_map(|part| named(part, "functionResponse")).collect();
    let pairs = paired(&calls, &responses);
    let count = pairs.iter().filter(|pair| pair.is_none()).count();
    if count == 0 {
        return 0;
    }
    let has_responses = |content: &Value| items(std::slice::from_ref(content), "parts").any(is_response);
    let parts = match answers.iter_mut().find(|content| has_responses(content)) {
        Some(content) => content,
        None => {
            answers.insert(0, gemini::content_of(Vec::new()));
            &mut answers[0]
        }
    };
    let Some(Value::Array(parts)) = parts.get_mut("parts") else { return 0 };
    let places: Vec<usize> =
        parts.iter().enumerate().filter(|(_, part)| is_response(part)).map(|(place, _)| place).collect();
    let slots = calls.iter().zip(pairs).map(|(call, pair)| match pair {
        // The first content with responses has the first responses.
        Some(response) => Slot::Answered(places.get(response).copied()),
        None => Slot::Open(gemini::part_of(call.id.as_deref(), &call.name, json!({ "output": NO_RESULT }))),
    });
    *parts = weave(mem::take(parts), slots);
    count
}

fn is_response(part: &Value) -> bool {
    named(part, "functionResponse").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What becomes of a history, and that healing it once is enough.
    #[track_caller]
    fn check(provider: Provider, history: Value, count: usize, expected: Value) {
        let Value::Array(mut history) = history else { panic!("a history is a list") };
        assert_eq!(provider.heal(&mut history), Healed { count });
        assert_eq!(Value::Array(history.clone()), expected);
        assert_eq!(provider.heal(&mut history), Healed { count: 0 });
        assert_eq!(Value::Array(history), expected);
    }

    fn chat(ids: &[&str]) -> Value {
        let call = |id: &&str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
        json!({ "role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>() })
    }

    fn tool(id: &str, content: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": id, "content": content })
    }

    #[test]
    fn an_open_call_of_chat_is_answered_beside_its_siblings() {
        let user = json!({ "role": "user", "content": "go on" });
        check(
            Provider::OpenAiChat,
            json!([chat(&["a", "b", "c"]), tool("b", "2"), user]),
            2,
            json!([chat(&["a", "b", "c"]), tool("a", NO_RESULT), tool("b", "2"), tool("c", NO_RESULT), user]),
        );
        check(Provider::OpenAiChat, json!([chat(&["a"])]), 1, json!([chat(&["a"]), tool("a", NO_RESULT)]));
        let whole =
            json!([user, chat(&["a"]), tool("a", "1"), { "role": "assistant", "content": "x", "tool_calls": [] }]);
        check(Provider::OpenAiChat, whole.clone(), 0, whole);
    }

    #[test]
    fn a_result_answers_the_nearest_call_before_it() {
        check(
            Provider::OpenAiChat,
            json!([chat(&["call_0"]), chat(&["call_0"]), tool("call_0", "2")]),
            1,
            json!([chat(&["call_0"]), tool("call_0", NO_RESULT), chat(&["call_0"]), tool("call_0", "2")]),
        );
    }

    #[test]
    fn an_open_item_is_answered_by_an_item_of_its_kind() {
        let call =
            |id: &str| json!({ "type": "function_call", "id": "fc", "call_id": id, "name": "f", "arguments": "" });
        let custom = |id: &str| json!({ "type": "custom_tool_call", "call_id": id, "name": "g", "input": "x" });
        let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
        check(
            Provider::OpenAiResponses,
            json!([
                reasoning,
                call("a"),
                custom("b"),
                call("c"),
                responses::item_of(false, "c", "3"),
                reasoning,
                call("d")
            ]),
            3,
            json!([
                reasoning,
                call("a"),
                custom("b"),
                call("c"),
                responses::item_of(false, "a", NO_RESULT),
                responses::item_of(true, "b", NO_RESULT),
                responses::item_of(false, "c", "3"),
                reasoning,
                call("d"),
                responses::item_of(false, "d", NO_RESULT),
            ]),
        );
    }

    #[test]
    fn an_open_block_is_answered_at_the_beginning_of_the_next_message() {
        let block = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} });
        let said = |ids: &[&str]| json!({ "role": "assistant", "content": ids.iter().map(|id| block(id)).collect::<Vec<_>>() });
        let user = |content: Value| json!({ "role": "user", "content": content });
        let text = json!({ "type": "text", "text": "go on" });
        let result = anthropic::block_of;
        let check = |history, count, expected| check(Provider::Anthropic, history, count, expected);
        check(
            json!([said(&["a", "b"]), user(json!([result("b", "2"), text]))]),
            1,
            json!([said(&["a", "b"]), user(json!([result("a", NO_RESULT), result("b", "2"), text]))]),
        );
        check(
            json!([said(&["a"]), user("go on".into()), said(&["b"])]),
            2,
            json!([
                said(&["a"]),
                user(json!([result("a", NO_RESULT), text])),
                said(&["b"]),
                user(json!([result("b", NO_RESULT)])),
            ]),
        );
        let server = json!([{ "role": "assistant", "content": [
            { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} },
            { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] },
        ] }]);
        check(server.clone(), 0, server);
    }

    #[test]
    fn an_open_part_is_answered_in_the_content_with_the_other_responses() {
        let call = |id: Option<&str>, name: &str| match id {
            Some(id) => json!({ "functionCall": { "id": id, "name": name, "args": {} }, "thoughtSignature": "c2ln" }),
            None => json!({ "functionCall": { "name": name, "args": {} } }),
        };
        let said = |parts: Vec<Value>| json!({ "role": "model", "parts": parts });
        let user = json!({ "role": "user", "parts": [{ "text": "go on" }] });
        let part = |id, name: &str, output: &str| gemini::part_of(id, name, json!({ "output": output }));
        let check = |history, count, expected| check(Provider::Gemini, history, count, expected);
        let three = said(vec![call(None, "f"), call(None, "g"), call(None, "f")]);
        check(
            json!([three, gemini::content_of(vec![part(None, "f", "1")]), user]),
            2,
            json!([
                three,
                gemini::content_of(vec![part(None, "f", "1"), part(None, "g", NO_RESULT), part(None, "f", NO_RESULT)]),
                user,
            ]),
        );
        let one = said(vec![call(Some("x"), "f")]);
        check(json!([one, user]), 1, json!([one, gemini::content_of(vec![part(Some("x"), "f", NO_RESULT)]), user]));
    }

    /// An entry of some provider's history, well or badly made.
    fn entry() -> impl Strategy<Value = Value> {
        let id = || prop::sample::select(vec![json!("a"), json!("b"), json!("c"), json!(""), Value::Null, json!(1)]);
        let name = || prop::sample::select(vec![json!("f"), json!("g"), Value::Null]);
        let blocks = prop_oneof![
            id().prop_map(|id| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} })),
            id().prop_map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": "x" })),
            Just(json!({ "type": "text", "text": "x" })),
            Just(json!("x")),
        ];
        let parts = prop_oneof![
            (id(), name()).prop_map(|(id, name)| json!({ "functionCall": { "id": id, "name": name } })),
            (id(), name()).prop_map(|(id, name)| json!({ "functionResponse": { "id": id, "name": name } })),
            Just(json!({ "text": "x" })),
        ];
        let content = prop_oneof![
            prop::collection::vec(blocks, 0..5).prop_map(Value::from),
            Just(json!("x")),
            Just(json!("")),
            Just(Value::Null),
        ];
        let role = || prop::sample::select(vec!["user", "assistant", "model", "tool", "function", "system"]);
        prop_oneof![
            prop::collection::vec(id(), 0..4).prop_map(|ids| {
                let calls: Vec<Value> = ids.into_iter().map(|id| json!({ "id": id })).collect();
                json!({ "role": "assistant", "tool_calls": calls })
            }),
            id().prop_map(|id| json!({ "role": "tool", "tool_call_id": id, "content": "x" })),
            (prop::sample::select(vec!["function_call", "custom_tool_call", "reasoning"]), id())
                .prop_map(|(kind, id)| json!({ "type": kind, "call_id": id })),
            (prop::sample::select(vec!["function_call_output", "custom_tool_call_output"]), id())
                .prop_map(|(kind, id)| json!({ "type": kind, "call_id": id })),
            (role(), content).prop_map(|(role, content)| json!({ "role": role, "content": content })),
            (role(), prop::collection::vec(parts, 0..6))
                .prop_map(|(role, parts)| json!({ "role": role, "parts": parts })),
            Just(json!({})),
            Just(json!([1])),
        ]
    }

    /// Whether `old` is what remains of `new` when some of it is left out.
    fn is_within(old: &[Value], new: &[Value]) -> bool {
        let mut new = new.iter();
        old.iter().all(|entry| new.any(|other| other == entry))
    }

    proptest! {
        #[test]
        fn a_healed_history_is_not_changed_again(history in prop::collection::vec(entry(), 0..10)) {
            for provider in Provider::ALL {
                let mut healed = history.clone();
                let first = provider.heal(&mut healed);
                if first.count == 0 {
                    prop_assert_eq!(&healed, &history);
                }
                let again = healed.clone();
                let second = provider.heal(&mut healed);
                prop_assert_eq!(second.count, 0, "{:?} {:?}", provider, &again);
                prop_assert_eq!(&healed, &again);
                if matches!(provider, Provider::OpenAiChat | Provider::OpenAiResponses) {
                    prop_assert!(is_within(&history, &healed));
                }
            }
        }
    }
}
