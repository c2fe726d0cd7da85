//! Receive-window policies: how the one window that the peer advertises is shared out among subflows.

mod even;
mod rbp;
mod shared;

pub use even::Even;
pub use rbp::Rbp;
pub use shared::Shared;

use crate::registry::{Build, Domain, Entry, Parameter};
use anabranch_units::{Bytes, Duration, Instant, SubflowId};
use std::borrow::Cow;

/// The buffers at both ends of the connection, as the sender knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// What the peer admits now, from the first byte on that it has not acknowledged at the data level.
    pub window: Bytes,
    /// The largest window it ever advertised: its receive buffer (A-RBP-1).
    pub receive: Bytes,
    /// The sender's own buffer for what is not acknowledged at the data level.
    pub send: Bytes,
}

/// One subflow's use of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Which subflow.
    pub id: SubflowId,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Bytes sent here and not cumulatively acknowledged by the subflow (FlightSize, RFC 5681 §2), copies included.
    pub outstanding: Bytes,
    /// Bytes first sent here and not acknowledged at the data level, in flight or waiting out of order at the peer (A-RBP-5).
    pub unacked: Bytes,
    /// Bytes cumulatively acknowledged by the subflow since it began.
    pub acked: u64,
}

/// Shares the peer's window out among the usable subflows.
pub trait ReceiveWindow: Send {
    /// Sets `shares[i]` to how much new data subflow `i` may send beyond what it has sent; a segment may leave while
    /// its subflow's share is not zero. Asked after every event that may let something leave, while several subflows
    /// are usable (A-RBP-3): failed ones and idle backups are not shown, so they get nothing (A-RBP-6).
    ///
    /// The engine enforces the shared window and the congestion windows itself: a share only narrows them. What is sent
    /// again, by retransmission or on another subflow, needs no share (A-RBP-4). While nothing is unacknowledged some share
    /// must not be zero, or the connection would stand still.
    fn share(&mut self, now: Instant, buffers: &Buffers, usage: &[Usage], shares: &mut [Bytes]);
}

/// Every policy of this kind.
pub const WINDOWS: &[Entry<dyn ReceiveWindow>] = &[
    Entry {
        name: Cow::Borrowed("shared"),
        about: Cow::Borrowed("whichever subflow sends first uses it"),
        paper: Some("RFC 8684 §3.3.4"),
        parameters: &[],
        source: Cow::Borrowed(include_str!("shared.rs")),
        build: Build::Fixed(|_| Box::new(Shared)),
    },
    Entry {
        name: Cow::Borrowed("even"),
        about: Cow::Borrowed("the same part of the buffer for each subflow, however fast it is"),
        paper: Some("CMT-SCTP buffer splitting; in the words of Han et al. 2017"),
        parameters: &[
            Parameter {
                name: "receive",
                about: "split the peer's receive buffer",
                unit: "",
                domain: Domain::Flag { default: true },
            },
            Parameter {
                name: "send",
                about: "split the sender's own buffer",
                unit: "",
                domain: Domain::Flag { default: false },
            },
            Parameter {
                name: "in_flight",
                about: "receive: cap what is in flight at a part of what is free, as SCTP does, not what is not DATA_ACKed",
                unit: "",
                domain: Domain::Flag { default: false },
            },
        ],
        source: Cow::Borrowed(include_str!("even.rs")),
        build: Build::Fixed(|p| Box::new(Even::new(p.flag("receive"), p.flag("send"), p.flag("in_flight")))),
    },
    Entry {
        name: Cow::Borrowed("rbp"),
        about: Cow::Borrowed("divided beforehand by how much of the buffer each subflow is expected to occupy"),
        paper: Some("Han et al. 2017"),
        parameters: &[
            Parameter {
                name: "beta",
                about: "β, the weight of the latest cwnd in its average (Eq. 1)",
                unit: "",
                domain: Domain::Number { default: 0.0625, min: 0.0001, max: 1.0 },
            },
            Parameter {
                name: "per_rtt",
                about: "average cwnd once per round trip, not once per acknowledged segment (A-RBP-2)",
                unit: "",
                domain: Domain::Flag { default: false },
            },
            Parameter {
                name: "hysteresis",
                about: "how far an RTT ratio must pass a step of Eq. 2 before the shares jump, as a part of that step",
                unit: "",
                domain: Domain::Number { default: 0.0, min: 0.0, max: 0.5 },
            },
            Parameter {
                name: "whole_segments",
                about: "a window below one segment counts as none while anything is outstanding (A-RBP-7)",
                unit: "",
                domain: Domain::Flag { default: true },
            },
        ],
        source: Cow::Borrowed(include_str!("rbp.rs")),
        build: Build::Fixed(|p| {
            Box::new(Rbp::new(p.number("beta"), p.flag("per_rtt"), p.number("hysteresis"), p.flag("whole_segments")))
        }),
    },
];

#[cfg(test)]
mod testing;
