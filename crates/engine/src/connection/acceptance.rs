//! Acceptance of segments: the checks of RFC 9293 §3.10.7.4, RFC 5961 and RFC 7323 §5 that come before all processing.

use super::slots::Slot;
use super::{Connection, Mode, is_pure_ack};
use crate::Purpose;
use crate::shared::Shared;
use crate::subflow::State;
use anabranch_units::{Duration, Instant};
use anabranch_wire::{Flags, MpOption, Segment};

/// Between two challenge ACKs on one subflow (Linux `tcp_invalid_ratelimit`: 500 ms).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl Connection {
    /// The subflow offset of an acceptable segment (RFC 9293 §3.10.7.4, RFC 7323 §5.3); others are answered and
    /// dropped.
    pub(super) fn check_acceptable(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        shared: &mut Shared,
    ) -> Option<u64> {
        let window = self.receiver.window().max(1) + u64::from(u16::MAX);
        if !self.is_timely(now, slot, segment, shared) {
            return None;
        }
        let rst = segment.flags.has(Flags::RST);
        let subflow = &mut self.subflows[slot];
        let (start, length) = (subflow.rx.offset(segment), segment.sequence_length());
        let Some(start) = start.filter(|start| subflow.rx.admits(*start, length, rst, window)) else {
            if segment.flags.has(Flags::SYN) && !rst {
                self.answer_syn(now, slot, segment, shared);
                return None;
            }
            if !rst {
                let repeated = start.filter(|start| length > 0 && start + length <= subflow.rx.rcv_nxt);
                if let Some(start) = repeated {
                    self.stats.ack_fallbacks += u64::from(subflow.note_repeated(now, start, start + length));
                    // The peer may have repeated it because its own view is stale: take what it acknowledges. A segment
                    // more than a window back is not a repetition.
                    if subflow.rx.rcv_nxt - start <= window && subflow.acceptable_ack(segment).is_some() {
                        subflow.note_marks(segment);
                        self.take_late_data_ack(now, segment, slot, shared);
                    }
                    // What waits for the stream is not acknowledged, nor is its repetition answered.
                    let subflow = &mut self.subflows[slot];
                    if subflow.rx.ahead.first().is_some_and(|first| start >= first) {
                        subflow.rx.ack.unreported = false;
                        return None;
                    }
                }
                self.answer_unacceptable(now, slot, segment, shared);
            }
            return None;
        };
        Some(start)
    }

    /// Checks timestamps where they were agreed on (PAWS, RFC 7323 §5.3): a segment with an old one is answered and
    /// dropped. One without is counted and taken (A-TIMESTAMPS); a RST needs none.
    fn is_timely(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) -> bool {
        let subflow = &self.subflows[slot];
        if !subflow.timestamps || segment.flags.has(Flags::RST) {
            return true;
        }
        // A box on the path may have begun to strip them: whoever drops such segments stands still for ever. The peer's
        // clock, which only a timestamp tells, stays as it is.
        let Some(timestamps) = segment.options.timestamps() else {
            self.subflows[slot].counts.timestamps_missing += 1;
            return true;
        };
        let late = || self.negotiated.detours && is_pure_ack(segment) && subflow.is_overtaken(timestamps.value);
        if subflow.rx.is_old(timestamps.value, now) && !late() {
            shared.counters.unacceptable += 1;
            self.answer_unacceptable(now, slot, segment, shared);
            return false;
        }
        true
    }

    /// The DATA_ACK of a segment whose subflow-level bytes were received before.
    fn take_late_data_ack(&mut self, now: Instant, segment: &Segment, slot: Slot, shared: &mut Shared) {
        let Some(ack) =
            segment.options.dss().and_then(|dss| dss.data_ack).filter(|_| self.life.mode() == Mode::Multipath)
        else {
            return;
        };
        let window = u64::from(segment.window) << self.subflows[slot].tx.snd_scale;
        if let Some(offset) = self.keys.data_ack_offset(ack, self.sender.outgoing.una) {
            self.on_data_ack(now, offset, window, shared);
        }
    }

    /// RFC 5961 §3: a RST counts only if it is exactly in sequence; otherwise the peer is asked.
    pub(super) fn check_reset(&mut self, now: Instant, slot: Slot, start: u64, segment: &Segment, shared: &mut Shared) {
        if start != self.subflows[slot].rx.rcv_nxt {
            return self.challenge(now, slot, false, shared);
        }
        let id = self.subflows[slot].id;
        for option in segment.options.mptcp() {
            if let MpOption::FastClose { receiver_key } = option
                && self.on_fast_close(now, *receiver_key, Some(id), shared)
            {
                return;
            }
        }
        self.on_reset(now, slot, segment, shared);
    }

    /// Answers a SYN on a synchronised subflow: the peer has not seen our third ACK, or an attacker guesses.
    pub(super) fn answer_syn(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        shared.counters.unacceptable += 1;
        let subflow = &mut self.subflows[slot];
        let repeated = segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK) && segment.seq == subflow.rx.irs;
        let keys = shared.config.repeat_keys && !self.life.is_confirmed();
        let unconfirmed = subflow.state == State::Confirming || (!subflow.is_join() && keys);
        subflow.liveness.repeated_syn |= repeated;
        if repeated {
            subflow.marks.note_syn_ack(segment);
        }
        if repeated && unconfirmed {
            self.send_third_ack(now, slot, shared);
        } else {
            self.challenge(now, slot, repeated, shared);
        }
    }

    /// An ACK for what was not acceptable (RFC 9293 §3.10.7.4). Data is acknowledged each time, since its sender waits
    /// for that; bare ACKs are answered like a challenge, or two ends that disagree would answer each other for ever.
    fn answer_unacceptable(&mut self, now: Instant, slot: Slot, segment: &Segment, shared: &mut Shared) {
        if segment.sequence_length() > 0 {
            self.subflows[slot].rx.ack.now = true;
        } else {
            self.challenge(now, slot, false, shared);
        }
    }

    /// Sends a challenge ACK (RFC 5961 §3.2), not too often (§7): two ends that disagree would answer each other for
    /// ever. The answer to a repeated SYN/ACK tells how that came (RFC 9768 §3.2.2.1).
    pub(super) fn challenge(&mut self, now: Instant, slot: Slot, of_syn_ack: bool, shared: &mut Shared) {
        let subflow = &mut self.subflows[slot];
        if subflow.liveness.challenged.is_some_and(|last| now.since(last) < CHALLENGE_INTERVAL) {
            return;
        }
        subflow.liveness.challenged = Some(now);
        let offset = subflow.tx.recovery.snd_nxt();
        let mut ack = self.pure_ack(now, slot, offset, Vec::new(), shared);
        if of_syn_ack && !ack.options.has_sack() {
            self.subflows[slot].marks.say(true, &mut ack);
        }
        self.transmit_segment(slot, ack, Purpose::Challenge, shared);
    }
}
