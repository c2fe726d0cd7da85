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
}

impl Mapping {
    fn end(&self) -> u64 {
        self.subflow + self.length
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
    /// Takes a mapping in. One that overlaps another must say the same of the overlap. True if it is held now, false if
    /// there is no room for it.
    pub(crate) fn insert(&mut self, new: Mapping) -> Result<bool, Contradiction> {
        if new.length == 0 {
            return Ok(true);
        }
        let at = self.0.partition_point(|held| held.end() <= new.subflow);
        for held in self.0.range(at..).take_while(|held| held.subflow < new.end()) {
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
                self.0.insert(index, Mapping { subflow: start, data, length: gap_end - start });
                index += 1;
            }
            start = next_start.max(gap_end);
            index += 1;
        }
        Ok(true)
    }

    /// Where the byte at subflow offset `at` belongs, and how many following bytes go with it.
    pub(crate) fn lookup(&self, at: u64) -> Option<(u64, u64)> {
        let index = match self.0.front() {
            Some(front) if at < front.end() => 0,
            _ => self.0.partition_point(|held| held.end() <= at),
        };
        let held = self.0.get(index).filter(|held| held.subflow <= at)?;
        Some((held.data + (at - held.subflow), held.end() - at))
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

    #[test]
    fn a_repeated_map_is_held_once_and_a_contradiction_is_found() {
        let mut table = MappingTable::default();
        let map = Mapping { subflow: 1, data: 100, length: 50 };
        assert_eq!((table.insert(map), table.insert(map)), (Ok(true), Ok(true)));
        assert_eq!(table.0.len(), 1);
        assert_eq!(table.insert(Mapping { subflow: 40, data: 500, length: 50 }), Err(Contradiction));
        assert_eq!(table.insert(Mapping { subflow: 40, data: 139, length: 50 }), Ok(true));
        assert_eq!(table.lookup(50), Some((149, 1)));
        assert_eq!(table.lookup(51), Some((150, 39)));
        assert_eq!(table.lookup(90), None);
        table.release(51);
        assert_eq!(table.lookup(50), None);
        assert_eq!(table.insert(Mapping { subflow: 60, data: 159, length: 100 }), Ok(true));
        assert_eq!(table.lookup(95), Some((194, 65)));
        table.release(1000);
        assert!(table.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut table = MappingTable::default();
        let held = (0..2 * MAX_MAPPINGS as u64)
            .filter(|i| table.insert(Mapping { subflow: i * 2, data: i * 2, length: 1 }) == Ok(true))
            .count();
        assert_eq!(held, MAX_MAPPINGS);
    }
}
