//! Input of congestion control at an ACK, and its answer beside growth.

use anabranch_units::{Bytes, Duration, Rate, Window};

/// Effects of one ACK on a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Bytes known to have arrived that were not before, SACKed ones included.
    pub acked: Bytes,
    /// Bytes found lost with this ACK.
    pub lost: Bytes,
    /// Bytes of those newly known to have arrived that a queue had marked (ECN), as far as the peer's feedback tells.
    pub marked: Bytes,
    /// Smoothed round-trip time, this ACK included.
    pub srtt: Option<Duration>,
    /// The RTT sample of this ACK; `None` if it gives none (Karn).
    pub rtt: Option<Duration>,
    /// Bytes in flight before this ACK was counted.
    pub in_flight_before: Bytes,
    /// Bytes in flight now: neither acknowledged, SACKed nor lost, plus retransmissions under way.
    pub in_flight: Bytes,
    /// The window was in full use when this data left.
    pub cwnd_limited: bool,
    /// Fast recovery goes on, or begins with this ACK.
    pub in_recovery: bool,
    /// All bytes ever delivered on this subflow, this ACK included.
    pub delivered: u64,
    /// Delivery rate sample; `None` if no whole segment arrived.
    pub sample: Option<RateSample>,
}

impl Ack {
    /// The delivery rate of the sample. A division, for those who want it.
    pub fn delivery_rate(&self) -> Option<Rate> {
        let sample = self.sample?;
        Rate::of(Bytes::new(self.delivered.saturating_sub(sample.prior_delivered)), sample.over?)
    }
}

/// A sample of the delivery rate (Y. Cheng, N. Cardwell, S. Hassas Yeganeh, V. Jacobson. *Delivery Rate Estimation.*
/// draft-cheng-iccrg-delivery-rate-estimation), over the flight of the latest sent segment that this ACK delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Value of [`Ack::delivered`] when that segment left.
    pub prior_delivered: u64,
    /// Time in which the bytes since were delivered; `None` if it is shorter than any round trip and so unreliable.
    pub over: Option<Duration>,
    /// The sender had too little to send when that segment left, so that the path may be faster.
    pub app_limited: bool,
    /// The flight that this segment ended; `None` where no model-based control wanted it noted when it left.
    pub flight: Option<Flight>,
}

/// The flight that a segment ended when it left, and its losses since: per-packet state of model-based controls
/// (draft-ietf-ccwg-bbr, "Delivery Rate Sampling State Variables": `P.tx_in_flight`, `P.lost`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Bytes in flight when the segment had left, itself included (`tx_in_flight`).
    pub at_departure: Bytes,
    /// Bytes found lost since it left, itself included if it is lost (`RS.lost`).
    pub lost_since: Bytes,
    /// The peer reports what arrives out of order, so that several losses show in one round trip
    /// (`C.has_selective_acks`).
    pub selective: bool,
}

/// A segment that was found lost, by an ACK, a timer of loss recovery or a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Position of its first byte on the subflow, which tells gaps from one long loss.
    pub start: u64,
    /// Length of the segment.
    pub bytes: Bytes,
    /// The flight that it ended.
    pub flight: Flight,
    /// The sender had too little to send when it left.
    pub app_limited: bool,
    /// Value of [`Ack::delivered`] when the loss was found, the ACK that showed it included.
    pub delivered: u64,
}

/// Window and threshold, set by an algorithm itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowUpdate {
    /// Congestion window.
    pub cwnd: Window,
    /// Slow-start threshold.
    pub ssthresh: Window,
}

/// Path model of a model-based congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Segments leave at this rate \[payload\].
    pub pacing: Rate,
    /// Bandwidth-delay product; `None` before both have been measured.
    pub bdp: Option<Bytes>,
}

/// Round trips, counted by data: one is over when something is acknowledged that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    end: Option<u64>,
}

impl Round {
    /// Returns true if a round ends with this ACK; the next begins with it. The first ACK only begins one.
    pub(super) fn ends(&mut self, ack: &Ack) -> bool {
        let ended = match (self.end, ack.sample) {
            (None, _) => false,
            (Some(end), Some(sample)) if sample.prior_delivered >= end => true,
            _ => return false,
        };
        self.end = Some(ack.delivered);
        ended
    }

    /// A round begins with `delivered` bytes delivered so far.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.end = Some(delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(prior_delivered: u64, delivered: u64) -> Ack {
        let sample = RateSample { prior_delivered, ..RateSample::default() };
        Ack { delivered, sample: Some(sample), ..Ack::default() }
    }

    #[test]
    fn a_round_is_over_when_what_was_sent_after_its_beginning_arrives() {
        let mut round = Round::default();
        for (prior, delivered, ends) in [(0, 2, false), (0, 4, false), (2, 5, true), (4, 6, false), (5, 8, true)] {
            assert_eq!(round.ends(&ack(prior, delivered)), ends, "{prior} {delivered}");
        }
        assert!(!round.ends(&Ack { sample: None, ..ack(9, 9) }));
    }
}
