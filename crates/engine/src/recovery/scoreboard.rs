//! Sent segments that are not cumulatively acknowledged, and the state of each.
//!
//! Records stand in sequence order in one ring: new ones join at the back, acknowledged ones leave at the front, none
//! is ever split or removed in between, so a record's number (how many were sent before it) is also its place. Three
//! indexes spare the hot path every walk over the window: a list threaded through the records in order of sending
//! (RFC 8985's loss detection reads its head), the set of SACKed numbers and the set of numbers to retransmit.
//! Each change of a record's state goes through one function, which keeps the totals.

use anabranch_policy::congestion::{Flight, LostSegment};
use anabranch_units::Instant;

use super::ack_effects::AckEffects;
use super::flights::Flights;
use super::rate::Departure;
use super::sent::{FIN, IN_REPAIR, LIMITED, LOST, REPEATED, SACKED, Sent};
use crate::ranges::RareSet;
use crate::ring::Ring;

/// A [`Sent`] as it is kept, in 56 bytes.
///
/// Numbers of 32 bits are the lower halves of numbers that lie within 2³² of one that the scoreboard knows: a peer's
/// window admits 2³⁰ bytes (RFC 7323 §2.3).
#[derive(Clone, Copy, Default, Debug)]
struct Record {
    data: u64,
    sent_at: Instant,
    departure: Departure,
    /// Low bits of the first position, which is at or above `snd_una`.
    start: u32,
    /// Low bits of the transmission number, at or below the number of transmissions.
    order: u32,
    /// The neighbours in order of sending, at or above `base`; say nothing at the ends of the list.
    earlier: u32,
    later: u32,
    len: u16,
    flags: u8,
    state: u8,
}

impl Record {
    fn weight(&self) -> u64 {
        u64::from(self.len) + u64::from(self.flags & FIN)
    }
}

/// The sums that are kept up to date, in sequence numbers unless they say segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Totals {
    /// RFC 6675's pipe: what is neither SACKed nor lost, plus retransmitted copies.
    pub(super) in_flight: u64,
    /// The same in segments.
    pub(super) in_flight_segments: u32,
    /// SACKed and not cumulatively acknowledged.
    pub(super) sacked: u64,
    /// Counted as lost and not SACKed since, retransmitted or not.
    pub(super) lost: u64,
    /// The same in segments.
    pub(super) lost_segments: u32,
}

impl Totals {
    fn add(&mut self, state: u8, weight: u64) {
        let copies = copies(state);
        self.in_flight += u64::from(copies) * weight;
        self.in_flight_segments += copies;
        if state & SACKED != 0 {
            self.sacked += weight;
        } else if state & LOST != 0 {
            self.lost += weight;
            self.lost_segments += 1;
        }
    }

    fn subtract(&mut self, state: u8, weight: u64) {
        let copies = copies(state);
        self.in_flight -= u64::from(copies) * weight;
        self.in_flight_segments -= copies;
        if state & SACKED != 0 {
            self.sacked -= weight;
        } else if state & LOST != 0 {
            self.lost -= weight;
            self.lost_segments -= 1;
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    segments: Ring<Record>,
    /// Number of the front record.
    base: u64,
    /// Bytes that were acknowledged of the front record.
    cut: u16,
    snd_una: u64,
    snd_nxt: u64,
    totals: Totals,
    transmissions: u64,
    /// Ends of the list of records with a copy in flight, in order of sending.
    oldest: u64,
    newest: u64,
    sacked: RareSet,
    pending: RareSet,
    /// The blocks of the last ACK that had any, with the number of the first record above each: peers repeat and extend
    /// blocks.
    blocks: Option<Box<[Block; 4]>>,
    /// Records below this have been through [`Scoreboard::lose_below`].
    judged: u64,
    /// End of the highest data sent here, and number of the first record from which on data follows in its order.
    highest: u64,
    ordered_from: u64,
    /// Notes of flights beside the records, if somebody wants them.
    flights: Option<Box<Flights>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    start: u64,
    end: u64,
    above: u64,
}

impl Scoreboard {
    pub(super) fn new(first: u64) -> Self {
        Scoreboard {
            segments: Ring::default(),
            base: 0,
            cut: 0,
            snd_una: first,
            snd_nxt: first,
            totals: Totals::default(),
            transmissions: 0,
            oldest: NONE,
            newest: NONE,
            sacked: RareSet::default(),
            pending: RareSet::default(),
            blocks: None,
            judged: 0,
            highest: 0,
            ordered_from: 0,
            flights: None,
        }
    }

    /// Notes the flight that each segment ends, or does not any more. Without SACK, what duplicate ACKs say has arrived
    /// still counts in it.
    pub(super) fn note_flights(&mut self, wanted: bool, selective: bool) {
        if wanted != self.flights.is_some() {
            let (records, in_flight) = (self.segments.len(), self.totals.in_flight);
            self.flights = wanted.then(|| Box::new(Flights::new(records, in_flight, selective)));
        }
    }

    /// The flight of a segment that an ACK delivered, with the losses found since.
    pub(super) fn flight_by_now(&self, read: Option<(Flight, u64)>) -> Option<Flight> {
        Some(self.flights.as_ref()?.since(read?))
    }

    /// Takes the segments found lost since the last time; none where flights are not noted.
    pub(super) fn take_lost(&mut self, delivered: u64) -> Vec<LostSegment> {
        self.flights.as_mut().map(|flights| flights.take_found(delivered)).unwrap_or_default()
    }

    /// Records a segment that leaves now, and returns it; `None` if it takes no sequence number.
    pub(super) fn push(
        &mut self,
        now: Instant,
        len: u32,
        data: u64,
        flags: u8,
        (departure, limited): (Departure, bool),
    ) -> Option<Sent> {
        let (newest, id) = (self.newest, self.next_id());
        let record = Record {
            data,
            sent_at: now,
            departure,
            start: self.snd_nxt as u32,
            order: (self.transmissions + 1) as u32,
            earlier: newest as u32,
            later: 0,
            len: u16::try_from(len).expect("a segment is shorter than 64 KiB"),
            flags,
            state: if limited { LIMITED } else { 0 },
        };
        if record.weight() == 0 {
            return None;
        }
        self.transmissions += 1;
        if data < self.highest {
            self.ordered_from = id;
        }
        self.highest = self.highest.max(data + u64::from(len));
        self.snd_nxt += record.weight();
        assert!(self.snd_nxt - self.snd_una <= u64::from(u32::MAX), "what is under way fits the peer's window");
        self.totals.add(record.state, record.weight());
        match self.record_mut(newest) {
            Some(before) => before.later = id as u32,
            None => self.oldest = id,
        }
        self.newest = id;
        self.segments.push_back(record);
        if let Some(flights) = &mut self.flights {
            flights.push(self.totals.in_flight);
        }
        Some(self.sent(&record))
    }

    /// Removes what `ack` covers, shortens a record that it covers in part; answers how far `snd_una` moved.
    pub(super) fn acknowledge(&mut self, ack: u64, effects: &mut AckEffects) -> u64 {
        let ack = ack.min(self.snd_nxt);
        let acked = ack.saturating_sub(self.snd_una);
        if acked == 0 {
            return 0;
        }
        while let Some((id, front)) = self.front() {
            if front.end() > ack {
                break;
            }
            if copies(front.state) > 0 {
                self.unlink(id);
            }
            self.totals.subtract(front.state, front.weight());
            effects.acknowledged(&front, || Some((self.flights.as_ref()?.get(0)?, self.flights.as_ref()?.lost())));
            self.segments.pop_front();
            if let Some(flights) = &mut self.flights {
                flights.pop();
            }
            self.base += 1;
            self.cut = 0;
        }
        self.sacked.remove_below(self.base);
        self.pending.remove_below(self.base);
        if self.segments.is_empty() {
            self.release();
        }
        if let Some((_, front)) = self.front()
            && front.start < ack
        {
            let cut = ack - front.start;
            // A cut into the FIN's number cannot be: the record would have ended at `ack`. So all of it is payload.
            let record = &mut self.segments[0];
            record.start = ack as u32;
            record.len -= cut as u16;
            record.data += cut;
            self.cut += cut as u16;
            self.totals.subtract(front.state, front.weight());
            self.totals.add(front.state, front.weight() - cut);
            if !front.is_sacked() {
                effects.bytes += cut;
            }
        }
        self.snd_una = ack;
        acked
    }

    /// Gives memory back: nothing is under way.
    fn release(&mut self) {
        self.segments.release();
        self.sacked.release();
        self.pending.release();
        self.blocks = None;
        if let Some(flights) = &mut self.flights {
            flights.release();
        }
    }

    /// Takes SACK blocks in. Bytes outside the window, blocks that end inside a record and repetitions are harmless.
    pub(super) fn select(&mut self, sack: &[(u64, u64)], effects: &mut AckEffects) {
        if sack.is_empty() {
            return;
        }
        let mut seen = [Block::default(); 4];
        for (i, &(start, end)) in sack.iter().enumerate() {
            let end = end.min(self.snd_nxt);
            if end <= self.snd_una || start >= end {
                continue;
            }
            let known = self
                .blocks
                .iter()
                .flat_map(|blocks| **blocks)
                .find(|b| b.start == start && b.end <= end && b.end > b.start);
            let above = match known {
                Some(block) if block.end == end => block.above,
                Some(block) => self.select_from(block.above.max(self.base), end, effects),
                None => self.select_from(self.at_or_after(start), end, effects),
            };
            if let Some(slot) = seen.get_mut(i) {
                *slot = Block { start, end, above };
            }
        }
        **self.blocks.get_or_insert_default() = seen;
    }

    /// Marks the records from `id` on that end by `end`, leaping over what is marked; answers the first one above.
    fn select_from(&mut self, mut id: u64, end: u64, effects: &mut AckEffects) -> u64 {
        while let Some(first) = self.get(id) {
            if first.state & SACKED != 0 {
                id = self.sacked.end_of(id).unwrap_or(id + 1);
                continue;
            }
            let from = id;
            while let Some(sent) = self.get(id) {
                if sent.end() > end || sent.state & SACKED != 0 {
                    break;
                }
                effects.selected(&sent, || {
                    let flights = self.flights.as_ref()?;
                    Some((flights.get((id - self.base) as usize)?, flights.lost()))
                });
                if sent.state & LOST != 0 {
                    self.pending.remove(id, id + 1);
                }
                self.set_state(id, (sent.state | SACKED) & !(LOST | IN_REPAIR));
                id += 1;
            }
            if from == id {
                break;
            }
            self.sacked.insert(from, id);
        }
        id
    }

    /// Counts `id` as lost, its retransmitted copy as well.
    pub(super) fn lose(&mut self, id: u64) -> u64 {
        let Some(sent) = self.get(id) else { return 0 };
        if copies(sent.state) > 0 {
            self.tell_loss(id, &sent);
        }
        self.set_state(id, (sent.state | LOST) & !IN_REPAIR);
        self.pending.insert(id, id + 1);
        sent.weight()
    }

    /// Tells whoever wants flights noted that a copy of `id` is lost.
    fn tell_loss(&mut self, id: u64, sent: &Sent) {
        if let Some(flights) = &mut self.flights {
            flights.lose((id - self.base) as usize, sent);
        }
    }

    /// Counts records as lost below the `above`-th highest SACKed one (RFC 6675 `IsLost`, in segments); looks at each
    /// record once in its life. Answers segments and sequence numbers.
    pub(super) fn lose_below(&mut self, above: u64) -> (u32, u64) {
        let mut left = above;
        let mut edge = 0;
        for (start, end) in self.sacked.iter().rev() {
            if left <= end - start {
                edge = end - left;
                break;
            }
            left -= end - start;
        }
        let mut lost = (0, 0);
        let mut id = self.judged.max(self.base);
        while id < edge {
            let Some(sent) = self.get(id) else { break };
            if sent.state & SACKED != 0 {
                id = self.sacked.end_of(id).unwrap_or(id + 1);
                continue;
            }
            if sent.state & LOST == 0 {
                lost = (lost.0 + 1, lost.1 + sent.weight());
                if sent.state & IN_REPAIR == 0 {
                    self.lose(id);
                } else {
                    // A tail loss probe has repeated it already.
                    self.tell_loss(id, &sent);
                    self.set_state(id, sent.state | LOST);
                }
            }
            id += 1;
        }
        self.judged = self.judged.max(edge);
        lost
    }

    /// Counts all that is larger than `most` and not SACKed as lost, and its copies; whether there is any.
    pub(super) fn lose_larger_than(&mut self, most: u32) -> bool {
        let large = |id: &u64| self.get(*id).is_some_and(|sent| sent.len > most && !sent.is_sacked());
        let ids: Vec<_> = (self.base..self.next_id()).filter(large).collect();
        ids.iter().for_each(|id| {
            self.lose(*id);
        });
        !ids.is_empty()
    }

    /// Declares lost all that is not SACKed, retransmitted copies too, after a timeout. If the first record is SACKED,
    /// the peer has thrown away what it had reported (RFC 2018 §8), and SACK reports are ignored from then on. Returns
    /// segments and sequence numbers that were not lost before.
    pub(super) fn lose_everything(&mut self) -> (u32, u64) {
        let reneged = self.front().is_some_and(|(_, front)| front.is_sacked());
        let before = self.totals;
        let keep = if reneged { REPEATED | LIMITED } else { SACKED | REPEATED | LIMITED };
        self.totals = Totals::default();
        self.pending.clear();
        if self.flights.is_some() {
            for id in self.base..self.next_id() {
                if let Some(sent) = self.get(id).filter(|sent| copies(sent.state) > 0) {
                    self.tell_loss(id, &sent);
                }
            }
        }
        for i in 0..self.segments.len() {
            let record = &mut self.segments[i];
            if reneged && record.state & SACKED != 0 {
                // Another report of it comes at any time, and is as ambiguous as that of a segment sent twice.
                record.state |= REPEATED;
            }
            record.state &= keep;
            if record.state & SACKED == 0 {
                record.state |= LOST;
                let id = self.base + i as u64;
                self.pending.insert(id, id + 1);
            }
            self.totals.add(record.state, record.weight());
        }
        self.oldest = NONE;
        self.newest = NONE;
        if reneged {
            self.sacked.clear();
            self.blocks = None;
        }
        self.judged = self.next_id();
        (self.totals.lost_segments - before.lost_segments, self.totals.lost - before.lost)
    }

    /// Notes that the record at `start` was sent again; answers what was sent unless there is nothing to repeat there.
    pub(super) fn repeat(&mut self, now: Instant, start: u64, note: (Departure, bool)) -> Option<Sent> {
        let id = match self.pending.first() {
            Some((id, _)) if self.get(id).is_some_and(|sent| sent.start == start) => id,
            _ => self.holding(start)?,
        };
        let sent = self.get(id)?;
        if sent.state & SACKED != 0 {
            return None;
        }
        self.pending.remove(id, id + 1);
        if copies(sent.state) > 0 {
            self.unlink(id);
        }
        self.totals.subtract(sent.state, sent.weight());
        self.transmissions += 1;
        let limited = if note.1 { LIMITED } else { 0 };
        let (order, state) = (self.transmissions as u32, sent.state & !LIMITED | IN_REPAIR | REPEATED | limited);
        let record = self.record_mut(id)?;
        record.sent_at = now;
        record.departure = note.0;
        record.order = order;
        record.state = state;
        self.totals.add(state, sent.weight());
        self.link(id);
        if let Some(flights) = &mut self.flights {
            flights.renew((id - self.base) as usize, self.totals.in_flight);
        }
        Some(sent)
    }

    /// The record with a copy in flight that was sent longest ago, and its number.
    pub(super) fn oldest(&self) -> Option<(u64, Sent)> {
        self.get(self.oldest).map(|sent| (self.oldest, sent))
    }

    pub(super) fn front(&self) -> Option<(u64, Sent)> {
        self.segments.front().map(|record| (self.base, self.sent(record)))
    }

    pub(super) fn back(&self) -> Option<Sent> {
        self.segments.back().map(|record| self.sent(record))
    }

    /// Tells whether a record is lost and has no copy in flight.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The lowest record that is lost and has no copy in flight.
    pub(super) fn pending(&self) -> Option<Sent> {
        self.pending.first().and_then(|(id, _)| self.get(id))
    }

    /// All of those.
    pub(super) fn all_pending(&self) -> impl Iterator<Item = Sent> {
        self.pending.iter().flat_map(|(from, end)| from..end).filter_map(|id| self.get(id))
    }

    /// The records with a copy in flight.
    pub(super) fn in_order_of_sending(&self) -> impl Iterator<Item = Sent> {
        let first = (self.oldest != NONE).then_some(self.oldest);
        std::iter::successors(first, |id| self.neighbours(*id).1).filter_map(|id| self.get(id))
    }

    pub(super) fn against_order_of_sending(&self) -> impl Iterator<Item = Sent> {
        let first = (self.newest != NONE).then_some(self.newest);
        std::iter::successors(first, |id| self.neighbours(*id).0).filter_map(|id| self.get(id))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Sent> + '_ {
        self.segments.iter().map(|record| self.sent(record))
    }

    /// The records with data between offsets `from` and `to` of the stream. They are found by bisection as long as data
    /// lies in order; otherwise all are looked at.
    pub(super) fn carrying(&self, from: u64, to: u64) -> impl Iterator<Item = Sent> + '_ {
        let ordered = self.ordered_from <= self.base;
        let end = |record: &Record| record.data + u64::from(record.len);
        let first = if ordered { self.segments.partition_point(|record| end(record) <= from) } else { 0 };
        let records = self.segments.iter_from(first).take_while(move |record| !ordered || record.data < to);
        let carry = records.filter(move |record| record.data < to && end(record) > from);
        carry.map(|record| self.sent(record))
    }

    /// Offset at which the lowest record began, before a part of it was acknowledged; `snd_nxt` if there is none.
    pub(super) fn kept_from(&self) -> u64 {
        self.snd_una - u64::from(self.cut)
    }

    /// The record that holds `offset`, as it was sent: whole.
    pub(super) fn whole(&self, offset: u64) -> Option<Sent> {
        let id = self.holding(offset)?;
        let mut sent = self.get(id)?;
        if id == self.base {
            sent.start -= u64::from(self.cut);
            sent.data -= u64::from(self.cut);
            sent.len += u32::from(self.cut);
        }
        Some(sent)
    }

    pub(super) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    pub(super) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn sacked_segments(&self) -> u64 {
        self.sacked.total()
    }

    /// The totals from scratch. Also checks the indexes against the records.
    pub(super) fn recompute(&self) -> Totals {
        let mut totals = Totals::default();
        let (mut listed, mut to_repeat, mut sacked) = (0, 0, 0);
        let mut expected = self.snd_una;
        for (id, sent) in (self.base..).zip(self.iter()) {
            totals.add(sent.state, sent.weight());
            listed += u64::from(copies(sent.state) > 0);
            sacked += u64::from(sent.is_sacked());
            let pending = sent.state & LOST != 0 && sent.state & IN_REPAIR == 0;
            to_repeat += u64::from(pending);
            assert!(sent.start == expected, "records follow one another without gaps");
            assert!(self.pending.contains(id) == pending, "what is lost and not repeated waits to be repeated");
            assert!(self.sacked.contains(id) == sent.is_sacked(), "the SACKed set mirrors the records");
            expected = sent.end();
        }
        assert!(expected == self.snd_nxt, "the records reach up to snd_nxt");
        assert!(self.pending.total() == to_repeat && self.sacked.total() == sacked, "no index outlives its record");
        let mut order = 0;
        for sent in self.in_order_of_sending() {
            assert!(sent.order > order && copies(sent.state) > 0, "the list is in order of sending");
            order = sent.order;
            listed -= 1;
        }
        assert!(listed == 0, "the list holds what has a copy in flight");
        let orders: Vec<_> = self.in_order_of_sending().map(|sent| sent.order).collect();
        let back = self.against_order_of_sending().map(|sent| sent.order);
        assert!(back.eq(orders.into_iter().rev()), "the list is the same from either end");
        totals
    }

    fn set_state(&mut self, id: u64, state: u8) {
        let Some(record) = self.record_mut(id) else { return };
        let (old, weight) = (record.state, record.weight());
        record.state = state;
        self.totals.subtract(old, weight);
        self.totals.add(state, weight);
        if copies(old) > 0 && copies(state) == 0 {
            self.unlink(id);
        }
    }

    fn link(&mut self, id: u64) {
        let newest = self.newest;
        match self.record_mut(newest) {
            Some(before) => before.later = id as u32,
            None => self.oldest = id,
        }
        if let Some(record) = self.record_mut(id) {
            record.earlier = newest as u32;
        }
        self.newest = id;
    }

    fn unlink(&mut self, id: u64) {
        let (earlier, later) = self.neighbours(id);
        // What was sent first is acknowledged first, as a rule. At an end of the list neighbours say nothing.
        if earlier.is_none() {
            self.oldest = later.unwrap_or(NONE);
            if later.is_none() {
                self.newest = NONE;
            }
            return;
        }
        match (earlier, later.and_then(|later| self.record_mut(later))) {
            (Some(earlier), Some(after)) => after.earlier = earlier as u32,
            (_, None) => self.newest = earlier.unwrap_or(NONE),
            (None, Some(_)) => {}
        }
        if let (Some(later), Some(before)) = (later, earlier.and_then(|earlier| self.record_mut(earlier))) {
            before.later = later as u32;
        }
    }

    /// The records sent before and after this one, of those with a copy in flight.
    fn neighbours(&self, id: u64) -> (Option<u64>, Option<u64>) {
        let Some(record) = self.segments.get(id.wrapping_sub(self.base) as usize) else { return (None, None) };
        let number = |low: u32| self.base + u64::from(low.wrapping_sub(self.base as u32));
        let earlier = (id != self.oldest).then(|| number(record.earlier));
        let later = (id != self.newest).then(|| number(record.later));
        (earlier, later)
    }

    fn next_id(&self) -> u64 {
        self.base + self.segments.len() as u64
    }

    #[inline]
    fn get(&self, id: u64) -> Option<Sent> {
        // A number below `base` comes out as one beyond the end.
        self.segments.get(id.wrapping_sub(self.base) as usize).map(|record| self.sent(record))
    }

    #[inline]
    fn record_mut(&mut self, id: u64) -> Option<&mut Record> {
        self.segments.get_mut(id.wrapping_sub(self.base) as usize)
    }

    #[inline]
    fn sent(&self, record: &Record) -> Sent {
        let Record { data, sent_at, departure, order, len, flags, state, .. } = *record;
        let order = self.transmissions - u64::from((self.transmissions as u32).wrapping_sub(order));
        Sent { start: self.start(record), len: u32::from(len), data, flags, state, sent_at, departure, order }
    }

    fn start(&self, record: &Record) -> u64 {
        self.snd_una + u64::from(record.start.wrapping_sub(self.snd_una as u32))
    }

    /// Number of the first record that begins at `offset` or later.
    fn at_or_after(&self, offset: u64) -> u64 {
        self.base + self.segments.partition_point(|record| self.start(record) < offset) as u64
    }

    /// Number of the record that holds `offset`.
    fn holding(&self, offset: u64) -> Option<u64> {
        let index = self.segments.partition_point(|record| self.start(record) + record.weight() <= offset);
        self.segments.get(index).filter(|record| self.start(record) <= offset).map(|_| self.base + index as u64)
    }
}

/// Returns the number of copies of a record in this state that are in the network.
fn copies(state: u8) -> u32 {
    if state & SACKED != 0 { 0 } else { u32::from(state & LOST == 0) + u32::from(state & IN_REPAIR != 0) }
}

const NONE: u64 = u64::MAX;

#[cfg(test)]
mod tests;
