//! One subflow: a TCP connection inside the MPTCP connection (RFC 9293), without its congestion window.
//!
//! `tx` sends, `rx` receives, `liveness` says whether it still works.

mod arrival;
mod detour;
mod handshake;
mod liveness;
mod rx;
mod size;
mod tx;

use crate::deadline::Earliest;
use crate::ecn::Marks;
use crate::memory::Offer;
use crate::recovery::Recovery;
use crate::sent_log::NO_MARK;
use crate::{Keepalive, Profile, SubflowCounts, SubflowStats};
use anabranch_policy::congestion::Controller;
use anabranch_policy::receive_window::Usage;
use anabranch_policy::{SubflowView, Truth};
use anabranch_units::{AddressId, Bytes, Duration, Instant, Nonce, SubflowId};
use anabranch_wire::FlowKey;

pub(crate) use detour::Detour;
pub(crate) use liveness::{Liveness, RemovalProbe};
pub(crate) use rx::Rx;
pub(crate) use tx::{Tx, timestamp_at};

/// State of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// SYN sent.
    SynSent,
    /// SYN answered.
    SynReceived,
    /// Join sent, waiting for the fourth ACK; no data yet (RFC 8684 §3.2).
    Confirming,
    /// Open, also while it is being closed by FINs.
    Established,
}

/// Origin of a subflow.
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
    /// End of the wait for the keys of a client that has sent a DSS without them; `None` before such a segment.
    pub(crate) keys_until: Option<Instant>,
}

impl HandshakeTimer {
    /// The timer of a segment that leaves now.
    pub(crate) fn new(now: Instant, timeout: Duration) -> Self {
        HandshakeTimer { first_sent: now, deadline: now + timeout, timeout, retries: 0, keys_until: None }
    }
}

pub(crate) struct Subflow {
    pub(crate) id: SubflowId,
    /// Its bit in the log of sent data.
    pub(crate) mark: u8,
    /// Addresses and ports as on the segments that we send.
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
    /// Time at which it was first open for data.
    pub(crate) opened_at: Option<Instant>,
    /// Facts about its path that the driver told.
    pub(crate) truth: Option<Truth>,
    /// SACK was negotiated (RFC 2018).
    pub(crate) sack: bool,
    /// Timestamps were negotiated (RFC 7323).
    pub(crate) timestamps: bool,
    /// Carries options that a middlebox has not eaten: some MPTCP option arrived after the handshake.
    pub(crate) confirmed: bool,
    /// Has carried data that was next at the data level, ours or the peer's.
    pub(crate) useful: bool,
    /// Lost without ever having been useful.
    pub(crate) in_vain: bool,
    /// Counted here are those that no other part of the subflow counts ([`Subflow::stats`]).
    pub(crate) counts: SubflowCounts,
    pub(crate) tx: Tx,
    pub(crate) rx: Rx,
    pub(crate) liveness: Liveness,
    pub(crate) marks: Marks,
}

/// The largest window shift (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

impl Subflow {
    pub(crate) fn new(
        id: SubflowId,
        mark: u8,
        flow: FlowKey,
        origin: Origin,
        state: State,
        profile: &Profile,
        receive_buffer: Bytes,
    ) -> Self {
        Subflow {
            id,
            mark,
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
            truth: None,
            sack: false,
            timestamps: false,
            confirmed: false,
            useful: false,
            in_vain: false,
            counts: SubflowCounts::default(),
            tx: Tx::new(profile, &flow),
            rx: Rx::new(profile, receive_buffer),
            liveness: Liveness::new(),
            marks: Marks::default(),
        }
    }

    /// Stands where `gone` was until the event that is handled ends.
    pub(crate) fn void(gone: &Subflow) -> Self {
        let (profile, buffer) = (Profile::tcp(), Bytes::ZERO);
        Subflow::new(gone.id, NO_MARK, gone.flow, Origin::Initial, State::SynSent, &profile, buffer)
    }

    /// Takes over what the SYNs agreed on.
    fn negotiated(&mut self, profile: &Profile, now: Instant, sack: bool, timestamps: bool, scale: Option<u8>) {
        self.sack = profile.sack && sack;
        self.timestamps = profile.timestamps && timestamps;
        match scale {
            Some(shift) if profile.window_scaling => self.tx.snd_scale = shift.min(MAX_SHIFT),
            _ => self.rx.rcv_scale = 0,
        }
        self.tx.recovery = Recovery::new(tx::recovery_config(profile, self.sack), 1, now);
    }

    /// Returns true if either end asked to use this subflow only as a backup.
    pub(crate) fn backup(&self) -> bool {
        self.backup_local || self.backup_remote
    }

    /// Returns true if it may carry data.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Established && !self.tx.fin_sent
    }

    /// Returns true if both FINs have come through.
    pub(crate) fn is_closed(&self) -> bool {
        let fin_acked = self.tx.fin_sent && self.tx.recovery.snd_una() == self.tx.recovery.snd_nxt();
        fin_acked && self.rx.has_ended()
    }

    /// Returns true if a proxy acknowledges before the peer does: the peer lags behind for longer than reordering
    /// explains. ACKs without a DSS are then not the peer's, and say nothing of its options.
    pub(crate) fn is_acknowledged_by_proxy(&self, now: Instant) -> bool {
        self.liveness.behind_since.is_some_and(|since| now.since(since) >= self.tx.rtt.rto())
    }

    /// Returns true if it may carry new data (A-USABLE).
    pub(crate) fn is_usable(&self) -> bool {
        self.is_open()
            && !self.liveness.potentially_failed
            && !self.liveness.stale
            && self.liveness.suspect_until.is_none()
            && self.tx.rtt.srtt().is_some()
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

    /// The RTT as far as a receiver of data knows it.
    pub(crate) fn receiver_rtt(&self) -> Option<Duration> {
        if self.is_open() { self.rx.echo_rtt.or(self.tx.rtt.srtt()) } else { None }
    }

    /// Holds what SACK blocks report (RFC 2018, RFC 2883).
    pub(crate) fn has_to_sack(&self) -> bool {
        self.sack && (!self.rx.ofo.is_empty() || self.rx.ack.duplicate.is_some())
    }

    /// Its own retransmission will bring the segment that holds the byte at data offset `una`; a part of it may have
    /// been acknowledged here.
    pub(crate) fn is_repairing(&self, una: u64) -> bool {
        self.tx.recovery.carries(una) || self.tx.originals.is_in_proof(una)
    }

    /// Adds its timers, with the one of `keepalive`.
    #[inline(always)]
    pub(crate) fn add_timers(&self, first: Earliest, keepalive: &Keepalive) -> Earliest {
        let mut first = self.tx.recovery.add_timers(first).and(self.rx.ack.deadline).and(self.rx.unmapped_until);
        first = first.and(self.tx.pacer.wake).and(self.handshake.map(|timer| timer.deadline));
        if self.tx.fin_sent || self.liveness.removal_probe.is_some() {
            first = first.and(self.liveness.linger_until);
            first = first.and(self.liveness.removal_probe.map(|probe| probe.deadline));
        }
        first.and(self.keepalive_due(keepalive))
    }

    /// Returns the time at which a silent peer is to be probed; `None` while data is in flight, which serves as a
    /// probe. A host that has sent its FIN waits for the peer's just as well.
    pub(crate) fn keepalive_due(&self, keepalive: &Keepalive) -> Option<Instant> {
        let idle = keepalive.idle?;
        let silent = self.state == State::Established && self.tx.recovery.is_empty() && !self.is_closed();
        silent.then(|| self.liveness.heard + idle + keepalive.interval * u64::from(self.liveness.keepalives))
    }

    /// Its view for policies; `share` is the new data that the receive-window policy allows it.
    #[inline]
    pub(crate) fn view(&self, congestion: &Controller, share: Bytes) -> Option<SubflowView> {
        let srtt = self.tx.rtt.srtt()?;
        let (cwnd, ssthresh, cwnd_at_loss) = congestion.windows(self.id);
        let model = congestion.model(self.id, Some(srtt));
        let in_flight = self.tx.in_flight();
        Some(SubflowView {
            id: self.id,
            mss: Bytes::new(u64::from(self.tx.mss)),
            srtt,
            rttvar: self.tx.rtt.rttvar().unwrap_or_default(),
            rtt_min: self.tx.rtt.min().unwrap_or(srtt),
            rtt_max: self.tx.rtt.max().unwrap_or(srtt),
            rtt_first: self.tx.rtt.first().unwrap_or(srtt),
            rtt_last: self.tx.rtt.last().unwrap_or(srtt),
            rto: self.tx.rtt.rto(),
            cwnd,
            ssthresh,
            in_flight,
            cwnd_at_loss,
            loss: self.tx.loss.rate(),
            sent: self.tx.recovery.snd_nxt() - 1,
            acked: self.tx.recovery.snd_una() - 1,
            data_acked: self.tx.data_acked,
            open: !self.tx.is_after_timeout() && self.tx.window_left() > 0,
            share,
            backup: self.backup(),
            throttled: self.tx.throttled,
            last_sent: self.tx.last_sent,
            pacing: model.map(|model| model.pacing),
            bdp: model.and_then(|model| model.bdp),
            delivery: self.tx.delivery,
            path_rate: self.tx.path_rate.get(),
            oldest_sent: self.tx.recovery.oldest_sent(),
            heard: self.liveness.heard,
            truth: self.truth,
        })
    }

    /// Its use of the peer's window, with `unacked` bytes first sent here and not acknowledged at the data level.
    pub(crate) fn usage(&self, congestion: &Controller, unacked: u64) -> Usage {
        Usage {
            id: self.id,
            mss: Bytes::new(u64::from(self.tx.mss)),
            srtt: self.tx.rtt.srtt().unwrap_or(Duration::MAX),
            cwnd: congestion.cwnd(self.id),
            outstanding: self.tx.flight_size(),
            unacked: Bytes::new(unacked),
            acked: self.tx.recovery.snd_una() - 1,
        }
    }

    pub(crate) fn stats(&self, congestion: &Controller) -> SubflowStats {
        SubflowStats {
            id: self.id,
            local: self.flow.source(),
            remote: self.flow.destination(),
            established: self.is_open(),
            backup: self.backup(),
            srtt: self.tx.rtt.srtt(),
            cwnd: congestion.cwnd(self.id),
            counts: SubflowCounts {
                retransmitted: self.tx.recovery.retransmitted_segments(),
                rtos: self.tx.recovery.rto_count(),
                bytes_received: self.rx.bytes_received,
                ..self.counts
            },
        }
    }
}

/// The smallest shift that lets 16 bits express the whole buffer (RFC 7323 §2.2).
pub(crate) fn shift_for(buffer: Bytes) -> u8 {
    (0..MAX_SHIFT).find(|shift| buffer.get() >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT)
}

#[cfg(test)]
impl Subflow {
    /// An established subflow with this number as identifier and mark, an RTT sample and room in the peer's window.
    pub(crate) fn sample(number: u8, srtt: Duration) -> Self {
        let flow = FlowKey::new(([10, 0, number, 1], 4000 + u16::from(number)).into(), ([10, 1, 0, 1], 80).into());
        let (id, profile) = (SubflowId(u16::from(number)), Profile::tcp());
        let buffer = Bytes::new(1 << 20);
        let mut subflow = Subflow::new(id, number, flow, Origin::Initial, State::Established, &profile, buffer);
        subflow.tx.rtt.sample(Instant::ZERO, srtt);
        subflow.tx.snd_edge = 1 << 20;
        subflow
    }
}
