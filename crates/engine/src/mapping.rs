//! Data sequence mappings received on one subflow (RFC 8684 §3.3.1).
//!
//! A receiver keys on the mapping, not on the segment: a map may come once for many segments, be repeated on each, or
//! arrive before its data.

use crate::blocks::Blocks;

/// Part of a subflow's byte stream and where it belongs in the data stream, in offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    /// First subflow offset.
    pub(crate) subflow: u64,
    /// First data offset.
    pub(crate) data: u64,
    /// Bytes, a DATA_FIN not counted.
    pub(crate) length: u64,
    /// Checksum of the mapping, if the connection uses checksums.
    pub(crate) proof: Option<Proof>,
}

/// Fields of a mapping with a checksum beside its position (RFC 8684 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Proof {
    /// The checksum as received, over the pseudo-header and all bytes of the mapping.
    pub(crate) checksum: u16,
    /// A DATA_FIN follows its last byte, and counts in the length that the checksum covers.
    pub(crate) data_fin: bool,
}

impl Proof {
    /// Returns true if `checksum` matches. Zero has two representations (RFC 1624 §3), and a peer may write either.
    pub(crate) fn is(self, checksum: u16) -> bool {
        let both = [self.checksum, checksum];
        both[0] == both[1] || both == [0, u16::MAX] || both == [u16::MAX, 0]
    }

    /// The same without the DATA_FIN: its length is one less and so is the sum, of which a checksum is the complement.
    fn of_bytes(self) -> Proof {
        let (more, carry) = self.checksum.overflowing_add(u16::from(self.data_fin));
        Proof { checksum: more + u16::from(carry), data_fin: false }
    }
}

impl Mapping {
    /// The offset after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.subflow + self.length
    }

    /// Tells whether both put a subflow's bytes at the same place, and neither has to be used as a whole.
    fn agrees(&self, other: &Mapping) -> bool {
        let loose = self.proof.is_none() && other.proof.is_none();
        loose && self.data.wrapping_sub(self.subflow) == other.data.wrapping_sub(other.subflow)
    }

    /// Joins the proofs of a mapping that is declared `again`. A peer that closes while it is under way may add the
    /// DATA_FIN to it from one repetition to the next (Linux does), and reordering may bring back the earlier form.
    /// Both must prove the same bytes.
    fn joined(&self, again: &Mapping) -> Result<Option<Proof>, Contradiction> {
        let bytes = |mapping: &Mapping| (mapping.subflow, mapping.data, mapping.length);
        match (self.proof, again.proof) {
            (Some(held), Some(new)) if bytes(self) == bytes(again) && held.of_bytes().is(new.of_bytes().checksum) => {
                Ok(Some(if new.data_fin { new } else { held }))
            }
            _ => Err(Contradiction),
        }
    }
}

/// The mapping contradicts one that holds already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contradiction;

/// Outcome of adding a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// Stored in the table.
    Yes,
    /// Stored in place of the farthest, which began at this subflow offset. Data from there on must be sent again, with
    /// its mapping.
    InsteadOf(u64),
    /// Not stored: the table is full of nearer ones. The segment must be sent again.
    No,
}

/// The mappings not yet used up.
///
/// Without checksums, neighbours that say the same are one: a stream on one subflow takes one entry for each hole in
/// it.
#[derive(Debug)]
pub(crate) struct MappingTable {
    /// Sorted and disjoint.
    held: Blocks<Mapping>,
    most: usize,
}

impl MappingTable {
    /// Makes a table for `most` mappings, at least the number of segments that can be in flight.
    pub(crate) fn new(most: usize) -> Self {
        MappingTable { held: Blocks::new(), most }
    }

    /// Takes a mapping in. One that overlaps another must say the same of the overlap, and be the same, but for a
    /// DATA_FIN behind it, if either has a checksum, which holds for the whole of it. If the table is full the farthest
    /// goes.
    pub(crate) fn insert(&mut self, new: Mapping) -> Result<Held, Contradiction> {
        if new.length == 0 {
            return Ok(Held::Yes);
        }
        let mut from = match self.held.back() {
            Some(last) if last.end() > new.subflow => self.held.partition_point(|held| held.end() <= new.subflow),
            _ => self.held.len(),
        };
        let mut to = from;
        while let Some(held) = self.held.get(to).copied().filter(|held| held.subflow < new.end()) {
            if held.proof.is_some() || new.proof.is_some() {
                self.held[to].proof = held.joined(&new)?;
                return Ok(Held::Yes);
            }
            if !held.agrees(&new) {
                return Err(Contradiction);
            }
            if held.subflow <= new.subflow && new.end() <= held.end() {
                return Ok(Held::Yes);
            }
            to += 1;
        }
        let adjoins = |held: Option<&Mapping>| {
            held.is_some_and(|held| held.agrees(&new) && (held.end() == new.subflow || new.end() == held.subflow))
        };
        if from > 0 && adjoins(self.held.get(from - 1)) {
            from -= 1;
        }
        if adjoins(self.held.get(to)) {
            to += 1;
        }
        if from == to {
            return Ok(self.place(from, new));
        }
        // All of them say the same.
        let (first, last) = (self.held[from], self.held[to - 1]);
        let start = first.subflow.min(new.subflow);
        let length = last.end().max(new.end()) - start;
        self.held[from] = Mapping { subflow: start, data: first.data.min(new.data), length, proof: None };
        if to - from > 1 {
            self.held.remove(from + 1, to);
        }
        Ok(Held::Yes)
    }

    /// Inserts a mapping that overlaps none of those held, before the one at `index`.
    fn place(&mut self, index: usize, new: Mapping) -> Held {
        if self.held.len() < self.most {
            self.held.insert(index, new);
            return Held::Yes;
        }
        if index == self.held.len() {
            return Held::No;
        }
        let Some(farthest) = self.held.pop_back() else { return Held::No };
        self.held.insert(index, new);
        Held::InsteadOf(farthest.subflow)
    }

    /// The mapping that covers the byte at subflow offset `at`.
    pub(crate) fn covering(&self, at: u64) -> Option<Mapping> {
        let index = match self.held.front() {
            Some(front) if at < front.end() => 0,
            _ => self.held.partition_point(|held| held.end() <= at),
        };
        self.held.get(index).filter(|held| held.subflow <= at).copied()
    }

    /// Forgets mappings that end at or before the subflow offset `at`.
    pub(crate) fn release(&mut self, at: u64) {
        while self.held.front().is_some_and(|held| held.end() <= at) {
            self.held.pop_front();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn map(subflow: u64, data: u64, length: u64) -> Mapping {
        Mapping { subflow, data, length, proof: None }
    }

    fn lookup(table: &MappingTable, at: u64) -> Option<(u64, u64)> {
        table.covering(at).map(|map| (map.data + (at - map.subflow), map.end() - at))
    }

    /// A checksum covers the whole mapping, so no part of it may be described by another (RFC 8684 §3.3.1).
    #[test]
    fn a_mapping_with_a_checksum_is_never_cut() {
        let mut table = MappingTable::new(9);
        let proven = |map: Mapping, checksum| Mapping { proof: Some(Proof { checksum, data_fin: false }), ..map };
        assert_eq!(table.insert(proven(map(1, 0, 50), 7)), Ok(Held::Yes));
        assert_eq!(table.insert(proven(map(1, 0, 50), 7)), Ok(Held::Yes));
        assert_eq!(table.insert(proven(map(1, 0, 50), 8)), Err(Contradiction));
        assert_eq!(table.insert(proven(map(21, 20, 50), 7)), Err(Contradiction));
        assert_eq!(table.insert(proven(map(51, 50, 50), 9)), Ok(Held::Yes));
        assert_eq!(table.covering(60), Some(proven(map(51, 50, 50), 9)));
    }

    #[test]
    fn minus_zero_is_zero() {
        let same = |checksum, other| Proof { checksum, data_fin: false }.is(other);
        assert!(same(0, 0xffff) && same(0xffff, 0) && same(0x1234, 0x1234));
        assert!(!same(0, 1) && !same(0x1234, 0xedcb));
    }

    /// RFC 8684 §3.3.3: the DATA_FIN counts in the length, and in nothing else.
    #[test]
    fn a_data_fin_may_be_added_to_a_mapping_with_a_checksum() {
        let proven = |checksum, data_fin| Mapping { proof: Some(Proof { checksum, data_fin }), ..map(1, 0, 50) };
        for (open, closed) in [(7, 6), (1, 0), (1, 0xffff), (0xffff, 0xfffe), (0, 0xfffe)] {
            for [first, second] in
                [[proven(open, false), proven(closed, true)], [proven(closed, true), proven(open, false)]]
            {
                let mut table = MappingTable::new(9);
                assert_eq!((table.insert(first), table.insert(second)), (Ok(Held::Yes), Ok(Held::Yes)));
                assert_eq!(table.covering(1), Some(proven(closed, true)), "{first:?}, {second:?}");
            }
        }
        for wrong in [proven(7, true), proven(8, true), proven(5, true)] {
            let mut table = MappingTable::new(9);
            assert_eq!((table.insert(proven(7, false)), table.insert(wrong)), (Ok(Held::Yes), Err(Contradiction)));
        }
    }

    #[test]
    fn a_repeated_map_is_held_once_and_a_contradiction_is_found() {
        let mut table = MappingTable::new(9);
        assert_eq!((table.insert(map(1, 100, 50)), table.insert(map(1, 100, 50))), (Ok(Held::Yes), Ok(Held::Yes)));
        assert_eq!(table.held.len(), 1);
        assert_eq!(table.insert(map(40, 500, 50)), Err(Contradiction));
        assert_eq!(table.insert(map(40, 139, 50)), Ok(Held::Yes));
        assert_eq!(lookup(&table, 50), Some((149, 40)));
        assert_eq!((lookup(&table, 90), table.held.len()), (None, 1));
        table.release(51);
        assert_eq!(lookup(&table, 51), Some((150, 39)));
        assert_eq!(table.insert(map(60, 159, 100)), Ok(Held::Yes));
        assert_eq!(lookup(&table, 95), Some((194, 65)));
        table.release(1000);
        assert!(table.is_empty());
    }

    /// Segments arrive out of order and each says the same of its bytes: gaps alone cost entries.
    #[test]
    fn neighbours_that_say_the_same_are_one() {
        let mut table = MappingTable::new(3);
        for at in [1, 21, 41, 61] {
            table.insert(map(at, 99 + at, 10)).unwrap();
            assert_eq!(table.insert(map(at + 10, 109 + at, 10)), Ok(Held::Yes), "behind it");
        }
        assert!(table.held.iter().eq(&[map(1, 100, 80)]), "{:?}", table.held);
        // Elsewhere in the stream: nothing to join, though it touches.
        assert_eq!(table.insert(map(81, 500, 10)), Ok(Held::Yes));
        assert_eq!(table.insert(map(101, 520, 10)), Ok(Held::Yes));
        assert_eq!(table.held.len(), 3);
        // One that fills the gap, and overlaps both.
        assert_eq!(table.insert(map(85, 504, 20)), Ok(Held::Yes));
        assert!(table.held.iter().eq(&[map(1, 100, 80), map(81, 500, 30)]), "{:?}", table.held);
        assert_eq!(table.insert(map(105, 525, 20)), Err(Contradiction));
    }

    /// A full table keeps what is nearest to the bytes that come next, and says what it forgot.
    #[test]
    fn the_farthest_makes_room() {
        let mut table = MappingTable::new(3);
        for at in [10, 20, 30] {
            assert_eq!(table.insert(map(at, 7 * at, 5)), Ok(Held::Yes));
        }
        assert_eq!(table.insert(map(40, 1000, 5)), Ok(Held::No));
        assert_eq!(table.insert(map(25, 2000, 5)), Ok(Held::InsteadOf(30)));
        assert_eq!(table.insert(map(1, 3000, 5)), Ok(Held::InsteadOf(25)));
        assert!(table.held.iter().eq(&[map(1, 3000, 5), map(10, 70, 5), map(20, 140, 5)]), "{:?}", table.held);
        assert_eq!(table.insert(map(20, 140, 9)), Ok(Held::Yes), "it takes no more room");
        assert_eq!(table.insert(map(22, 150, 9)), Err(Contradiction));
    }
}
