//! Sizes of the segments of a subflow: payload, and the options beside it.

use super::{Subflow, Tx};
use crate::dss_form::LONGEST_DSS;
use crate::ecn::Feedback;
use crate::path_mtu::segment_in;
use crate::recovery::Sent;
use anabranch_wire::{Flags, Segment, option_room, sack_room};

/// Timestamps with padding (RFC 7323 §3.2 and appendix A).
const TIMESTAMPS: u32 = 12;
/// The SACK option without blocks, padded, and each block (RFC 2018 §3).
const SACK_HEAD: u64 = 4;
const SACK_BLOCK: u64 = 8;
/// Smallest payload per segment, even if a peer's MSS option asks for less (Linux `tcp_min_snd_mss`, less its headers).
const SMALLEST_MSS: u32 = 8;

impl Subflow {
    /// Payload that fits a full segment beside the options that each carries, of which the DSS takes `dss` bytes.
    pub(crate) fn payload_room(&self, dss: u32) -> u32 {
        let timestamps = if self.timestamps { TIMESTAMPS } else { 0 };
        self.full_segment().saturating_sub(timestamps + dss).max(SMALLEST_MSS)
    }

    /// Full segments hold what is left beside a DSS of `dss` bytes, none in plain TCP; returns how much.
    pub(crate) fn leave_room(&mut self, dss: u32) -> u32 {
        self.tx.mss = self.payload_room(dss);
        self.tx.spared = if dss > 0 { LONGEST_DSS - dss } else { 0 };
        self.tx.mss
    }

    /// Payload and options of a full segment.
    fn full_segment(&self) -> u32 {
        let path = self.tx.path_mtu.map_or(u16::MAX, |path| segment_in(path.mtu, &self.flow));
        u32::from(self.tx.mss_option.min(path))
    }

    /// Adds the SACK blocks that a segment with payload has room for beside its mapping, without becoming larger than a
    /// full one. RFC 2018 §4 wants them in every ACK; where there are none, an ACK of its own follows.
    pub(crate) fn add_sack_beside_data(&mut self, segment: &mut Segment) {
        if !self.has_to_sack() {
            return;
        }
        let spare = self.room_beside(segment).saturating_sub(SACK_HEAD) / SACK_BLOCK;
        let most = sack_room(&segment.options).min(spare as usize);
        if most > 0 {
            segment.options.set_sack(self.rx.sack_blocks(most));
            self.rx.ack.unreported = false;
        }
    }

    /// Bytes that `segment` has room for without becoming larger than a full one.
    fn room_beside(&self, segment: &Segment) -> u64 {
        let used = segment.options.wire_length() + segment.payload.len() as u64;
        u64::from(self.full_segment()).saturating_sub(used)
    }

    /// Adds to an ACK what there is to tell of the peer's bytes by ECN field. Two SACK blocks come before it (RFC 9768
    /// §3.2.3.3).
    pub(crate) fn tell_bytes(&mut self, segment: &mut Segment) {
        if self.marks.feedback() != Feedback::Accurate {
            return;
        }
        let blocks = if self.has_to_sack() { self.rx.sack_count(2) as u64 } else { 0 };
        let kept = if blocks > 0 { SACK_HEAD + SACK_BLOCK * blocks } else { 0 };
        self.marks.tell_bytes(false, option_room(&segment.options).saturating_sub(kept), segment);
    }

    /// Adds the peer's bytes by ECN field to `sent`, which leaves for the first time. The first data of all shows
    /// whether options get through (RFC 9768 §3.2.3.2.1).
    pub(crate) fn tell_bytes_beside_data(&mut self, sent: &Sent, segment: &mut Segment) {
        if self.marks.feedback() != Feedback::Accurate {
            return;
        }
        let first = sent.start == 1;
        self.marks.tell_bytes(first, self.room_beside(segment), segment);
        if first {
            self.marks.on_first_data(sent.start + u64::from(sent.len));
        }
    }

    /// A pure ACK that says what `segment` says, without its MPTCP options.
    pub(crate) fn ack_beside(&self, segment: &Segment) -> Segment {
        let seq = self.tx.seq(self.tx.recovery.snd_nxt());
        let mut beside = Segment::new(segment.flow, Flags::ACK, seq, segment.ack);
        beside.window = segment.window;
        beside.options.set_timestamps(segment.options.timestamps());
        // As much of marks as any ACK; that the window fell is for data to say.
        let accurate = self.marks.feedback() == Feedback::Accurate;
        beside.set_ace(segment.ace() & if accurate { 0b111 } else { 0b001 });
        beside.ip.ecn = self.marks.field(false, segment.ip.ecn);
        beside
    }
}

impl Tx {
    /// Payload of a full segment beside the longest DSS: a full one of the peer has as much at least.
    pub(crate) fn least_full(&self) -> u32 {
        self.mss.saturating_sub(self.spared).max(SMALLEST_MSS)
    }

    /// `sent` in parts that fit beside `keys` more bytes of options.
    pub(crate) fn parts(&self, sent: &Sent, keys: u32) -> impl Iterator<Item = Sent> + use<> {
        let (sent, mss) = (*sent, self.mss.saturating_sub(keys).max(1));
        let count = sent.len.div_ceil(mss).max(1);
        (0..count).map(move |part| {
            let from = part * mss;
            let mut piece = sent;
            piece.start += u64::from(from);
            piece.data += u64::from(from);
            piece.len = (sent.len - from).min(mss);
            // The end of the stream goes with the last; the mapping says of each that it does.
            piece.flags = if part + 1 == count { sent.flags } else { 0 };
            piece
        })
    }
}
