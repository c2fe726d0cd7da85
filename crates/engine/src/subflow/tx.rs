//! The sending half of a subflow.

use crate::Profile;
use crate::buffer::SendBuffer;
use crate::burst_limit::BurstLimit;
use crate::originals::Originals;
use crate::pacer::Pacer;
use crate::path_mtu::PathMtu;
use crate::path_rate::PathRate;
use crate::recovery::{self, Recovery};
use crate::rtt::RttEstimator;
use anabranch_policy::Delivery;
use anabranch_policy::congestion::RateSample;
use anabranch_policy::forecast::LossEstimate;
use anabranch_policy::send_buffer::{self, EXPAND, SEGMENT_MEMORY};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Rate, SubflowSeq};
use anabranch_wire::FlowKey;

/// Sending half of a subflow (RFC 9293 §3.3.1), without its congestion window.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Tx {
    pub(crate) iss: SubflowSeq,
    pub(crate) recovery: Recovery,
    pub(crate) rtt: RttEstimator,
    pub(crate) loss: LossEstimate,
    /// Latest believable sample of the delivery rate.
    pub(crate) delivery: Option<Delivery>,
    /// Estimated rate of the path, independent of the amount of data to send.
    pub(crate) path_rate: PathRate,
    /// Phase of a model-based congestion control that the application was last told of.
    pub(crate) phase: Option<&'static str>,
    /// The smaller of the two MSS options.
    pub(crate) mss_option: u16,
    /// MTU of the path, where that is less than our device's and the peer's.
    pub(crate) path_mtu: Option<PathMtu>,
    /// Time at which we probed whether small packets get through where large ones do not.
    pub(crate) asked_small: Option<Instant>,
    /// Payload of a full segment with the options of the steady state.
    pub(crate) mss: u32,
    /// Bytes by which the DSS of a full segment is shorter than the longest.
    pub(crate) spared: u32,
    /// Right edge of the peer's subflow-level window, as an offset. Follows the latest segment (RFC 9293 §3.10.7.4),
    /// also back.
    pub(crate) snd_edge: u64,
    /// Offset and acknowledgment of the segment that last set it.
    pub(crate) snd_wl1: u64,
    pub(crate) snd_wl2: u64,
    /// The window field of the latest segment, to tell duplicate ACKs from window updates.
    pub(crate) snd_wnd: u16,
    pub(crate) snd_scale: u8,
    /// Fast recovery has begun: its first retransmission leaves regardless of the window (RFC 6675 §5 (4.3)).
    pub(crate) retransmit_now: bool,
    /// A tail loss probe is due.
    pub(crate) probe_now: bool,
    pub(crate) last_sent: Option<Instant>,
    /// The highest DATA_ACK that came here.
    pub(crate) data_acked: Option<Dsn>,
    pub(crate) fin_sent: bool,
    /// Memory for repeating segments as they first left, beside the scoreboard and the send buffer.
    pub(crate) originals: Originals,
    /// Send buffer of the subflow, if those of subflows grow; else 0.
    pub(crate) send_buffer: Bytes,
    /// Bytes below us that the first hop has not sent (TCP Small Queues).
    pub(crate) first_hop: u64,
    /// Held back by TCP Small Queues or by pacing.
    pub(crate) throttled: bool,
    pub(crate) pacer: Pacer,
    pub(crate) burst_limit: BurstLimit,
    /// Packets sent, modulo 2¹⁶: the IPv4 identification.
    pub(crate) packets_sent: u16,
    /// Offset added to the clock to form TSval (RFC 7323 §5.4).
    pub(crate) timestamp_offset: u32,
}

/// Three duplicate ACKs (RFC 5681 §3.2).
const DUP_THRESHOLD: u32 = 3;
/// Unacknowledged repetitions after which other subflows are preferred (RFC 9293 §3.8.3: R1, at least 3).
const MAX_VAIN_REPETITIONS: u32 = 3;

impl Tx {
    pub(super) fn new(profile: &Profile, flow: &FlowKey) -> Self {
        let mss_option = profile.mss_towards(flow.dst);
        Tx {
            iss: SubflowSeq::new(0),
            recovery: Recovery::new(recovery_config(profile, profile.sack), 1, Instant::ZERO),
            rtt: RttEstimator::new(profile.rto),
            loss: LossEstimate::new(),
            delivery: None,
            path_rate: PathRate::default(),
            phase: None,
            mss_option,
            path_mtu: None,
            asked_small: None,
            mss: u32::from(mss_option),
            spared: 0,
            snd_edge: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            snd_wnd: 0,
            snd_scale: 0,
            retransmit_now: false,
            probe_now: false,
            last_sent: None,
            data_acked: None,
            fin_sent: false,
            originals: Originals::default(),
            send_buffer: profile
                .subflow_send_buffer
                .map_or(Bytes::ZERO, |largest| send_buffer::grown(Bytes::ZERO, EXPAND, 0, SEGMENT_MEMORY, largest)),
            first_hop: 0,
            throttled: false,
            pacer: Pacer::default(),
            burst_limit: BurstLimit::default(),
            packets_sent: 0,
            timestamp_offset: 0,
        }
    }

    /// The first `covered` pieces of the send buffer are about to leave it.
    pub(crate) fn keep(&mut self, buffer: &SendBuffer, covered: usize) {
        self.originals.keep(buffer, covered, &self.recovery);
    }

    /// Its timeouts come to nothing: other subflows are preferred, and looked for.
    pub(crate) fn repeats_in_vain(&self) -> bool {
        self.recovery.consecutive_rtos() > MAX_VAIN_REPETITIONS
    }

    /// The IPv4 identification of the next packet. As Linux numbers a socket's packets, which tells a repeated segment
    /// from a copied packet.
    pub(crate) fn next_packet_id(&mut self) -> u16 {
        self.packets_sent = self.packets_sent.wrapping_add(1);
        let first = (self.iss.get() >> 16) as u16;
        first.wrapping_add(self.packets_sent)
    }

    /// The wire's number for one of our offsets.
    pub(crate) fn seq(&self, offset: u64) -> SubflowSeq {
        self.iss + offset
    }

    /// Milliseconds for the timestamps option (RFC 7323 §5.4).
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        timestamp_at(now, self.timestamp_offset)
    }

    /// Takes the window over from a segment that begins at offset `start` and acknowledges `ack`, unless a later one
    /// has told it already (RFC 9293 §3.10.7.4).
    pub(crate) fn take_window(&mut self, window: u16, start: u64, ack: u64) {
        let newer = self.snd_wl1 < start || (self.snd_wl1 == start && self.snd_wl2 <= ack);
        if ack >= self.recovery.snd_una() && newer {
            self.snd_wnd = window;
            self.snd_edge = ack + (u64::from(window) << self.snd_scale);
            (self.snd_wl1, self.snd_wl2) = (start, ack);
        }
    }

    /// True if no segment is under way, waits to be repeated or sits in the first hop, and no FIN was sent.
    pub(crate) fn is_at_rest(&self) -> bool {
        let pending = self.probe_now | self.retransmit_now | self.fin_sent | self.throttled;
        self.recovery.is_empty() && !pending && self.first_hop == 0
    }

    /// FlightSize (RFC 5681 §2): sent and not cumulatively acknowledged.
    pub(crate) fn flight_size(&self) -> Bytes {
        Bytes::new(self.recovery.snd_nxt() - self.recovery.snd_una())
    }

    /// Bytes that congestion control counts as under way.
    pub(crate) fn in_flight(&self) -> Bytes {
        Bytes::new(self.recovery.in_flight())
    }

    /// Time since it last sent, if no segment is under way.
    pub(crate) fn idle(&self, now: Instant) -> Option<Duration> {
        self.last_sent.filter(|_| self.recovery.is_empty()).map(|last| now.since(last))
    }

    /// Bytes that the peer's window still admits.
    pub(crate) fn window_left(&self) -> u64 {
        self.snd_edge.saturating_sub(self.recovery.snd_nxt())
    }

    /// Returns true after a timeout, until all data in flight then has been repaired.
    pub(super) fn is_after_timeout(&self) -> bool {
        self.recovery.phase() == recovery::Phase::Loss
    }

    /// An ACK came with a sample of the delivery rate and one of the RTT.
    pub(crate) fn note_rate(&mut self, now: Instant, sample: RateSample, rtt: Option<Duration>) {
        match self.rtt.min() {
            Some(min) if !self.in_flight().is_zero() => {
                self.path_rate.acked(now, self.recovery.delivered(), rtt, min, Bytes::new(u64::from(self.mss)));
            }
            _ => self.path_rate.drained(),
        }
        let Some(over) = sample.over else { return };
        let delivered = Bytes::new(self.recovery.delivered() - sample.prior_delivered);
        let Some(rate) = Rate::of(delivered, over) else { return };
        self.delivery = Some(Delivery { rate, app_limited: sample.app_limited });
    }

    /// The peer's window, and nothing else, lets no new data onto it.
    pub(crate) fn is_window_shut(&self) -> bool {
        !self.is_after_timeout() && self.window_left() == 0
    }
}

/// The clock of timestamps, in milliseconds, with an offset.
pub(crate) fn timestamp_at(now: Instant, offset: u32) -> u32 {
    // Started above zero so that an echo of 0 still means "none yet" where the offset is 0.
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(1).wrapping_add(offset)
}

pub(super) fn recovery_config(profile: &Profile, sack: bool) -> recovery::Config {
    recovery::Config {
        sack,
        rack: profile.rack,
        tlp: profile.tlp,
        dup_threshold: DUP_THRESHOLD,
        early_retransmit: profile.early_retransmit,
        single_repair: profile.single_repair,
        max_rto: profile.max_rto,
    }
}
