//! Effects of one ACK: gathered while the scoreboard changes, read once it has.

use anabranch_policy::congestion::Flight;
use anabranch_units::{Duration, Instant};

use super::rate::Departure;
use super::sent::Sent;

/// A transmission that is known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) order: u64,
    pub(super) sent_at: Instant,
    pub(super) rtt: Duration,
}

/// The segments that one ACK newly delivers, reduced to what the rules ask about them.
pub(super) struct AckEffects {
    now: Instant,
    min_rtt: Option<Duration>,
    timestamp_rtt: Option<Duration>,
    /// Highest offset delivered before this ACK: within one ACK, the order of processing is no order of arrival.
    fack_before: u64,
    pub(super) fack: u64,
    pub(super) bytes: u64,
    pub(super) segments: u32,
    pub(super) acked_segments: u32,
    /// A segment below something delivered earlier arrived in its first transmission (RFC 8985 §6.2 step 3).
    pub(super) reordering: bool,
    /// The latest sent one among those that RFC 8985 §6.2 step 2 lets count.
    pub(super) newest: Option<Arrival>,
    /// The first segment acknowledged had been retransmitted, yet the echoed timestamp is older (RFC 3522).
    pub(super) first_was_original: bool,
    acknowledged: Option<Arrival>,
    selected: Option<Arrival>,
    acknowledged_a_repeat: bool,
    latest: Option<Latest>,
}

/// Departure record of the transmission that left last, of those that an ACK delivers.
#[derive(Clone, Copy)]
struct Latest {
    order: u64,
    departure: Departure,
    sent_at: Instant,
    limited: bool,
    /// Flight that it ended, and what had been lost in all when that was read.
    flight: Option<(Flight, u64)>,
}

impl AckEffects {
    pub(super) fn new(now: Instant, fack: u64, timestamp_rtt: Option<Duration>, min_rtt: Option<Duration>) -> Self {
        AckEffects {
            now,
            min_rtt,
            timestamp_rtt,
            fack_before: fack,
            fack,
            bytes: 0,
            segments: 0,
            acked_segments: 0,
            reordering: false,
            newest: None,
            first_was_original: false,
            acknowledged: None,
            selected: None,
            acknowledged_a_repeat: false,
            latest: None,
        }
    }

    /// A record left the front of the scoreboard.
    pub(super) fn acknowledged(&mut self, sent: &Sent, flight: impl FnOnce() -> Option<(Flight, u64)>) {
        self.acked_segments += 1;
        if sent.was_retransmitted() {
            self.acknowledged_a_repeat = true;
            if self.acked_segments == 1 && !sent.is_sacked() && self.echo_predates(sent) {
                self.first_was_original = true;
            }
        }
        if !sent.is_sacked() {
            let arrival = self.delivered(sent, flight);
            if !sent.was_retransmitted() {
                newer(&mut self.acknowledged, arrival);
            }
        }
    }

    /// A record was reported by a SACK block for the first time.
    pub(super) fn selected(&mut self, sent: &Sent, flight: impl FnOnce() -> Option<(Flight, u64)>) {
        let arrival = self.delivered(sent, flight);
        if !sent.was_retransmitted() {
            newer(&mut self.selected, arrival);
        }
    }

    /// The RTT sample of this ACK (Karn: RFC 6298 §3). A cumulative ACK that covers a retransmission may have waited
    /// for it, so that then only SACKed segments are timed. Without either, the timestamp's if the ACK is of new data.
    pub(super) fn rtt(&self, acked: u64) -> Option<Duration> {
        let mut best = self.selected;
        if let (Some(arrival), false) = (self.acknowledged, self.acknowledged_a_repeat) {
            newer(&mut best, arrival);
        }
        best.map(|arrival| arrival.rtt).or(self.timestamp_rtt.filter(|_| acked > 0))
    }

    /// A segment was acknowledged that had been sent once.
    pub(super) fn has_original(&self) -> bool {
        self.acknowledged.is_some()
    }

    /// Returns the departure record of the latest sent segment that this ACK delivers, for a sample of the delivery
    /// rate.
    pub(super) fn latest(&self) -> Option<(Departure, Instant, bool)> {
        self.latest.map(|latest| (latest.departure, latest.sent_at, latest.limited))
    }

    /// Returns the flight of that segment, if it was noted, and what had been lost in all when it was read.
    pub(super) fn flight(&self) -> Option<(Flight, u64)> {
        self.latest.and_then(|latest| latest.flight)
    }

    fn delivered(&mut self, sent: &Sent, flight: impl FnOnce() -> Option<(Flight, u64)>) -> Arrival {
        self.bytes += sent.end() - sent.start;
        self.segments += 1;
        if self.latest.is_none_or(|latest| sent.order() > latest.order) {
            let (departure, limited) = sent.departure();
            let flight = flight();
            self.latest = Some(Latest { order: sent.order(), departure, sent_at: sent.sent_at(), limited, flight });
        }
        let arrival = Arrival { order: sent.order(), sent_at: sent.sent_at(), rtt: self.now.since(sent.sent_at()) };
        let repeated = sent.was_retransmitted();
        self.fack = self.fack.max(sent.end());
        self.reordering |= !repeated && sent.end() < self.fack_before;
        // RFC 8985 §6.2 step 2: an ACK that comes too early for the retransmission is one for the original.
        let ambiguous = repeated && (self.echo_predates(sent) || self.min_rtt.is_some_and(|min| arrival.rtt < min));
        if !ambiguous {
            newer(&mut self.newest, arrival);
        }
        arrival
    }

    fn echo_predates(&self, sent: &Sent) -> bool {
        self.timestamp_rtt.is_some_and(|echo| echo > self.now.since(sent.sent_at()) + TIMESTAMP_TICK)
    }
}

fn newer(best: &mut Option<Arrival>, arrival: Arrival) {
    if best.is_none_or(|b| arrival.order > b.order) {
        *best = Some(arrival);
    }
}

/// A timestamp clock may tick once per millisecond, and rounds down (RFC 7323 §5.4).
const TIMESTAMP_TICK: Duration = Duration::from_millis(1);
