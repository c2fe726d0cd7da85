//! Lengths of the sequence numbers in the DSS, and the space that the option takes from each segment.
//!
//! RFC 8684 §3.3.1 allows the lower 32 bits of data sequence numbers where they cannot wrap within the lifetime of a
//! segment, packet by packet. Within the first 2^32 bytes of a stream nothing has wrapped, at any rate; so the form
//! depends on the place in the stream, and a repeated segment has the form that it had. A number of the peer with 64
//! bits has to be acknowledged with 64 (§3.3.2), as Linux' are. A full segment has to be cut before it is known how
//! much is acknowledged with it; what is repeated from the time of shorter options leaves out its DATA_ACK, which other
//! segments carry.

use anabranch_units::Dsn;
use anabranch_wire::DataSeq;

/// Offsets in a stream below this may be written with 32 bits; a quarter of the space away from an ambiguity.
const SHORT_BELOW: u64 = 1 << 31;
/// Bytes of a stream from which on segments leave room for its long numbers. The largest window of TCP is 2^30 bytes
/// (RFC 7323 §2.3), so nothing that leaves before is beyond [`SHORT_BELOW`].
const LONG_ROOM_FROM: u64 = 1 << 30;

/// Bytes of a DSS with an 8-byte DATA_ACK and a mapping with an 8-byte DSN, padded.
pub(crate) const LONGEST_DSS: u32 = 28;

/// Forms of the DSS on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DssForm {
    /// Short numbers are used where they may be (`short-dss`).
    short: bool,
    /// The peer has sent a 64-bit DSN, or its stream comes near where 32 bits become ambiguous.
    long_ack: bool,
    /// Our stream comes near there.
    long_map: bool,
}

impl DssForm {
    pub(crate) fn new(short: bool) -> Self {
        DssForm { short, long_ack: false, long_map: false }
    }

    /// Bytes that a DSS with a DATA_ACK and a mapping takes from a segment, padded, with a checksum or without.
    pub(crate) fn room(self) -> u32 {
        let ack = if self.long_ack { 4 } else { 0 };
        let map = if self.long_map { 4 } else { 0 };
        if self.short { 20 + ack + map } else { LONGEST_DSS }
    }

    /// Bytes that the keys beside the client's first data need beyond a DSS (RFC 8684 §3.1: 22 or 24).
    pub(crate) fn keys_beyond(self) -> u32 {
        24_u32.saturating_sub(self.room())
    }

    /// `dsn` as a mapping at `offset` in our stream has it.
    pub(crate) fn map(self, dsn: Dsn, offset: u64) -> DataSeq {
        seq(dsn, self.short && offset < SHORT_BELOW)
    }

    /// `dsn` as a DATA_ACK has it; short as well if `cramped`, where it may be: that leaves room for one more SACK
    /// block.
    pub(crate) fn ack(self, dsn: Dsn, cramped: bool) -> DataSeq {
        seq(dsn, !self.long_ack && (cramped || self.short))
    }

    /// The peer has sent a DSN of this form when we had its stream up to `offset`. Returns true if segments become
    /// shorter.
    pub(crate) fn note_peer(&mut self, dsn: DataSeq, offset: u64) -> bool {
        let first = !self.long_ack && (matches!(dsn, DataSeq::Long(_)) || offset >= LONG_ROOM_FROM);
        self.long_ack |= first;
        first && self.short
    }

    /// All before `offset` in our stream is acknowledged. Returns true if segments become shorter.
    pub(crate) fn note_acked(&mut self, offset: u64) -> bool {
        let first = self.short && !self.long_map && offset >= LONG_ROOM_FROM;
        self.long_map |= first;
        first
    }
}

fn seq(dsn: Dsn, short: bool) -> DataSeq {
    if short { DataSeq::Short(dsn.low()) } else { DataSeq::Long(dsn) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Dss, Map, Options};

    /// Bytes of the DSS of a segment with data at offset `sent`, padded, when `got` of the peer's stream are here.
    fn taken(form: DssForm, sent: u64, got: u64, checksum: Option<u16>) -> u64 {
        let dsn = Dsn::new(u64::MAX - 1);
        let map = Some(Map { dsn: form.map(dsn + sent, sent), subflow_seq: 1, length: 1400, checksum });
        let mut options = Options::default();
        options.set_dss(Some(Dss { data_ack: Some(form.ack(dsn + got, false)), map, data_fin: false }));
        options.wire_length()
    }

    #[test]
    fn a_segment_has_room_for_its_dss() {
        for (short, long_ack, room) in [(true, false, 20), (true, true, 24), (false, false, 28), (false, true, 28)] {
            let mut form = DssForm::new(short);
            let dsn = if long_ack { DataSeq::Long(Dsn::new(7)) } else { DataSeq::Short(7) };
            assert_eq!(form.note_peer(dsn, 0), short && long_ack);
            assert!(!form.note_peer(dsn, 0), "once");
            assert_eq!(form.room(), room);
            let fits = |form: DssForm, sent, got| {
                let room = u64::from(form.room());
                [None, Some(1)].into_iter().all(|checksum| taken(form, sent, got, checksum) <= room)
            };
            assert!(fits(form, 0, 0) && fits(form, SHORT_BELOW - 1, LONG_ROOM_FROM), "{form:?}");
            assert!(!form.note_acked(LONG_ROOM_FROM - 1));
            assert_eq!(form.note_acked(LONG_ROOM_FROM), short);
            assert!(!form.note_acked(LONG_ROOM_FROM), "once");
            assert!(fits(form, SHORT_BELOW, 0) && fits(form, 1 << 40, 0), "{form:?}");
            assert!(!form.note_peer(dsn, LONG_ROOM_FROM - 1));
            assert_eq!(form.note_peer(dsn, LONG_ROOM_FROM), short && !long_ack);
            assert!(fits(form, 1 << 40, 1 << 40), "{form:?}");
            assert_eq!(form.room(), LONGEST_DSS);
        }
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
