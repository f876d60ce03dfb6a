//! Who is due when, and what the timer has to be set to. Pure: it owns no timer and reads no clock.
//!
//! Setting a timer is a system call, and most calls end long before their deadline. So the timer is touched only
//! when it would come too late: an entry that is removed leaves it set, and it may go off for nothing.

use super::moment::Moment;
use std::collections::BTreeMap;

/// Items and the moments at which they are due, earliest first; of the same moment, first in first out.
#[derive(Debug)]
pub(crate) struct DeadlineQueue<T> {
    entries: BTreeMap<Ticket, T>,
    /// Tells entries of the same moment apart.
    next: u64,
    /// What the timer is set to. Never later than the earliest entry, `None` only when there is no entry.
    timer: Option<Moment>,
}

/// Names one entry of a queue; none is ever used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Ticket {
    // The order of the fields is the order of the queue.
    at: Moment,
    sequence: u64,
}

impl<T> DeadlineQueue<T> {
    /// An empty queue, whose timer is not set.
    pub(crate) fn new() -> Self {
        Self { entries: BTreeMap::new(), next: 0, timer: None }
    }

    /// Adds an item. If a moment comes back the timer has to be set to it, because it would go off later or never.
    #[must_use = "the timer may have to be set"]
    pub(crate) fn insert(&mut self, at: Moment, item: T) -> (Ticket, Option<Moment>) {
        let ticket = Ticket { at, sequence: self.next };
        self.next += 1;
        self.entries.insert(ticket, item);
        if self.timer.is_some_and(|timer| timer <= at) {
            return (ticket, None);
        }
        self.timer = Some(at);
        (ticket, self.timer)
    }

    /// Takes an item back, unless it was due or taken already. The timer stays as it is.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.entries.remove(&ticket)
    }

    /// Moves every item that is due at `now` to the end of `due`, in order.
    ///
    /// To be called when the timer went off, which unset it: it has to be set to the moment that comes back, or
    /// stays unset.
    #[must_use = "the timer has to be set again"]
    pub(crate) fn due(&mut self, now: Moment, due: &mut Vec<T>) -> Option<Moment> {
        self.timer = loop {
            match self.entries.first_entry() {
                None => break None,
                Some(entry) if entry.key().at > now => break Some(entry.key().at),
                Some(entry) => due.push(entry.remove()),
            }
        };
        self.timer
    }

    /// How many items wait. Nobody but the tests asks yet.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no item waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A queue of names and the tickets they were given.
    struct Script {
        queue: DeadlineQueue<&'static str>,
        tickets: BTreeMap<&'static str, Ticket>,
    }

    impl Script {
        fn new() -> Self {
            Self { queue: DeadlineQueue::new(), tickets: BTreeMap::new() }
        }

        /// Inserts, and gives back what the timer is to be set to.
        fn insert(&mut self, at: u64, item: &'static str) -> Option<u64> {
            let (ticket, timer) = self.queue.insert(Moment(at), item);
            self.tickets.insert(item, ticket);
            timer.map(|moment| moment.0)
        }

        fn remove(&mut self, item: &'static str) -> Option<&'static str> {
            self.queue.remove(self.tickets[item])
        }

        /// What is due, and what the timer is to be set to.
        fn due(&mut self, now: u64) -> (Vec<&'static str>, Option<u64>) {
            let mut due = Vec::new();
            let timer = self.queue.due(Moment(now), &mut due);
            (due, timer.map(|moment| moment.0))
        }
    }

    #[test]
    fn the_timer_is_set_only_for_what_is_earlier() {
        let mut script = Script::new();
        assert_eq!(script.insert(50, "a"), Some(50));
        assert_eq!(script.insert(60, "b"), None);
        assert_eq!(script.insert(50, "c"), None);
        assert_eq!(script.insert(49, "d"), Some(49));
        assert_eq!(script.queue.len(), 4);
    }

    #[test]
    fn what_is_due_comes_in_order() {
        let mut script = Script::new();
        for (at, item) in [(30, "d"), (10, "a"), (20, "b"), (20, "c"), (40, "e")] {
            let _ = script.insert(at, item);
        }
        assert_eq!(script.due(9), (vec![], Some(10)));
        assert_eq!(script.due(30), (vec!["a", "b", "c", "d"], Some(40)));
        assert_eq!(script.due(40), (vec!["e"], None));
        assert_eq!(script.due(u64::MAX), (vec![], None));
        assert!(script.queue.is_empty());
    }

    #[test]
    fn a_call_that_ends_in_time_does_not_touch_the_timer() {
        let mut script = Script::new();
        assert_eq!(script.insert(10, "a"), Some(10));
        assert_eq!(script.remove("a"), Some("a"));
        assert!(script.queue.is_empty());
        // The timer is still set to 10, which is early enough for these.
        assert_eq!(script.insert(20, "b"), None);
        assert_eq!(script.insert(10, "c"), None);
        assert_eq!(script.remove("c"), Some("c"));
        // It goes off for nothing, once.
        assert_eq!(script.due(10), (vec![], Some(20)));
        assert_eq!(script.due(20), (vec!["b"], None));
        assert_eq!(script.insert(30, "d"), Some(30));
    }

    #[test]
    fn a_timer_that_went_off_for_nothing_is_unset() {
        let mut script = Script::new();
        assert_eq!(script.insert(10, "a"), Some(10));
        assert_eq!(script.remove("a"), Some("a"));
        assert_eq!(script.due(10), (vec![], None));
        assert_eq!(script.insert(10, "b"), Some(10));
    }

    #[test]
    fn an_item_is_given_out_once() {
        let mut script = Script::new();
        let _ = script.insert(10, "a");
        let _ = script.insert(10, "b");
        assert_eq!(script.remove("a"), Some("a"));
        assert_eq!(script.remove("a"), None);
        assert_eq!(script.due(10).0, ["b"]);
        assert_eq!(script.remove("b"), None);
        // The same moment again is another entry.
        let _ = script.insert(10, "c");
        assert_eq!(script.remove("b"), None);
        assert_eq!(script.remove("c"), Some("c"));
    }

    #[test]
    fn what_is_due_is_added_to_what_is_there() {
        let mut queue = DeadlineQueue::new();
        let _ = queue.insert(Moment(1), "b");
        let mut due = vec!["a"];
        assert_eq!(queue.due(Moment(1), &mut due), None);
        assert_eq!(due, ["a", "b"]);
    }

    #[derive(Clone, Debug)]
    enum Event {
        Insert(u64),
        Remove(prop::sample::Index),
        Due(u64),
        /// The timer goes off when it was set to.
        Timer,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0_u64..100).prop_map(Event::Insert),
            2 => any::<prop::sample::Index>().prop_map(Event::Remove),
            1 => (0_u64..100).prop_map(Event::Due),
            1 => Just(Event::Timer),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_list_with_a_timer(events in prop::collection::vec(event(), 0..200)) {
            let mut queue = DeadlineQueue::new();
            // The model: (moment, number of the insertion), sorted; and the kernel's timer.
            let mut list: Vec<(Moment, usize)> = Vec::new();
            let mut timer: Option<Moment> = None;
            let mut tickets = Vec::new();
            for event in events {
                let now = match event {
                    Event::Insert(at) => {
                        let at = Moment(at);
                        let number = tickets.len();
                        let (ticket, set) = queue.insert(at, number);
                        tickets.push((ticket, at));
                        list.push((at, number));
                        list.sort_unstable();
                        let wanted = timer.is_none_or(|timer| at < timer).then_some(at);
                        prop_assert_eq!(set, wanted);
                        timer = set.or(timer);
                        None
                    }
                    Event::Remove(index) => {
                        if !tickets.is_empty() {
                            let number = index.index(tickets.len());
                            let (ticket, at) = tickets[number];
                            let place = list.iter().position(|entry| *entry == (at, number));
                            let wanted = place.map(|place| list.remove(place).1);
                            prop_assert_eq!(queue.remove(ticket), wanted);
                        }
                        None
                    }
                    Event::Due(now) => Some(Moment(now)),
                    Event::Timer => timer,
                };
                if let Some(now) = now {
                    let mut due = Vec::new();
                    timer = queue.due(now, &mut due);
                    let wanted: Vec<usize> = list.extract_if(.., |(at, _)| *at <= now).map(|(_, number)| number).collect();
                    prop_assert_eq!(due, wanted);
                    prop_assert_eq!(timer, list.first().map(|(at, _)| *at));
                }
                prop_assert_eq!(queue.len(), list.len());
                prop_assert_eq!(queue.is_empty(), list.is_empty());
                // The timer is never later than the earliest entry.
                if let Some((earliest, _)) = list.first() {
                    prop_assert!(timer.is_some_and(|timer| timer <= *earliest));
                }
            }
        }
    }
}
