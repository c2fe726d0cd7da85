//! DSS checksums and what follows when one is wrong: MP_FAIL and the way to plain TCP (RFC 8684 §3.3.1, §3.7).
//!
//! With other subflows, or when the two levels are out of step, the subflow is reset with MP_FAIL and its data comes again
//! elsewhere. Alone and in order, MP_FAIL goes out on every segment until the peer answers or has our infinite mapping,
//! what arrived is handed to the application as a TCP would, and the subflow is plain TCP from there on.

use super::{Connection, Mode};
use crate::mapping::{Mapping, Proof};
use crate::recovery::Sent;
use crate::shared::Shared;
use crate::{Ended, FallbackReason};
use anabranch_units::{Dsn, Instant};
use anabranch_wire::{DataSeq, Dss, Map, MpOption, ResetReason, dss_checksum};
use bytes::Bytes as Payload;

/// The way back to plain TCP, as far as the peer may not know of it yet.
#[derive(Debug, Default)]
pub(super) struct Retreat {
    /// MP_FAIL for this, on every segment until the peer has answered.
    pub(super) fail: Option<Dsn>,
    infinite: Infinite,
}

/// Our infinite mapping.
#[derive(Debug, Default)]
enum Infinite {
    #[default]
    Never,
    /// On the first new data segment.
    Due {
        /// The subflow offset where new data begins.
        after: u64,
        /// The first data offset that was not DATA_ACKed when MPTCP was given up.
        from: u64,
    },
    /// It was the one at this subflow offset, and goes with it when it is repeated.
    On {
        /// Where the segment begins on the subflow.
        start: u64,
        /// As above.
        from: u64,
    },
}

impl Connection {
    /// Whether a mapping's bytes are what its checksum says.
    fn is_intact<'a>(&self, map: &Mapping, proof: Proof, bytes: impl Iterator<Item = &'a [u8]>) -> bool {
        let length = map.length as u16 + u16::from(proof.data_fin);
        // A lone DATA_FIN is at subflow offset 0 by definition (§3.3.3).
        proof.is(dss_checksum(self.remote_dsn(map.data), map.subflow as u32, length, bytes))
    }

    /// The same for a mapping whose bytes are all held, or are in the segment that carries it.
    pub(super) fn verify(&self, index: usize, map: &Mapping, proof: Proof, segment: Option<&Payload>) -> bool {
        match segment {
            Some(payload) => self.is_intact(map, proof, std::iter::once(payload.as_ref())),
            None => self.is_intact(map, proof, self.subflows[index].rx.unplaced.first(map.length)),
        }
    }

    /// A checksum was wrong (§3.7). False if the subflow is gone.
    pub(super) fn on_checksum_failure(
        &mut self,
        now: Instant,
        index: usize,
        map: &Mapping,
        shared: &mut Shared,
    ) -> bool {
        shared.counters.checksum_failures += 1;
        let dsn = self.remote_dsn(map.data);
        if self.can_fall_back() {
            self.retreat.fail = Some(dsn);
            self.fall_back(now, FallbackReason::ChecksumFailed, shared);
            self.subflows[index].rx.ack.now = true;
            return true;
        }
        self.reset_with_fail(now, index, dsn, shared);
        false
    }

    fn reset_with_fail(&mut self, now: Instant, index: usize, dsn: Dsn, shared: &mut Shared) {
        let reason = shared.reset_option(ResetReason::Middlebox);
        self.send_reset(now, index, vec![MpOption::Fail { dsn }, reason], shared);
        self.lose(now, index, (Ended::Middlebox, 1), shared);
    }

    /// MP_FAIL on something other than a RST: data of ours arrived changed (§3.7).
    pub(super) fn on_fail(&mut self, now: Instant, index: usize, shared: &mut Shared) {
        shared.counters.fails_received += 1;
        match self.mode {
            // Our answer was lost.
            Mode::Plain if self.stats.fallback == Some(FallbackReason::PeerFailed) => {
                let next = self.remote_dsn(self.receiver.next());
                self.send_ack(now, index, vec![MpOption::Fail { dsn: next }], shared);
            }
            // The answer to ours.
            Mode::Plain => self.retreat.fail = None,
            Mode::Multipath if self.can_fall_back() => {
                // Both directions turn to plain TCP, and the peer is told in kind.
                let next = self.remote_dsn(self.receiver.next());
                self.fall_back(now, FallbackReason::PeerFailed, shared);
                self.send_ack(now, index, vec![MpOption::Fail { dsn: next }], shared);
            }
            // It comes on a RST when there is a way round; on this subflow there is none, so that is what is left.
            Mode::Multipath if self.subflows[index].is_open() => {
                let next = self.remote_dsn(self.receiver.next());
                self.reset_with_fail(now, index, next, shared);
            }
            _ => {}
        }
    }

    /// MPTCP has just been given up in mid-connection: the peer hears of it with the next data.
    pub(super) fn announce_infinite(&mut self, reason: FallbackReason) {
        let told = matches!(
            reason,
            FallbackReason::FirstData
                | FallbackReason::OptionsLost
                | FallbackReason::ChecksumFailed
                | FallbackReason::PeerFailed
        );
        if let (true, Some(_), Some(subflow)) = (told, self.keys.remote, self.subflows.first_mut()) {
            self.retreat.infinite =
                Infinite::Due { after: subflow.tx.recovery.snd_nxt(), from: self.sender.outgoing.una };
        }
    }

    /// The infinite mapping that goes with `sent`, if it is the segment for it: from the first byte that was not DATA_ACKed
    /// on, the subflow's order is the stream's. The checksum is zero (§3.3.1).
    pub(super) fn infinite_mapping(&mut self, sent: &Sent) -> Option<Dss> {
        let from = match self.retreat.infinite {
            Infinite::Due { after, from } if sent.len > 0 && sent.start >= after => {
                self.retreat.infinite = Infinite::On { start: sent.start, from };
                from
            }
            Infinite::On { start, from } if start == sent.start => from,
            _ => return None,
        };
        let map = Map {
            dsn: DataSeq::Long(self.dsn(from)),
            subflow_seq: (from + 1) as u32,
            length: 0,
            checksum: self.negotiated.checksum.then_some(0),
        };
        Some(Dss { data_ack: None, map: Some(map), data_fin: false })
    }

    /// A segment arrives after the fallback. One that maps its bytes elsewhere than plain TCP would put them comes from a
    /// peer that has not followed and repeats data: taking it would corrupt the stream. False if the connection is gone.
    pub(super) fn check_retreat(&mut self, now: Instant, index: usize, dss: Option<&Dss>, shared: &mut Shared) -> bool {
        if self.keys.remote.is_none() || self.fallback_was_early() {
            return true;
        }
        let Some(map) = dss.and_then(|dss| dss.map) else { return true };
        if map.length == 0 {
            self.retreat.fail = None;
            return true;
        }
        let near = self.subflows[index].rx.rcv_nxt;
        let first =
            anabranch_units::SubflowSeq::new(map.subflow_seq).offset_near(anabranch_units::SubflowSeq::new(0), near);
        let lone_fin = dss.is_some_and(|dss| dss.data_fin) && map.length == 1;
        let agrees = first.zip(self.data_offset(map.dsn)).is_some_and(|(first, data)| data + 1 == first);
        if agrees || lone_fin {
            return true;
        }
        self.send_reset(now, index, Vec::new(), shared);
        self.stats.ended.get_or_insert(Ended::Middlebox);
        self.finish(crate::Event::Reset, shared);
        false
    }

    /// Reports whether the peer has acknowledged the segment with our infinite mapping. It speaks plain TCP since, and
    /// Linux, for one, reads no MP_FAIL any more.
    pub(super) fn has_infinite(&self) -> bool {
        let acknowledged = self.subflows.first().map_or(0, |subflow| subflow.tx.recovery.snd_una());
        matches!(self.retreat.infinite, Infinite::On { start, .. } if start < acknowledged)
    }

    fn fallback_was_early(&self) -> bool {
        matches!(
            self.stats.fallback,
            None | Some(
                FallbackReason::Syn
                    | FallbackReason::SynAck
                    | FallbackReason::SynLost
                    | FallbackReason::Remembered
                    | FallbackReason::ThirdAck
                    | FallbackReason::SimultaneousOpen
            )
        )
    }
}
