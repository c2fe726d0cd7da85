//! Purposes of segments: facts that the sender knows and the wire does not show.

use anabranch_policy::reinjection::Why;
use anabranch_units::SubflowId;
use std::fmt;

/// Purpose of a segment. Displays as a phrase for people, as captures have it in their comments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Purpose {
    /// A SYN, a SYN/ACK, or the ACK that ends the handshake of this side.
    Handshake {
        /// Number of times it was sent before.
        retries: u32,
    },
    /// Data that was never sent before.
    NewData(Choice),
    /// Data that this subflow has sent before.
    Retransmission(Detector),
    /// Data that another subflow has sent before.
    Reinjection(Reason),
    /// A DATA_FIN without data (RFC 8684 §3.3.3).
    DataFin {
        /// Number of data-level timeouts for it.
        retries: u32,
    },
    /// The FIN of a subflow.
    Fin,
    /// An ACK just below the peer's window, which must be answered (RFC 9293 §3.8.6.1).
    WindowProbe,
    /// An ACK that nothing carried.
    Ack(AckReason),
    /// The same on the path of another subflow, with that one's addresses.
    DetouredAck(AckReason),
    /// An ACK that carries an MPTCP message: ADD_ADDR, its echo, REMOVE_ADDR, MP_PRIO.
    Signal,
    /// The answer to what may be a blind attack (RFC 5961).
    Challenge,
    /// End of a subflow or the connection, or answer to a segment that belongs to none.
    Reset,
}

/// Origin of the choice of a subflow for new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Choice {
    /// The scheduler.
    Scheduler,
    /// Only one subflow was usable.
    OnlySubflow,
    /// Min-RTT in place of the scheduler, whose answer was impossible.
    Overruled,
    /// The subflow's tail loss probe takes the next segment (RFC 8985 §7.3).
    TailLossProbe,
}

/// Mechanism by which a subflow detected a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Detector {
    /// Its retransmission timeout (RFC 6298).
    Rto,
    /// Time: something sent later has arrived (RFC 8985).
    Rack,
    /// Count of segments SACKed above the hole (RFC 6675).
    Sack,
    /// Count of duplicate ACKs, or a partial ACK (RFC 6582).
    DuplicateAcks,
    /// None: a tail loss probe repeats the last segment without a detected loss (RFC 8985 §7.3).
    TailLossProbe,
}

/// Reason for which data in flight on one subflow is repeated on another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The retransmission timeout of this subflow.
    Rto(SubflowId),
    /// This subflow is gone.
    Gone(SubflowId),
    /// No DATA_ACK within the data-level timeout.
    DataTimeout,
    /// The scheduler sends copies (redundant transmission).
    Scheduler,
    /// This subflow is stale: the reinjection policy has seen it stuck too often.
    Stale(SubflowId),
    /// The reinjection policy asked for a copy.
    Policy(Why),
}

/// Reason for which an ACK left by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AckReason {
    /// The delayed-ACK timer ran out (RFC 9293 §3.8.6.3).
    Delayed,
    /// At least two segments have arrived.
    Second,
    /// Segments are missing below some that have arrived (RFC 5681 §4.2).
    OutOfOrder,
    /// Bytes arrived twice (RFC 2883).
    Duplicate,
    /// Sent at once: the first segments of a flight, one that filled a hole, or a FIN.
    AtOnce,
    /// No segment has arrived: a window update or news for the data level.
    Update,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Handshake { retries: 0 } => f.write_str("handshake"),
            Purpose::Handshake { retries } => write!(f, "handshake, repeated after timeout {retries}"),
            Purpose::NewData(Choice::Scheduler) => f.write_str("new data: the scheduler chose this subflow"),
            Purpose::NewData(Choice::OnlySubflow) => f.write_str("new data: no other subflow to choose"),
            Purpose::NewData(Choice::Overruled) => f.write_str("new data: the scheduler was overruled"),
            Purpose::NewData(Choice::TailLossProbe) => f.write_str("new data: tail loss probe"),
            Purpose::Retransmission(detector) => f.write_str(match detector {
                Detector::Rto => "retransmission: after RTO",
                Detector::Rack => "retransmission: found lost by RACK",
                Detector::Sack => "retransmission: found lost by SACK",
                Detector::DuplicateAcks => "retransmission: found lost by duplicate ACKs",
                Detector::TailLossProbe => "retransmission: tail loss probe",
            }),
            Purpose::Reinjection(reason) => match reason {
                Reason::Rto(id) => write!(f, "reinjection: RTO of subflow {}", id.0),
                Reason::Gone(id) => write!(f, "reinjection: subflow {} is gone", id.0),
                Reason::DataTimeout => f.write_str("reinjection: data-level timeout"),
                Reason::Stale(id) => write!(f, "reinjection: subflow {} is stale", id.0),
                Reason::Policy(why) => write!(f, "reinjection: {why}"),
                Reason::Scheduler => f.write_str("copy: the scheduler sends redundantly"),
            },
            Purpose::DataFin { retries: 0 } => f.write_str("DATA_FIN"),
            Purpose::DataFin { retries } => write!(f, "DATA_FIN, repeated after timeout {retries}"),
            Purpose::Fin => f.write_str("FIN"),
            Purpose::WindowProbe => f.write_str("window probe"),
            Purpose::DetouredAck(reason) => write!(f, "{}, on another subflow's path", Purpose::Ack(*reason)),
            Purpose::Ack(reason) => f.write_str(match reason {
                AckReason::Delayed => "ACK: delayed",
                AckReason::Second => "ACK: at least two segments",
                AckReason::OutOfOrder => "ACK: out of order",
                AckReason::Duplicate => "ACK: duplicate segment",
                AckReason::AtOnce => "ACK: at once",
                AckReason::Update => "ACK: update",
            }),
            Purpose::Signal => f.write_str("signal"),
            Purpose::Challenge => f.write_str("challenge ACK"),
            Purpose::Reset => f.write_str("reset"),
        }
    }
}
