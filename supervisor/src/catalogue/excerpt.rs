//! Cutting foreign text down to what an error message has room for.

use std::fmt::{self, Display, Write};

/// The text of `value`, at most `bytes` bytes of it and an ellipsis, cut at a character border. No more than
/// that is ever built, however long the value's text would be.
pub(crate) fn excerpt(value: impl Display, bytes: usize) -> String {
    let mut bounded = Bounded { text: String::new(), bytes };
    if write!(bounded, "{value}").is_err() {
        bounded.text.push('…');
    }
    bounded.text
}

/// Takes text up to a bound and fails beyond it.
struct Bounded {
    text: String,
    bytes: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.bytes - self.text.len();
        if more.len() <= room {
            self.text.push_str(more);
            Ok(())
        } else {
            self.text.push_str(&more[..more.floor_char_boundary(room)]);
            // Nothing may follow a cut, not even what is short enough.
            self.bytes = self.text.len();
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_cut_at_a_character() {
        assert_eq!(excerpt("", 4), "");
        assert_eq!(excerpt("abcd", 4), "abcd");
        assert_eq!(excerpt("abcde", 4), "abcd…");
        assert_eq!(excerpt("🦀🦀", 4), "🦀…");
        assert_eq!(excerpt("🦀🦀", 7), "🦀…");
        assert_eq!(excerpt("🦀", 3), "…");
        assert_eq!(excerpt(format_args!("{}{}", "é", "x".repeat(9)), 3), "éx…");
        assert_eq!(excerpt(serde_json::json!({ "a": [1, 2, 3] }), 8), r#"{"a":[1,…"#);
    }
}
