//! What a tool wrote: collected head and tail under a bound, or passed on as it comes.
//!
//! Reading the pipes is others' business; here are only the bytes.

use serde::Serialize;

/// Which of a tool's two output streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of output on its way to a reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputChunk {
    /// Where the tool wrote it.
    pub stream: OutputStream,
    /// The bytes as the tool wrote them; never none.
    pub bytes: Vec<u8>,
}

/// What was kept of an output stream.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Captured {
    /// The output as text, with one line in the place of what was dropped: `[… 123 bytes dropped …]`. Without
    /// that line it has never more bytes than the limit.
    pub text: String,
    /// How many bytes the tool wrote.
    pub bytes: u64,
    /// How many of these are not in `text`. A character is kept whole or dropped whole.
    pub dropped: u64,
    /// Whether `text` has replacement characters (U+FFFD) in the place of bytes that are not UTF-8. What was
    /// dropped is not looked at.
    pub lossy: bool,
}

/// Collects an output stream, keeping its head and its tail.
///
/// Of a limit of `n` bytes the head has `n / 2` and the tail the rest. No more than `n` bytes are ever held,
/// however many are pushed, and none before the first; [`Collector::finish`] works in the same memory, but for
/// output that is not UTF-8, whose text it has to write anew.
///
/// The limit is one on the text: a replacement character counts as the three bytes that it has, so that a tool
/// which writes anything but text cannot make an outcome larger than was agreed.
#[derive(Debug)]
pub struct Collector {
    limit: usize,
    /// At most `limit` bytes. Until there are more it holds all of them. Then the head stays as it is, and the
    /// rest becomes a ring that always holds the last bytes.
    kept: Vec<u8>,
    /// Where in the ring, counted from the end of the head, the oldest byte is, to be overwritten next.
    oldest: usize,
    pushed: u64,
}

impl Collector {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::new(), oldest: 0, pushed: 0 }
    }

    /// Takes what the tool wrote next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pushed = self.pushed.saturating_add(bytes.len() as u64);
        let room = self.limit - self.kept.len();
        let (fits, rest) = bytes.split_at(room.min(bytes.len()));
        self.reserve(fits.len());
        self.kept.extend_from_slice(fits);
        if !rest.is_empty() {
            self.push_into_ring(rest);
        }
    }

    /// What was kept, as text.
    pub fn finish(mut self) -> Captured {
        let bytes = self.pushed;
        if bytes <= self.limit as u64 {
            return match String::from_utf8(self.kept) {
                Ok(text) => Captured { text, bytes, dropped: 0, lossy: false },
                Err(error) => not_utf8(error.as_bytes(), None, self.limit, bytes),
            };
        }
        let head = self.head();
        self.kept[head..].rotate_left(self.oldest);
        // The cuts may have gone through a character; what is left of it goes too.
        let tail = head + broken_start(&self.kept[head..]);
        let head = head - broken_end(&self.kept[..head]);
        let valid = |bytes| std::str::from_utf8(bytes).is_ok();
        if valid(&self.kept[..head]) && valid(&self.kept[tail..]) {
            let dropped = bytes - (head + self.kept.len() - tail) as u64;
            let marker = marker(dropped);
            self.kept.reserve_exact(marker.len().saturating_sub(tail - head));
            self.kept.splice(head..tail, marker.into_bytes());
            // Both parts were looked at, so that nothing is ever replaced here.
            let text = String::from_utf8(self.kept).unwrap_or_default();
            return Captured { text, bytes, dropped, lossy: false };
        }
        not_utf8(&self.kept[..head], Some(&self.kept[tail..]), self.limit, bytes)
    }

    /// How many bytes the head has.
    fn head(&self) -> usize {
        self.limit / 2
    }

    /// Makes room as a `Vec` does, by doubling, but never for more than the limit.
    fn reserve(&mut self, more: usize) {
        let wanted = self.kept.len() + more;
        if wanted > self.kept.capacity() {
            let capacity = wanted.max(self.kept.capacity() * 2).max(SMALLEST).min(self.limit);
            self.kept.reserve_exact(capacity - self.kept.len());
        }
    }

    fn push_into_ring(&mut self, bytes: &[u8]) {
        let head = self.head();
        let ring = &mut self.kept[head..];
        if let Some(last) = bytes.len().checked_sub(ring.len()) {
            ring.copy_from_slice(&bytes[last..]);
            self.oldest = 0;
            return;
        }
        let (until_end, from_start) = bytes.split_at(bytes.len().min(ring.len() - self.oldest));
        ring[self.oldest..][..until_end.len()].copy_from_slice(until_end);
        ring[..from_start.len()].copy_from_slice(from_start);
        self.oldest = (self.oldest + bytes.len()) % ring.len();
    }
}

/// The first memory of a collector, or all of it where the limit is lower: most tools write less than this.
const SMALLEST: usize = 1024;

/// The line in the place of what was dropped. It does not count to the limit; at most it has 46 bytes.
fn marker(dropped: u64) -> String {
    format!("\n[… {dropped} bytes dropped …]\n")
}

/// How many bytes at the end are the beginning of a character and not the whole of it.
fn broken_end(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let Some(begin) = bytes[last..].iter().rposition(|byte| !is_continuation(*byte)) else { return 0 };
    match std::str::from_utf8(&bytes[last + begin..]) {
        Err(error) if error.error_len().is_none() => bytes.len() - last - begin,
        Ok(_) | Err(_) => 0,
    }
}

/// How many bytes at the start may be the end of a character.
fn broken_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count()
}

/// Whether a byte can only be in the middle of a character.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The text of output that is not UTF-8. Without a `tail`, `head` is the whole output, and may have to be cut
/// because its text is too long; with one, something between the two was dropped.
fn not_utf8(head: &[u8], tail: Option<&[u8]>, limit: usize, bytes: u64) -> Captured {
    let head_limit = limit / 2;
    let tail_limit = limit - head_limit;
    let (head, tail) = match tail {
        Some(tail) => (head, tail),
        None if rendered(head) <= limit => {
            let text = String::from_utf8_lossy(head).into_owned();
            return Captured { text, bytes, dropped: 0, lossy: true };
        }
        None => (head, head),
    };
    let head = &head[..first_fitting(head, head_limit)];
    let tail = &tail[last_fitting(tail, tail_limit)..];
    let dropped = bytes - (head.len() + tail.len()) as u64;
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    let lossy = [&head, &tail].iter().any(|text| matches!(text, std::borrow::Cow::Owned(_)));
    Captured { text: [&*head, &marker(dropped), &*tail].concat(), bytes, dropped, lossy }
}

/// How many bytes the text of `bytes` has.
fn rendered(bytes: &[u8]) -> usize {
    units(bytes).map(|unit| unit.rendered).sum()
}

/// How many bytes from the start have a text of at most `limit` bytes.
fn first_fitting(bytes: &[u8], limit: usize) -> usize {
    let mut room = limit;
    let fits = |unit: &Unit| match room.checked_sub(unit.rendered) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    units(bytes).take_while(fits).map(|unit| unit.raw).sum()
}

/// Where the longest end begins whose text has at most `limit` bytes.
fn last_fitting(bytes: &[u8], limit: usize) -> usize {
    let mut over = rendered(bytes).saturating_sub(limit);
    let must_go = |unit: &Unit| {
        let goes = over > 0;
        over = over.saturating_sub(unit.rendered);
        goes
    };
    units(bytes).take_while(must_go).map(|unit| unit.raw).sum()
}

/// A character, or bytes that become one replacement character.
struct Unit {
    raw: usize,
    rendered: usize,
}

fn units(bytes: &[u8]) -> impl Iterator<Item = Unit> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let characters = chunk.valid().chars().map(|character| character.len_utf8());
        let characters = characters.map(|length| Unit { raw: length, rendered: length });
        let invalid = Some(chunk.invalid().len()).filter(|length| *length > 0);
        characters.chain(invalid.map(|raw| Unit { raw, rendered: char::REPLACEMENT_CHARACTER.len_utf8() }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect<'a>(limit: usize, pushes: impl IntoIterator<Item = &'a [u8]>) -> Captured {
        let mut collector = Collector::new(limit);
        for bytes in pushes {
            collector.push(bytes);
            assert!(collector.kept.capacity() <= limit);
        }
        collector.finish()
    }

    #[track_caller]
    fn check(limit: usize, output: &[u8], text: &str, dropped: u64, lossy: bool) {
        let wanted = Captured { text: text.into(), bytes: output.len() as u64, dropped, lossy };
        assert_eq!(collect(limit, [output]), wanted, "at once");
        assert_eq!(collect(limit, output.chunks(1)), wanted, "a byte at a time");
        assert_eq!(collect(limit, output.chunks(3)), wanted, "three bytes at a time");
    }

    #[test]
    fn nothing_is_held_before_the_first_byte() {
        let mut collector = Collector::new(1024 * 1024);
        collector.push(b"");
        assert_eq!(collector.kept.capacity(), 0);
        assert_eq!(collector.finish(), Captured::default());
    }

    #[test]
    fn text_under_the_limit_stays_where_it_was_read_to() {
        let mut collector = Collector::new(1024 * 1024);
        collector.push(&[b'x'; 100_000]);
        let place = collector.kept.as_ptr();
        assert_eq!(collector.finish().text.as_ptr(), place);
    }

    #[test]
    fn output_up_to_the_limit_is_whole() {
        check(5, b"", "", 0, false);
        check(5, b"abcd", "abcd", 0, false);
        check(5, b"abcde", "abcde", 0, false);
        check(5, b"a\0\r\n\x1b", "a\0\r\n\x1b", 0, false);
        check(7, "€🦀".as_bytes(), "€🦀", 0, false);
    }

    #[test]
    fn output_over_the_limit_has_a_head_and_a_tail() {
        check(5, b"abcdef", "ab\n[… 1 bytes dropped …]\ndef", 1, false);
        check(4, b"abcdefghij", "ab\n[… 6 bytes dropped …]\nij", 6, false);
        check(1, b"abc", "\n[… 2 bytes dropped …]\nc", 2, false);
        check(0, b"abc", "\n[… 3 bytes dropped …]\n", 3, false);
    }

    #[test]
    fn a_cut_keeps_characters_whole_at_every_limit() {
        let output = "€🦀€🦀".as_bytes();
        let wanted = [
            (0, "", ""),
            (1, "", ""),
            (2, "", ""),
            (3, "", ""),
            (4, "", ""),
            (5, "", ""),
            (6, "€", ""),
            (7, "€", "🦀"),
            (8, "€", "🦀"),
            (9, "€", "🦀"),
            (10, "€", "🦀"),
            (11, "€", "🦀"),
            (12, "€", "🦀"),
            (13, "€", "€🦀"),
        ];
        for (limit, head, tail) in wanted {
            let dropped = (output.len() - head.len() - tail.len()) as u64;
            check(limit, output, &format!("{head}{}{tail}", marker(dropped)), dropped, false);
        }
        check(14, output, "€🦀€🦀", 0, false);

        let long = "€🦀".repeat(1000);
        for limit in 1000..=1003 {
            let captured = collect(limit, long.as_bytes().chunks(999));
            let (head, tail) = captured.text.split_once(&marker(captured.dropped)).unwrap();
            assert!(long.starts_with(head) && long.ends_with(tail), "{limit}");
            assert_eq!(captured.bytes, (head.len() + tail.len()) as u64 + captured.dropped);
            assert!(limit - head.len() - tail.len() <= 6, "{limit}: at most three bytes are lost at each cut");
            assert!(!captured.lossy);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_and_told() {
        check(20, b"a\xffb", "a\u{fffd}b", 0, true);
        // The tool itself stopped in the middle of a character.
        check(20, b"a\xe2\x82", "a\u{fffd}", 0, true);
        // What is replaced counts with the length that its text has.
        check(4, b"a\xffb", "a\n[… 1 bytes dropped …]\nb", 1, false);
        check(6, b"\xff\xff\xff", "\u{fffd}\n[… 1 bytes dropped …]\n\u{fffd}", 1, true);
        check(6, b"\xff\xff\xff\xff\xff\xff\xff\xff", "\u{fffd}\n[… 6 bytes dropped …]\n\u{fffd}", 6, true);
        // Of the dropped part nothing is said.
        check(4, b"ab\xff\xff\xffcd", "ab\n[… 3 bytes dropped …]\ncd", 3, false);
    }

    #[test]
    fn a_flood_takes_no_more_memory_than_the_limit() {
        let mut collector = Collector::new(1000);
        for _ in 0..10_000 {
            collector.push(&[b'x'; 777]);
        }
        assert_eq!(collector.kept.capacity(), 1000);
        let captured = collector.finish();
        assert_eq!((captured.bytes, captured.dropped), (7_770_000, 7_769_000));
        assert!(captured.text.capacity() <= 1000 + 46);
    }

    #[test]
    fn the_marker_has_at_most_46_bytes() {
        assert_eq!(marker(u64::MAX).len(), 46);
    }

    /// The same with everything kept, in the plainest words.
    fn model(limit: usize, output: &[u8]) -> Captured {
        let bytes = output.len() as u64;
        let lossy_text = String::from_utf8_lossy(output);
        if output.len() <= limit && lossy_text.len() <= limit {
            let lossy = std::str::from_utf8(output).is_err();
            return Captured { text: lossy_text.into_owned(), bytes, dropped: 0, lossy };
        }
        let (head_limit, tail_limit) = (limit / 2, limit - limit / 2);
        let (mut head, mut tail) = (output, output);
        if output.len() > limit {
            head = &output[..head_limit];
            tail = &output[output.len() - tail_limit..];
            // A beginning of a character is what some bytes would complete.
            let completions: [&[u8]; 4] = [b"\x80\x80\x80", b"\x90\x80\x80", b"\xa0\x80\x80", b"\xbf\xbf\xbf"];
            let is_beginning = |end: &[u8]| {
                let completed = completions.iter().flat_map(|more| (1..=3).map(|n| [end, &more[..n]].concat()));
                completed.filter_map(|bytes| String::from_utf8(bytes).ok()).any(|text| text.chars().count() == 1)
            };
            if let Some(length) = (1..=3.min(head.len())).find(|n| is_beginning(&head[head.len() - n..])) {
                head = &head[..head.len() - length];
            }
            for _ in 0..3 {
                if tail.first().is_some_and(|byte| (0x80..0xc0).contains(byte)) {
                    tail = &tail[1..];
                }
            }
        }
        let pieces = |bytes: &[u8]| {
            let mut pieces: Vec<(Vec<u8>, String)> = Vec::new();
            for chunk in bytes.utf8_chunks() {
                pieces.extend(chunk.valid().chars().map(|c| (c.to_string().into_bytes(), c.to_string())));
                if !chunk.invalid().is_empty() {
                    pieces.push((chunk.invalid().to_vec(), "\u{fffd}".into()));
                }
            }
            pieces
        };
        let (mut head_text, mut tail_text, mut kept, mut lossy) = (String::new(), String::new(), 0, false);
        for (raw, text) in pieces(head) {
            if head_text.len() + text.len() > head_limit {
                break;
            }
            lossy |= raw != text.as_bytes();
            kept += raw.len() as u64;
            head_text += &text;
        }
        for (raw, text) in pieces(tail).into_iter().rev() {
            if tail_text.len() + text.len() > tail_limit {
                break;
            }
            lossy |= raw != text.as_bytes();
            kept += raw.len() as u64;
            tail_text.insert_str(0, &text);
        }
        let dropped = bytes - kept;
        Captured { text: format!("{head_text}{}{tail_text}", marker(dropped)), bytes, dropped, lossy }
    }

    fn output() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<char>().prop_map(|character| character.to_string().into_bytes()),
            Just("€".as_bytes().to_vec()),
            Just("🦀".as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 1..4),
            prop::collection::vec(prop_oneof![Just(0x80_u8), Just(0xbf), Just(0xe2), Just(0xf0), Just(0xed)], 1..4),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn it_is_what_the_model_says(output in output(), limit in 0_usize..120, size in 1_usize..60) {
            let captured = collect(limit, output.chunks(size));
            let marker = if captured.dropped == 0 { String::new() } else { marker(captured.dropped) };
            prop_assert!(captured.text.len() <= limit + marker.len());
            prop_assert_eq!(captured, model(limit, &output));
        }

        #[test]
        fn text_is_never_damaged(text in "[a€🦀é\u{fffd}]{0,60}", limit in 0_usize..120, size in 1_usize..60) {
            let captured = collect(limit, text.as_bytes().chunks(size));
            prop_assert!(!captured.lossy);
            if captured.dropped == 0 {
                prop_assert_eq!(&captured.text, &text);
            } else {
                let (head, tail) = captured.text.split_once(&marker(captured.dropped)).unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(captured.bytes, (head.len() + tail.len()) as u64 + captured.dropped);
            }
        }
    }
}
