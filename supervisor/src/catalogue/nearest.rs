//! Finding what was probably meant by a misspelt name.

/// Names longer than this are not compared: the cost grows with the product of the lengths.
const MAX_LENGTH: usize = 64;

/// The known name that is nearest to `name`, if a third of its characters or fewer would have to change.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let acceptable = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter(|known| known.len() <= MAX_LENGTH)
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= acceptable)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many characters have to be put in, taken out or replaced to make `a` into `b` (Levenshtein), where case
/// does not count.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_where_one_is_near() {
        let known = ["timeout", "grace", "description", "worker"];
        let cases = [
            ("timout", Some("timeout")),
            ("Timeout", Some("timeout")),
            ("time_out", Some("timeout")),
            ("desription", Some("description")),
            ("workers", Some("worker")),
            ("retry", None),
            ("", None),
            ("ti", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name, known), expected, "{name:?}");
        }
        assert_eq!(nearest(&"x".repeat(65), ["x"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest("a", [""]), Some(""), "one change away");
    }
}
