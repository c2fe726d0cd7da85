//! Statistics of a connection and its subflows.

use crate::FallbackReason;
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use std::net::SocketAddr;

/// One end of a connection.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Time at which the first SYN was sent or received.
    pub opened_at: Instant,
    /// Bytes the application wrote.
    pub written: u64,
    /// Bytes sent for the first time.
    pub sent: u64,
    /// Bytes acknowledged at the data level.
    pub data_acked: u64,
    /// Bytes the application read.
    pub delivered: u64,
    /// Bytes received in order at the data level.
    pub received: u64,
    /// Data segments received.
    pub segments_received: u64,
    /// The size to which auto-tuning has brought the receive buffer; `None` if it is fixed.
    pub autotuned_buffer: Option<u64>,
    /// Data segments whose DSN was above the next expected on arrival, those that also had to wait on their subflow
    /// included; of plain TCP those above the next expected sequence number.
    pub ofo_count: u64,
    /// Fragments held out of order now, at the data level or on their subflow.
    pub ofo_now: u64,
    /// The most held at once.
    pub ofo_peak: u64,
    /// The time that they were held, added up over all of them: divided by that of a run, how many were held on
    /// average.
    pub ofo_wait: Duration,
    /// Bytes held out of order now, at the data level or on their subflow.
    pub ofo_bytes: u64,
    /// Bytes sent again on another subflow.
    pub reinjected: u64,
    /// Bytes received more than once at the data level.
    pub duplicates: u64,
    /// Number of decisions of policies that the engine overruled.
    pub overruled: Overruled,
    /// Reason of the fallback to plain TCP.
    pub fallback: Option<FallbackReason>,
    /// Reason for which it is over, once it is.
    pub ended: Option<Ended>,
    /// Pure ACKs that took another subflow's path.
    pub acks_detoured: u64,
    /// Pure ACKs that the ACK path policy wanted elsewhere and that kept their path: the hosts have not agreed, another
    /// subflow has the same ports, the other path loses them, or the connection is just beginning or ending.
    pub acks_kept: u64,
    /// Pure ACKs of the peer that came on another subflow's path.
    pub acks_restored: u64,
    /// Number of times that a subflow's ACKs fell back to its own path because they did not arrive.
    pub ack_fallbacks: u64,
    /// Echo requests sent to measure paths.
    pub probes_sent: u64,
    /// Time for which the sender was blocked, by cause.
    pub blocked: Blocked,
    /// Receiver: how long arrived bytes waited behind a missing DSN (head-of-line blocking).
    pub hol_blocked: Duration,
}

/// Memory that a connection takes up now, and whether its peer gets on. Cheap enough to be asked after every packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Load {
    /// Memory for data: written and not acknowledged, received and not read, with the bookkeeping of each piece and
    /// segment.
    pub held: Bytes,
    /// Bytes written and not acknowledged at the data level.
    pub unacknowledged: Bytes,
    /// Our direction was closed, and the peer has not acknowledged that.
    pub end_unacknowledged: bool,
    /// Time at which the peer last acknowledged new data or sent the next byte, at the data level; at first the time of
    /// opening.
    pub active: Instant,
    /// Subflows, those included whose handshake is under way.
    pub subflows: usize,
}

/// Reason for which a connection is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Ended {
    /// Both directions were closed in order.
    InOrder,
    /// Our application gave it up.
    Aborted,
    /// The peer did (RST, MP_FASTCLOSE).
    Reset,
    /// The handshake was not answered, or its answer was not acknowledged.
    Unanswered,
    /// The peer did not acknowledge data for too long ([`Config::user_timeout`](crate::Config::user_timeout), or more
    /// timeouts in a row than the profile allows).
    TimedOut,
    /// The peer did not answer keepalives.
    Vanished,
    /// No subflow was left, and no new one came within the time allowed.
    NoSubflow,
    /// Middleboxes spoilt what MPTCP needs, where plain TCP was no way out any more.
    Middlebox,
}

impl Ended {
    /// Name in machine-readable output, in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Ended::InOrder => "in-order",
            Ended::Aborted => "aborted",
            Ended::Reset => "reset",
            Ended::Unanswered => "unanswered",
            Ended::TimedOut => "timed-out",
            Ended::Vanished => "vanished",
            Ended::NoSubflow => "no-subflow",
            Ended::Middlebox => "middlebox",
        }
    }
}

/// Misbehaviour of a scheduler that the engine overrules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Misconduct {
    /// A subflow that cannot carry data now, data that cannot leave, a copy of what is not in flight, or a wait while
    /// nothing is in flight that could end it.
    Impossible,
    /// The scheduler held back the first unsent byte for longer than a subflow takes to notice a loss, although it
    /// could leave.
    Starving,
    /// The scheduler repeatedly had itself woken without effect.
    Looping,
}

impl Misconduct {
    /// Name in machine-readable output, in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Misconduct::Impossible => "impossible",
            Misconduct::Starving => "starving",
            Misconduct::Looping => "looping",
        }
    }
}

/// Number of overruled policy decisions, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Overruled {
    /// [`Misconduct::Impossible`]: min-RTT decided instead.
    pub impossible: u64,
    /// [`Misconduct::Starving`]: min-RTT decided instead.
    pub starving: u64,
    /// [`Misconduct::Looping`]: from then on only what happens woke it, until data left.
    pub looping: u64,
    /// The receive-window policy shut every subflow out while nothing was under way: for that moment they shared it.
    pub shares: u64,
    /// The reinjection policy asked for a copy that could not be: it got none.
    pub copies: u64,
}

impl Overruled {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.impossible + self.starving + self.looping + self.shares + self.copies
    }

    pub(crate) fn count_mut(&mut self, why: Misconduct) -> &mut u64 {
        match why {
            Misconduct::Impossible => &mut self.impossible,
            Misconduct::Starving => &mut self.starving,
            Misconduct::Looping => &mut self.looping,
        }
    }
}

/// Time for which a sender could not send, by obstacle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Blocked {
    /// Data waited and every congestion window was full (or the first hop's queue, with TSQ).
    pub cwnd: Duration,
    /// Data waited, a congestion window had room, and the peer's window was used up, or each such subflow's share of
    /// it.
    pub receive_window: Duration,
    /// Data waited, a subflow had room, the window was open, and the scheduler waited.
    pub scheduler: Duration,
    /// No data waited to be sent.
    pub application: Duration,
}

/// One end of a subflow.
#[derive(Clone, PartialEq, Debug)]
pub struct SubflowStats {
    /// Identifier of the subflow.
    pub id: SubflowId,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Data may be sent on it now.
    pub established: bool,
    /// Either end asked to use it only as a backup.
    pub backup: bool,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Counters of its sending half, which read as fields of this.
    pub counts: SubflowCounts,
}

/// Counters of the sending half of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SubflowCounts {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Bytes whose first transmission was here.
    pub bytes_first_sent: u64,
    /// Payload bytes sent, repeated ones included.
    pub bytes_sent: u64,
    /// Fast recoveries.
    pub fast_recoveries: u64,
    /// Bytes carried here that had left on another subflow before.
    pub reinjected: u64,
}

impl std::ops::Deref for SubflowStats {
    type Target = SubflowCounts;

    fn deref(&self) -> &SubflowCounts {
        &self.counts
    }
}
