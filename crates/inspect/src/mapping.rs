//! The mappings of one direction of one subflow: from subflow sequence numbers to the data level, with the checksums
//! that cover them (RFC 8684 §3.3.1).

use crate::coverage::length;
use anabranch_units::Dsn;
use anabranch_wire::{Checksum, Payload, dss_checksum};
use std::collections::VecDeque;
use std::ops::Range;

/// The latest mappings. Positions on the subflow are relative to the initial sequence number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    recent: VecDeque<Mapping>,
    /// Start of the infinite mapping after a fallback (§3.7): subflow and data position.
    pub infinite: Option<(i64, i64)>,
    /// Bytes that came before their mapping.
    orphans: VecDeque<Range<i64>>,
    /// Bytes that never had one.
    pub unmapped: u64,
    pub checksums: Checksums,
    /// Mappings, repeats not counted.
    pub count: u64,
    /// Mappings of bytes that an earlier one maps elsewhere.
    pub conflicts: u64,
    /// The lone DATA_FIN whose checksum has been verified.
    fin_verified: Option<i64>,
}

/// DSS checksums, one for each mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Checksums {
    pub good: u64,
    pub bad: u64,
    /// Some of the bytes are not in the capture, or the upper half of the data sequence number is not known.
    pub unverifiable: u64,
}

/// One mapping.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    /// Start on the subflow.
    pub start: i64,
    /// Range on the data level, without the DATA_FIN.
    pub data: Range<i64>,
    /// Data sequence number of its start, if all 64 bits are known.
    pub dsn: Option<Dsn>,
    /// Its fields as they are on the wire.
    pub subflow_seq: u32,
    pub wire_length: u16,
    pub checksum: Option<u16>,
    /// Sum over the bytes that have passed.
    pub sum: Checksum,
    /// Number of those bytes.
    pub summed: u64,
    /// True if some passed that were not captured.
    pub cut: bool,
}

impl Mapping {
    fn end(&self) -> i64 {
        self.start + length(&self.data).cast_signed()
    }
}

impl Mappings {
    /// A mapping is announced. Answers what of earlier bytes it places at the data level.
    pub fn add(&mut self, mapping: Mapping) -> Vec<Range<i64>> {
        let (start, end) = (mapping.start, mapping.end());
        if mapping.data.is_empty() {
            self.verify_lone(&mapping);
            return Vec::new();
        }
        for known in self.recent.iter().rev() {
            if known.start == start && known.data == mapping.data {
                return Vec::new();
            }
            let offset = known.data.start - known.start == mapping.data.start - mapping.start;
            if known.start < end && start < known.end() && !offset {
                self.conflicts += 1;
                return Vec::new();
            }
        }
        self.count += 1;
        let shift = mapping.data.start - start;
        self.recent.push_back(mapping);
        if self.recent.len() > MOST
            && let Some(oldest) = self.recent.pop_front()
        {
            self.checksums.count(&oldest);
        }
        let mut placed = Vec::new();
        self.orphans.retain(|orphan| {
            let inside = start <= orphan.start && orphan.end <= end;
            if inside {
                self.unmapped -= length(orphan);
                placed.push(orphan.start + shift..orphan.end + shift);
                if let Some(mapping) = self.recent.back_mut() {
                    mapping.cut = true;
                }
            }
            !inside
        });
        placed
    }

    /// A DATA_FIN without data: its checksum covers only itself.
    fn verify_lone(&mut self, fin: &Mapping) {
        if let Some(checksum) = fin.checksum
            && self.fin_verified != Some(fin.data.start)
        {
            self.fin_verified = Some(fin.data.start);
            self.checksums.verdict(fin.dsn.map(|dsn| {
                dss_checksum(dsn, fin.subflow_seq, fin.wire_length, std::iter::empty::<&[u8]>()) == checksum
            }));
        }
    }

    /// Bytes of the subflow pass for the first time; `payload` is what was captured of them. Answers where they lie at
    /// the data level.
    pub fn place(&mut self, range: Range<i64>, payload: &Payload) -> Vec<Range<i64>> {
        let mut placed = Vec::new();
        let mut rest = range.clone();
        while !rest.is_empty() {
            let Some(index) = self.recent.iter().rposition(|m| m.start <= rest.start && rest.start < m.end()) else {
                match self.infinite {
                    Some((start, data)) if start <= rest.start => {
                        placed.push(rest.start - start + data..rest.end - start + data);
                    }
                    _ => self.orphan(rest.start..self.next_start(&rest)),
                }
                let end = if self.infinite.is_some_and(|(start, _)| start <= rest.start) {
                    rest.end
                } else {
                    self.next_start(&rest)
                };
                rest.start = end;
                continue;
            };
            let mapping = &mut self.recent[index];
            let piece = rest.start..rest.end.min(mapping.end());
            let shift = mapping.data.start - mapping.start;
            placed.push(piece.start + shift..piece.end + shift);
            if mapping.checksum.is_some() {
                let from = length(&(range.start..piece.start)).min(payload.len() as u64) as usize;
                let to = length(&(range.start..piece.end)).min(payload.len() as u64) as usize;
                mapping.sum(&piece, &payload[from..to]);
                let all = length(&mapping.data);
                if mapping.summed == all && !mapping.cut {
                    let verdict = mapping.verify();
                    self.checksums.verdict(verdict);
                    mapping.checksum = None;
                }
            }
            rest.start = piece.end;
        }
        placed
    }

    /// Returns the start of the first mapping inside `rest`, or the end of `rest`.
    fn next_start(&self, rest: &Range<i64>) -> i64 {
        let inside = self.recent.iter().map(|mapping| mapping.start).filter(|start| rest.contains(start));
        inside.min().unwrap_or(rest.end)
    }

    fn orphan(&mut self, range: Range<i64>) {
        self.unmapped += length(&range);
        self.orphans.push_back(range);
        if self.orphans.len() > MOST_ORPHANS {
            self.orphans.pop_front();
        }
    }

    /// The capture ends.
    pub fn finish(&mut self) {
        for mapping in std::mem::take(&mut self.recent) {
            self.checksums.count(&mapping);
        }
    }
}

impl Mapping {
    /// Adds a piece that passes, whatever the order; a piece at an odd place counts its bytes the other way round.
    fn sum(&mut self, piece: &Range<i64>, payload: &[u8]) {
        self.cut |= (payload.len() as u64) < length(piece);
        self.summed += length(piece);
        let mut sum = Checksum::new();
        if (piece.start - self.start) % 2 != 0 {
            sum.add(&[0]);
        }
        sum.add(payload);
        self.sum.add_u16(sum.sum());
    }

    /// Verifies the checksum; `None` if that is not possible.
    fn verify(&self) -> Option<bool> {
        let pseudo_header = !dss_checksum(self.dsn?, self.subflow_seq, self.wire_length, std::iter::empty::<&[u8]>());
        let mut sum = self.sum;
        sum.add_u16(pseudo_header);
        // Both forms of zero are the same to ones-complement arithmetic.
        let (computed, carried) = (sum.value(), self.checksum?);
        Some(computed == carried || (computed == 0 && carried == 0xffff) || (computed == 0xffff && carried == 0))
    }
}

impl Checksums {
    fn verdict(&mut self, good: Option<bool>) {
        match good {
            Some(true) => self.good += 1,
            Some(false) => self.bad += 1,
            None => self.unverifiable += 1,
        }
    }

    /// A mapping is forgotten; what is not verified by now never will.
    fn count(&mut self, mapping: &Mapping) {
        self.unverifiable += u64::from(mapping.checksum.is_some());
    }
}

const MOST: usize = 256;
const MOST_ORPHANS: usize = 64;

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn mapping(start: i64, data: Range<i64>, checksum: Option<u16>) -> Mapping {
        let wire_length = length(&data) as u16;
        let (dsn, subflow_seq) = (Some(Dsn::new(data.start as u64)), start as u32);
        Mapping { start, data, dsn, subflow_seq, wire_length, checksum, sum: Checksum::new(), summed: 0, cut: false }
    }

    #[test]
    fn bytes_go_where_their_mappings_say() {
        let mut mappings = Mappings::default();
        mappings.add(mapping(1, 501..601, None));
        mappings.add(mapping(101, 701..801, None));
        mappings.add(mapping(101, 701..801, None));
        assert_eq!(mappings.place(51..151, &Payload::new()), [551..601, 701..751]);
        assert_eq!(mappings.place(190..210, &Payload::new()), [790..801]);
        assert_eq!((mappings.count, mappings.unmapped), (2, 9));
        assert_eq!(mappings.add(mapping(201, 901..1001, None)), [901..910], "its mapping came late");
        assert_eq!(mappings.unmapped, 0);
        mappings.add(mapping(150, 1..51, None));
        assert_eq!(mappings.conflicts, 1);
        mappings.infinite = Some((301, 1001));
        assert_eq!(mappings.place(401..403, &Payload::new()), [1101..1103]);
    }

    #[test]
    fn checksums_are_verified_from_pieces_in_any_order() {
        let payload = Payload::from((0..99u8).map(|n| n.wrapping_mul(37)).collect::<Vec<u8>>());
        let good = dss_checksum(Dsn::new(501), 1, 99, [&payload[..]]);
        for (checksum, verdict) in [(good, (1, 0, 0)), (good ^ 0x10, (0, 1, 0))] {
            let mut mappings = Mappings::default();
            mappings.add(mapping(1, 501..600, Some(checksum)));
            for piece in [50..99usize, 0..33, 33..50] {
                mappings.place(piece.start as i64 + 1..piece.end as i64 + 1, &payload.slice(piece));
            }
            mappings.finish();
            let Checksums { good, bad, unverifiable } = mappings.checksums;
            assert_eq!((good, bad, unverifiable), verdict);
        }
        // A snapped packet, and one that is missing.
        let mut mappings = Mappings::default();
        mappings.add(mapping(1, 501..600, Some(good)));
        mappings.place(1..100, &payload.slice(..40));
        mappings.add(mapping(100, 600..699, Some(good)));
        mappings.finish();
        assert_eq!(mappings.checksums, Checksums { good: 0, bad: 0, unverifiable: 2 });
    }

    #[test]
    fn a_lone_data_fin_is_verified_once() {
        let mut fin = mapping(0, 501..501, None);
        fin.wire_length = 1;
        fin.checksum = Some(dss_checksum(Dsn::new(501), 0, 1, std::iter::empty::<&[u8]>()));
        let mut mappings = Mappings::default();
        mappings.add(fin.clone());
        mappings.add(fin);
        assert_eq!(mappings.checksums, Checksums { good: 1, bad: 0, unverifiable: 0 });
    }
}
