//! Statistics of a connection and its subflows.

use super::OVERRULED;
use crate::FallbackReason;
use anabranch_units::{Bytes, Duration, Instant, SubflowId, statistics};
use std::net::SocketAddr;

statistics! {
    /// One end of a connection.
    #[derive(Clone, PartialEq, Debug, Default)]
    #[non_exhaustive]
    pub struct ConnectionStats as |it: ConnectionStats| it => {
        /// Time at which the first SYN was sent or received.
        #[statistic("opened-at", State, Seconds, "time at which the first SYN was sent or received")]
        pub opened_at: Instant,
        /// Bytes the application wrote.
        #[statistic("written", Position, Bytes, "bytes that the application wrote")]
        pub written: u64,
        /// Bytes sent for the first time.
        #[statistic("sent", Position, Bytes, "bytes sent for the first time")]
        pub sent: u64,
        /// Bytes acknowledged at the data level.
        #[statistic("data-acked", Position, Bytes, "bytes acknowledged at the data level")]
        pub data_acked: u64,
        /// Bytes the application read.
        #[statistic("delivered", Position, Bytes, "bytes that the application read", of_receiver)]
        pub delivered: u64,
        /// Bytes received in order at the data level.
        #[statistic("received", Position, Bytes, "bytes received in order at the data level", of_receiver)]
        pub received: u64,
        /// Data segments received.
        #[statistic("segments-received", Counter, Segments, "data segments received", of_receiver)]
        pub segments_received: u64,
        /// The size to which auto-tuning has brought the receive buffer; `None` if it is fixed.
        #[statistic("autotuned-buffer", Peak, Bytes, "receive buffer as grown by auto-tuning", of_receiver)]
        pub autotuned_buffer: Option<u64>,
        /// Data segments whose DSN was above the next expected on arrival, those that also had to wait on their subflow
        /// included; of plain TCP those above the next expected sequence number.
        #[statistic("ofo-count", Counter, Segments, "segments that arrived out of order", of_receiver)]
        pub ofo_count: u64,
        /// Fragments held out of order now, at the data level or on their subflow.
        #[statistic("ofo-now", Gauge, Segments, "segments held out of order now", of_receiver)]
        pub ofo_now: u64,
        /// The most held at once.
        #[statistic("ofo-peak", Peak, Segments, "most segments out of order at once", of_receiver)]
        pub ofo_peak: u64,
        /// The time that they were held, added up over all of them: divided by that of a run, how many were held on
        /// average.
        #[statistic(
            "ofo-held", Counter, Seconds, "time that segments were held out of order, added up over them", of_receiver
        )]
        pub ofo_wait: Duration,
        /// Bytes held out of order now, at the data level or on their subflow.
        #[statistic("ofo-bytes", Gauge, Bytes, "bytes held out of order now", of_receiver)]
        pub ofo_bytes: u64,
        /// Receiver: how long arrived bytes waited behind a missing DSN (head-of-line blocking).
        #[statistic("hol-blocked", Counter, Seconds, "time that arrived data waited behind missing data", of_receiver)]
        pub hol_blocked: Duration,
        /// Bytes sent again on another subflow.
        #[statistic("reinjected", Counter, Bytes, "bytes sent again on another subflow")]
        pub reinjected: u64,
        /// Bytes received more than once at the data level.
        #[statistic(
            "duplicates", Counter, Bytes, "bytes that arrived more than once", of_receiver,
            in_column("duplicate_bytes"), as_metric("duplicate_bytes")
        )]
        pub duplicates: u64,
        /// Time for which the sender was blocked, by cause.
        #[statistic(all of Blocked::STATISTICS)]
        pub blocked: Blocked,
        /// Number of decisions of policies that the engine overruled.
        #[statistic(
            "overruled", Counter, None, "decisions of policies that were not followed, by kind", from OVERRULED,
            in_column("overruled_kinds"), as_metric("policy_overruled")
        )]
        pub overruled: Overruled,
        /// Pure ACKs that took another subflow's path.
        #[statistic("acks-detoured", Counter, None, "pure ACKs that took the path of another subflow", of_receiver)]
        pub acks_detoured: u64,
        /// Pure ACKs that the ACK path policy wanted elsewhere and that kept their path: the hosts have not agreed,
        /// another subflow has the same ports, the other path loses them, or the connection is just beginning or
        /// ending.
        #[statistic("acks-kept", Counter, None, "pure ACKs that kept their own path instead", of_receiver)]
        pub acks_kept: u64,
        /// Pure ACKs of the peer that came on another subflow's path.
        #[statistic("acks-restored", Counter, None, "pure ACKs of the peer that came on the path of another subflow")]
        pub acks_restored: u64,
        /// Number of times that a subflow's ACKs fell back to its own path because they did not arrive.
        #[statistic("ack-fallbacks", Counter, None, "subflows whose ACKs fell back to their own path", of_receiver)]
        pub ack_fallbacks: u64,
        /// Echo requests sent to measure paths.
        #[statistic("probes-sent", Counter, None, "probes of the receiver for the path of its ACKs", of_receiver)]
        pub probes_sent: u64,
        /// Reason of the fallback to plain TCP.
        #[statistic("fallback", State, None, "reason of the fallback to plain TCP")]
        pub fallback: Option<FallbackReason>,
        /// Reason for which it is over, once it is.
        #[statistic("ended", State, None, "reason of the end")]
        pub ended: Option<Ended>,
    }
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

statistics! {
    /// Time for which a sender could not send, by obstacle.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    #[non_exhaustive]
    pub struct Blocked as |it: ConnectionStats| it.blocked => {
        /// Data waited and every congestion window was full (or the first hop's queue, with TSQ).
        #[statistic("blocked-cwnd", Counter, Seconds, "time the sender waited for congestion windows")]
        pub cwnd: Duration,
        /// Data waited, a congestion window had room, and the peer's window was used up, or each such subflow's share
        /// of it.
        #[statistic("blocked-window", Counter, Seconds, "time the sender waited for the receive window")]
        pub receive_window: Duration,
        /// Data waited, a subflow had room, the window was open, and the scheduler waited.
        #[statistic("blocked-scheduler", Counter, Seconds, "time the sender waited for its scheduler")]
        pub scheduler: Duration,
        /// No data waited to be sent.
        #[statistic("blocked-application", Counter, Seconds, "time the sender waited for its application")]
        pub application: Duration,
    }
}

statistics! {
    /// One end of a subflow.
    #[derive(Clone, PartialEq, Debug)]
    pub struct SubflowStats as |it: SubflowStats| it => {
        /// Identifier of the subflow.
        #[statistic("id", State, None, "number of the subflow in its connection")]
        pub id: SubflowId,
        /// Our address and port.
        #[statistic("local", State, None, "own address and port")]
        pub local: SocketAddr,
        /// The peer's.
        #[statistic("remote", State, None, "address and port of the peer")]
        pub remote: SocketAddr,
        /// Data may be sent on it now.
        #[statistic("established", State, None, "it can carry data now")]
        pub established: bool,
        /// Either end asked to use it only as a backup.
        #[statistic("backup", State, None, "used only while no other works")]
        pub backup: bool,
        /// Counters, which read as fields of this.
        #[statistic(all of SubflowCounts::STATISTICS)]
        pub counts: SubflowCounts,
        /// Smoothed RTT.
        #[statistic("srtt", State, Seconds, "smoothed RTT", headed("SRTT [ms]"))]
        pub srtt: Option<Duration>,
        /// Congestion window.
        #[statistic("cwnd", Gauge, Bytes, "congestion window", headed("cwnd"))]
        pub cwnd: Bytes,
    }
}

statistics! {
    /// Counters of a subflow.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    #[non_exhaustive]
    pub struct SubflowCounts as |it: SubflowStats| it.counts => {
        /// Data segments sent, retransmissions included.
        #[statistic(
            "segments-sent", Counter, Segments, "data segments sent, repeated ones included", headed("segments")
        )]
        pub segments_sent: u64,
        /// Bytes whose first transmission was here.
        #[statistic("bytes-first-sent", Counter, Bytes, "bytes first sent on the subflow")]
        pub bytes_first_sent: u64,
        /// Payload bytes sent, repeated ones included.
        #[statistic("bytes-sent", Counter, Bytes, "payload bytes sent, repeated ones included")]
        pub bytes_sent: u64,
        /// Segments retransmitted.
        #[statistic(
            "retransmitted", Counter, Segments, "segments retransmitted on their own subflow", headed("retransmitted"),
            as_metric("retransmissions")
        )]
        pub retransmitted: u64,
        /// Retransmission timeouts.
        #[statistic(
            "rtos", Counter, None, "retransmission timeouts", headed("RTOs"), as_metric("retransmission_timeouts")
        )]
        pub rtos: u64,
        /// Fast recoveries.
        #[statistic("fast-recoveries", Counter, None, "fast recoveries", headed("fast recoveries"))]
        pub fast_recoveries: u64,
        /// Bytes carried here that had left on another subflow before.
        #[statistic(
            "reinjected", Counter, Bytes, "bytes carried that had left on another subflow before", headed("reinjected")
        )]
        pub reinjected: u64,
        /// Payload bytes received in order on their subflow.
        #[statistic("bytes-received", Counter, Bytes, "payload bytes received in order on their subflow", of_receiver)]
        pub bytes_received: u64,
        /// Packets that arrived marked (ECN), of subflows that agreed on feedback of marks.
        #[statistic("marks-received", Counter, Packets, "packets that arrived marked (ECN)", of_receiver)]
        pub marks_received: u64,
        /// Packets that the peer reports as marked; of classic feedback one for each ACK with an echo.
        #[statistic("marks-reported", Counter, Packets, "packets that the peer reports as marked (ECN)")]
        pub marks_reported: u64,
        /// Number of times that the congestion window fell for a mark.
        #[statistic("mark-reductions", Counter, None, "reductions of the congestion window for marks (ECN)")]
        pub mark_reductions: u64,
        /// Segments taken without the timestamps that were agreed on (RFC 7323 §3.2).
        #[statistic(
            "timestamps-missing", Counter, Segments, "segments received without the timestamps agreed on"
        )]
        pub timestamps_missing: u64,
    }
}

impl std::ops::Deref for SubflowStats {
    type Target = SubflowCounts;

    fn deref(&self) -> &SubflowCounts {
        &self.counts
    }
}
