//! Notes on segments that arrive.

use super::Subflow;
use crate::Profile;
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Segment, Timestamps};

/// ACKs of data without DSS in a row, over at least one RTO, that mean options no longer get through.
const BARE_ACKS: u32 = 3;

/// Segments acknowledged at once after a mark that is new (Linux, `tcp_enter_quickack_mode`).
const QUICK_AFTER_MARK: u32 = 2;

impl Subflow {
    /// Offset that a segment acknowledges, if a peer may say that: nothing unsent, and nothing older than the largest
    /// window, which leaves a blind guess little to hit (RFC 5961 §5.2).
    pub(crate) fn acceptable_ack(&self, segment: &Segment) -> Option<u64> {
        let una = self.tx.recovery.snd_una();
        let oldest = una.saturating_sub(u64::from(u16::MAX) << self.tx.snd_scale);
        let ack = segment.ack.offset_near(self.tx.iss, una)?;
        (oldest..=self.tx.recovery.snd_nxt()).contains(&ack).then_some(ack)
    }

    /// Tells whether a timestamp is older than the latest by less than a timeout. A slower path than that of later ones
    /// may have brought a pure ACK with it, which does no harm and may say what the later ones do not repeat (D-SACK).
    pub(crate) fn is_overtaken(&self, timestamp: u32) -> bool {
        let behind = Duration::from_millis(u64::from(self.rx.ts_recent.wrapping_sub(timestamp)));
        behind <= self.tx.rtt.rto()
    }

    /// Counts an ACK without a DSS, if it acknowledges data. Returns true once their number and the time since the
    /// first show that options no longer get through.
    pub(crate) fn note_bare_ack(&mut self, now: Instant, acks_data: bool) -> bool {
        if self.liveness.bare_acks == 0 {
            self.liveness.bare_since = now;
        }
        self.liveness.bare_acks += u32::from(acks_data);
        // A proxy that acknowledges on the peer's behalf makes many before the peer's first has made its way.
        self.liveness.bare_acks >= BARE_ACKS
            && now.since(self.liveness.bare_since) >= self.tx.rtt.rto()
            && !self.is_acknowledged_by_proxy(now)
    }

    /// Notes what every valid segment tells, begun at subflow offset `start`: the peer's clock (RFC 7323 §4.3), and
    /// that it is alive. Takes an RTT sample as a receiver of data if `autotuned`.
    pub(crate) fn note_valid(&mut self, now: Instant, start: u64, segment: &Segment, autotuned: bool) {
        self.note_marks(segment);
        let Subflow { tx, rx, liveness, marks, .. } = self;
        marks.newer = false;
        let newest = |timestamps: &Timestamps| start <= rx.rcv_nxt && !rx.is_old(timestamps.value, now);
        if let Some(timestamps) = segment.options.timestamps().filter(newest) {
            marks.newer = timestamps.value != rx.ts_recent;
            rx.ts_recent = timestamps.value;
            rx.ts_recent_at = now;
            rx.arrival_rate.arrived(now, timestamps.value, segment.payload.len() as u64);
            if autotuned && segment.payload.len() >= tx.least_full() as usize {
                rx.on_echo(tx.timestamp(now), timestamps.echo);
            }
        }
        liveness.unanswered_probes = 0;
        liveness.keepalives = 0;
        liveness.heard = now;
    }

    /// Notes how a segment has come, new or repeated.
    pub(crate) fn note_marks(&mut self, segment: &Segment) {
        let arrived = self.marks.note(segment, self.rx.mss.into());
        self.counts.marks_received += arrived.marked;
        self.rx.ack.now |= arrived.at_once;
        if arrived.quick {
            self.rx.ack.quick = self.rx.ack.quick.max(QUICK_AFTER_MARK);
        }
    }

    /// Notes that a segment with a DSS acknowledges `ack`: options get through, and whether the peer itself has seen
    /// all that was acknowledged shows.
    pub(crate) fn note_dss(&mut self, now: Instant, ack: u64) {
        let Subflow { tx, liveness, confirmed, .. } = self;
        *confirmed = true;
        liveness.bare_acks = 0;
        let behind = ack < tx.recovery.snd_una();
        liveness.behind_since = if behind { liveness.behind_since.or(Some(now)) } else { None };
    }

    /// Notes that the bytes from offset `start` to `end` have arrived that were there already. Tells whether that shows
    /// that ACKs are lost on the path of another subflow.
    pub(crate) fn note_repeated(&mut self, now: Instant, start: u64, end: u64) -> bool {
        let Subflow { tx, rx, marks, .. } = self;
        marks.on_data(Some(start));
        rx.ack.duplicate = Some((start, end));
        rx.ack.unreported = true;
        rx.detour.on_repeated(now, tx.rtt.srtt().unwrap_or_else(|| tx.rtt.rto()))
    }

    /// Notes the arrival of the bytes from offset `start` to `end`, and when the ACK for them is due (RFC 5681 §4.2).
    pub(crate) fn note_arrival(&mut self, now: Instant, start: u64, end: u64, profile: &Profile) {
        let Subflow { tx, rx, marks, .. } = self;
        marks.on_data(None);
        let ack = &mut rx.ack;
        // After idling for a timeout the sender begins with a small window again, as at the start.
        let idle = ack.last_data.is_some_and(|last| now.since(last) > tx.rtt.rto());
        if idle {
            ack.quick = profile.quick_acks;
        }
        rx.detour.on_new(now, tx.rtt.srtt().unwrap_or_else(|| tx.rtt.rto()));
        ack.last_data = Some(now);
        // Two full segments; ours are full as the peer's, whose options are alike. Receive offload hands us many as
        // one.
        let (length, mss) = (end - start, u64::from(tx.least_full()));
        ack.segments += if length < 2 * mss { 1 } else { (length / mss) as u32 };
        let in_order = start <= rx.rcv_nxt && end > rx.rcv_nxt && rx.ofo.is_empty();
        match profile.delayed_ack {
            Some(delay) if in_order && ack.quick == 0 && ack.segments < 2 => {
                ack.deadline.get_or_insert(now + delay);
            }
            _ => ack.now = true,
        }
        ack.quick = ack.quick.saturating_sub(1);
    }
}
