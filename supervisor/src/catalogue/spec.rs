//! One tool's declaration, and how a call's arguments are made into work for a worker.

use super::arguments::{ArgumentError, Arguments};
use super::{CommandTemplate, Declared, HostBody, InputSchema, OutputSchema};
use crate::call::{Command, Place, Policy};
use toolexec_protocol::id::ToolName;

/// A declared tool.
#[derive(Debug)]
pub struct ToolSpec {
    /// What calls name it by.
    pub name: ToolName,
    /// What the model reads about it.
    pub description: String,
    /// What it does.
    pub body: Body,
    /// Its limits.
    pub policy: Policy,
    /// What its arguments have to be; `None` takes every JSON object.
    pub input: Option<InputSchema>,
    /// What its result has to be; `None` takes every JSON value. With it, a command's standard output is its result, one JSON
    /// value, when it exits with 0.
    pub output: Option<OutputSchema>,
    /// What else it says of itself.
    pub declared: Declared,
}

/// What a tool does when it is called.
#[derive(Debug)]
pub enum Body {
    /// It runs an external program.
    Command(CommandTemplate),
    /// A tool that is compiled into the worker program, found there by its name.
    Compiled,
    /// A tool that runs in the host's own process.
    Host(HostBody),
}

impl Body {
    /// Where its work is done.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Command(_) => Place::Command,
            Self::Compiled => Place::Worker,
            Self::Host(_) => Place::Host,
        }
    }
}

/// A call whose arguments were checked, ready for a worker.
#[derive(Debug)]
pub enum Prepared {
    /// A command with all its arguments filled in.
    Command(Command),
    /// A compiled tool with the text of its JSON arguments.
    Tool {
        /// The text of a JSON object.
        arguments: String,
    },
    /// A tool that runs in the host's own process, with the same.
    Host {
        /// What it does.
        body: HostBody,
        /// The text of a JSON object.
        arguments: String,
    },
}

impl ToolSpec {
    /// A tool that takes every JSON object, has no limits, and declares nothing else.
    pub fn new(name: ToolName, description: impl Into<String>, body: Body) -> Self {
        Self {
            name,
            description: description.into(),
            body,
            policy: Policy::default(),
            input: None,
            output: None,
            declared: Declared::default(),
        }
    }

    /// Checks the arguments of one call and fills them in. `arguments` is the text of a JSON object, where an
    /// empty text means `{}`.
    ///
    /// # Errors
    /// [`ArgumentError`] tells the model what is wrong with its arguments.
    pub fn prepare(&self, arguments: &str) -> Result<Prepared, ArgumentError> {
        let schema = self.input.as_ref();
        let arguments = Arguments::read(arguments, schema)?;
        match &self.body {
            Body::Command(template) => template.fill(arguments, schema).map(Prepared::Command),
            Body::Compiled => Ok(Prepared::Tool { arguments: arguments.into_json() }),
            Body::Host(body) => Ok(Prepared::Host { body: body.clone(), arguments: arguments.into_json() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Input;
    use crate::catalogue::StdinTemplate;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::ffi::OsString;

    fn tool(body: Body, input: Option<Value>) -> ToolSpec {
        let input = input.map(|schema| InputSchema::new(schema).unwrap());
        ToolSpec { input, ..ToolSpec::new(ToolName::new("a").unwrap(), "does a", body) }
    }

    fn command(elements: &[&str], stdin: StdinTemplate, input: Option<Value>) -> ToolSpec {
        let template = CommandTemplate::new("prog", elements.iter().copied()).unwrap();
        tool(Body::Command(CommandTemplate { stdin, ..template }), input)
    }

    /// What a tool's command gets, or what the model is told.
    fn filled(tool: &ToolSpec, arguments: &str) -> Result<(Vec<OsString>, Vec<u8>), String> {
        match tool.prepare(arguments).map_err(|error| error.to_string())? {
            Prepared::Command(Command { arguments, stdin: Input::Empty, .. }) => Ok((arguments, Vec::new())),
            Prepared::Command(Command { arguments, stdin: Input::Bytes(bytes), .. }) => Ok((arguments, bytes)),
            other => panic!("{other:?}"),
        }
    }

    fn elements(tool: &ToolSpec, arguments: &str) -> Result<Vec<OsString>, String> {
        filled(tool, arguments).map(|(elements, _)| elements)
    }

    fn text(body: &ToolSpec, arguments: &str) -> Result<String, String> {
        match body.prepare(arguments).map_err(|error| error.to_string())? {
            Prepared::Tool { arguments } => Ok(arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_arrive_with_the_digits_they_were_written_with() {
        let schema = json!({ "properties": { "id": { "type": "number" } } });
        for input in [None, Some(schema)] {
            let argv = command(&["--id={id}"], StdinTemplate::Json, input.clone());
            let compiled = tool(Body::Compiled, input);
            for number in [
                "9007199254740993",
                "18446744073709551615",
                "-9223372036854775808",
                "0.1",
                "1e-320",
                "1E5",
                "1.0",
                "-0",
                "1e400",
                "123456789012345678901234567890.123456789",
            ] {
                let arguments = format!("{{ \"id\" : {number} }}");
                let json = format!("{{\"id\":{number}}}");
                let expected = Ok((vec![format!("--id={number}").into()], json.clone().into_bytes()));
                assert_eq!(filled(&argv, &arguments), expected);
                assert_eq!(text(&compiled, &arguments), Ok(json));
            }
        }
    }

    #[test]
    fn every_kind_of_value_has_a_text() {
        let tool = command(&["{x}"], StdinTemplate::Argument("x".into()), None);
        let cases = [
            (r#"{"x": "plain"}"#, "plain"),
            (r#"{"x": ""}"#, ""),
            (r#"{"x": "\u00e9\n\"\ud83e\udd80"}"#, "é\n\"🦀"),
            (r#"{"x": true}"#, "true"),
            (r#"{"x": null}"#, "null"),
            (r#"{"x": [1, {"a": "b c"}]}"#, r#"[1,{"a":"b c"}]"#),
        ];
        for (arguments, expected) in cases {
            assert_eq!(filled(&tool, arguments), Ok((vec![expected.into()], expected.into())), "{arguments}");
        }
    }

    #[test]
    fn arguments_that_are_not_one_object_are_refused_with_the_place() {
        let tool = tool(Body::Compiled, None);
        for empty in ["", " \n", "{}", "{ }"] {
            assert_eq!(text(&tool, empty), Ok("{}".into()));
        }
        let cases = [
            ("{", "the arguments are not JSON: EOF while parsing an object at line 1 column 1"),
            ("{\n\"a\": 1,}", "the arguments are not JSON: key must be a string at line 2 column 8"),
            ("{} x", "the arguments are not JSON: trailing characters at line 1 column 4"),
            ("{'a': 1}", "the arguments are not JSON: key must be a string at line 1 column 2"),
            ("[1]", "the arguments are an array, and have to be one JSON object"),
            ("\"{}\"", "the arguments are a string, and have to be one JSON object"),
            ("3", "the arguments are a number, and have to be one JSON object"),
            ("true", "the arguments are a boolean, and have to be one JSON object"),
            ("null", "the arguments are null, and have to be one JSON object"),
            (
                "{\"a\": 1,\n  \"b\": {\"é\": 1, \"a\": 2, \"a\": 3}}",
                "the arguments have the key \"a\" twice, again at line 2 column 25",
            ),
            (
                r#"{"a": {"$serde_json::private::RawValue": "1"}}"#,
                r#"the key "$serde_json::private::RawValue" is reserved"#,
            ),
            (r#"{"\ud800": 1}"#, "a key of the arguments is not Unicode text: it has one half of a surrogate pair"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(text(&tool, arguments), Err(expected.into()), "{arguments}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(200_000), "}".repeat(200_000));
        assert_eq!(text(&tool, &deep), Err("the arguments are nested deeper than 128 levels".into()));
    }

    #[test]
    fn arguments_are_bounded_by_what_a_frame_carries() {
        let max = toolexec_protocol::limits::MAX_BODY;
        let of_length = |length: usize| format!("{{\"x\":\"{}\"}}", "y".repeat(length - r#"{"x":""}"#.len()));
        let compiled = tool(Body::Compiled, None);
        assert_eq!(text(&compiled, &of_length(max)).map(|text| text.len()), Ok(max));
        let expected = format!("the call is {} bytes long, more than the {max} that one call may carry", max + 1);
        assert_eq!(text(&compiled, &of_length(max + 1)), Err(expected));
        // The command line and its input ride in the same frame.
        let both = command(&["{n}"], StdinTemplate::Json, None);
        let arguments = format!("{{\"n\":\"n\",{}", &of_length(max - 8)[1..]);
        assert!(filled(&both, &arguments).unwrap_err().starts_with("the call is "), "{}", arguments.len());
    }

    #[test]
    fn defaults_are_filled_in_and_given_values_are_kept() {
        let schema = json!({
            "required": ["limit"],
            "properties": { "limit": { "type": "integer", "default": 10 }, "mode": { "default": { "b": [1, 2] } }, "x": {} },
        });
        let compiled = tool(Body::Compiled, Some(schema.clone()));
        assert_eq!(text(&compiled, ""), Ok(r#"{"limit":10,"mode":{"b":[1,2]}}"#.into()));
        assert_eq!(text(&compiled, r#"{"x": 1, "mode": null}"#), Ok(r#"{"x":1,"mode":null,"limit":10}"#.into()));
        let command = command(&["{limit}", "{mode}"], StdinTemplate::Json, Some(schema));
        let expected = (vec!["10".into(), r#"{"b":[1,2]}"#.into()], br#"{"limit":10,"mode":{"b":[1,2]}}"#.to_vec());
        assert_eq!(filled(&command, "{}"), Ok(expected));
    }

    #[test]
    fn an_absent_argument_is_named_unless_it_may_be_left_out() {
        let schema = json!({ "required": ["needed"], "properties": { "needed": {}, "free": {} } });
        let both = |elements: &[&str]| command(elements, StdinTemplate::Empty, Some(schema.clone()));
        assert_eq!(elements(&both(&["{needed}", "{free}", "-"]), r#"{"needed": 1}"#), Ok(vec!["1".into(), "-".into()]));
        assert_eq!(
            elements(&both(&["--free={free}"]), r#"{"needed": 1}"#),
            Err("the argument `free` is missing".into())
        );
        assert_eq!(
            elements(&both(&["{needed}"]), "{}"),
            Err(r#"the arguments do not fit: "needed" is a required property"#.into())
        );
        let without_schema = command(&["{free}"], StdinTemplate::Empty, None);
        assert_eq!(elements(&without_schema, "{}"), Err("the argument `free` is missing".into()));

        let stdin = |name: &str, schema| command(&[], StdinTemplate::Argument(name.into()), schema);
        assert_eq!(filled(&stdin("free", Some(schema.clone())), r#"{"needed": 1}"#), Ok((vec![], vec![])));
        assert_eq!(filled(&stdin("free", None), "{}"), Err("the argument `free` is missing".into()));
    }

    #[test]
    fn an_element_is_as_long_as_the_kernel_takes_and_no_longer() {
        let long = |length: usize| format!("{{\"a\": \"{}\", \"text\": \"{}\"}}", "a".repeat(10), "x".repeat(length));
        let too_long = |length: usize| {
            Err(format!(
                "the argument `text` ({length} bytes) makes an element of the command line longer than 131071 bytes, the most \
                 that the kernel takes (MAX_ARG_STRLEN, execve(2)); a tool gets longer text through its standard input: \
                 stdin = \"json\" in the catalogue"
            ))
        };
        let lengths = |element: &str, length: usize| {
            let tool = command(&[element], StdinTemplate::Empty, None);
            elements(&tool, &long(length)).map(|elements| elements[0].len())
        };
        assert_eq!(lengths("{text}", 131_071), Ok(131_071));
        assert_eq!(lengths("{text}", 131_072), too_long(131_072));
        assert_eq!(lengths("--text={text}!", 131_063), Ok(131_071));
        assert_eq!(lengths("--text={text}!", 131_064), too_long(131_064));
        assert_eq!(lengths("{a}{text}", 131_061), Ok(131_071));
        assert_eq!(lengths("{a}{text}", 131_062), too_long(131_062));
        let json = command(&[], StdinTemplate::Json, None);
        assert_eq!(filled(&json, &long(131_072)).map(|(_, stdin)| stdin.len()), Ok(131_072 + 28), "the other way in");
    }

    #[test]
    fn what_has_no_place_on_a_command_line_is_refused_by_name() {
        let argv = command(&["{x}"], StdinTemplate::Empty, None);
        let nul = "the argument `x` has a NUL character, which a command line cannot carry";
        assert_eq!(elements(&argv, r#"{"x": "a\u0000b"}"#), Err(nul.into()));
        let surrogate = "the argument `x` is not Unicode text: it has one half of a surrogate pair";
        assert_eq!(elements(&argv, r#"{"x": "\ud800"}"#), Err(surrogate.into()));
        let stdin = command(&[], StdinTemplate::Argument("x".into()), None);
        assert_eq!(filled(&stdin, r#"{"x": "a\u0000b"}"#), Ok((vec![], b"a\0b".to_vec())), "an input can carry it");
    }

    #[test]
    fn both_kinds_of_tools_check_their_arguments_alike() {
        let schema =
            json!({ "properties": { "x": { "type": "integer", "default": 1 } }, "additionalProperties": false });
        let compiled = tool(Body::Compiled, Some(schema.clone()));
        let command = command(&[], StdinTemplate::Json, Some(schema));
        for arguments in ["", r#"{"x": 2}"#, r#"{"x": "2"}"#, r#"{"y": 1}"#, "[]", "{", r#"{"x": 1, "x": 2}"#] {
            let stdin = filled(&command, arguments).map(|(_, stdin)| String::from_utf8(stdin).unwrap());
            assert_eq!(text(&compiled, arguments), stdin, "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn any_string_is_one_element_byte_for_byte(value in any::<String>(), other in any::<String>()) {
            prop_assume!(!value.contains('\0') && !other.contains('\0'));
            let tool = command(&["{x}", "<{y}>"], StdinTemplate::Argument("x".into()), None);
            let arguments = json!({ "x": value, "y": other }).to_string();
            let expected = (vec![value.clone().into(), format!("<{other}>").into()], value.into_bytes());
            prop_assert_eq!(filled(&tool, &arguments), Ok(expected));
        }

        #[test]
        fn no_arguments_make_the_check_panic(
            arguments in "[{}\\[\\]\":,xye0-9.\\\\u \\-+E]{0,30}|\\PC*|\\{\"x\": ?[0-9.eE+\\-\"\\[\\]{}xu\\\\]{0,16}\\}",
        ) {
            let schema = json!({
                "properties": {
                    "x": { "type": ["integer", "string"], "multipleOf": 0.1, "pattern": "^(a+)+$", "maximum": 5, "default": 1 },
                },
                "propertyNames": { "maxLength": 3 },
                "uniqueItems": true,
            });
            for input in [None, Some(schema)] {
                let _ = command(&["{x}"], StdinTemplate::Json, input.clone()).prepare(&arguments);
                let _ = tool(Body::Compiled, input).prepare(&arguments);
            }
        }
    }
}
