//! Log of the data that subflows carried: all data sent and not yet DATA_ACKed, at the connection level.
//!
//! Answers the questions of reinjection ("has this subflow carried it?") and of window sharing ("how much of the window
//! does a subflow hold?", A-RBP-5: the subflow that carried a byte first).

use crate::limits::MAX_SUBFLOWS;
use crate::ring::Ring;
use anabranch_units::{Duration, Instant};

/// One transmission's range of the stream, in 16 bytes: a connection keeps one for each segment that has no DATA_ACK.
#[derive(Clone, Copy, Default, Debug)]
struct Record {
    /// Nanoseconds from [`SentLog::began`] until it left for the first time, times 16; plus the mark of the subflow
    /// that carried it then.
    stamp: u64,
    /// The lower 32 bits of the first offset.
    start: u32,
    length: u16,
    /// Bit n: the subflow with mark n carried it.
    carriers: u16,
}

/// Bits of [`Record::stamp`] that hold a mark. The others hold 36 years.
const MARK_BITS: u32 = MAX_SUBFLOWS.ilog2();

impl Record {
    fn first_mark(&self) -> usize {
        self.stamp as usize % MAX_SUBFLOWS
    }
}

/// A range of the stream with its history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Carried {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Time at which it left first.
    pub(crate) sent: Instant,
    /// The marks of subflows that carried it, as bits.
    pub(crate) carriers: u16,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct SentLog {
    /// Sorted by `start`, disjoint.
    records: Ring<Record>,
    /// Time of the first departure after the log was last empty.
    began: Instant,
    /// The DATA_ACK. All records begin within 4 GiB behind it: a peer's window admits 1 GiB (RFC 7323 §2.3).
    una: u64,
    /// Unacknowledged bytes by the mark of the subflow that carried them first.
    unacked: Vec<u64>,
}

/// The bit of a mark; none for [`NO_MARK`].
pub(crate) const fn bit(mark: u8) -> u16 {
    match 1u16.checked_shl(mark as u32) {
        Some(bit) => bit,
        None => 0,
    }
}

/// Mark of a subflow that may not carry data yet.
pub(crate) const NO_MARK: u8 = u8::MAX;

impl SentLog {
    /// Ranges on record.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// `start..start + length` left for the first time, on the subflow with this mark.
    pub(crate) fn push(&mut self, now: Instant, start: u64, length: u32, mark: u8) {
        assert!(start >= self.una && start - self.una <= u64::from(u32::MAX), "new data lies in the peer's window");
        assert!(usize::from(mark) < MAX_SUBFLOWS, "a mark fits its bits of a stamp");
        if self.records.is_empty() {
            self.began = now;
        }
        let stamp = now.since(self.began).as_nanos() << MARK_BITS | u64::from(mark);
        let length = u16::try_from(length).expect("a segment is shorter than 64 KiB");
        if self.unacked.len() <= usize::from(mark) {
            self.unacked.reserve_exact(usize::from(mark) + 1 - self.unacked.len());
            self.unacked.resize(usize::from(mark) + 1, 0);
        }
        self.unacked[usize::from(mark)] += u64::from(length);
        let record = Record { stamp, start: start as u32, length, carriers: bit(mark) };
        match self.records.back() {
            Some(last) if self.start(last) > start => {
                let at = self.records.partition_point(|record| self.start(record) < start);
                self.records.insert(at, record);
            }
            _ => self.records.push_back(record),
        }
    }

    /// `start..end` left once more, on the subflow with this mark.
    pub(crate) fn note_copy(&mut self, start: u64, end: u64, mark: u8) {
        self.split(start);
        self.split(end);
        let mut at = self.first_ending_after(start);
        while self.records.get(at).is_some_and(|record| self.start(record) < end) {
            self.records[at].carriers |= bit(mark);
            at += 1;
        }
    }

    /// Makes `offset` a border between records: segments of two sizes may carry the same data.
    fn split(&mut self, offset: u64) {
        let at = self.first_ending_after(offset);
        let Some((record, start)) = self.records.get(at).map(|record| (*record, self.start(record))) else { return };
        if start < offset {
            let covered = (offset - start) as u16;
            self.records[at].length = covered;
            self.records.insert(at + 1, self.behind(record, covered));
        }
    }

    /// `record` without its first `covered` bytes.
    fn behind(&self, record: Record, covered: u16) -> Record {
        let start = record.start.wrapping_add(u32::from(covered));
        Record { start, length: record.length - covered, ..record }
    }

    /// The record that holds `offset`, otherwise the first behind it.
    pub(crate) fn at_or_after(&self, offset: u64) -> Option<Carried> {
        let record = self.records.get(self.first_ending_after(offset))?;
        let (start, end) = self.range(record);
        Some(Carried { start, end, sent: self.sent(record), carriers: record.carriers })
    }

    /// The marks of subflows that carried the byte at `offset`, as bits; none if it was not sent or is acknowledged.
    pub(crate) fn carriers(&self, offset: u64) -> u16 {
        self.holding(offset).map_or(0, |record| record.carriers)
    }

    /// The mark of the subflow that carried the byte at `offset` first, also if it is gone; `None` if the byte was not
    /// sent or is acknowledged.
    pub(crate) fn first_carrier(&self, offset: u64) -> Option<u8> {
        self.holding(offset).map(|record| record.first_mark() as u8)
    }

    /// The record that holds `offset`: its range.
    pub(crate) fn range_at(&self, offset: u64) -> Option<(u64, u64)> {
        self.holding(offset).map(|record| self.range(record))
    }

    /// Returns, from `offset` on, the rest of the first record that the subflow with this mark did not carry.
    pub(crate) fn first_not_carried(&self, mark: u8, offset: u64) -> Option<(u64, u64)> {
        let mut records = self.records.iter_from(self.first_ending_after(offset));
        let (start, end) = self.range(records.find(|record| record.carriers & bit(mark) == 0)?);
        Some((start.max(offset), end))
    }

    /// All ranges that the subflow with this mark carried, in order.
    pub(crate) fn carried_by(&self, mark: u8) -> impl Iterator<Item = (u64, u64)> + '_ {
        let carried = self.records.iter().filter(move |record| record.carriers & bit(mark) != 0);
        carried.map(|record| self.range(record))
    }

    /// A DATA_ACK covers everything before `offset`.
    pub(crate) fn release(&mut self, offset: u64) {
        while let Some(record) = self.records.front().copied() {
            let (start, end) = self.range(&record);
            let covered = if end <= offset { record.length } else { offset.saturating_sub(start) as u16 };
            self.unacked[record.first_mark()] -= u64::from(covered);
            if end > offset {
                self.records[0] = self.behind(record, covered);
                break;
            }
            self.records.pop_front();
        }
        self.records.release();
        self.una = self.una.max(offset);
    }

    /// Bytes first carried by the subflow with this mark and not DATA_ACKed.
    pub(crate) fn unacked(&self, mark: u8) -> u64 {
        self.unacked.get(usize::from(mark)).copied().unwrap_or(0)
    }

    /// The subflow in `mark` is gone; the mark may be given to another.
    pub(crate) fn forget(&mut self, mark: u8) {
        self.records.iter_mut().for_each(|record| record.carriers &= !bit(mark));
    }

    fn sent(&self, record: &Record) -> Instant {
        self.began + Duration::from_nanos(record.stamp >> MARK_BITS)
    }

    fn start(&self, record: &Record) -> u64 {
        self.una + u64::from(record.start.wrapping_sub(self.una as u32))
    }

    fn range(&self, record: &Record) -> (u64, u64) {
        let start = self.start(record);
        (start, start + u64::from(record.length))
    }

    fn holding(&self, offset: u64) -> Option<&Record> {
        self.records.get(self.first_ending_after(offset)).filter(|record| self.start(record) <= offset)
    }

    /// Searches from both ends in steps that double: most questions are about the oldest data or the newest.
    fn first_ending_after(&self, offset: u64) -> usize {
        let ends_after = |at: usize| self.range(&self.records[at]).1 > offset;
        // All before `low` end earlier, and the one at `high` does not.
        let (mut low, mut high, mut step) = (0, self.records.len(), 1);
        while high - low > 2 * step {
            if ends_after(low + step - 1) {
                high = low + step - 1;
                break;
            }
            low += step;
            if !ends_after(high - step) {
                low = high - step + 1;
                break;
            }
            high -= step;
            step *= 2;
        }
        while low < high {
            let middle = low.midpoint(high);
            match ends_after(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        log.note_copy(300, 400, 0);
        assert_eq!((log.first_not_carried(0, 200), log.first_not_carried(0, 400)), (None, None));
        // No subflow carries it any more, so that each may.
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
        log.note_copy(50, 150, 1);
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

    proptest! {
        /// Each byte of the stream with its own history.
        #[test]
        fn agrees_with_a_record_of_bytes(
            base in prop::sample::select(vec![0, u64::from(u32::MAX) - 60]),
            ops in prop::collection::vec((0u8..6, 0u64..120, 1u64..20, 0u8..3), 1..80),
        ) {
            let mut log = SentLog::default();
            log.release(base);
            let mut model = [None::<(Instant, u16, u8)>; 140];
            let mut una = 0;
            for (n, (op, start, length, mark)) in ops.into_iter().enumerate() {
                let (start, now) = (start.max(una), Instant::from_nanos(u64::MAX / 2 + n as u64));
                let range = start as usize..(start + length) as usize;
                match op {
                    0..=2 if model[range.clone()].iter().all(Option::is_none) => {
                        log.push(now, base + start, length as u32, mark);
                        model[range].fill(Some((now, bit(mark), mark)));
                    }
                    3 => {
                        log.note_copy(base + start, base + start + length, mark);
                        model[range].iter_mut().flatten().for_each(|byte| byte.1 |= bit(mark));
                    }
                    4 => {
                        una = una.max(start.min(una + length));
                        log.release(base + una);
                        model[..una as usize].fill(None);
                    }
                    5 if length == 1 => {
                        log.forget(mark);
                        model.iter_mut().flatten().for_each(|byte| byte.1 &= !bit(mark));
                    }
                    _ => {}
                }
                for (at, byte) in model.iter().enumerate() {
                    let offset = base + at as u64;
                    prop_assert_eq!(log.carriers(offset), byte.map_or(0, |byte| byte.1), "at {}", at);
                    let held = log.at_or_after(offset).filter(|held| held.start <= offset);
                    prop_assert_eq!(held.map(|held| held.sent), byte.map(|byte| byte.0));
                    prop_assert_eq!(log.range_at(offset), held.map(|held| (held.start, held.end)));
                }
                for mark in 0..3 {
                    let first = model.iter().flatten().filter(|byte| byte.2 == mark).count();
                    prop_assert_eq!(log.unacked(mark), first as u64);
                    let carried: Vec<_> = log.carried_by(mark).flat_map(|(from, to)| from - base..to - base).collect();
                    let has = |at: &u64| model[*at as usize].is_some_and(|byte| byte.1 & bit(mark) != 0);
                    prop_assert_eq!(carried, (0..140).filter(has).collect::<Vec<_>>());
                }
            }
        }
    }
}
