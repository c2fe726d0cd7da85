//! Reasons for plain TCP.

use std::fmt;

/// Reason for which a connection is plain TCP although MPTCP was asked for (RFC 8684 §3.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum FallbackReason {
    /// The SYN carried no MP_CAPABLE, or one we cannot serve.
    Syn,
    /// The SYN/ACK carried none.
    SynAck,
    /// SYNs with MP_CAPABLE were not answered, the one without was.
    SynLost,
    /// Our SYN carried none, since earlier connections on the same path had lost theirs.
    Remembered,
    /// The third ACK carried none.
    ThirdAck,
    /// The first data, or the first ACK of ours, carried no MPTCP option.
    FirstData,
    /// Data or ACKs of a confirmed connection with one subflow lost their options.
    OptionsLost,
    /// The peer sent an infinite mapping.
    InfiniteMapping,
    /// A DSS checksum was wrong on the only subflow, and we sent MP_FAIL.
    ChecksumFailed,
    /// The peer sent MP_FAIL on the only subflow.
    PeerFailed,
    /// Simultaneous open, in which MP_CAPABLE stays unanswered.
    SimultaneousOpen,
}

impl FallbackReason {
    /// All of them.
    pub const ALL: [FallbackReason; 11] = [
        FallbackReason::Syn,
        FallbackReason::SynAck,
        FallbackReason::SynLost,
        FallbackReason::Remembered,
        FallbackReason::ThirdAck,
        FallbackReason::FirstData,
        FallbackReason::OptionsLost,
        FallbackReason::InfiniteMapping,
        FallbackReason::ChecksumFailed,
        FallbackReason::PeerFailed,
        FallbackReason::SimultaneousOpen,
    ];

    /// The word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            FallbackReason::Syn => "syn",
            FallbackReason::SynAck => "syn-ack",
            FallbackReason::SynLost => "syn-lost",
            FallbackReason::Remembered => "remembered",
            FallbackReason::ThirdAck => "third-ack",
            FallbackReason::FirstData => "first-data",
            FallbackReason::OptionsLost => "options-lost",
            FallbackReason::InfiniteMapping => "infinite-mapping",
            FallbackReason::ChecksumFailed => "checksum-failed",
            FallbackReason::PeerFailed => "peer-failed",
            FallbackReason::SimultaneousOpen => "simultaneous-open",
        }
    }

    /// True if this end alone found that options no longer come through: the peer may be with MPTCP still.
    pub const fn is_one_sided(self) -> bool {
        matches!(self, FallbackReason::FirstData | FallbackReason::OptionsLost)
    }

    /// The reason of this name.
    pub fn named(name: &str) -> Option<FallbackReason> {
        FallbackReason::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// Observation with its usual cause.
impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FallbackReason::Syn => {
                "the SYN had no MP_CAPABLE; the client's program asks for plain TCP (`mptcpize run PROGRAM` has it ask \
                 for MPTCP), or something on the way took the option out"
            }
            FallbackReason::SynAck => {
                "the SYN/ACK had no MP_CAPABLE; the server's program listens with plain TCP (`mptcpize run PROGRAM` \
                 has it listen with MPTCP), or something on the way took the option out"
            }
            FallbackReason::SynLost => "SYNs with MP_CAPABLE had no answer, and one without had",
            FallbackReason::Remembered => {
                "earlier connections on this path lost their SYNs with MP_CAPABLE, so this one did not ask for MPTCP"
            }
            FallbackReason::ThirdAck => "the third ACK had no MP_CAPABLE; something on the way took the option out",
            FallbackReason::FirstData => {
                "the first data, or its ACK, had no MPTCP option; something on the way took it out"
            }
            FallbackReason::OptionsLost => "MPTCP options stopped coming through on its only subflow",
            FallbackReason::InfiniteMapping => "the peer ended MPTCP with an infinite mapping",
            FallbackReason::ChecksumFailed => {
                "a DSS checksum was wrong on its only subflow; something altered the data"
            }
            FallbackReason::PeerFailed => "the peer found a wrong DSS checksum on its only subflow",
            FallbackReason::SimultaneousOpen => "both ends opened at once",
        })
    }
}
