//! Acknowledgments: of the subflow (RFC 9293, RFC 2018) and at the data level (RFC 8684 §3.3.2).

use super::Connection;
use super::sender::Sender;
use super::slots::Slot;
use crate::Event;
use crate::ecn::Told;
use crate::recovery::{AckIn, AckOut, Fired, Phase};
use crate::shared::Shared;
use crate::subflow::Subflow;
use anabranch_policy::Event as PolicyEvent;
use anabranch_policy::congestion::Ack;
use anabranch_units::{Bytes, Instant, SubflowSeq};
use anabranch_wire::{Flags, Segment};

impl Sender {
    /// Takes in that a segment that begins at offset `start` of `subflow` acknowledges `ack` there. Tells whether that
    /// has revived the subflow.
    fn take_ack(&mut self, now: Instant, subflow: &mut Subflow, start: u64, segment: &Segment, ack: u64) -> bool {
        let same_window = segment.window == subflow.tx.snd_wnd;
        let una = subflow.tx.recovery.snd_una();
        subflow.tx.take_window(segment.window, start, ack);
        let pure = segment.payload.is_empty() && !segment.flags.has(Flags::FIN);
        // RFC 8684 §3.4: an ACK that carries a control option is no sign of loss.
        let control = !segment.options.mptcp().is_empty();
        let is_duplicate = ack == una && pure && same_window && !control && !subflow.tx.recovery.is_empty();
        if ack <= una && !segment.options.has_sack() && !is_duplicate {
            self.take_marks(now, subflow, segment, ack);
            return false;
        }
        let (sack, count, dsack) = sack_offsets(segment, ack, subflow.tx.iss, subflow.tx.recovery.snd_nxt());
        let (in_flight, flight_size) = (subflow.tx.in_flight(), subflow.tx.flight_size());
        let cwnd = self.congestion.cwnd(subflow.id);
        let input = AckIn { ack, sack: &sack[..count], dsack, is_duplicate, rtt_from_timestamp: None };
        let out = subflow.tx.recovery.on_ack(now, &input, &subflow.tx.rtt);
        if let Some(rtt) = out.rtt {
            subflow.tx.rtt.sample(now, rtt);
        }
        subflow.tx.recovery.rearm(now, &subflow.tx.rtt);
        subflow.tx.originals.release(subflow.tx.recovery.kept_from());
        if out.newly_lost > 0 {
            subflow.tx.loss.on_lost(out.newly_lost);
        }
        if out.spurious {
            subflow.tx.loss.on_spurious(1);
        }
        if let Some(sample) = out.rate {
            subflow.tx.note_rate(now, sample, out.rtt);
        }
        let told = subflow.marks.take(segment, ack, una, (out.delivered_segments.into(), out.delivered));
        subflow.counts.marks_reported += told.packets;
        let revived = out.acked > 0 && std::mem::take(&mut subflow.liveness.potentially_failed);
        self.tell_congestion(now, subflow, &out, told, (cwnd, in_flight, flight_size));
        revived
    }

    /// Takes in what a segment reports of marks that acknowledges `ack` on a subflow, and nothing new.
    pub(super) fn take_marks(&mut self, now: Instant, subflow: &mut Subflow, segment: &Segment, ack: u64) {
        let told = subflow.marks.take(segment, ack, subflow.tx.recovery.snd_una(), (0, 0));
        subflow.counts.marks_reported += told.packets;
        self.answer_mark(now, subflow, told, subflow.tx.flight_size());
    }

    /// Has the window fall for a mark, unless it has fallen in this round trip for another or for a loss. `flight_size`
    /// is that before the ACK.
    fn answer_mark(&mut self, now: Instant, subflow: &mut Subflow, told: Told, flight_size: Bytes) {
        let repairing = matches!(subflow.tx.recovery.phase(), Phase::Recovery | Phase::Loss);
        // A mark of an ACK says nothing of a path on which nothing is in flight.
        let idle = flight_size.is_zero();
        if told.packets == 0 || repairing || idle || subflow.marks.is_answered() {
            return;
        }
        subflow.counts.mark_reductions += u64::from(self.congestion.on_mark(now, subflow.id, flight_size));
        // A control that answers no marks has answered this one all the same, or the peer would echo it for ever.
        subflow.marks.on_answered(subflow.tx.recovery.snd_nxt());
    }

    /// Tells congestion control the effects of an ACK on a subflow: what recovery learned first, since that moves the
    /// window that the delivery is counted against. `before` the ACK there were window, pipe and FlightSize.
    fn tell_congestion(
        &mut self,
        now: Instant,
        subflow: &mut Subflow,
        out: &AckOut,
        told: Told,
        before: (Bytes, Bytes, Bytes),
    ) {
        let (cwnd, in_flight_before, flight_size) = before;
        let over = subflow.marks.is_over(subflow.tx.recovery.snd_una());
        let Subflow { id, tx, .. } = &*subflow;
        let id = *id;
        let slow_start = self.congestion.ssthresh(id).is_none_or(|ssthresh| cwnd < ssthresh);
        // The window was the limit if it was full before this ACK; in slow start, where it doubles in a round trip, if
        // half of it was used (Linux `tcp_is_cwnd_limited`). What a limit of bursts holds back will fill it.
        let used = in_flight_before.get() + u64::from(tx.mss);
        let held_back = tx.throttled && tx.burst_limit.is_spent(now) && !self.outgoing.unsent.is_empty();
        let cwnd_limited = used > cwnd.get() || held_back || (slow_start && 2 * in_flight_before.get() >= cwnd.get());
        let ack = Ack {
            acked: Bytes::new(out.delivered),
            lost: Bytes::new(out.newly_lost_bytes),
            marked: Bytes::new(told.bytes),
            srtt: tx.rtt.srtt(),
            rtt: out.rtt,
            in_flight_before,
            in_flight: tx.in_flight(),
            cwnd_limited,
            in_recovery: tx.recovery.phase() == Phase::Recovery,
            delivered: tx.recovery.delivered(),
            sample: out.rate,
        };
        if out.left_recovery || over {
            self.congestion.on_recovered(now, id);
            subflow.marks.on_round_over();
        }
        if out.undo {
            self.congestion.on_spurious(now, id);
            subflow.marks.on_undo();
        }
        if out.tail_loss_repaired {
            self.congestion.on_fast_retransmit(now, id, flight_size);
            self.congestion.on_recovered(now, id);
            subflow.marks.on_loss();
        }
        if out.entered_recovery {
            self.enter_recovery(now, subflow, flight_size);
        }
        if !out.tail_loss_repaired {
            self.answer_mark(now, subflow, told, flight_size);
        }
        self.tell_losses(now, subflow);
        if out.delivered > 0 {
            self.congestion.on_ack(now, id, &ack);
        }
    }

    /// Tells a model-based congestion control of each segment found lost since the last time.
    pub(super) fn tell_losses(&mut self, now: Instant, subflow: &mut Subflow) {
        if self.congestion.is_model_based() {
            let lost = subflow.tx.recovery.take_lost();
            lost.iter().for_each(|lost| self.congestion.on_lost(now, subflow.id, lost));
        }
    }

    /// A loss was found by other means than a timeout.
    fn enter_recovery(&mut self, now: Instant, subflow: &mut Subflow, in_flight: Bytes) {
        subflow.counts.fast_recoveries += 1;
        subflow.tx.retransmit_now = true;
        subflow.marks.on_loss();
        self.congestion.on_fast_retransmit(now, subflow.id, in_flight);
        self.scheduler.observe(now, &PolicyEvent::FastRetransmit { on: subflow.id });
    }

    /// A timer of loss recovery has run out on `subflow`. If it is the retransmission timer, returns how much was in
    /// flight and whether it is the first time in a row.
    pub(super) fn on_recovery_deadline(&mut self, now: Instant, subflow: &mut Subflow) -> Option<(Bytes, bool)> {
        while subflow.tx.recovery.deadline().is_some_and(|at| at <= now) {
            let in_flight = subflow.tx.flight_size();
            let first = subflow.tx.recovery.consecutive_rtos() == 0;
            match subflow.tx.recovery.on_deadline(now, &subflow.tx.rtt) {
                Fired::Nothing => break,
                Fired::Probe => {
                    subflow.tx.probe_now = true;
                    break;
                }
                Fired::Lost { segments, entered_recovery, .. } => {
                    subflow.tx.loss.on_lost(segments);
                    if entered_recovery {
                        self.enter_recovery(now, subflow, in_flight);
                    }
                    self.tell_losses(now, subflow);
                }
                Fired::Rto => return Some((in_flight, first)),
            }
        }
        None
    }
}

impl Connection {
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        slot: Slot,
        start: u64,
        segment: &Segment,
        ack: u64,
        shared: &mut Shared,
    ) {
        if self.sender.take_ack(now, &mut self.subflows[slot], start, segment, ack) {
            self.sender.on_subflows_changed(now, &self.subflows);
        }
        if self.sender.congestion.is_model_based() {
            self.tell_phase(slot, shared);
        }
        self.grow_send_buffer(slot, shared);
    }

    /// Tells the application if congestion control is in another phase on a subflow than at the ACK before.
    fn tell_phase(&mut self, slot: Slot, shared: &mut Shared) {
        let subflow = &self.subflows[slot];
        let (id, known) = (subflow.id, subflow.tx.phase);
        let phase = self.sender.congestion.phase(id);
        if phase != known {
            self.subflows[slot].tx.phase = phase;
            if let Some(phase) = phase {
                shared.event(self.id, Event::CongestionPhase { subflow: id, phase });
            }
        }
    }

    /// Plain TCP: the subflow's acknowledgment is the stream's.
    pub(super) fn handle_plain_ack(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        ack: u64,
        shared: &mut Shared,
    ) {
        let window = u64::from(segment.window) << self.subflows[slot].tx.snd_scale;
        let acked = ack.saturating_sub(1).min(self.sender.outgoing.buffer.end());
        self.on_data_ack(now, acked, window, shared);
    }

    /// The peer has everything before `offset`, and admits `window` bytes from there on. False if that cannot be.
    #[inline]
    pub(super) fn on_data_ack(&mut self, now: Instant, offset: u64, window: u64, shared: &mut Shared) -> bool {
        let Some((data, fin_acked)) = self.sender.outgoing.acknowledged_by(offset) else {
            shared.counters.unacceptable += 1;
            return false;
        };
        // Most segments of the other direction say nothing new.
        if data > self.sender.outgoing.una || fin_acked != self.sender.outgoing.fin_acked {
            self.advance(now, data, fin_acked, shared);
        }
        let waits = |end| self.subflows.iter().any(|subflow| subflow.tx.recovery.iter().any(|sent| sent.data < end));
        let edge = self.negotiated.dss.limit(now, offset + window, waits);
        self.sender.outgoing.open_window(offset, edge.saturating_sub(offset));
        true
    }

    /// The peer has all data before `data`, and the DATA_FIN if `fin_acked`.
    fn advance(&mut self, now: Instant, data: u64, fin_acked: bool, shared: &mut Shared) {
        if data > self.sender.outgoing.una {
            self.subflows.credit_carriers(&self.sender.outgoing.log, self.sender.outgoing.una);
            self.sender.outgoing.release(data, &mut self.subflows);
            if self.negotiated.dss.note_acked(data, self.sender.outgoing.nxt) {
                self.on_longer_dss();
            }
            self.timers.data_backoff = 0;
            self.paths.lost_subflows.clear();
            self.arm_data_timer(now, shared);
            if self.subflows.clear_suspects(data) {
                self.sender.on_subflows_changed(now, &self.subflows);
            }
            self.timers.on_progress(now, self.sender.outgoing.awaits_data_ack(), shared.config.user_timeout);
            self.wake_writer(shared);
        }
        if fin_acked && !self.sender.outgoing.fin_acked {
            self.sender.outgoing.fin_acked = true;
            self.timers.data_backoff = 0;
            self.arm_data_timer(now, shared);
            self.timers.on_progress(now, self.sender.outgoing.awaits_data_ack(), shared.config.user_timeout);
        }
    }
}

/// Ranges of subflow offsets; how many count is said beside them.
type SackOffsets = [(u64, u64); 4];

/// SACK blocks as offsets, with a D-SACK taken out (RFC 2883 §4: at or below the acknowledgment, or inside the second).
fn sack_offsets(
    segment: &Segment,
    ack: u64,
    iss: SubflowSeq,
    snd_nxt: u64,
) -> (SackOffsets, usize, Option<(u64, u64)>) {
    let mut offsets = [(0, 0); 4];
    let mut count = 0;
    let mut dsack = None;
    if !segment.options.has_sack() {
        return (offsets, count, dsack);
    }
    let sack = segment.options.sack();
    let blocks = sack.as_slice();
    let offset = |seq: SubflowSeq| seq.offset_near(iss, ack);
    for (position, block) in blocks.iter().enumerate() {
        let (Some(start), Some(end)) = (offset(block.start), offset(block.end)) else { continue };
        if start >= end || end > snd_nxt {
            continue;
        }
        let inside_second = blocks.get(1).is_some_and(|second| {
            let (a, b) = (offset(second.start), offset(second.end));
            a.is_some_and(|a| a <= start) && b.is_some_and(|b| end <= b)
        });
        if position == 0 && (end <= ack || inside_second) {
            dsack = Some((start, end));
        } else if end > ack {
            offsets[count] = (start, end);
            count += 1;
        }
    }
    (offsets, count, dsack)
}
