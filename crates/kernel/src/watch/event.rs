//! Events, as the programs write them (`struct event` of `bpf/watch.h`) and as they are told.

use crate::elf::{u16_at, u32_at, u64_at};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An event as a program wrote it.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Monotonic clock \[ns\].
    pub(super) time: u64,
    pub(super) kind: Kind,
    pub(super) cpu: u32,
    /// The connection; `None` if the tracepoint does not say.
    pub(super) connection: Option<Identity>,
    pub(super) subflow: Option<Ends>,
    pub(super) flags: u32,
    pub(super) cwnd: u32,
    pub(super) values: [u64; 8],
}

/// `enum kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Candidate,
    Sent,
    DataAck,
    Mapping,
    Status,
}

/// A connection, and its state at the event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) token: u32,
    pub(super) namespace: u32,
    pub(super) inode: u64,
    pub(super) cgroup: u64,
    /// First DSN that is not acknowledged.
    pub(super) una: u64,
    /// DSN to be sent next.
    pub(super) next: u64,
}

/// Addresses of a subflow: ours, and the other host's.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// `flags`.
pub(super) const ACTIVE: u32 = 1;
pub(super) const BACKUP: u32 = 2;
pub(super) const FREE: u32 = 4;
pub(super) const STALE: u32 = 8;

impl Raw {
    /// Reads a record; `None` if it is none of ours.
    pub(super) fn decode(record: &[u8]) -> Option<Self> {
        if record.len() != 168 {
            return None;
        }
        let (word, long) = (|at| u32_at(record, at), |at| u64_at(record, at));
        let kind = match word(8)? {
            1 => Kind::Candidate,
            2 => Kind::Sent,
            3 => Kind::DataAck,
            4 => Kind::Mapping,
            5 => Kind::Status,
            _ => return None,
        };
        let namespace = word(20)?;
        let identity = Identity {
            token: word(16)?,
            namespace,
            inode: long(24)?,
            cgroup: long(32)?,
            una: long(40)?,
            next: long(48)?,
        };
        let address = |at: usize| -> Option<IpAddr> {
            match word(56)? {
                2 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(record.get(at..at + 4)?).ok()?).into()),
                // Those of IPv4 on a socket of IPv6 are shown as what they are.
                10 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(record.get(at..at + 16)?).ok()?).to_canonical()),
                _ => None,
            }
        };
        let ends = |local, remote| Some((SocketAddr::new(address(local)?, u16_at(record, 60)?), address(remote)?));
        let subflow =
            ends(64, 80).and_then(|(local, remote)| Some((local, SocketAddr::new(remote, u16_at(record, 62)?))));
        let mut values = [0; 8];
        for (index, value) in values.iter_mut().enumerate() {
            *value = long(104 + 8 * index)?;
        }
        Some(Raw {
            time: long(0)?,
            kind,
            cpu: word(12)?,
            connection: (namespace != 0).then_some(identity),
            subflow,
            flags: word(96)?,
            cwnd: word(100)?,
            values,
        })
    }
}

/// An event. Times are seconds since the watch began; connections are told apart by their token, in hexadecimal digits
/// as `ss -M` shows it; subflows have numbers in the order in which they were seen.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A subflow is seen for the first time.
    Subflow {
        /// Time \[s\].
        time: f64,
        /// Token of the connection.
        connection: String,
        /// Number of the network namespace.
        namespace: u32,
        /// Number of the subflow in its connection.
        subflow: u32,
        /// Address and port of this host.
        local: SocketAddr,
        /// Address and port of the other host.
        remote: SocketAddr,
    },
    /// The scheduler was asked for a subflow. It is told when data leave, or when the scheduler is asked again.
    Decision {
        /// Time \[s\].
        time: f64,
        /// Token of the connection.
        connection: String,
        /// Subflow that data went to then; `null` if none did: there was no room.
        chosen: Option<u32>,
        /// Subflow that the rule of Linux gives from these candidates, which is that with the least `queued_ms`; those
        /// that are spared count if there is no other; `null` if there is none, or it has no room.
        expected: Option<u32>,
        /// Subflows that it looked at.
        candidates: Vec<Candidate>,
    },
    /// Data went to a subflow, with a mapping.
    Sent {
        /// Time \[s\].
        time: f64,
        /// Token of the connection.
        connection: String,
        /// Subflow; `null` if the scheduler has not looked at it yet.
        subflow: Option<u32>,
        /// Beginning of the data, counted from the first byte that was not acknowledged when the watch began \[bytes\].
        offset: i64,
        /// Length \[bytes\].
        bytes: u64,
        /// Data that were sent before on another subflow.
        again: bool,
    },
    /// The other host acknowledged data of the connection, or opened its window further.
    DataAck {
        /// Time \[s\].
        time: f64,
        /// Token of the connection.
        connection: String,
        /// End of the acknowledged data, counted as `offset` of data that are sent \[bytes\].
        offset: i64,
        /// Data that it acknowledges for the first time \[bytes\].
        bytes: u64,
        /// Data beyond them that the other host's window admits \[bytes\].
        window: u64,
    },
    /// A mapping arrived, other than the one before it on the subflow.
    Mapping {
        /// Time \[s\].
        time: f64,
        /// Token of the connection.
        connection: String,
        /// Subflow on which it arrived.
        subflow: u32,
        /// Length of the mapped data \[bytes\].
        bytes: u64,
        /// It ends the data of the connection.
        data_fin: bool,
    },
    /// Data arrived without a mapping that could be used.
    MappingError {
        /// Time \[s\].
        time: f64,
        /// Token of the connection.
        connection: String,
        /// Subflow on which they arrived.
        subflow: u32,
        /// Fault of the mapping.
        fault: Fault,
    },
    /// The end of the watch.
    Summary {
        /// Counts since it began.
        totals: super::Report,
    },
}

/// A subflow that the scheduler looked at.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Candidate {
    /// Number of the subflow in its connection.
    pub subflow: u32,
    /// Data can be sent on it: it is established and not stale.
    pub active: bool,
    /// One of the hosts asks to spare it.
    pub backup: bool,
    /// Its send buffer has room.
    pub free: bool,
    /// It has data that were not acknowledged for long, so the connection does without it.
    pub stale: bool,
    /// Pacing rate of TCP; `null` before the first ACK: none \[Mbit/s\].
    pub pacing_mbit_s: Option<f64>,
    /// Bytes in its send buffer, those under way included.
    pub queued: u64,
    /// Time that the queued bytes take at the mean pacing rate that the scheduler keeps of it; `null` if that rate is
    /// zero, which keeps data off the subflow \[ms\].
    pub queued_ms: Option<f64>,
    /// Congestion window \[segments\].
    pub cwnd: u32,
    /// Smoothed round-trip time \[ms\].
    pub srtt_ms: f64,
}

/// State of data that arrived, other than in order (`enum mapping_status`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The mapping contradicts another, or does not fit the data.
    Invalid,
    /// There is no mapping, and the connection falls back to TCP.
    Dummy,
    /// The checksum is wrong.
    BadChecksum,
    /// There is no mapping where one has to be.
    NoDss,
}

impl Fault {
    /// The fault of an `enum mapping_status`; the end of data and an empty queue are none.
    pub(super) fn of(status: u64) -> Option<Self> {
        Some(match status {
            1 => Fault::Invalid,
            4 => Fault::Dummy,
            5 => Fault::BadChecksum,
            6 => Fault::NoDss,
            _ => return None,
        })
    }
}
