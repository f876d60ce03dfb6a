//! One JSON object's text, without the white space between its tokens, and where its members are in it.
//!
//! Arguments travel as text, so that every number arrives with the digits it was written with. That makes it
//! necessary to look at the text itself: a key that stands twice in one object would let the check of the
//! arguments see one value and the tool another.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// How deep arguments may be nested: what `serde_json` reads into a value, and most tools' parsers too.
pub(super) const MAX_DEPTH: usize = 128;

/// `serde_json` takes an object with such a key for a number or for raw text, so that the check of the arguments
/// would see another value than the tool.
const RESERVED: &str = "$serde_json::private::";

/// The text of a JSON object and where its members are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Object {
    /// The object, without white space between the tokens.
    pub(super) text: String,
    /// Its members in the order of the text.
    pub(super) members: Vec<Member>,
}

/// One member of an [`Object`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Member {
    /// Its key.
    pub(super) name: String,
    /// Where its value is in the object's text.
    pub(super) value: Range<usize>,
}

/// Why an object is not taken, though its text is JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ObjectError {
    /// A key stands twice in one object.
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it stands again, in bytes from the start of the text.
        offset: usize,
    },
    /// A key that cannot be told from `serde_json`'s own.
    ReservedKey(String),
    /// More than [`MAX_DEPTH`] levels.
    TooDeep,
    /// A key is not Unicode text: it has one half of a surrogate pair.
    UnreadableKey,
}

impl Object {
    /// Takes the text of one JSON object apart. The text must have been checked to be that; of any other text
    /// something comes out, and nothing panics.
    pub(super) fn compact(json: &str) -> Result<Self, ObjectError> {
        let mut scan = Scan { text: String::with_capacity(json.len()), members: Vec::new(), open: Vec::new() };
        let mut at_key = false;
        let mut rest = json;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                ' ' | '\t' | '\n' | '\r' => {
                    rest = &rest[1..];
                    continue;
                }
                '"' => string_length(rest),
                _ => first.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            match first {
                '"' if at_key => {
                    scan.key(token, json.len() - rest.len())?;
                    at_key = false;
                }
                '{' | '[' => {
                    scan.open(first == '{')?;
                    at_key = first == '{';
                }
                '}' | ']' => scan.close(),
                ',' => {
                    scan.end_value();
                    at_key = matches!(scan.open.last(), Some(Some(_)));
                }
                _ => {}
            }
            scan.text.push_str(token);
            if first == ':' {
                scan.begin_value();
            }
            rest = after;
        }
        Ok(Self { text: scan.text, members: scan.members })
    }

    /// The text of a member's value.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let member = self.members.iter().find(|member| member.name == name)?;
        self.text.get(member.value.clone())
    }

    /// Adds a member at the end; there must be none of that name. `json` is the text of its value.
    pub(super) fn push(&mut self, name: &str, json: &str) {
        self.text.pop();
        if !self.members.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(&serde_json::Value::from(name).to_string());
        self.text.push(':');
        let start = self.text.len();
        self.text.push_str(json);
        self.members.push(Member { name: name.to_owned(), value: start..self.text.len() });
        self.text.push('}');
    }
}

/// How far [`Object::compact`] has come.
struct Scan<'a> {
    text: String,
    members: Vec<Member>,
    /// What is open here, outermost first: an object with the keys seen in it, or an array.
    open: Vec<Option<HashSet<Cow<'a, str>>>>,
}

impl<'a> Scan<'a> {
    fn open(&mut self, is_object: bool) -> Result<(), ObjectError> {
        if self.open.len() == MAX_DEPTH {
            return Err(ObjectError::TooDeep);
        }
        self.open.push(is_object.then(HashSet::new));
        Ok(())
    }

    fn close(&mut self) {
        self.end_value();
        self.open.pop();
    }

    fn key(&mut self, token: &'a str, offset: usize) -> Result<(), ObjectError> {
        let key = match token.get(1..token.len() - 1) {
            Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
            _ => Cow::Owned(serde_json::from_str(token).map_err(|_| ObjectError::UnreadableKey)?),
        };
        if key.starts_with(RESERVED) {
            return Err(ObjectError::ReservedKey(key.into_owned()));
        }
        if self.open.len() == 1 {
            self.members.push(Member { name: key.clone().into_owned(), value: 0..0 });
        }
        match self.open.last_mut() {
            Some(Some(seen)) if seen.contains(&key) => Err(ObjectError::DuplicateKey { key: key.into_owned(), offset }),
            Some(Some(seen)) => {
                seen.insert(key);
                Ok(())
            }
            Some(None) | None => Ok(()),
        }
    }

    fn begin_value(&mut self) {
        if let ([_], Some(member)) = (self.open.as_slice(), self.members.last_mut()) {
            member.value = self.text.len()..self.text.len();
        }
    }

    fn end_value(&mut self) {
        if let ([_], Some(member)) = (self.open.as_slice(), self.members.last_mut()) {
            member.value.end = self.text.len();
        }
    }
}

/// The length of the string that `text` begins with, its quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn members_are_found_and_white_space_is_dropped() {
        let object =
            Object::compact(" { \"a\" : 1E5 ,\n\t\"b\\n\" : [ 1 , {\"a\":  \" x \\\" }\"} ] , \"c\":-0.10 } ").unwrap();
        assert_eq!(object.text, r#"{"a":1E5,"b\n":[1,{"a":" x \" }"}],"c":-0.10}"#);
        assert_eq!(object.value("a"), Some("1E5"));
        assert_eq!(object.value("b\n"), Some(r#"[1,{"a":" x \" }"}]"#));
        assert_eq!(object.value("c"), Some("-0.10"));
        assert_eq!(object.value("d"), None);
    }

    #[test]
    fn a_member_is_added_at_the_end() {
        let mut object = Object::compact("{ }").unwrap();
        object.push("a\"", "1");
        object.push("b", "[2]");
        assert_eq!(object.text, r#"{"a\"":1,"b":[2]}"#);
        assert_eq!(object.value("a\""), Some("1"));
        assert_eq!(object.value("b"), Some("[2]"));
        assert_eq!(Object::compact(&object.text), Ok(object));
    }

    #[test]
    fn a_key_that_stands_twice_is_found_at_every_depth() {
        let duplicate = |key: &str, offset| Err(ObjectError::DuplicateKey { key: key.into(), offset });
        let cases = [
            (r#"{"a":1,"a":2}"#, duplicate("a", 7)),
            (r#"{"a":1,"\u0061":2}"#, duplicate("a", 7)),
            (r#"{"x":[{"a":1, "b":{}, "a":2}]}"#, duplicate("a", 22)),
            (r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#, Ok(2)),
            (r#"{"a":["b","b","b"],"b":"b"}"#, Ok(2)),
            (r#"{"\ud800":1}"#, Err(ObjectError::UnreadableKey)),
            (
                r#"{"a":{"$serde_json::private::Number":"5"}}"#,
                Err(ObjectError::ReservedKey("$serde_json::private::Number".into())),
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(Object::compact(json).map(|object| object.members.len()), expected, "{json}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(Object::compact(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(Object::compact(&nested(MAX_DEPTH + 1)), Err(ObjectError::TooDeep));
    }

    /// Any JSON value.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,6}[\"\\\\{}\n]?".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\:{ ]{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn compacting_keeps_the_value_and_finds_every_member(
            members in prop::collection::btree_map("[a-c\"\\\\,: ]{0,3}", json(), 0..5),
        ) {
            let value = Value::Object(members.clone().into_iter().collect());
            let object = Object::compact(&serde_json::to_string_pretty(&value).unwrap()).unwrap();
            prop_assert_eq!(&object.text, &value.to_string());
            prop_assert_eq!(object.members.len(), members.len());
            for (name, member) in &members {
                prop_assert_eq!(object.value(name).map(str::to_owned), Some(member.to_string()));
            }
        }

        #[test]
        fn no_text_makes_compacting_panic(text in "[{}\\[\\]\",:\\\\ua-c1 é]{0,40}") {
            if let Ok(object) = Object::compact(&text) {
                for member in &object.members {
                    object.value(&member.name);
                }
            }
        }
    }
}
