//! Data sequence mappings received on one subflow (RFC 8684 §3.3.1).
//!
//! A receiver keys on the mapping, not on the segment: a map may come once for many segments, be repeated on each, or
//! arrive before its data.

use std::collections::VecDeque;

/// Part of a subflow's byte stream and where it belongs in the data stream, in offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    /// First subflow offset.
    pub(crate) subflow: u64,
    /// First data offset.
    pub(crate) data: u64,
    /// Bytes, a DATA_FIN not counted.
    pub(crate) length: u64,
    /// What proves it, if the connection uses checksums.
    pub(crate) proof: Option<Proof>,
}

/// What a mapping with a checksum says beside where its bytes belong (RFC 8684 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Proof {
    /// The checksum as received, over the pseudo-header and all bytes of the mapping.
    pub(crate) checksum: u16,
    /// A DATA_FIN follows its last byte, and counts in the length that the checksum covers.
    pub(crate) data_fin: bool,
}

impl Proof {
    /// Whether the sum over what it proves is right. Zero can be written in two ways (RFC 1624 §3), and a peer may write either.
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

    /// What proves a mapping that is said `again`. Who closes while it is under way may add the DATA_FIN to it from one
    /// repetition to the next (Linux does), and reordering may bring back the earlier form. Both must prove the same bytes.
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

/// The mappings not yet used up.
#[derive(Debug, Default)]
pub(crate) struct MappingTable(VecDeque<Mapping>);

/// Mappings held for one subflow; far above what a window of full segments needs.
const MAX_MAPPINGS: usize = 1 << 14;

impl MappingTable {
    /// Takes a mapping in. One that overlaps another must say the same of the overlap, and be the same, but for a DATA_FIN
    /// behind it, if either has a checksum, which holds for the whole of it. True if it is held now, false if there is no room for it.
    pub(crate) fn insert(&mut self, new: Mapping) -> Result<bool, Contradiction> {
        if new.length == 0 {
            return Ok(true);
        }
        let at = self.0.partition_point(|held| held.end() <= new.subflow);
        for held in self.0.range_mut(at..).take_while(|held| held.subflow < new.end()) {
            if held.proof.is_some() || new.proof.is_some() {
                held.proof = held.joined(&new)?;
                return Ok(true);
            }
            // Equal offsets between the two levels: the overlap is described alike.
            if held.data.wrapping_sub(held.subflow) != new.data.wrapping_sub(new.subflow) {
                return Err(Contradiction);
            }
            if held.subflow <= new.subflow && new.end() <= held.end() {
                return Ok(true);
            }
        }
        if self.0.len() >= MAX_MAPPINGS {
            return Ok(false);
        }
        // Overlaps say the same, so what is new can simply be swallowed or cut.
        let mut start = new.subflow;
        let mut index = at;
        while start < new.end() {
            let (gap_end, next_start) = match self.0.get(index) {
                Some(held) if held.subflow < new.end() => (held.subflow, held.end()),
                _ => (new.end(), new.end()),
            };
            if start < gap_end {
                let data = new.data + (start - new.subflow);
                self.0.insert(index, Mapping { subflow: start, data, length: gap_end - start, ..new });
                index += 1;
            }
            start = next_start.max(gap_end);
            index += 1;
        }
        Ok(true)
    }

    /// The mapping that covers the byte at subflow offset `at`.
    pub(crate) fn covering(&self, at: u64) -> Option<Mapping> {
        let index = match self.0.front() {
            Some(front) if at < front.end() => 0,
            _ => self.0.partition_point(|held| held.end() <= at),
        };
        self.0.get(index).filter(|held| held.subflow <= at).copied()
    }

    /// Forgets mappings that end at or before the subflow offset `at`.
    pub(crate) fn release(&mut self, at: u64) {
        while self.0.front().is_some_and(|held| held.end() <= at) {
            self.0.pop_front();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
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
        let mut table = MappingTable::default();
        let proven = |map: Mapping, checksum| Mapping { proof: Some(Proof { checksum, data_fin: false }), ..map };
        assert_eq!(table.insert(proven(map(1, 0, 50), 7)), Ok(true));
        assert_eq!(table.insert(proven(map(1, 0, 50), 7)), Ok(true));
        assert_eq!(table.insert(proven(map(1, 0, 50), 8)), Err(Contradiction));
        assert_eq!(table.insert(proven(map(21, 20, 50), 7)), Err(Contradiction));
        assert_eq!(table.insert(proven(map(51, 50, 50), 9)), Ok(true));
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
                let mut table = MappingTable::default();
                assert_eq!((table.insert(first), table.insert(second)), (Ok(true), Ok(true)));
                assert_eq!(table.covering(1), Some(proven(closed, true)), "{first:?}, {second:?}");
            }
        }
        for wrong in [proven(7, true), proven(8, true), proven(5, true)] {
            let mut table = MappingTable::default();
            assert_eq!((table.insert(proven(7, false)), table.insert(wrong)), (Ok(true), Err(Contradiction)));
        }
    }

    #[test]
    fn a_repeated_map_is_held_once_and_a_contradiction_is_found() {
        let mut table = MappingTable::default();
        assert_eq!((table.insert(map(1, 100, 50)), table.insert(map(1, 100, 50))), (Ok(true), Ok(true)));
        assert_eq!(table.0.len(), 1);
        assert_eq!(table.insert(map(40, 500, 50)), Err(Contradiction));
        assert_eq!(table.insert(map(40, 139, 50)), Ok(true));
        assert_eq!(lookup(&table, 50), Some((149, 1)));
        assert_eq!(lookup(&table, 51), Some((150, 39)));
        assert_eq!(lookup(&table, 90), None);
        table.release(51);
        assert_eq!(lookup(&table, 50), None);
        assert_eq!(table.insert(map(60, 159, 100)), Ok(true));
        assert_eq!(lookup(&table, 95), Some((194, 65)));
        table.release(1000);
        assert!(table.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut table = MappingTable::default();
        let held = (0..2 * MAX_MAPPINGS as u64).filter(|i| table.insert(map(i * 2, i * 2, 1)) == Ok(true)).count();
        assert_eq!(held, MAX_MAPPINGS);
    }
}
