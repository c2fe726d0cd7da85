//! Lengths of the sequence numbers in the DSS, and the space that the option takes from each segment.
//!
//! RFC 8684 §3.3.1 allows the lower 32 bits of data sequence numbers unless they could wrap within the lifetime of a
//! segment. So they are used in the first part of a stream, and the stream does not come to where they would mean
//! something else before all segments with them are acknowledged on their subflows, where TCP refuses copies, or have
//! expired. A number of the peer with 64 bits has to be acknowledged with 64 (§3.3.2), as Linux' are.

use anabranch_units::{Dsn, Duration, Instant};
use anabranch_wire::DataSeq;

/// Acknowledged bytes of a stream from which on its numbers are long.
const LONG_FROM: u64 = 1 << 28;
/// End of the stream while short numbers may be under way. A receiver takes them for those nearest to what comes next,
/// at most 2^31 behind.
const END: u64 = 1 << 31;
/// Maximum lifetime of a segment (RFC 9293 §3.4.2).
const MSL: Duration = Duration::from_secs(120);

/// Bytes of a DSS with an 8-byte DATA_ACK and a mapping with an 8-byte DSN, padded.
pub(crate) const LONGEST_DSS: u32 = 28;

/// The largest window (RFC 7323 §2.3).
const WINDOW: u64 = 1 << 30;

/// Tells whether the lower 32 bits do not wrap while numbers are short in a stream that begins after `idsn`. Linux
/// before 5.14 completes a short number with the upper half of the last one of its subflow (`expand_seq`,
/// net/mptcp/options.c), which is wrong where others have carried the stream past a wrap.
pub(crate) fn suits_short(idsn: Dsn) -> bool {
    u64::from(idsn.low()) + LONG_FROM + WINDOW < 1 << 32
}

/// Forms of the DSS on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DssForm {
    /// Short numbers are used where they may be (`short-dss`).
    short: bool,
    /// The peer has sent a 64-bit DSN, or its stream is long.
    long_ack: bool,
    /// End of what was sent of our stream when its numbers became long.
    short_end: Option<u64>,
    /// Time at which a subflow was last given up with data under way.
    strayed: Option<Instant>,
    /// Short numbers are no longer under way.
    settled: bool,
}

impl DssForm {
    pub(crate) fn new(short: bool) -> Self {
        DssForm { short, long_ack: false, short_end: None, strayed: None, settled: !short }
    }

    /// Bytes that a DSS with a DATA_ACK and a mapping takes from a segment, padded, with a checksum or without.
    pub(crate) fn room(self) -> u32 {
        let ack = if self.long_ack { 4 } else { 0 };
        let map = if self.short_end.is_some() { 4 } else { 0 };
        if self.short { 20 + ack + map } else { LONGEST_DSS }
    }

    /// Bytes that the keys beside the client's first data need beyond a DSS (RFC 8684 §3.1: 22 or 24).
    pub(crate) fn keys_beyond(self) -> u32 {
        24_u32.saturating_sub(self.room())
    }

    /// `dsn` as a mapping has it.
    pub(crate) fn map(self, dsn: Dsn) -> DataSeq {
        seq(dsn, self.short && self.short_end.is_none())
    }

    /// `dsn` as a DATA_ACK has it; short as well if `cramped`, where it may be: that leaves room for one more SACK
    /// block.
    pub(crate) fn ack(self, dsn: Dsn, cramped: bool) -> DataSeq {
        seq(dsn, !self.long_ack && (cramped || self.short))
    }

    /// Notes a DSN of the peer, whose stream we have up to `offset`. Returns true if segments become shorter.
    pub(crate) fn note_peer(&mut self, dsn: DataSeq, offset: u64) -> bool {
        let first = !self.long_ack && (matches!(dsn, DataSeq::Long(_)) || offset >= LONG_FROM);
        self.long_ack |= first;
        first && self.short
    }

    /// Notes that our stream is acknowledged up to `offset` and was sent up to `sent`. Returns true if segments become
    /// shorter.
    pub(crate) fn note_acked(&mut self, offset: u64, sent: u64) -> bool {
        let first = self.short && self.short_end.is_none() && offset >= LONG_FROM;
        if first {
            self.short_end = Some(sent);
        }
        first
    }

    /// Notes that a subflow was given up with data under way.
    pub(crate) fn note_strayed(&mut self, now: Instant) {
        self.strayed = Some(now);
    }

    /// End up to which our stream may be sent if the peer admits `edge`. `waits` tells whether a segment with data
    /// before an offset waits for its acknowledgment on a subflow.
    #[inline]
    pub(crate) fn limit(&mut self, now: Instant, edge: u64, waits: impl FnOnce(u64) -> bool) -> u64 {
        if self.settled || edge <= END {
            return edge;
        }
        let strayed = self.strayed.is_some_and(|at| now < at + MSL);
        self.settled = !strayed && self.short_end.is_some_and(|end| !waits(end));
        if self.settled { edge } else { END }
    }
}

fn seq(dsn: Dsn, short: bool) -> DataSeq {
    if short { DataSeq::Short(dsn.low()) } else { DataSeq::Long(dsn) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Dss, Map, Options};

    /// Bytes of the DSS of a segment with data, padded.
    fn taken(form: DssForm, checksum: Option<u16>) -> u64 {
        let dsn = Dsn::new(u64::MAX - 1);
        let map = Some(Map { dsn: form.map(dsn), subflow_seq: 1, length: 1400, checksum });
        let mut options = Options::default();
        options.set_dss(Some(Dss { data_ack: Some(form.ack(dsn, false)), map, data_fin: false }));
        options.wire_length()
    }

    #[test]
    fn a_segment_has_room_for_its_dss() {
        let fits = |form: DssForm| [None, Some(1)].into_iter().all(|sum| taken(form, sum) <= u64::from(form.room()));
        for (short, long_ack, room) in [(true, false, 20), (true, true, 24), (false, false, 28), (false, true, 28)] {
            let mut form = DssForm::new(short);
            let dsn = if long_ack { DataSeq::Long(Dsn::new(7)) } else { DataSeq::Short(7) };
            assert_eq!(form.note_peer(dsn, 0), short && long_ack);
            assert!(!form.note_peer(dsn, 0), "once");
            assert_eq!(form.room(), room);
            assert!(fits(form), "{form:?}");
            assert!(!form.note_acked(LONG_FROM - 1, LONG_FROM));
            assert_eq!(form.note_acked(LONG_FROM, LONG_FROM), short);
            assert!(!form.note_acked(LONG_FROM, LONG_FROM), "once");
            assert!(fits(form), "{form:?}");
            assert_eq!(form.map(Dsn::new(7)), DataSeq::Long(Dsn::new(7)), "whatever is repeated");
            assert!(!form.note_peer(dsn, LONG_FROM - 1));
            assert_eq!(form.note_peer(dsn, LONG_FROM), short && !long_ack);
            assert!(fits(form), "{form:?}");
            assert_eq!(form.room(), LONGEST_DSS);
        }
    }

    /// The stream stops at 2^31 while a segment with a short number may come late, and goes on when none can.
    #[test]
    fn the_stream_waits_for_short_numbers() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut form = DssForm::new(true);
        assert_eq!(form.limit(at(0), END, |_| panic!("there is nothing to ask")), END);
        assert_eq!(form.limit(at(0), END + 1, |_| false), END, "its numbers are still short");
        form.note_acked(LONG_FROM, LONG_FROM + 5);
        let waits = |end| {
            assert_eq!(end, LONG_FROM + 5);
            true
        };
        assert_eq!(form.limit(at(1), END + 1, waits), END);
        form.note_strayed(at(2));
        assert_eq!(form.limit(at(121), END + 1, |_| false), END);
        assert_eq!(form.limit(at(122), END + 1, |_| false), END + 1);
        assert_eq!(form.limit(at(122), END + 2, |_| panic!("once")), END + 2);
        assert_eq!(DssForm::new(false).limit(at(0), u64::MAX, |_| true), u64::MAX);
    }

    #[test]
    fn a_cramped_ack_is_short_unless_the_peer_is_long() {
        let mut form = DssForm::new(false);
        let dsn = Dsn::new(1 << 40);
        assert_eq!(form.ack(dsn, false), DataSeq::Long(dsn));
        assert_eq!(form.ack(dsn, true), DataSeq::Short(0));
        form.note_peer(DataSeq::Long(dsn), 0);
        assert_eq!(form.ack(dsn, true), DataSeq::Long(dsn));
    }
}
