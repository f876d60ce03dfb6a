//! What a tool says of itself beside its limits: how it may be repeated and scheduled, and how it is found.

use super::read::Tool;
use crate::catalogue::declared::is_blank;
use crate::catalogue::excerpt::excerpt;
use crate::catalogue::load::problem::{Noted, Problems};
use crate::catalogue::load::section::Keys;
use crate::catalogue::{Declared, RetryPolicy};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use toml::de::DeValue;

const RETRY: Keys = Keys { known: &["max", "initial"], unsupported: &[], elsewhere: &[] };

impl Tool<'_> {
    pub(super) fn declared(&self, problems: &mut Problems<'_>) -> Result<Declared, Noted> {
        let retry = self.retry(problems);
        let serial = self.flag("serial", problems);
        let sensitive = self.flag("sensitive", problems);
        let return_direct = self.flag("return_direct", problems);
        let tags = self.tags(problems);
        let category = self.category(problems);
        Ok(Declared {
            retry: retry?,
            serial: serial?,
            sensitive: sensitive?,
            return_direct: return_direct?,
            // A command is handed its arguments and nothing else.
            context: false,
            tags: tags?,
            category: category?,
        })
    }

    fn flag(&self, key: &str, problems: &mut Problems<'_>) -> Result<bool, Noted> {
        Ok(self.section.boolean(key, problems)?.is_some_and(|flag| flag.value))
    }

    fn retry(&self, problems: &mut Problems<'_>) -> Result<Option<RetryPolicy>, Noted> {
        let Some(value) = self.section.get("retry") else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(true) => return Ok(Some(RetryPolicy::default())),
            DeValue::Boolean(false) => {
                return Err(self.section.note("retry", &value.span(), "is false; leave it out for no retry", problems));
            }
            DeValue::Table(_) => {}
            other => {
                let what = "true, or a table such as { max = 2, initial = \"200ms\" }";
                return Err(self.section.mistyped("retry", value, other, what, problems));
            }
        }
        let Some(section) = self.section.section("retry", "retry.", RETRY, problems)? else { return Ok(None) };
        let max = section.number("max", attempts(), problems);
        let initial = section.wait("initial", "200ms", problems);
        let undeclared = RetryPolicy::default();
        let max = max?.and_then(|max| u32::try_from(max.value).ok()).and_then(NonZeroU32::new);
        Ok(Some(RetryPolicy {
            max: max.unwrap_or(undeclared.max),
            initial: initial?.map_or(undeclared.initial, |initial| initial.value),
        }))
    }

    fn tags(&self, problems: &mut Problems<'_>) -> Result<Vec<String>, Noted> {
        let Some(texts) = self.section.texts("tags", "an array of strings", problems)? else { return Ok(Vec::new()) };
        let mut tags: Vec<String> = Vec::with_capacity(texts.value.len());
        let mut noted = None;
        for text in texts.value {
            if is_blank(text.value) {
                noted = Some(self.section.note("tags", &text.at, "has an empty tag", problems));
            } else if tags.iter().any(|known| known == text.value) {
                let message = format!("has {:?} more than once", excerpt(text.value, 64));
                noted = Some(self.section.note("tags", &text.at, message, problems));
            } else {
                tags.push(text.value.to_owned());
            }
        }
        noted.map_or(Ok(tags), Err)
    }

    fn category(&self, problems: &mut Problems<'_>) -> Result<Option<String>, Noted> {
        match self.section.text("category", "a string", problems)? {
            Some(text) if is_blank(text.value) => {
                Err(self.section.note("category", &text.at, "is empty; leave it out for none", problems))
            }
            text => Ok(text.map(|text| text.value.to_owned())),
        }
    }
}

/// How many further attempts may be declared.
fn attempts() -> RangeInclusive<usize> {
    let bound = |bound: &u32| usize::try_from(*bound).unwrap_or(usize::MAX);
    bound(RetryPolicy::MAX.start())..=bound(RetryPolicy::MAX.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::load::sample::{refused, with_tool};
    use std::time::Duration;

    // One case a key: the key is there, and the declaration is another (C1).
    #[test]
    fn every_key_changes_what_is_declared() {
        let none = Declared::default();
        let retry = |max, initial| {
            let retry = RetryPolicy { max: NonZeroU32::new(max).unwrap(), initial: Duration::from_millis(initial) };
            Declared { retry: Some(retry), ..Declared::default() }
        };
        let cases = [
            ("", none.clone()),
            ("retry = true", retry(2, 200)),
            ("retry = {}", retry(2, 200)),
            ("retry = { max = 5 }", retry(5, 200)),
            ("retry = { initial = '1s' }", retry(2, 1000)),
            ("retry = { max = 100, initial = 0.05 }", retry(100, 50)),
            ("serial = true", Declared { serial: true, ..none.clone() }),
            ("sensitive = true", Declared { sensitive: true, ..none.clone() }),
            ("return_direct = true", Declared { return_direct: true, ..none.clone() }),
            ("serial = false\nsensitive = false\nreturn_direct = false\ntags = []", none.clone()),
            ("tags = ['read', 'text']", Declared { tags: vec!["read".into(), "text".into()], ..none.clone() }),
            ("category = 'files'", Declared { category: Some("files".into()), ..none }),
        ];
        for (lines, expected) in cases {
            assert_eq!(with_tool(lines, |tool| tool.declared.clone()), expected, "{lines}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_declaration_is_told_in_words() {
        let retry = "true, or a table such as { max = 2, initial = \"200ms\" }";
        let attempts = "a whole number from 1 to 100";
        let flag = "true or false";
        let cases = [
            ("retry = false", "9", "`retry` is false; leave it out for no retry".into()),
            ("retry = 2", "9", format!("`retry` has a whole number, and has to be {retry}")),
            ("retry = 'yes'", "9", format!("`retry` has a string, and has to be {retry}")),
            ("retry = { max = 0 }", "17", format!("`retry.max` is 0, and has to be {attempts}")),
            ("retry = { max = -1 }", "17", format!("`retry.max` is -1, and has to be {attempts}")),
            ("retry = { max = 101 }", "17", format!("`retry.max` is 101, and has to be {attempts}")),
            (
                "retry = { max = 2.0 }",
                "17",
                format!("`retry.max` has a number with a fraction, and has to be {attempts}"),
            ),
            ("retry = { max = true }", "17", format!("`retry.max` has a boolean, and has to be {attempts}")),
            (
                "retry = { initial = 0 }",
                "21",
                "`retry.initial` is 0: nothing waits for zero time or less; leave it out for 200ms".into(),
            ),
            (
                "retry = { initial = '-1s' }",
                "21",
                "`retry.initial` is \"-1s\": nothing waits for zero time or less; leave it out for 200ms".into(),
            ),
            ("retry = { mx = 2 }", "11", "unknown key `retry.mx`; did you mean `retry.max`?".into()),
            ("retry = { jitter = true }", "11", "unknown key `retry.jitter`; known are max, initial".into()),
            ("serial = 1", "10", format!("`serial` has a whole number, and has to be {flag}")),
            ("sensitive = 'true'", "13", format!("`sensitive` has a string, and has to be {flag}")),
            ("return_direct = []", "17", format!("`return_direct` has an array, and has to be {flag}")),
            ("tags = 'read'", "8", "`tags` has a string, and has to be an array of strings".into()),
            ("tags = ['read', 1]", "17", "`tags` has a whole number, and has to be an array of strings".into()),
            ("tags = ['a', 'b', 'a']", "19", "`tags` has \"a\" more than once".into()),
            ("tags = ['a', ' ']", "14", "`tags` has an empty tag".into()),
            ("category = ''", "12", "`category` is empty; leave it out for none".into()),
            ("category = ['a']", "12", "`category` has an array, and has to be a string".into()),
        ];
        for (lines, column, expected) in cases {
            assert_eq!(refused(lines), format!("4:{column}: tool \"a\": {expected}"), "{lines}");
        }
    }
}
