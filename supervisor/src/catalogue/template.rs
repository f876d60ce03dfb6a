//! One element of a command line with placeholders: `{name}` stands for an argument's text.
//!
//! Filling it puts text into one element and never splits it, so no argument can become two, and no shell ever
//! reads it. That a value may look like an option (`-rf`) is the tool's matter: put `--` before it.

use std::borrow::Cow;

/// An element of a command line: literal text and placeholders.
///
/// `{{` and `}}` are literal braces.
///
/// ```
/// use toolexec::catalogue::Template;
///
/// let template = Template::parse("--name={name} {{literally}}").unwrap();
/// assert_eq!(template.placeholders().collect::<Vec<_>>(), ["name"]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// No literal is empty, and no two literals are neighbours.
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Literal(String),
    Placeholder(String),
}

/// Why a text is not a [`Template`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TemplateError {
    /// A brace is opened and not closed.
    #[error("an opening brace without a closing one; a literal brace is written {{{{")]
    Unclosed,
    /// A brace is closed and was not opened.
    #[error("a closing brace without an opening one; a literal brace is written }}}}")]
    Unopened,
    /// What stands between braces is not a name.
    #[error(
        "{{{0}}} is not a placeholder: a name has letters, digits, _ - and . only; a literal brace is written {{{{"
    )]
    NotAName(String),
    /// It has a NUL character.
    #[error("a NUL character, which a command line cannot carry")]
    Nul,
}

impl Template {
    /// Reads an element.
    ///
    /// # Errors
    /// [`TemplateError`] when its braces do not pair, when there is no name between them, and for a NUL character.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.contains('\0') {
            return Err(TemplateError::Nul);
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let braced = &rest[at..];
            if let Some(after) = braced.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = braced.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some(after) = braced.strip_prefix('{') {
                let (name, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
                if !is_name(name) {
                    return Err(TemplateError::NotAName(super::excerpt::excerpt(name, 40)));
                }
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Placeholder(name.to_owned()));
                rest = after;
            } else {
                return Err(TemplateError::Unopened);
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// The names of its placeholders, in their order.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Placeholder(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The placeholder's name, where the whole element is one placeholder.
    pub fn sole_placeholder(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Placeholder(name)] => Some(name),
            _ => None,
        }
    }

    /// The element's text, where it has no placeholder.
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// How many bytes of it are literal.
    pub(super) fn literal_length(&self) -> usize {
        let length = |part: &Part| match part {
            Part::Literal(text) => text.len(),
            Part::Placeholder(_) => 0,
        };
        self.parts.iter().map(length).sum()
    }

    /// The element with every placeholder replaced by what `value` has for its name, or the first refusal.
    pub(super) fn fill<'v, E>(&self, mut value: impl FnMut(&str) -> Result<Cow<'v, str>, E>) -> Result<String, E> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => filled.push_str(text),
                Part::Placeholder(name) => filled.push_str(&value(name)?),
            }
        }
        Ok(filled)
    }
}

/// Whether a text can be the name of a placeholder: what the model providers allow as a property's name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    #[test]
    fn elements_are_read_or_refused() {
        let literal = |text: &str| Part::Literal(text.into());
        let placeholder = |name: &str| Part::Placeholder(name.into());
        let not_a_name = |text: &str| Err(TemplateError::NotAName(text.into()));
        let cases = [
            ("", Ok(vec![])),
            ("plain $(text) `x`", Ok(vec![literal("plain $(text) `x`")])),
            ("{a}", Ok(vec![placeholder("a")])),
            ("{a-b.c_1}", Ok(vec![placeholder("a-b.c_1")])),
            ("--x={a}", Ok(vec![literal("--x="), placeholder("a")])),
            ("{a}{b}", Ok(vec![placeholder("a"), placeholder("b")])),
            ("{{a}}", Ok(vec![literal("{a}")])),
            ("{{{a}}}", Ok(vec![literal("{"), placeholder("a"), literal("}")])),
            ("{{}}{{", Ok(vec![literal("{}{")])),
            ("é{a}é", Ok(vec![literal("é"), placeholder("a"), literal("é")])),
            ("{", Err(TemplateError::Unclosed)),
            ("x{a", Err(TemplateError::Unclosed)),
            ("{{{", Err(TemplateError::Unclosed)),
            ("}", Err(TemplateError::Unopened)),
            ("{a}}", Err(TemplateError::Unopened)),
            ("{}", not_a_name("")),
            ("{ a }", not_a_name(" a ")),
            ("{print $1}", not_a_name("print $1")),
            ("{é}", not_a_name("é")),
            ("{a{b}", not_a_name("a{b")),
            ("a\0", Err(TemplateError::Nul)),
        ];
        for (text, expected) in cases {
            assert_eq!(Template::parse(text).map(|template| template.parts), expected, "{text:?}");
        }
    }

    #[test]
    fn errors_say_how_a_brace_is_written() {
        let check = |text: &str, expected: &str| assert_eq!(Template::parse(text).unwrap_err().to_string(), expected);
        check("{", "an opening brace without a closing one; a literal brace is written {{");
        check("}", "a closing brace without an opening one; a literal brace is written }}");
        check(
            "{print $1}",
            "{print $1} is not a placeholder: a name has letters, digits, _ - and . only; a literal brace is written {{",
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_a_template_panic(text in "[{}a-c\\PC]{0,20}") {
            if let Ok(template) = Template::parse(&text) {
                template.fill(|name| Ok::<_, Infallible>(name.to_owned().into())).unwrap();
            }
        }

        #[test]
        fn a_value_is_put_in_byte_for_byte(before in "[^{}\0]{0,8}", value in any::<String>(), after in "[^{}\0]{0,8}") {
            let template = Template::parse(&format!("{before}{{value}}{after}")).unwrap();
            let filled = template.fill(|_| Ok::<_, Infallible>(value.as_str().into())).unwrap();
            prop_assert_eq!(filled, format!("{}{}{}", before, value, after));
        }
    }
}
