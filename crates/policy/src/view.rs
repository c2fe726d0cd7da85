//! Input of a policy, and its answers.

use anabranch_units::{Bytes, Dsn, Duration, Instant, Rate, SubflowId};

/// One usable subflow, copied out of the connection for one decision.
///
/// Usable: established and confirmed at the data level, with an RTT sample, not potentially failed, and of the better
/// priority class that has any (backup subflows are shown only when no regular one is usable).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowView {
    /// Id of the subflow.
    pub id: SubflowId,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Duration,
    /// Round-trip time variation (RFC 6298), without floor.
    pub rttvar: Duration,
    /// Smallest sample of the subflow's life.
    pub rtt_min: Duration,
    /// Largest sample of the subflow's life.
    pub rtt_max: Duration,
    /// First sample of the subflow's life.
    pub rtt_first: Duration,
    /// Latest sample.
    pub rtt_last: Duration,
    /// Retransmission timeout without backoff.
    pub rto: Duration,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` before the first loss.
    pub ssthresh: Option<Bytes>,
    /// Sent and neither acknowledged nor believed lost, plus retransmissions under way.
    pub in_flight: Bytes,
    /// The largest congestion window at any loss so far; `None` before the first (bounds forecasts, A-LATE-7).
    pub cwnd_at_loss: Option<Bytes>,
    /// Loss probability per segment, estimated or given by the simulator (A-LOSS).
    pub loss: f64,
    /// Subflow-level bytes sent for the first time since the subflow began.
    pub sent: u64,
    /// Subflow-level bytes cumulatively acknowledged since the subflow began.
    pub acked: u64,
    /// Highest DATA_ACK that came on this subflow: the receiver's in-order position when this subflow's data arrived,
    /// whereas `View::data_una` is the position known by now. `None` before the first.
    pub data_acked: Option<Dsn>,
    /// False while the subflow may carry no further data whatever its window: RTO recovery, or a full window of the
    /// peer.
    pub open: bool,
    /// New data that its share of the peer's window still admits (the receive-window policy's limit); `Bytes::MAX`
    /// under the shared window. What was sent before needs no share.
    pub share: Bytes,
    /// True for the backup class (MP_PRIO, or B in MP_JOIN); the same for all subflows of a view.
    pub backup: bool,
    /// True while TCP Small Queues hold the subflow back: its first hop has enough.
    pub throttled: bool,
    /// Time at which it last sent data; `None` if never.
    pub last_sent: Option<Instant>,
    /// Pacing rate set by congestion control; `None` if it does not pace.
    pub pacing: Option<Rate>,
    /// The bandwidth-delay product, under a congestion control that models the path (BBR): a forecast takes it for a
    /// window that does not grow (A-MODEL).
    pub bdp: Option<Bytes>,
    /// Latest sample of the delivery rate; `None` before the first.
    pub delivery: Option<Delivery>,
    /// The path's own rate, whatever there was to send: what was delivered between ACKs of data that waited in a queue,
    /// over the time between them. Rises with a sample at once, falls by a third of the difference. `None` while no
    /// queue was seen.
    pub path_rate: Option<Rate>,
    /// Time at which the oldest segment under way left; `None` if nothing is in flight.
    pub oldest_sent: Option<Instant>,
    /// Time of the latest arrival on it.
    pub heard: Instant,
    /// The simulator's knowledge of the path: for oracles, `None` in the real world.
    pub truth: Option<Truth>,
}

/// No variation of a round trip is smaller: peers delay acknowledgments.
const TICK: Duration = Duration::from_millis(4);

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Payload that was acknowledged, over the time of a flight.
    pub rate: Rate,
    /// The sender had too little to send, so that the path may be faster.
    pub app_limited: bool,
}

/// The path itself, in the direction of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Rate of the slowest link, by a trace its mean; zero while the way leads nowhere.
    pub rate: Rate,
    /// One-way propagation delay, mean jitter included, without queues and serialisation.
    pub delay: Duration,
    /// Probability that a packet is lost at random.
    pub loss: f64,
}

impl SubflowView {
    /// A subflow whose RTT was always `srtt`, with nothing in flight and no loss so far: where a test, a bench or a
    /// scheduler tried by hand begins. The timeout is Linux's, `srtt` + 200 ms.
    pub fn steady(id: SubflowId, mss: Bytes, srtt: Duration, cwnd: Bytes) -> Self {
        SubflowView {
            id,
            mss,
            srtt,
            rttvar: Duration::ZERO,
            rtt_min: srtt,
            rtt_max: srtt,
            rtt_first: srtt,
            rtt_last: srtt,
            rto: srtt + Duration::from_millis(200),
            cwnd,
            ssthresh: None,
            in_flight: Bytes::ZERO,
            cwnd_at_loss: None,
            loss: 0.0,
            sent: 0,
            acked: 0,
            data_acked: None,
            open: true,
            share: Bytes::MAX,
            backup: false,
            throttled: false,
            last_sent: None,
            pacing: None,
            bdp: None,
            delivery: None,
            path_rate: None,
            oldest_sent: None,
            heard: Instant::ZERO,
            truth: None,
        }
    }

    /// Time from which on the subflow is silent: data are under way, and for longer than a round trip takes with its
    /// variation, or than two take, nothing has come back. `None` if nothing is under way.
    pub fn silent_from(&self) -> Option<Instant> {
        // Twice the SRTT is TCP's probe timeout (RFC 8985 §7.2).
        let silence = self.srtt + self.spread().min(self.srtt.max(TICK));
        self.oldest_sent.map(|oldest| oldest.max(self.heard) + silence)
    }

    /// Time beyond `srtt` after which an acknowledgment is late: the 4 RTTVAR of RFC 6298 §2, of 4 ms at least.
    pub fn spread(&self) -> Duration {
        (self.rttvar * 4).max(TICK)
    }

    /// Pacing rate, or the rate of Linux if congestion control does not pace.
    pub fn pace(&self) -> Rate {
        self.pacing.unwrap_or_else(|| Self::linux_pace(self.cwnd, self.ssthresh, self.srtt))
    }

    /// The rate that Linux paces at where congestion control names none: `2 cwnd/srtt` in slow start, `1.2 cwnd/srtt`
    /// after it (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub fn linux_pace(cwnd: Bytes, ssthresh: Option<Bytes>, srtt: Duration) -> Rate {
        let ratio = if ssthresh.is_none_or(|ssthresh| cwnd < ssthresh) { 2.0 } else { 1.2 };
        Rate::from_bps((8.0 * ratio * cwnd.as_f64() / srtt.as_secs_f64()) as u64)
    }

    /// Time that packets wait in the path's queue, by the latest RTT sample.
    pub fn queueing_delay(&self) -> Duration {
        self.rtt_last.saturating_sub(self.rtt_min)
    }

    /// Time from the sending to the arrival of data, if the queue stands in their direction and the ways are otherwise
    /// alike: `srtt - rtt_min / 2`.
    pub fn one_way_delay(&self) -> Duration {
        self.srtt.saturating_sub(self.rtt_min / 2)
    }

    /// Free part of the congestion window.
    pub fn room(&self) -> Bytes {
        self.cwnd.saturating_sub(self.in_flight)
    }

    /// True if a full segment of new data may leave now.
    pub fn has_room(&self) -> bool {
        !self.share.is_zero() && self.has_room_to_repeat()
    }

    /// True if a full segment may leave now that another subflow has carried before (A-RBP-4: such data has its share).
    pub fn has_room_to_repeat(&self) -> bool {
        self.open && self.has_room_in_cwnd()
    }

    /// True if congestion control, pacing and the first hop would let a full segment leave now, whatever the peer's
    /// window says.
    pub fn has_room_in_cwnd(&self) -> bool {
        !self.throttled && self.in_flight + self.mss <= self.cwnd
    }

    /// Congestion window in whole segments, at least 1.
    pub fn cwnd_segments(&self) -> u32 {
        segments(self.cwnd, self.mss).max(1)
    }

    /// Free part of the congestion window, in whole segments.
    pub fn room_segments(&self) -> u32 {
        segments(self.room(), self.mss)
    }

    /// Slow-start threshold in whole segments; `None` before the first loss.
    pub fn ssthresh_segments(&self) -> Option<u32> {
        self.ssthresh.map(|ssthresh| segments(ssthresh, self.mss))
    }
}

pub(crate) fn segments(amount: Bytes, mss: Bytes) -> u32 {
    u32::try_from(amount.get() / mss.get().max(1)).unwrap_or(u32::MAX)
}

/// Input of a scheduler, copied out of the connection for one decision.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Usable subflows, ordered by id so that ties break alike in every run.
    pub subflows: &'a [SubflowView],
    /// Written by the application, never sent on any subflow. Ordered by DSN; schedulers address it by position.
    pub unsent: Bytes,
    /// Number of leading bytes of `unsent` that the peer's window admits; `unsent` is in DSN order.
    pub sendable: Bytes,
    /// The peer's receive window, shared by all subflows (RFC 8684 §3.3.4): bytes from `data_una` to its right edge.
    pub window: Bytes,
    /// The largest such window so far: what the peer's receive buffer holds.
    pub buffer: Bytes,
    /// First DSN not acknowledged at the data level.
    pub data_una: Dsn,
    /// First DSN never sent, or the end of what was written: everything from `data_una` to here was sent.
    pub unsent_from: Dsn,
}

impl<'a> View<'a> {
    /// The subflow with the lowest SRTT, whether or not it has room.
    pub fn fastest(&self) -> Option<&'a SubflowView> {
        lowest(self.subflows.iter(), |subflow| subflow.srtt)
    }

    /// The subflow with the lowest SRTT among those with room.
    pub fn fastest_with_room(&self) -> Option<&'a SubflowView> {
        self.lowest_with_room(|subflow| subflow.srtt)
    }

    /// The subflow with the lowest `number` among those with room; of equals, the lowest id.
    pub fn lowest_with_room<N: PartialOrd>(&self, number: impl Fn(&SubflowView) -> N) -> Option<&'a SubflowView> {
        lowest(self.subflows.iter().filter(|subflow| subflow.has_room()), number)
    }

    /// Returns true if the peer's window admits the whole segment of at most `mss` bytes that begins `skip` bytes into
    /// the unsent data. The first one may be cut short: if it cannot leave, none can.
    pub fn admits(&self, skip: Bytes, mss: Bytes) -> bool {
        if skip.is_zero() {
            return !self.sendable.is_zero();
        }
        skip < self.unsent && skip + mss.min(self.unsent.saturating_sub(skip)) <= self.sendable
    }

    /// The same for data that was sent before.
    pub fn fastest_with_room_to_repeat(&self) -> Option<&'a SubflowView> {
        lowest(self.subflows.iter().filter(|subflow| subflow.has_room_to_repeat()), |subflow| subflow.srtt)
    }

    /// The subflow called `id`.
    pub fn subflow(&self, id: SubflowId) -> Option<&'a SubflowView> {
        self.subflows.iter().find(|subflow| subflow.id == id)
    }
}

fn lowest<'a, N: PartialOrd>(
    subflows: impl Iterator<Item = &'a SubflowView>,
    number: impl Fn(&SubflowView) -> N,
) -> Option<&'a SubflowView> {
    let mut best: Option<(&SubflowView, N)> = None;
    for subflow in subflows {
        let number = number(subflow);
        if best.as_ref().is_none_or(|(_, lowest)| number < *lowest) {
            best = Some((subflow, number));
        }
    }
    best.map(|(subflow, _)| subflow)
}

/// Answer of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Map the next segment here: the unsent bytes that begin `skip` bytes into `View::unsent`. A skip leaves a hole
    /// that faster subflows fill before these bytes arrive (forward prediction). It counts unsent bytes, not DSN
    /// distance, so holes left earlier are not counted twice (A-SKIP).
    Send {
        /// The subflow, which must have room.
        on: SubflowId,
        /// Unsent bytes to leave for others.
        skip: Bytes,
    },
    /// A copy, here, of the first data from `from` on that was sent and is not acknowledged, and that this subflow has
    /// not carried yet (it may have, by way of a reinjection). The engine sends up to a segment of it, and says which
    /// ([`Event::Repeated`]).
    Repeat {
        /// The subflow, which must have room; its share of the window does not matter.
        on: SubflowId,
        /// First byte to repeat: at or behind `View::data_una`, before `View::unsent_from`.
        from: Dsn,
    },
    /// Send nothing now. Asked again at the next event, or at `until` if that is sooner.
    Wait {
        /// Time at which to ask again at the latest.
        until: Option<Instant>,
    },
}

impl Decision {
    /// Wait for the next event.
    pub const WAIT: Decision = Decision::Wait { until: None };

    /// The next unsent bytes on `on`.
    pub const fn send(on: SubflowId) -> Self {
        Decision::Send { on, skip: Bytes::ZERO }
    }
}

/// Event, passed to a scheduler in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// New data left on a subflow: `length` bytes that began `skip` bytes into the unsent data. Told also when the
    /// engine chose the subflow itself (only one usable, or the scheduler was overruled).
    Sent {
        /// The subflow.
        on: SubflowId,
        /// The first byte.
        dsn: Dsn,
        /// Offset of the bytes in the unsent data.
        skip: Bytes,
        /// Number of bytes.
        length: Bytes,
    },
    /// A copy that the scheduler asked for left ([`Decision::Repeat`]).
    Repeated {
        /// The subflow.
        on: SubflowId,
        /// The first byte; `View::unsent_from` if the subflow had carried everything.
        dsn: Dsn,
        /// Number of bytes; zero in that case.
        length: Bytes,
    },
    /// Loss recovery began (fast retransmit, RACK).
    FastRetransmit {
        /// The subflow.
        on: SubflowId,
    },
    /// A retransmission timeout.
    Rto {
        /// The subflow.
        on: SubflowId,
    },
    /// The set of usable subflows changed.
    SubflowsChanged,
    /// The application wrote data while none was unsent.
    DataWritten,
    /// A subflow has room for unsent data, and the peer's window forbids to send it (BLEST's "blocking").
    WindowBlocked {
        /// The subflow with room, the one with the lowest SRTT.
        on: SubflowId,
    },
    /// Data in flight elsewhere was repeated because the peer's window was full (opportunistic retransmission).
    Reinjected {
        /// The subflow that carries the copy.
        on: SubflowId,
    },
}
