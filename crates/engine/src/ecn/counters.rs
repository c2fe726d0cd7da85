//! Counters of payload bytes by ECN field, which the AccECN option tells (RFC 9768 §3.2.3).

use anabranch_units::Ecn;
use anabranch_wire::{BYTE_COUNTER_BITS, Options};

/// Payload bytes that came as ECT(0), CE and ECT(1), each from its first value on (RFC 9768 §3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counts {
    ect0: u64,
    ce: u64,
    ect1: u64,
}

const FIRST: Counts = Counts { ect0: 1, ce: 0, ect1: 1 };

impl Counts {
    /// The counter of a field; packets that are not ECN-capable have none.
    fn of(&mut self, field: Ecn) -> Option<&mut u64> {
        match field {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(&mut self.ect0),
            Ecn::Ce => Some(&mut self.ce),
            Ecn::Ect1 => Some(&mut self.ect1),
        }
    }

    /// Fields of an option in this order, up to the last whose counter differs from that of `before`.
    fn changed(mut self, order: [Ecn; 3], mut before: Counts) -> usize {
        order.iter().rposition(|field| self.of(*field) != before.of(*field)).map_or(0, |at| at + 1)
    }
}

/// Counters of the peer's bytes, which we tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    counts: Counts,
    /// Counts that the last option said.
    told: Counts,
    /// Options do not get through to the peer.
    lost: bool,
    /// Our last segment had an option.
    tried: bool,
    /// Begin of the data that came last, if it came again after an option.
    in_vain: Option<u64>,
    /// End of our first data, if it has the option: its loss may be for that.
    first_data: Option<u64>,
}

impl Default for Received {
    fn default() -> Self {
        Received { counts: FIRST, told: FIRST, lost: false, tried: false, in_vain: None, first_data: None }
    }
}

impl Received {
    /// Counts bytes that came with this field.
    pub(crate) fn count(&mut self, field: Ecn, bytes: u64) {
        if let Some(counter) = self.counts.of(field) {
            *counter += bytes;
        }
    }

    /// Adds an option of at most `room` bytes to a segment without one if a counter has changed since the last one, or
    /// in any case if it `probes` whether options get through: all counters that have ever changed, but rather fewer
    /// than none. What has changed since the last option is never left out (RFC 9768 §3.2.3.3).
    pub(crate) fn tell(&mut self, probes: bool, room: u64, options: &mut Options) {
        self.tried = options.byte_counters().is_some();
        if self.tried || self.lost || (self.counts == self.told && !probes) {
            return;
        }
        let orders = [Ecn::Ect0, Ecn::Ect1].map(Options::byte_counters_order);
        let least = |order: [Ecn; 3]| self.counts.changed(order, self.told);
        let all = |order: [Ecn; 3]| if probes { order.len() } else { self.counts.changed(order, FIRST) };
        let fits = |order: &[Ecn; 3]| Options::byte_counters_length(least(*order)) <= room;
        // The order that says what is new in fewer fields; the L4S experiment's ECT(1) first where both do (Linux).
        let Some(order) = orders.into_iter().rev().filter(fits).min_by_key(|order| (least(*order), all(*order))) else {
            return;
        };
        let fields = (least(order)..=all(order)).rev().find(|fields| Options::byte_counters_length(*fields) <= room);
        let fields = fields.unwrap_or_else(|| least(order));
        let mut counts = self.counts;
        let told = order[..fields].iter().map(|field| counts.of(*field).copied().unwrap_or_default());
        options.push_byte_counters(order[0], told);
        (self.told, self.tried) = (self.counts, true);
    }

    /// Notes that our first data leaves, which ends at offset `end`.
    pub(crate) fn on_first_data(&mut self, end: u64) {
        self.first_data = Some(end).filter(|_| self.tried);
    }

    /// Notes that nothing beyond offset `una` was acknowledged in time.
    pub(crate) fn on_timeout(&mut self, una: u64) {
        self.lost |= self.first_data.take().is_some_and(|end| una < end);
    }

    /// Notes that data came; `again` is its begin if it was there before. Where one segment comes again and again after
    /// our options, with no other in between, what has an option is lost (RFC 9768 §3.2.3.2.2, Linux).
    pub(crate) fn on_data(&mut self, again: Option<u64>) {
        // Several that come before our next segment are no answer to it.
        if again.is_none() || std::mem::take(&mut self.tried) {
            self.lost |= again.is_some() && self.in_vain == again;
            self.in_vain = again;
        }
    }
}

/// Counters of our bytes as the peer tells them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    counts: Counts,
    /// The peer has told at least one counter.
    told: bool,
    /// The first counters told were zero: something on the path wipes them out (RFC 9768 §3.2.3.2.4).
    zeroed: bool,
}

impl Default for Reported {
    fn default() -> Self {
        Reported { counts: FIRST, told: false, zeroed: false }
    }
}

impl Reported {
    /// Takes what a segment tells; returns the bytes newly marked, if it tells that. A counter of marked bytes that
    /// does not lie there has not moved if it never has; later it may have been left out for lack of room.
    pub(crate) fn take(&mut self, options: &Options) -> Option<u64> {
        let mut fields = options.byte_counters()?.peekable();
        let before = self.counts;
        let first = fields.peek().is_some() && !std::mem::replace(&mut self.told, true);
        let mut tells_marked = before.ce == FIRST.ce;
        for (field, low) in fields {
            self.zeroed |= first && field != Ecn::Ce && low == 0;
            tells_marked |= field == Ecn::Ce;
            let Some(counter) = self.counts.of(field) else { continue };
            let more = u64::from(low).wrapping_sub(*counter) & ((1 << BYTE_COUNTER_BITS) - 1);
            // What lies back by less than half of all values was overtaken; before the first nothing was told that
            // could have been.
            *counter += if first || more < 1 << (BYTE_COUNTER_BITS - 1) { more } else { 0 };
        }
        if self.zeroed {
            self.counts = before;
            return None;
        }
        tells_marked.then_some(self.counts.ce - before.ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(received: &mut Received, probes: bool, room: u64) -> Option<Vec<(Ecn, u32)>> {
        let mut options = Options::default();
        received.tell(probes, room, &mut options);
        let told = options.byte_counters().map(Iterator::collect);
        assert!(options.wire_length() <= room);
        told
    }

    /// The examples of the scheme that RFC 9768 §3.2.3.3 recommends.
    #[test]
    fn counters_that_have_changed_are_told() {
        let mut received = Received::default();
        assert_eq!(told(&mut received, false, 40), None);
        received.count(Ecn::NotEct, 500);
        assert_eq!(told(&mut received, false, 40), None, "not ECN-capable");
        received.count(Ecn::Ect0, 1000);
        assert_eq!(told(&mut received, false, 40), Some(vec![(Ecn::Ect0, 1001)]));
        assert_eq!(told(&mut received, false, 40), None, "nothing new");
        received.count(Ecn::Ce, 400);
        assert_eq!(told(&mut received, false, 40), Some(vec![(Ecn::Ect0, 1001), (Ecn::Ce, 400)]));
        received.count(Ecn::Ect0, 1000);
        assert_eq!(told(&mut received, false, 40), Some(vec![(Ecn::Ect0, 2001), (Ecn::Ce, 400)]));
        let mut l4s = Received::default();
        l4s.count(Ecn::Ect1, 1000);
        assert_eq!(told(&mut l4s, false, 40), Some(vec![(Ecn::Ect1, 1001)]));
    }

    /// An option leaves out nothing that has changed since the last, or does not leave (RFC 9768 §3.2.3.3).
    #[test]
    fn little_room_takes_the_counters_that_did_not_change() {
        let all = vec![(Ecn::Ect1, 1), (Ecn::Ce, 0), (Ecn::Ect0, 1)];
        assert_eq!(told(&mut Received::default(), true, 12), Some(all.clone()));
        assert_eq!(told(&mut Received::default(), true, 8), Some(all[..2].to_vec()));
        assert_eq!(told(&mut Received::default(), true, 4), Some(Vec::new()), "an empty one tries the path as well");
        assert_eq!(told(&mut Received::default(), true, 0), None);

        let mut received = Received::default();
        received.count(Ecn::Ect1, 700);
        received.count(Ecn::Ect0, 1000);
        assert_eq!(told(&mut received, false, 8), None, "three fields take twelve bytes");
        assert!(told(&mut received, false, 12).is_some());
        received.count(Ecn::Ect0, 1000);
        assert_eq!(told(&mut received, false, 8), Some(vec![(Ecn::Ect0, 2001), (Ecn::Ce, 0)]), "the other order");
    }

    #[test]
    fn options_that_do_not_get_through_end() {
        let speaks = |received: &mut Received| {
            received.count(Ecn::Ect0, 1);
            told(received, false, 40).is_some()
        };
        let mut again = Received::default();
        assert!(speaks(&mut again));
        again.on_data(Some(1));
        again.on_data(None);
        assert!(speaks(&mut again), "other data in between");
        again.on_data(Some(1));
        assert!(speaks(&mut again), "once");
        again.on_data(Some(1001));
        assert!(speaks(&mut again), "other data again, as where the order of packets changes");
        (0..300).for_each(|_| again.on_data(Some(2001)));
        assert!(speaks(&mut again), "many copies, and nothing was said meanwhile");
        again.on_data(Some(2001));
        assert!(!speaks(&mut again));

        let mut first = Received::default();
        assert!(told(&mut first, true, 40).is_some());
        first.on_first_data(1001);
        first.on_timeout(1001);
        assert!(speaks(&mut first), "it has arrived");
        first.on_first_data(1001);
        first.on_timeout(1);
        assert!(!speaks(&mut first));
    }

    /// Counters wrap, and none goes back (RFC 9768 A.1).
    #[test]
    fn reports_are_taken_modulo_their_field() {
        let mut reported = Reported::default();
        let mut take = |counters: &[u64]| {
            let mut options = Options::default();
            options.push_byte_counters(Ecn::Ect0, counters.iter().copied());
            reported.take(&options)
        };
        assert_eq!(take(&[1]), Some(0));
        assert_eq!(take(&[1, 0xff_ff00, 1]), Some(0), "that would be backwards");
        assert_eq!(take(&[1]), Some(0), "never marked");
        assert_eq!(take(&[1, 0x7f_ffff, 1]), Some(0x7f_ffff));
        assert_eq!(take(&[1, 0xff_ff00, 1]), Some(0x7f_ff01));
        assert_eq!(take(&[1, 0x100, 1]), Some(0x200));
        assert_eq!(take(&[1, 0xff, 1]), Some(0), "overtaken");
        assert_eq!(take(&[5]), None, "left out");
        let mut late = Options::default();
        late.push_byte_counters(Ecn::Ect0, [1, 0xff_ff00]);
        assert_eq!(Reported::default().take(&late), Some(0xff_ff00), "nothing was told before that could be overtaken");
    }

    /// An option without counters, as where there is no room for any, is none of the first.
    #[test]
    fn counters_that_begin_with_zero_are_wiped_out() {
        for (counters, expected) in [([1, 0, 1], Some(500)), ([0, 0, 0], None), ([1, 0, 0], None)] {
            let mut reported = Reported::default();
            let mut take = |counters: &[u64]| {
                let mut options = Options::default();
                options.push_byte_counters(Ecn::Ect0, counters.iter().copied());
                reported.take(&options)
            };
            assert_eq!(take(&[]), Some(0));
            take(&counters);
            assert_eq!(take(&[1, 500, 1]), expected, "{counters:?}");
        }
    }
}
