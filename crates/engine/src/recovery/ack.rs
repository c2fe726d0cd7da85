//! An acknowledgment: what loss recovery is told, and what it answers.

use anabranch_policy::congestion::RateSample;
use anabranch_units::Duration;

/// Contents of an arriving ACK, in offsets.
#[derive(Clone, Copy, Debug)]
pub struct AckIn<'a> {
    /// Cumulative acknowledgement; the caller has rejected one beyond `snd_nxt`.
    pub ack: u64,
    /// SACK blocks in the order of the option, `start < end`, without the DSACK.
    pub sack: &'a [(u64, u64)],
    /// Range that the peer received twice (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Meets RFC 5681 §2's definition of a duplicate ACK. Only read without SACK, and for ending a probe.
    pub is_duplicate: bool,
    /// Now minus the echoed timestamp (RFC 7323).
    pub rtt_from_timestamp: Option<Duration>,
}

/// Effects of an ACK for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckOut {
    /// Sequence numbers newly acknowledged cumulatively.
    pub acked: u64,
    /// Sequence numbers known to have arrived that were not before. Without SACK, an estimate from duplicate ACKs whose
    /// sum is exact as long as no timeout intervenes.
    pub delivered: u64,
    /// Segments in `delivered`.
    pub delivered_segments: u32,
    /// Sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation), if a whole segment arrived.
    pub rate: Option<RateSample>,
    /// An unambiguous RTT sample.
    pub rtt: Option<Duration>,
    /// Segments found lost.
    pub newly_lost: u32,
    /// Sequence numbers in the segments found lost.
    pub newly_lost_bytes: u64,
    /// Fast recovery begins with this ACK. May come together with `left_recovery`: one episode ended, and segments sent
    /// during it are lost.
    pub entered_recovery: bool,
    /// Fast recovery or the aftermath of a timeout ended with this ACK.
    pub left_recovery: bool,
    /// A retransmission was not needed: the peer received those bytes twice, or had them before (RFC 2883, RFC 3522).
    pub spurious: bool,
    /// No retransmission of the episode was needed: no segment was lost, and the reduction may be undone. A single
    /// needless retransmission among losses does not prove that (RFC 3708 §3, Linux `undo_retrans`).
    pub undo: bool,
    /// A retransmitted tail loss probe repaired a loss that nothing else saw: congestion control owes one reduction
    /// (RFC 8985 §7.4.2).
    pub tail_loss_repaired: bool,
}
