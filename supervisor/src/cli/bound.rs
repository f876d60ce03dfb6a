//! A bound on output that is passed on as it comes: the head at once, the tail at the end, and a line in the place of
//! what was dropped between them.
//!
//! The same as [`crate::call::Collector`] does for output that is collected, but with bytes instead of text.

use std::collections::VecDeque;

/// Keeps the head and the tail of a stream.
#[derive(Debug)]
pub(super) struct Bound {
    /// How many bytes of the head may still be passed on.
    head: usize,
    /// The beginning of a character at the end of what was passed on so far: it is passed on with its rest.
    begun: Vec<u8>,
    /// Whether the head is full, so that all that follows goes into the tail.
    is_full: bool,
    /// What follows the head: all of it as long as the whole is within the bound, then its end.
    tail: VecDeque<u8>,
    limit: usize,
    passed: usize,
    seen: u64,
}

/// What was dropped of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Dropped {
    /// How many bytes.
    pub(super) bytes: u64,
    /// Of how many.
    pub(super) of: u64,
}

impl Bound {
    /// Passes on at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { head: limit / 2, begun: Vec::new(), is_full: false, tail: VecDeque::new(), limit, passed: 0, seen: 0 }
    }

    /// Takes what the tool wrote next, and gives back what of it is to be passed on now.
    pub(super) fn push(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        if self.is_full {
            self.keep(&bytes);
            return Vec::new();
        }
        let mut head = std::mem::take(&mut self.begun);
        head.extend_from_slice(&bytes);
        let over = (head.len() > self.head).then(|| head.split_off(self.head));
        // A character is passed on whole or not at all.
        let begun = head.split_off(head.len() - unfinished(&head));
        self.head -= head.len();
        self.passed += head.len();
        match over {
            None => self.begun = begun,
            Some(over) => {
                self.is_full = true;
                self.keep(&begun);
                self.keep(&over);
            }
        }
        head
    }

    /// What is to be passed on at the end, and what was dropped.
    pub(super) fn finish(self) -> (Vec<u8>, Dropped) {
        let Self { begun, tail, limit, passed, seen, .. } = self;
        let mut tail = Vec::from(tail);
        if seen <= limit as u64 {
            return ([begun, tail].concat(), Dropped { bytes: 0, of: seen });
        }
        let tail_limit = limit - limit / 2;
        tail.drain(..tail.len().saturating_sub(tail_limit));
        let broken = tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        tail.drain(..broken);
        let dropped = seen - (passed + tail.len()) as u64;
        let marker = format!("\n[… {dropped} bytes dropped …]\n");
        ([marker.into_bytes(), tail].concat(), Dropped { bytes: dropped, of: seen })
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.limit - self.passed;
        let kept = bytes.get(bytes.len().saturating_sub(room)..).unwrap_or_default();
        let too_many = (self.tail.len() + kept.len()).saturating_sub(room);
        self.tail.drain(..too_many);
        self.tail.extend(kept);
    }
}

/// How many bytes at the end are the beginning of a character and not the whole of it.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let end = bytes.get(last..).unwrap_or_default();
    let Some(begin) = end.iter().rposition(|byte| !is_continuation(*byte)) else { return 0 };
    match std::str::from_utf8(end.get(begin..).unwrap_or_default()) {
        Err(error) if error.error_len().is_none() => end.len() - begin,
        Ok(_) | Err(_) => 0,
    }
}

/// Whether a byte can only be in the middle of a character.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Collector;
    use proptest::prelude::*;

    fn all(limit: usize, output: &[u8], size: usize) -> (Vec<u8>, Dropped) {
        let mut bound = Bound::new(limit);
        let mut passed: Vec<u8> = output.chunks(size).flat_map(|chunk| bound.push(chunk.to_vec())).collect();
        assert!(passed.len() <= limit / 2);
        let (rest, dropped) = bound.finish();
        passed.extend(rest);
        (passed, dropped)
    }

    #[test]
    fn the_head_is_passed_on_as_it_comes_and_the_tail_at_the_end() {
        let mut bound = Bound::new(10);
        assert_eq!(bound.push(b"abc".to_vec()), b"abc");
        assert_eq!(bound.push(b"defgh".to_vec()), b"de");
        assert_eq!(bound.push(b"ijklm".to_vec()), b"");
        let (rest, dropped) = bound.finish();
        assert_eq!(String::from_utf8(rest).unwrap(), "\n[… 3 bytes dropped …]\nijklm");
        assert_eq!(dropped, Dropped { bytes: 3, of: 13 });
    }

    #[test]
    fn what_fits_is_whole() {
        for size in 1..=10 {
            assert_eq!(all(10, b"abcdefghij", size), (b"abcdefghij".to_vec(), Dropped { bytes: 0, of: 10 }));
        }
        assert_eq!(all(1, b"a", 1), (b"a".to_vec(), Dropped { bytes: 0, of: 1 }));
        assert_eq!(all(1, b"", 1), (Vec::new(), Dropped::default()));
    }

    #[test]
    fn a_cut_inside_a_character_is_moved() {
        let output = "€🦀".repeat(2000);
        for limit in [1, 2, 3, 7, 1000, 1001, 1002, 1003] {
            for size in [1, 2, 3, 5, 4096, 20_000] {
                let (passed, dropped) = all(limit, output.as_bytes(), size);
                let text = String::from_utf8(passed).unwrap();
                let marker = format!("\n[… {} bytes dropped …]\n", dropped.bytes);
                assert!(text.contains(&marker), "{text}");
                assert!(text.len() - marker.len() <= limit);
                assert_eq!(dropped.of, output.len() as u64);
                assert_eq!(text.len() - marker.len() + dropped.bytes as usize, output.len());
            }
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_passed_on_as_they_are() {
        let (passed, dropped) = all(100, b"A\x80\xffB\0C\xe2\x82", 1);
        assert_eq!(passed, b"A\x80\xffB\0C\xe2\x82");
        assert_eq!(dropped.bytes, 0);
    }

    proptest! {
        #[test]
        fn text_is_bounded_as_the_collector_bounds_it(
            text in "[a€🦀é]{0,60}", limit in 1_usize..120, size in 1_usize..60,
        ) {
            let mut collector = Collector::new(limit);
            collector.push(text.as_bytes());
            let (passed, _) = all(limit, text.as_bytes(), size);
            prop_assert_eq!(String::from_utf8(passed).unwrap(), collector.finish().text);
        }

        #[test]
        fn every_byte_is_passed_on_or_counted(
            output in prop::collection::vec(any::<u8>(), 0..300), limit in 1_usize..200, size in 1_usize..60,
        ) {
            let (passed, dropped) = all(limit, &output, size);
            let marker = match dropped.bytes {
                0 => 0,
                bytes => format!("\n[… {bytes} bytes dropped …]\n").len(),
            };
            prop_assert_eq!(passed.len() - marker + dropped.bytes as usize, output.len());
            prop_assert!(passed.len() - marker <= limit);
        }
    }
}
