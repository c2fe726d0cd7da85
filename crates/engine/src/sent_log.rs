//! Which subflows carried which data: the connection-level record of everything sent and not yet DATA_ACKed.
//!
//! Answers the questions of reinjection ("has this subflow carried it?") and of window sharing ("how much of the window
//! does a subflow hold?", A-RBP-5: the subflow that carried a byte first).

use crate::config::MAX_SUBFLOWS;
use crate::idle::release_if_empty;
use anabranch_units::Instant;
use std::collections::VecDeque;

/// One transmission's range of the stream.
#[derive(Clone, Copy, Debug)]
struct Record {
    start: u64,
    /// When it left for the first time.
    sent: Instant,
    length: u32,
    /// Bit n: the subflow in slot n carried it.
    carriers: u16,
    /// The slot that carried it first.
    first: u8,
}

/// A range of the stream with its history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Carried {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When it left for the first time.
    pub(crate) sent: Instant,
    /// The slots that carried it, as bits.
    pub(crate) carriers: u16,
}

#[derive(Debug, Default)]
pub(crate) struct SentLog {
    /// Sorted by `start`, disjoint.
    records: VecDeque<Record>,
    unacked: [u64; MAX_SUBFLOWS],
}

/// The bit of a slot; none for [`NO_SLOT`].
pub(crate) const fn bit(slot: u8) -> u16 {
    match 1u16.checked_shl(slot as u32) {
        Some(bit) => bit,
        None => 0,
    }
}

/// What a subflow has that may carry nothing yet.
pub(crate) const NO_SLOT: u8 = u8::MAX;

impl SentLog {
    /// Ranges on record.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// `start..start + length` left for the first time, on the subflow in `slot`.
    pub(crate) fn push(&mut self, now: Instant, start: u64, length: u32, slot: u8) {
        let record = Record { start, sent: now, length, carriers: bit(slot), first: slot };
        self.unacked[usize::from(slot)] += u64::from(length);
        match self.records.back() {
            Some(last) if last.start > start => {
                let at = self.records.partition_point(|record| record.start < start);
                self.records.insert(at, record);
            }
            _ => self.records.push_back(record),
        }
    }

    /// `start..end` left once more, on the subflow in `slot`.
    pub(crate) fn mark(&mut self, start: u64, end: u64, slot: u8) {
        self.split(start);
        self.split(end);
        let first = self.first_ending_after(start);
        for record in self.records.range_mut(first..).take_while(|record| record.start < end) {
            record.carriers |= bit(slot);
        }
    }

    /// Makes `offset` a border between records: segments of two sizes may carry the same data.
    fn split(&mut self, offset: u64) {
        let at = self.first_ending_after(offset);
        let Some(record) = self.records.get_mut(at).filter(|record| record.start < offset) else { return };
        let mut rest = *record;
        record.length = (offset - record.start) as u32;
        rest.start = offset;
        rest.length -= record.length;
        self.records.insert(at + 1, rest);
    }

    /// The record that holds `offset`, otherwise the first behind it.
    pub(crate) fn at_or_after(&self, offset: u64) -> Option<Carried> {
        let Record { start, sent, length, carriers, .. } = *self.records.get(self.first_ending_after(offset))?;
        Some(Carried { start, end: start + u64::from(length), sent, carriers })
    }

    /// The slots that carried the byte at `offset`, as bits; none if it was not sent or is acknowledged.
    pub(crate) fn carriers(&self, offset: u64) -> u16 {
        let at = self.first_ending_after(offset);
        self.records.get(at).filter(|record| record.start <= offset).map_or(0, |record| record.carriers)
    }

    /// The record that holds `offset`: its range.
    pub(crate) fn range_at(&self, offset: u64) -> Option<(u64, u64)> {
        let at = self.first_ending_after(offset);
        let record = self.records.get(at).filter(|record| record.start <= offset)?;
        Some((record.start, record.start + u64::from(record.length)))
    }

    /// From `offset` on, the rest of the first record that the subflow in `slot` did not carry.
    pub(crate) fn first_not_carried(&self, slot: u8, offset: u64) -> Option<(u64, u64)> {
        let records = self.records.range(self.first_ending_after(offset)..);
        let record = records.into_iter().find(|record| record.carriers & bit(slot) == 0)?;
        Some((record.start.max(offset), record.start + u64::from(record.length)))
    }

    /// All ranges that the subflow in `slot` carried, in order.
    pub(crate) fn carried_by(&self, slot: u8) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.records
            .iter()
            .filter(move |record| record.carriers & bit(slot) != 0)
            .map(|record| (record.start, record.start + u64::from(record.length)))
    }

    /// A DATA_ACK covers everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        while let Some(record) = self.records.front_mut() {
            let end = record.start + u64::from(record.length);
            if end <= offset {
                self.unacked[usize::from(record.first)] -= u64::from(record.length);
                self.records.pop_front();
            } else {
                if record.start < offset {
                    let covered = (offset - record.start) as u32;
                    self.unacked[usize::from(record.first)] -= u64::from(covered);
                    record.start = offset;
                    record.length -= covered;
                }
                break;
            }
        }
        release_if_empty(&mut self.records);
    }

    /// Bytes first carried by the subflow in `slot` and not DATA_ACKed.
    pub(crate) fn unacked(&self, slot: u8) -> u64 {
        self.unacked.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// The subflow in `slot` is gone; the slot may be given to another.
    pub(crate) fn forget(&mut self, slot: u8) {
        for record in &mut self.records {
            record.carriers &= !bit(slot);
        }
    }

    fn first_ending_after(&self, offset: u64) -> usize {
        match self.records.front() {
            Some(front) if offset < front.start + u64::from(front.length) => 0,
            _ => self.records.partition_point(|record| record.start + u64::from(record.length) <= offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_subflow_has_not_carried_is_found_from_anywhere() {
        let mut log = SentLog::default();
        (0..4).for_each(|at| log.push(Instant::ZERO, 100 * at, 100, (at % 2) as u8));
        assert_eq!(log.first_not_carried(0, 0), Some((100, 200)));
        assert_eq!(log.first_not_carried(0, 130), Some((130, 200)));
        assert_eq!(
            (log.first_not_carried(1, 130), log.first_not_carried(0, 200)),
            (Some((200, 300)), Some((300, 400)))
        );
        log.mark(300, 400, 0);
        assert_eq!((log.first_not_carried(0, 200), log.first_not_carried(0, 400)), (None, None));
        // Nobody carries it any more, and so anybody may.
        log.forget(0);
        assert_eq!(log.first_not_carried(0, 0), Some((0, 100)));
    }

    #[test]
    fn copies_and_holes_are_told_apart() {
        let mut log = SentLog::default();
        let at = Instant::from_nanos;
        log.push(at(1), 0, 100, 0);
        log.push(at(2), 300, 100, 1);
        log.push(at(3), 100, 100, 0);
        assert_eq!((log.carriers(150), log.carriers(250), log.carriers(399)), (0b01, 0, 0b10));
        log.mark(50, 150, 1);
        assert_eq!(
            (log.carriers(49), log.carriers(50), log.carriers(149), log.carriers(150)),
            (0b01, 0b11, 0b11, 0b01)
        );
        assert_eq!(log.carried_by(1).collect::<Vec<_>>(), [(50, 100), (100, 150), (300, 400)]);
        let behind = Carried { start: 300, end: 400, sent: at(2), carriers: 0b10 };
        assert_eq!((log.at_or_after(200), log.at_or_after(400)), (Some(behind), None));
        let half = Carried { start: 100, end: 150, sent: at(3), carriers: 0b11 };
        assert_eq!(log.at_or_after(149), Some(half));
        log.release(150);
        assert_eq!((log.unacked(0), log.unacked(1)), (50, 100));
        log.forget(1);
        assert_eq!(log.carriers(300), 0);
        log.release(400);
        assert_eq!((log.unacked(0), log.unacked(1)), (0, 0));
    }
}
