//! One subflow: a TCP connection inside the MPTCP connection (RFC 9293), without its congestion window.

use crate::ahead::Ahead;
use crate::connection::Detour;
use crate::deadline::earliest;
use crate::mapping::MappingTable;
use crate::memory::Offer;
use crate::originals::Originals;
use crate::pacer::Pacer;
use crate::path_mtu::PathMtu;
use crate::path_rate::PathRate;
use crate::reassembly::{Limits, Reassembly};
use crate::recovery::{self, Recovery};
use crate::rtt::RttEstimator;
use crate::unplaced::Unplaced;
use crate::{AckReason, Keepalive, Profile, SubflowStats};
use anabranch_policy::congestion::{Controller, RateSample};
use anabranch_policy::forecast::LossEstimate;
use anabranch_policy::{Delivery, SubflowView, Truth};
use anabranch_units::{AddressId, Bytes, Dsn, Duration, Instant, Nonce, Rate, SubflowId, SubflowSeq};
use anabranch_wire::FlowKey;

/// Where a subflow stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// We sent a SYN.
    SynSent,
    /// We answered a SYN.
    SynReceived,
    /// We joined and wait for the fourth ACK; no data yet (RFC 8684 §3.2).
    Confirming,
    /// Open, also while it is being closed by FINs.
    Established,
}

/// How a subflow came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// MP_CAPABLE, or plain TCP.
    Initial,
    /// MP_JOIN with our nonce and, once known, the peer's.
    Join { own: Nonce, peer: Option<Nonce> },
}

/// A SYN, SYN/ACK or third ACK that may have to be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeTimer {
    pub(crate) first_sent: Instant,
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
}

/// A keepalive under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    pub(crate) deadline: Instant,
    pub(crate) probes: u32,
}

/// Received and not yet acknowledged (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledging {
    /// Full segments since the last ACK.
    pub(crate) segments: u32,
    pub(crate) deadline: Option<Instant>,
    pub(crate) now: bool,
    /// Something arrived out of order or twice, and the peer has not been told: data says it only with SACK blocks,
    /// of which most have no room for any, and is no duplicate ACK (RFC 5681 §2, RFC 2018 §4).
    pub(crate) unreported: bool,
    /// Segments still to be acknowledged at once.
    pub(crate) quick: u32,
    pub(crate) last_data: Option<Instant>,
    /// The latest bytes received twice, to be reported as DSACK (RFC 2883).
    pub(crate) duplicate: Option<(u64, u64)>,
}

pub(crate) struct Subflow {
    pub(crate) id: SubflowId,
    /// Its bit in the log of sent data.
    pub(crate) slot: u8,
    /// As we send it.
    pub(crate) flow: FlowKey,
    pub(crate) origin: Origin,
    pub(crate) state: State,
    pub(crate) local_address: AddressId,
    pub(crate) remote_address: AddressId,
    pub(crate) backup_local: bool,
    pub(crate) backup_remote: bool,
    pub(crate) handshake: Option<HandshakeTimer>,
    /// Outcome of MP_CAPABLE in earlier connections on its path.
    pub(crate) offer: Offer,
    /// MP_CAPABLE is left out of its SYN.
    pub(crate) gave_up_mptcp: bool,
    /// When it was first open for data.
    pub(crate) opened_at: Option<Instant>,

    // Sending.
    pub(crate) iss: SubflowSeq,
    pub(crate) recovery: Recovery,
    pub(crate) rtt: RttEstimator,
    pub(crate) loss: LossEstimate,
    /// Latest believable sample of the delivery rate.
    pub(crate) delivery: Option<Delivery>,
    /// Of the path, whatever there was to send.
    pub(crate) path_rate: PathRate,
    /// What the driver told of its path.
    pub(crate) truth: Option<Truth>,
    /// The smaller of the two MSS options.
    pub(crate) mss_option: u16,
    /// What the path carries, where that is less than our device and the peer's would.
    pub(crate) path_mtu: Option<PathMtu>,
    /// When we asked whether small packets get through where large ones do not.
    pub(crate) asked_small: Option<Instant>,
    /// Keepalives in a row that nothing answered.
    pub(crate) keepalives: u32,
    /// Payload of a full segment with the options of the steady state.
    pub(crate) mss: u32,
    /// What the peer's subflow-level window admits: offset. Follows the latest segment (RFC 9293 §3.10.7.4), back as well.
    pub(crate) snd_edge: u64,
    /// Offset and acknowledgment of the segment that last set it.
    pub(crate) snd_wl1: u64,
    pub(crate) snd_wl2: u64,
    /// The window field of the latest segment, to tell duplicate ACKs from window updates.
    pub(crate) snd_wnd: u16,
    pub(crate) snd_scale: u8,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// Potentially failed: after a timeout its data was reinjected, or it has timed out several times, and no data has
    /// been acknowledged since (A-USABLE).
    pub(crate) potentially_failed: bool,
    /// The reinjection policy has seen it stuck too often, and nothing has arrived since (A-STALE).
    pub(crate) stale: bool,
    /// When the latest acceptable segment arrived.
    pub(crate) heard: Instant,
    /// Fast recovery has begun: its first retransmission leaves whatever the window says (RFC 6675 §5 (4.3)).
    pub(crate) retransmit_now: bool,
    /// A tail loss probe is due.
    pub(crate) probe_now: bool,
    pub(crate) last_sent: Option<Instant>,
    /// The highest DATA_ACK that came here.
    pub(crate) data_acked: Option<Dsn>,
    /// Window probes in a row that nothing answered.
    pub(crate) unanswered_probes: u32,
    /// Answers that came here in spite of a DATA_FIN, and did not acknowledge it.
    pub(crate) unheard_fins: u32,
    pub(crate) fin_sent: bool,
    /// What was sent and is not acknowledged here, as it was first sent.
    pub(crate) originals: Originals,
    /// When a subflow that we closed alone is reset, should the peer not close it as well.
    pub(crate) linger_until: Option<Instant>,
    /// The peer withdrew its address: it is reset then unless something arrives (RFC 8684 §3.4.2).
    pub(crate) doubt: Option<Doubt>,
    /// Bytes below us that the first hop has not sent (TCP Small Queues).
    pub(crate) first_hop: u64,
    /// Held back by TCP Small Queues or by pacing.
    pub(crate) throttled: bool,
    pub(crate) pacer: Pacer,
    /// Packets sent, modulo 2¹⁶: the IPv4 identification.
    pub(crate) packets_sent: u16,

    // Receiving.
    pub(crate) irs: SubflowSeq,
    pub(crate) rcv_nxt: u64,
    pub(crate) rcv_scale: u8,
    pub(crate) ofo: Reassembly,
    pub(crate) maps: MappingTable,
    /// In order here, and not yet handed to the data level.
    pub(crate) unplaced: Unplaced,
    /// In order here and ahead of the stream; only where such data is not acknowledged.
    pub(crate) ahead: Ahead,
    /// When bytes without a mapping have waited long enough for it.
    pub(crate) unmapped_until: Option<Instant>,
    /// ACKs of data in a row that had no DSS, and when the first of them came.
    pub(crate) bare_acks: u32,
    pub(crate) bare_since: Instant,
    /// Since when every segment with a DSS acknowledges less than others have that had none.
    pub(crate) behind_since: Option<Instant>,
    /// Data timeouts that found the oldest data acknowledged here and not at the data level.
    pub(crate) unconfirmed: u32,
    /// Since the last of them, nothing new goes here until the data before this offset is acknowledged at the data level.
    pub(crate) doubted_until: Option<u64>,
    /// What our timestamps are ahead of the endpoint's clock.
    pub(crate) timestamp_offset: u32,
    pub(crate) ts_recent: u32,
    /// When `ts_recent` was taken.
    pub(crate) ts_recent_at: Instant,
    /// What a receiver of data sees of the RTT: how long ago the echoed timestamp was sent. Smoothed.
    pub(crate) echo_rtt: Option<Duration>,
    pub(crate) last_echo: u32,
    pub(crate) ack: Acknowledging,
    pub(crate) detour: Detour,
    /// When a segment that made no sense was last answered.
    pub(crate) challenged: Option<Instant>,
    /// Offset of the peer's FIN.
    pub(crate) peer_fin: Option<u64>,
    /// Carries options that a middlebox has not eaten: some MPTCP option arrived after the handshake.
    pub(crate) confirmed: bool,
    /// It has carried data that was next at the data level, ours or the peer's.
    pub(crate) useful: bool,
    /// It is lost, and never was.
    pub(crate) in_vain: bool,

    pub(crate) counts: Counts,
}

/// What a subflow counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments_sent: u64,
    pub(crate) bytes_first_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) fast_recoveries: u64,
    pub(crate) reinjected: u64,
    pub(crate) bytes_received: u64,
}

/// After so long without a segment the peer's timestamp clock may have come round (RFC 7323 §5.5: 24 days).
const PAWS_EXPIRY: Duration = Duration::from_secs(24 * 24 * 3600);
/// Repetitions in vain after which other subflows are preferred (RFC 9293 §3.8.3: R1, at least 3).
const MAX_VAIN_REPETITIONS: u32 = 3;
/// RFC 5681 §3.2.
const DUP_THRESHOLD: u32 = 3;
/// The largest window shift (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

impl Subflow {
    pub(crate) fn new(
        id: SubflowId,
        slot: u8,
        flow: FlowKey,
        origin: Origin,
        state: State,
        profile: &Profile,
        receive_buffer: Bytes,
    ) -> Self {
        let limits = Limits::of_buffer(receive_buffer.get());
        Subflow {
            id,
            slot,
            flow,
            origin,
            state,
            local_address: AddressId(0),
            remote_address: AddressId(0),
            backup_local: false,
            backup_remote: false,
            handshake: None,
            offer: Offer::Usual,
            gave_up_mptcp: false,
            opened_at: None,
            iss: SubflowSeq::new(0),
            recovery: Recovery::new(recovery_config(profile, profile.sack), 1, Instant::ZERO),
            rtt: RttEstimator::new(profile.rto),
            loss: LossEstimate::new(),
            delivery: None,
            path_rate: PathRate::default(),
            truth: None,
            mss_option: profile.mss_towards(flow.dst),
            path_mtu: None,
            asked_small: None,
            keepalives: 0,
            mss: u32::from(profile.mss_towards(flow.dst)),
            snd_edge: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            snd_wnd: 0,
            snd_scale: 0,
            sack: false,
            timestamps: false,
            potentially_failed: false,
            stale: false,
            heard: Instant::ZERO,
            retransmit_now: false,
            probe_now: false,
            last_sent: None,
            data_acked: None,
            unanswered_probes: 0,
            unheard_fins: 0,
            fin_sent: false,
            originals: Originals::default(),
            linger_until: None,
            doubt: None,
            first_hop: 0,
            throttled: false,
            pacer: Pacer::default(),
            packets_sent: 0,
            irs: SubflowSeq::new(0),
            rcv_nxt: 1,
            rcv_scale: if profile.window_scaling { shift_for(receive_buffer) } else { 0 },
            ofo: Reassembly::new(limits),
            maps: MappingTable::new(limits.fragments),
            unplaced: Unplaced::default(),
            ahead: Ahead::default(),
            unmapped_until: None,
            bare_acks: 0,
            bare_since: Instant::ZERO,
            behind_since: None,
            unconfirmed: 0,
            doubted_until: None,
            timestamp_offset: 0,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            echo_rtt: None,
            last_echo: 0,
            ack: Acknowledging { quick: profile.quick_acks, ..Acknowledging::default() },
            detour: Detour::default(),
            challenged: None,
            peer_fin: None,
            confirmed: false,
            useful: false,
            in_vain: false,
            counts: Counts::default(),
        }
    }

    /// Takes over what the SYNs agreed on.
    pub(crate) fn negotiated(
        &mut self,
        profile: &Profile,
        now: Instant,
        sack: bool,
        timestamps: bool,
        scale: Option<u8>,
    ) {
        self.sack = profile.sack && sack;
        self.timestamps = profile.timestamps && timestamps;
        match scale {
            Some(shift) if profile.window_scaling => self.snd_scale = shift.min(MAX_SHIFT),
            _ => self.rcv_scale = 0,
        }
        self.recovery = Recovery::new(recovery_config(profile, self.sack), 1, now);
    }

    /// Either end asked to use this subflow only when no other works.
    pub(crate) fn backup(&self) -> bool {
        self.backup_local || self.backup_remote
    }

    /// May carry data.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Established && !self.fin_sent
    }

    /// Both FINs have come through.
    pub(crate) fn is_closed(&self) -> bool {
        let fin_acked = self.fin_sent && self.recovery.snd_una() == self.recovery.snd_nxt();
        fin_acked && self.peer_fin.is_some_and(|fin| self.rcv_nxt > fin)
    }

    /// Somebody acknowledges before the peer does, which lags behind for longer than segments are overtaken: ACKs without a
    /// DSS are not the peer's, and say nothing of its options.
    pub(crate) fn is_acknowledged_by_proxy(&self, now: Instant) -> bool {
        self.behind_since.is_some_and(|since| now.since(since) >= self.rtt.rto())
    }

    /// Its timeouts come to nothing: other subflows are preferred, and looked for.
    pub(crate) fn repeats_in_vain(&self) -> bool {
        self.recovery.consecutive_rtos() > MAX_VAIN_REPETITIONS
    }

    /// May carry new data (A-USABLE).
    pub(crate) fn is_usable(&self) -> bool {
        self.is_open()
            && !self.potentially_failed
            && !self.stale
            && self.doubted_until.is_none()
            && self.rtt.srtt().is_some()
    }

    /// A join that the peer asked for and has not completed: nothing is proven of it, and it may be one of a flood.
    pub(crate) fn is_half_open_join(&self) -> bool {
        self.state == State::SynReceived && self.is_join()
    }

    /// A join that neither end has sent data on, as far as we know: the handshake is not complete.
    pub(crate) fn is_unfinished_join(&self) -> bool {
        self.state != State::Established && self.is_join()
    }

    pub(crate) fn is_join(&self) -> bool {
        matches!(self.origin, Origin::Join { .. })
    }

    /// The wire's number for one of our offsets.
    pub(crate) fn seq(&self, offset: u64) -> SubflowSeq {
        self.iss + offset
    }

    /// This timestamp lies before the latest (RFC 7323 §5.3), and the peer's clock cannot have come round meanwhile.
    pub(crate) fn is_old(&self, timestamp: u32, now: Instant) -> bool {
        (timestamp.wrapping_sub(self.ts_recent) as i32) < 0 && now.since(self.ts_recent_at) <= PAWS_EXPIRY
    }

    /// Milliseconds for the timestamps option (RFC 7323 §5.4).
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        timestamp_at(now, self.timestamp_offset)
    }

    /// FlightSize (RFC 5681 §2): sent and not cumulatively acknowledged.
    pub(crate) fn flight_size(&self) -> Bytes {
        Bytes::new(self.recovery.snd_nxt() - self.recovery.snd_una())
    }

    /// Bytes that congestion control counts as under way.
    pub(crate) fn in_flight(&self) -> Bytes {
        Bytes::new(self.recovery.in_flight())
    }

    /// A segment of `length` payload bytes echoed our timestamp. A full one left on arrival of the ACK that bore the timestamp,
    /// if the sender had more to send (Linux `tcp_rcv_rtt_measure_ts`).
    pub(crate) fn on_echo(&mut self, now: Instant, echo: u32, length: usize) {
        if echo == self.last_echo || (length as u64) < u64::from(self.mss) {
            return;
        }
        self.last_echo = echo;
        // A clock of milliseconds; an echo from the future is no honest peer's.
        let age = self.timestamp(now).wrapping_sub(echo);
        if i32::try_from(age).is_ok() {
            let sample = Duration::from_millis(u64::from(age.max(1)));
            self.echo_rtt = Some(self.echo_rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
    }

    /// The RTT as far as a receiver of data knows it.
    pub(crate) fn receiver_rtt(&self) -> Option<Duration> {
        if self.is_open() { self.echo_rtt.or(self.rtt.srtt()) } else { None }
    }

    /// Holds what SACK blocks report (RFC 2018, RFC 2883).
    pub(crate) fn has_to_sack(&self) -> bool {
        self.sack && (!self.ofo.is_empty() || self.ack.duplicate.is_some())
    }

    /// Why an ACK by itself would leave now.
    pub(crate) fn ack_reason(&self, now: Instant) -> AckReason {
        match (self.ack.duplicate, self.ofo.is_empty(), self.ack.segments) {
            (Some(_), ..) => AckReason::Duplicate,
            (_, false, _) => AckReason::OutOfOrder,
            (_, _, 0) => AckReason::Update,
            (_, _, 1) if self.ack.last_data != Some(now) => AckReason::Delayed,
            (_, _, 1) => AckReason::AtOnce,
            _ => AckReason::Second,
        }
    }

    /// Its own retransmission will bring the segment that holds the byte at data offset `una`; a part of it may have been
    /// acknowledged here.
    pub(crate) fn is_repairing(&self, una: u64) -> bool {
        self.originals.hold(una)
    }

    /// Offset of the first byte that the data level has not had.
    pub(crate) fn placed(&self) -> u64 {
        if self.unplaced.is_empty() { self.rcv_nxt } else { self.unplaced.start() }
    }

    /// The earliest of its timers.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let handshake = self.handshake.map(|timer| timer.deadline);
        let doubt = self.doubt.map(|doubt| doubt.deadline);
        let rare = if self.fin_sent || doubt.is_some() { earliest([self.linger_until, doubt]) } else { None };
        earliest([handshake, self.recovery.deadline(), self.ack.deadline, self.unmapped_until, self.pacer.wake, rare])
    }

    /// When a silent peer is to be asked whether it is there: not while something is under way, which asks by itself. A
    /// host that has sent its FIN waits for the peer's just as well.
    pub(crate) fn keepalive_due(&self, keepalive: &Keepalive) -> Option<Instant> {
        let silent = self.state == State::Established && self.recovery.is_empty() && !self.is_closed();
        silent.then(|| self.heard + keepalive.idle + keepalive.interval * u64::from(self.keepalives))
    }

    /// How long nothing was sent or under way.
    pub(crate) fn idle(&self, now: Instant) -> Option<Duration> {
        self.last_sent.filter(|_| self.recovery.is_empty()).map(|last| now.since(last))
    }

    /// What the peer's window still admits.
    pub(crate) fn window_left(&self) -> u64 {
        self.snd_edge.saturating_sub(self.recovery.snd_nxt())
    }

    /// After a timeout, until all that was under way then has been repaired.
    fn is_after_timeout(&self) -> bool {
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

    /// What a policy may know of it; `share` is the new data that the receive-window policy allows it.
    pub(crate) fn view(&self, congestion: &Controller, share: Bytes) -> Option<SubflowView> {
        let srtt = self.rtt.srtt()?;
        let cwnd = congestion.cwnd(self.id);
        let model = congestion.model(self.id, Some(srtt));
        let in_flight = self.in_flight();
        Some(SubflowView {
            id: self.id,
            mss: Bytes::new(u64::from(self.mss)),
            srtt,
            rttvar: self.rtt.rttvar().unwrap_or_default(),
            rtt_min: self.rtt.min().unwrap_or(srtt),
            rtt_max: self.rtt.max().unwrap_or(srtt),
            rtt_first: self.rtt.first().unwrap_or(srtt),
            rtt_last: self.rtt.last().unwrap_or(srtt),
            rto: self.rtt.rto(),
            cwnd,
            ssthresh: congestion.ssthresh(self.id),
            in_flight,
            cwnd_at_loss: congestion.cwnd_at_loss(self.id),
            loss: self.loss.rate(),
            sent: self.recovery.snd_nxt() - 1,
            acked: self.recovery.snd_una() - 1,
            data_acked: self.data_acked,
            open: !self.is_after_timeout() && self.window_left() > 0,
            share,
            backup: self.backup(),
            throttled: self.throttled,
            last_sent: self.last_sent,
            pacing: model.map(|model| model.pacing),
            bdp: model.and_then(|model| model.bdp),
            delivery: self.delivery,
            path_rate: self.path_rate.get(),
            oldest_sent: self.recovery.oldest_sent(),
            heard: self.heard,
            truth: self.truth,
        })
    }

    pub(crate) fn stats(&self, congestion: &Controller) -> SubflowStats {
        SubflowStats {
            id: self.id,
            local: self.flow.source(),
            remote: self.flow.destination(),
            established: self.is_open(),
            backup: self.backup(),
            srtt: self.rtt.srtt(),
            cwnd: congestion.cwnd(self.id),
            segments_sent: self.counts.segments_sent,
            bytes_first_sent: self.counts.bytes_first_sent,
            bytes_sent: self.counts.bytes_sent,
            retransmitted: self.recovery.retransmitted_segments(),
            rtos: self.recovery.rto_count(),
            fast_recoveries: self.counts.fast_recoveries,
            reinjected: self.counts.reinjected,
            bytes_received: self.counts.bytes_received,
        }
    }
}

fn recovery_config(profile: &Profile, sack: bool) -> recovery::Config {
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

/// The smallest shift that lets 16 bits express the whole buffer (RFC 7323 §2.2).
/// The clock of timestamps, in milliseconds, with an offset.
pub(crate) fn timestamp_at(now: Instant, offset: u32) -> u32 {
    // Started above zero so that an echo of 0 still means "none yet" where the offset is 0.
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(1).wrapping_add(offset)
}

pub(crate) fn shift_for(buffer: Bytes) -> u8 {
    (0..MAX_SHIFT).find(|shift| buffer.get() >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT)
}
