//! One subflow's loss recovery on the sending side: which segments are lost, and when to act without an ACK.
//!
//! Three detectors: RACK (RFC 8985) if SACK is on and `rack` is set; otherwise, with SACK, the count of segments SACKed
//! above a hole (RFC 6675, RFC 5827 for short flights); without SACK, NewReno (RFC 6582). Over all of them the
//! retransmission timeout (RFC 6298) and, with SACK, the tail loss probe (RFC 8985 §7). How much may be in flight is
//! the congestion control's business; this module reports, and says what to send again first.
//!
//! Where we differ: on a timeout everything not SACKed is lost, also what RFC 8985 §6.3 would spare for having been
//! sent within the last round trip. RFC 6675's count is in segments rather than bytes, and its `NextSeg` rules 3 and 4
//! (retransmitting what may not be lost) are absent, as in Linux. The reordering timer is set for RACK.segment's own
//! contemporaries, at most a reordering window later than the RFC's maximum over all candidates, which would cost a
//! walk.
//!
//! An ACK costs O(what it changes): blocks are looked up once, lost segments are found at the head of a list.

mod ack;
mod ack_effects;
mod flights;
mod newreno;
mod rack;
mod rate;
mod scoreboard;
mod sent;
mod single;
#[cfg(test)]
mod tests;
mod timers;

use anabranch_policy::congestion::{LostSegment, RateSample};
use anabranch_units::{Duration, Instant};

use crate::Detector;
use crate::deadline::Earliest;
use crate::ranges::RareSet;
use crate::rtt::RttEstimator;
pub use ack::{AckIn, AckOut};
use ack_effects::AckEffects;
use newreno::NewReno;
use rack::Rack;
use rate::Deliveries;
use scoreboard::Scoreboard;
pub use sent::{FIN, Sent};
use timers::Timers;

/// Rules of loss recovery that apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Both ends sent SACK-permitted (RFC 2018).
    pub sack: bool,
    /// Detect losses by time (RFC 8985); needs `sack`.
    pub rack: bool,
    /// Probe for tail losses (RFC 8985 §7); needs `sack`.
    pub tlp: bool,
    /// Segments that must overtake one before it is lost: 3 (RFC 5681 §3.2).
    pub dup_threshold: u32,
    /// Fewer in a flight too short for that many (RFC 5827, in segments); without effect under `rack`.
    pub early_retransmit: bool,
    /// Without SACK: a third duplicate ACK and a timeout repeat the first segment, and nothing else is ever repeated
    /// (`single.rs`).
    pub single_repair: bool,
    /// The longest timeout, backoff included.
    pub max_rto: Duration,
}

/// State of the sender (Linux `tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No loss or reordering suspected.
    Open,
    /// Something was SACKed, or ACKs repeat, but nothing counts as lost.
    Disorder,
    /// Fast recovery, until all that was sent before it is acknowledged.
    Recovery,
    /// Recovery after a timeout, until all that was sent before it is acknowledged.
    Loss,
}

/// Result of a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fired {
    /// No timer was due.
    Nothing,
    /// The retransmission timeout: everything not SACKed is lost.
    Rto,
    /// Send one new segment if there is one, otherwise repeat [`Recovery::probe_candidate`].
    Probe,
    /// Segments have waited past the reordering window.
    Lost {
        /// Number of segments.
        segments: u32,
        /// Number of sequence numbers.
        bytes: u64,
        /// Fast recovery begins.
        entered_recovery: bool,
    },
}

/// Sender-side loss recovery of one subflow.
#[derive(Clone, Debug)]
pub struct Recovery {
    config: Config,
    board: Scoreboard,
    timers: Timers,
    rack: Rack,
    newreno: NewReno,
    deliveries: Deliveries,
    phase: Phase,
    /// The current or latest episode ends, or ended, when this is acknowledged; `None` before the first one.
    recovery_point: Option<u64>,
    probe: Option<Probe>,
    /// Retransmitted in the current or latest episode, and not yet reported as received twice.
    repeated: RareSet,
    /// Sequence numbers retransmitted in the current or latest episode, each as often as it was, less those that were
    /// reported as received twice.
    needed: u64,
    /// `snd_una` moved since the timers were last set.
    progressed: bool,
    has_unsent: bool,
    consecutive_rtos: u32,
    rto_count: u64,
    retransmitted_segments: u64,
}

/// A tail loss probe under way (RFC 8985 §7: TLP.end_seq, TLP.is_retrans).
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: u64,
    repeats: bool,
    /// The timer fired and the caller has not sent it yet.
    unsent: bool,
}

impl Recovery {
    /// Recovery for a subflow whose next offset is `first`, with nothing sent.
    pub fn new(config: Config, first: u64, _now: Instant) -> Self {
        Recovery {
            config,
            board: Scoreboard::new(first),
            timers: Timers::new(config.max_rto),
            rack: Rack::new(first),
            newreno: NewReno::default(),
            deliveries: Deliveries::default(),
            phase: Phase::Open,
            recovery_point: None,
            probe: None,
            repeated: RareSet::default(),
            needed: 0,
            progressed: false,
            has_unsent: false,
            consecutive_rtos: 0,
            rto_count: 0,
            retransmitted_segments: 0,
        }
    }

    /// New data left at `snd_nxt`; returns its record. A segment without payload and FIN takes no sequence number:
    /// `None`.
    pub fn on_sent(&mut self, now: Instant, len: u32, data: u64, flags: u8) -> Option<Sent> {
        let note = (self.deliveries.departure(now, self.board.is_empty()), self.deliveries.is_limited());
        let sent = self.board.push(now, len, data, flags, note)?;
        self.newreno.sent(len);
        self.timers.start_rto(now);
        self.note_probe(false);
        self.schedule_probe(now);
        Some(sent)
    }

    /// Takes the estimate over, for timers that start before the first ACK of data: the handshake gives a sample as
    /// well.
    pub fn consult(&mut self, rtt: &RttEstimator) {
        self.timers.consult(rtt);
    }

    /// Sets whether the flight that each segment ends is noted when it leaves, and each loss told: for congestion
    /// controls that model the path.
    #[inline]
    pub fn note_flights(&mut self, wanted: bool) {
        self.board.note_flights(wanted, self.config.sack);
    }

    /// Takes the segments found lost since the last time; none where flights are not noted.
    pub fn take_lost(&mut self) -> Vec<LostSegment> {
        self.board.take_lost(self.deliveries.total())
    }

    /// Sets whether the application has data waiting; early retransmit needs that it has not (RFC 5827 §3.1).
    pub fn set_has_unsent(&mut self, has_unsent: bool) {
        self.has_unsent = has_unsent;
    }

    /// Takes an ACK in. Afterwards the caller feeds `rtt` with the sample and calls [`Recovery::rearm`].
    pub fn on_ack(&mut self, now: Instant, ack: &AckIn<'_>, rtt: &RttEstimator) -> AckOut {
        self.timers.consult(rtt);
        let mut effects = AckEffects::new(now, self.rack.fack, ack.rtt_from_timestamp, rtt.min());
        let acked = self.board.acknowledge(ack.ack, &mut effects);
        if self.config.sack {
            self.board.select(ack.sack, &mut effects);
        }
        let (spurious, undo) = self.proves_spurious(ack, &effects);
        let mut out = AckOut {
            acked,
            delivered: effects.bytes,
            delivered_segments: effects.segments,
            rtt: effects.rtt(acked),
            spurious,
            undo,
            ..AckOut::default()
        };
        if acked > 0 {
            self.progressed = true;
            self.consecutive_rtos = 0;
            // RFC 6298 §5.7 would wait for an RTT sample; Linux does not, and a path that delivers is not congested.
            if !self.config.single_repair || effects.has_original() {
                self.timers.backoff = 0;
            }
        }
        out.tail_loss_repaired = self.judge_probe(ack);
        if self.in_episode() && self.recovery_point.is_none_or(|point| self.board.snd_una() >= point) {
            out.left_recovery = true;
            self.phase = Phase::Open;
        }

        let (segments, bytes) = match (self.config.sack, self.config.rack) {
            (false, _) if self.config.single_repair => self.detect_single(ack, &out),
            (false, _) => self.detect_by_duplicates(ack, &mut out),
            (true, false) => self.detect_by_count(),
            (true, true) => {
                self.rack.learn(&effects);
                self.rack.adapt(self.board.snd_una(), self.board.snd_nxt(), ack.dsack.is_some(), out.left_recovery);
                let min_rtt = match (rtt.min(), out.rtt) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                self.detect_by_time(now, min_rtt)
            }
        };
        out.newly_lost = segments;
        out.newly_lost_bytes = bytes;
        out.entered_recovery = self.settle_phase() || (segments > 0 && self.config.single_repair);
        let flight = self.board.flight_by_now(effects.flight());
        out.rate = self.deliveries.deliver(now, out.delivered, effects.latest(), rtt.min());
        out.rate = out.rate.map(|rate| RateSample { flight, ..rate });
        out
    }

    /// Sets the timers after an ACK or another change of the estimate.
    pub fn rearm(&mut self, now: Instant, rtt: &RttEstimator) {
        self.timers.consult(rtt);
        if self.board.is_empty() {
            self.timers.stop();
            self.progressed = false;
            self.repeated.release();
            return;
        }
        if self.progressed || self.timers.rto_at.is_none() {
            self.timers.restart_rto(now);
        }
        if self.progressed || !self.may_probe() {
            self.schedule_probe(now);
        }
        self.progressed = false;
    }

    /// Adds the timers that run.
    #[inline(always)]
    pub fn add_timers(&self, first: Earliest) -> Earliest {
        self.timers.add_to(first)
    }

    /// The earliest of the timers that run.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.add_to(Earliest::NONE).get()
    }

    /// Acts on one timer that is due. Call again while [`Recovery::deadline`] is not after `now`.
    pub fn on_deadline(&mut self, now: Instant, rtt: &RttEstimator) -> Fired {
        self.timers.consult(rtt);
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.timers.reorder_at) {
            self.timers.reorder_at = None;
            let (segments, bytes) = self.detect_by_time(now, rtt.min());
            if segments > 0 {
                let entered_recovery = self.settle_phase();
                return Fired::Lost { segments, bytes, entered_recovery };
            }
        }
        if due(self.timers.probe_at) {
            self.timers.probe_at = None;
            if self.may_probe() {
                self.probe = Some(Probe { end: self.board.snd_nxt(), repeats: false, unsent: true });
                self.timers.restart_rto(now);
                // A DSACK for an earlier probe would have come by now.
                self.forget_repeated();
                return Fired::Probe;
            }
        }
        if due(self.timers.rto_at) {
            return self.time_out(now);
        }
        Fired::Nothing
    }

    /// The last segment sent, which a tail loss probe repeats if there is no new one.
    pub fn probe_candidate(&self) -> Option<Sent> {
        self.board.back()
    }

    /// The lowest segment that is lost and was not sent again since.
    pub fn next_retransmission(&self) -> Option<Sent> {
        self.board.pending()
    }

    /// Tells whether a segment is to be sent again.
    pub fn has_retransmission(&self) -> bool {
        self.board.has_pending()
    }

    /// The segment at `start` was sent again.
    pub fn on_retransmit(&mut self, now: Instant, start: u64, rtt: &RttEstimator) {
        self.timers.consult(rtt);
        let note = (self.deliveries.departure(now, false), self.deliveries.is_limited());
        let Some(sent) = self.board.repeat(now, start, note) else { return };
        self.retransmitted_segments += 1;
        self.repeated.insert(sent.start, sent.end());
        if self.in_episode() {
            self.needed += sent.end() - sent.start;
        }
        self.note_probe(true);
        if sent.start == self.board.snd_una() {
            // The timer guards the lowest segment; its new copy gets a full timeout (RFC 6675 §6, Linux).
            self.timers.restart_rto(now);
        } else {
            self.timers.start_rto(now);
        }
    }

    /// Declares segments of more than `most` bytes lost, since no path carries them; others are unaffected. Returns
    /// true if there are any.
    pub fn lose_larger_than(&mut self, most: u32) -> bool {
        let lost = self.board.lose_larger_than(most);
        // No sign of congestion.
        self.take_lost();
        if lost && !self.in_episode() {
            self.begin_episode(Phase::Recovery);
        }
        lost
    }

    /// Returns the mechanism that finds losses in the present episode.
    pub fn detector(&self) -> Detector {
        match (self.phase, self.config.sack, self.config.rack) {
            (Phase::Loss, ..) => Detector::Rto,
            (_, true, true) => Detector::Rack,
            (_, true, false) => Detector::Sack,
            (_, false, _) => Detector::DuplicateAcks,
        }
    }

    /// Returns the state of the sender.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The first offset not acknowledged.
    pub fn snd_una(&self) -> u64 {
        self.board.snd_una()
    }

    /// The next offset to send.
    pub fn snd_nxt(&self) -> u64 {
        self.board.snd_nxt()
    }

    /// Sequence numbers in the network: neither SACKed nor lost, plus retransmitted copies (RFC 6675 §4 pipe); without
    /// SACK less one full segment per duplicate ACK.
    pub fn in_flight(&self) -> u64 {
        self.board.totals().in_flight.saturating_sub(self.newreno.credit())
    }

    /// The same in segments.
    #[cfg(test)]
    pub fn in_flight_segments(&self) -> u32 {
        self.board.totals().in_flight_segments.saturating_sub(self.newreno.credit_segments())
    }

    /// Returns the time at which the oldest segment in flight left.
    pub fn oldest_sent(&self) -> Option<Instant> {
        self.board.oldest().map(|(_, sent)| sent.sent_at())
    }

    /// Segments that are lost and were not sent again since, by sequence number.
    pub fn lost(&self) -> impl Iterator<Item = Sent> {
        self.board.all_pending()
    }

    /// Segments under way, in the order of the latest sending.
    pub fn oldest_first(&self) -> impl Iterator<Item = Sent> {
        self.board.in_order_of_sending()
    }

    /// The same from the other end.
    pub fn newest_first(&self) -> impl Iterator<Item = Sent> {
        self.board.against_order_of_sending()
    }

    /// Bytes known to have arrived, in all.
    pub fn delivered(&self) -> u64 {
        self.deliveries.total()
    }

    /// The sender has room here and nothing to send: what is delivered of the next segments says little of the path.
    pub fn mark_app_limited(&mut self) {
        self.deliveries.limit(self.in_flight());
    }

    /// Returns true if all data is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.board.is_empty()
    }

    /// All that is unacknowledged, in sequence order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Sent> + '_ {
        self.board.iter()
    }

    /// Offset at which the lowest segment began that is unacknowledged, in part or as a whole.
    pub fn kept_from(&self) -> u64 {
        self.board.kept_from()
    }

    /// The unacknowledged segment that holds `offset`, as it was sent: also what was acknowledged of it since.
    pub fn whole(&self, offset: u64) -> Option<Sent> {
        self.board.whole(offset)
    }

    /// Unacknowledged segments that carry data between offsets `from` and `to` of the stream, in sequence order.
    pub(crate) fn carrying(&self, from: u64, to: u64) -> impl Iterator<Item = Sent> + '_ {
        self.board.carrying(from, to)
    }

    /// Tells whether an unacknowledged segment holds the byte at offset `at` of the stream, be it in a part that was
    /// acknowledged.
    pub(crate) fn carries(&self, at: u64) -> bool {
        let of_front = || self.board.front().and_then(|(_, front)| self.board.whole(front.start));
        self.board.carrying(at, at + 1).next().is_some()
            || of_front().is_some_and(|front| (front.data..front.data + u64::from(front.len)).contains(&at))
    }

    /// Doublings of the timeout in force.
    #[cfg(test)]
    pub fn backoff(&self) -> u32 {
        self.timers.backoff
    }

    /// Returns the time at which the retransmission timer expires, backoff included.
    pub fn timeout(&self) -> Option<Instant> {
        self.timers.rto_at
    }

    /// Timeouts since `snd_una` last moved.
    pub fn consecutive_rtos(&self) -> u32 {
        self.consecutive_rtos
    }

    /// Timeouts in all.
    pub fn rto_count(&self) -> u64 {
        self.rto_count
    }

    /// Segments sent again in all, probes included.
    pub fn retransmitted_segments(&self) -> u64 {
        self.retransmitted_segments
    }

    /// `(in flight, SACKed, lost)` in sequence numbers, as maintained.
    pub fn totals(&self) -> (u64, u64, u64) {
        (self.in_flight(), self.board.totals().sacked, self.board.totals().lost)
    }

    /// Recomputes the totals from scratch in O(window); panics if an index disagrees with its records.
    pub fn recompute(&self) -> (u64, u64, u64) {
        let totals = self.board.recompute();
        assert!(totals == *self.board.totals(), "each change of a record went through the totals");
        (totals.in_flight.saturating_sub(self.newreno.credit()), totals.sacked, totals.lost)
    }

    fn in_episode(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Detects losses without SACK.
    fn detect_by_duplicates(&mut self, ack: &AckIn<'_>, out: &mut AckOut) -> (u32, u64) {
        if out.acked > 0 {
            if self.phase != Phase::Recovery {
                out.delivered -= self.newreno.settle(out.acked);
                return (0, 0);
            }
            // A partial ACK: the next hole is where it stopped (step 3).
            out.delivered -= self.newreno.partial(out.acked);
            return self.lose_front();
        }
        // After a timeout everything is retransmitted anyway, and duplicate ACKs are echoes of that.
        if !ack.is_duplicate || self.board.is_empty() || self.phase == Phase::Loss {
            return (0, 0);
        }
        let totals = self.board.totals();
        let outstanding = self.board.snd_nxt() - self.board.snd_una();
        let hole = self.board.front().map_or(0, |(_, front)| front.end() - front.start);
        let delivered = self.newreno.duplicate(outstanding - totals.lost.max(hole).min(outstanding));
        out.delivered += delivered;
        out.delivered_segments += u32::from(delivered > 0);
        // Step 2: what was sent before the last episode ended may cause duplicates by its own retransmissions.
        let fresh = self.recovery_point.is_none_or(|point| self.board.snd_una() > point);
        if !self.in_episode() && fresh && self.newreno.duplicates >= self.threshold() {
            return self.lose_front();
        }
        (0, 0)
    }

    fn lose_front(&mut self) -> (u32, u64) {
        match self.board.front() {
            Some((id, front)) if !front.is_lost() => (1, self.board.lose(id)),
            _ => (0, 0),
        }
    }

    /// Detects losses with SACK and without RACK: RFC 6675 `IsLost`.
    fn detect_by_count(&mut self) -> (u32, u64) {
        let threshold = u64::from(self.threshold());
        if self.board.sacked_segments() < threshold {
            return (0, 0);
        }
        self.board.lose_below(threshold)
    }

    /// RFC 5827 §3.2: with few segments out and nothing more to send, one fewer than are out.
    fn threshold(&self) -> u32 {
        let out = self.board.len();
        let short = self.config.early_retransmit && !self.has_unsent && out >= 2 && out <= self.config.dup_threshold;
        if short { out - 1 } else { self.config.dup_threshold.max(1) }
    }

    /// RFC 8985 §6.2 step 5.
    fn detect_by_time(&mut self, now: Instant, min_rtt: Option<Duration>) -> (u32, u64) {
        self.timers.reorder_at = None;
        let Some(newest) = self.rack.newest else { return (0, 0) };
        let impatient = self.in_episode() || self.board.sacked_segments() >= u64::from(self.config.dup_threshold);
        let min_rtt = min_rtt.unwrap_or(newest.rtt);
        let patience = newest.rtt + self.rack.window(min_rtt, self.timers.srtt.unwrap_or(newest.rtt), impatient);
        let mut lost = (0, 0);
        while let Some((id, sent)) = self.board.oldest() {
            if sent.order() > newest.order {
                break;
            }
            if sent.sent_at() + patience > now {
                self.timers.reorder_at = Some(newest.sent_at + patience);
                break;
            }
            lost = (lost.0 + 1, lost.1 + self.board.lose(id));
        }
        lost
    }

    /// Lets the phase follow the scoreboard; answers whether fast recovery begins.
    fn settle_phase(&mut self) -> bool {
        if self.in_episode() {
            return false;
        }
        if self.board.totals().lost_segments > 0 {
            self.begin_episode(Phase::Recovery);
            return true;
        }
        let disorder = self.board.sacked_segments() > 0 || self.newreno.duplicates > 0;
        self.phase = if disorder { Phase::Disorder } else { Phase::Open };
        false
    }

    fn begin_episode(&mut self, phase: Phase) {
        if !self.in_episode() {
            self.forget_repeated();
        }
        self.phase = phase;
        self.recovery_point = Some(self.board.snd_nxt());
        self.probe = None;
        self.timers.probe_at = None;
    }

    fn time_out(&mut self, now: Instant) -> Fired {
        if self.board.is_empty() {
            self.timers.stop();
            return Fired::Nothing;
        }
        self.rto_count += 1;
        self.consecutive_rtos += 1;
        if self.config.single_repair && !self.config.sack {
            self.repair_single(Phase::Loss);
        } else {
            self.begin_episode(Phase::Loss);
            self.board.lose_everything();
            self.newreno.settle(0);
        }
        self.timers.reorder_at = None;
        self.timers.back_off();
        self.timers.restart_rto(now);
        Fired::Rto
    }

    /// RFC 8985 §7.2: a probe is for a tail, not for a time when ACKs tell more.
    fn may_probe(&self) -> bool {
        self.config.tlp
            && self.config.sack
            && self.phase == Phase::Open
            && self.probe.is_none()
            && self.board.sacked_segments() == 0
            && !self.board.is_empty()
    }

    fn schedule_probe(&mut self, now: Instant) {
        if self.may_probe() {
            self.timers.start_probe(now, self.board.len() == 1);
        } else {
            self.timers.probe_at = None;
        }
    }

    /// The first transmission after the probe timer is the probe.
    fn note_probe(&mut self, repeats: bool) {
        if let Some(probe) = &mut self.probe
            && probe.unsent
        {
            *probe = Probe { end: self.board.snd_nxt(), repeats, unsent: false };
        }
    }

    /// RFC 8985 §7.4.2; answers whether a loss was repaired by the probe.
    fn judge_probe(&mut self, ack: &AckIn<'_>) -> bool {
        let Some(probe) = self.probe else { return false };
        if ack.ack < probe.end {
            return false;
        }
        let plain_duplicate = ack.is_duplicate && ack.sack.is_empty();
        let repaired = probe.repeats && ack.dsack.is_none() && ack.ack > probe.end;
        if !probe.repeats || ack.dsack.is_some() || repaired || plain_duplicate {
            self.probe = None;
        }
        repaired
    }

    /// Returns whether this ACK proves a retransmission needless, and whether it proves all of them so.
    fn proves_spurious(&mut self, ack: &AckIn<'_>, effects: &AckEffects) -> (bool, bool) {
        let twice = ack.dsack.map_or(0, |(start, end)| self.repeated.remove(start, end));
        let was_needed = self.needed > 0;
        self.needed = self.needed.saturating_sub(twice);
        let was_original = effects.first_was_original && self.in_episode();
        (twice > 0 || was_original, (was_needed && self.needed == 0) || was_original)
    }

    /// Forgets retransmissions of an earlier episode, which are no evidence any more.
    fn forget_repeated(&mut self) {
        self.repeated.remove_below(self.board.snd_una());
        self.needed = 0;
    }
}
