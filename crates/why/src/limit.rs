//! The vocabulary: the limits that the time of a transfer is given to.
//!
//! It is the union of what the literature tells apart, for several paths. web100 and RFC 4898 count the time that a
//! sender is limited by the receiver, by the congestion window and by itself (`SndLimTimeRwin`, `SndLimTimeCwnd`,
//! `SndLimTimeSnd`). Linux counts how long it was busy, and of that how long limited by the receiver's window and by
//! its own send buffer (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`). T-RAT (Zhang, Breslau, Paxson,
//! Shenker: *On the Characteristics and Origins of Internet Flow Rates*, SIGCOMM 2002) adds the bandwidth of the path,
//! congestion and the opportunity of short flows in slow start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limit that a transfer, or one path of it, has at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Limit {
    /// The connection is being set up.
    Handshake,
    /// The request for the data is under way.
    Request,
    /// A further path is being joined.
    Join,
    /// The congestion window grows from its first size, or after a timeout.
    SlowStart,
    /// The congestion window is too small for the path.
    CongestionWindow,
    /// The window that the receiver announces is used up.
    PeerWindow,
    /// The receiver holds data behind a hole.
    HeadOfLine,
    /// The scheduler holds data back.
    Scheduler,
    /// Pacing or TCP Small Queues hold a segment back.
    Pacing,
    /// Nagle's algorithm holds a short segment back until data is acknowledged.
    Nagle,
    /// The sender waits for a retransmission timeout, or for the answer to what it repeated after one.
    Timeout,
    /// The send buffer is full of data that is not acknowledged.
    SendBuffer,
    /// The sending application writes too slowly.
    ApplicationSends,
    /// The receiving application reads too slowly.
    ApplicationReads,
    /// The path carries all that it can.
    PathFull,
    /// A path carries nothing that is sent on it, and those left can carry no more.
    PathDown,
    /// All data was sent, and the last of it is on its way.
    InFlight,
    /// The path has no subflow that may carry data.
    Unused,
}

/// A limit with its name and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The limit.
    pub limit: Limit,
    /// Name in machine-readable output, in kebab-case.
    pub name: &'static str,
    /// Letter of its bar in a terminal.
    pub letter: char,
    /// Meaning, in one line.
    pub meaning: &'static str,
}

/// Describes a limit.
const fn entry(limit: Limit, name: &'static str, letter: char, meaning: &'static str) -> Entry {
    Entry { limit, name, letter, meaning }
}

/// All limits, in the order in which a transfer usually meets them.
pub const LIMITS: &[Entry] = &[
    entry(Limit::Handshake, "handshake", 'h', "the connection is being set up"),
    entry(Limit::Request, "request", 'q', "the request for the data is on its way to the sender"),
    entry(Limit::Join, "join", 'j', "a further path is being joined, and those there are can carry no more"),
    entry(Limit::SlowStart, "slow-start", 's', "the congestion window is still growing, and is full"),
    entry(Limit::CongestionWindow, "congestion-window", 'c', "the congestion window is full and leaves the path idle"),
    entry(Limit::PeerWindow, "peer-window", 'w', "the receiver's window is used up by data on its way"),
    entry(Limit::HeadOfLine, "head-of-line", 'b', "the receiver holds data behind a hole, and awaits the missing data"),
    entry(Limit::Scheduler, "scheduler", 'd', "a path has room, and the scheduler does not use it"),
    entry(Limit::Pacing, "pacing", 'p', "pacing or TCP Small Queues hold the next segment back"),
    entry(Limit::Nagle, "nagle", 'n', "Nagle's algorithm holds a short segment back until an ACK comes"),
    entry(Limit::Timeout, "timeout", 't', "the sender waits for a retransmission timeout, or for what follows it"),
    entry(Limit::SendBuffer, "send-buffer", 'f', "the send buffer is full of data that is not acknowledged"),
    entry(Limit::ApplicationSends, "application-sends", 'a', "the sending application has not written the next data"),
    entry(Limit::ApplicationReads, "application-reads", 'r', "the receiving application does not read what is there"),
    entry(Limit::PathFull, "path-full", '#', "the path sends without a pause: it is the limit itself"),
    entry(Limit::PathDown, "path-down", 'x', "a path is down, and those left can carry no more"),
    entry(Limit::InFlight, "in-flight", '>', "all data was sent, and the last of it is on its way"),
    entry(Limit::Unused, "unused", '.', "the path has no subflow that may carry data"),
];

impl Limit {
    /// Returns its line of [`LIMITS`].
    pub fn entry(self) -> &'static Entry {
        LIMITS.iter().find(|entry| entry.limit == self).expect("each limit has a line")
    }

    /// Returns its name in machine-readable output, in kebab-case.
    pub fn name(self) -> &'static str {
        self.entry().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The names of the table are those of JSON, and no two limits share a name or a letter.
    #[test]
    fn each_limit_has_one_name() {
        for entry in LIMITS {
            let json = serde_json::to_string(&entry.limit).expect("a name is JSON");
            assert_eq!(json, format!("{:?}", entry.name));
            assert_eq!(entry.limit.name(), entry.name);
            assert!(!entry.meaning.is_empty() && entry.meaning.len() <= 80, "{}", entry.name);
        }
        let names: BTreeSet<&str> = LIMITS.iter().map(|entry| entry.name).collect();
        let letters: BTreeSet<char> = LIMITS.iter().map(|entry| entry.letter).collect();
        assert_eq!((names.len(), letters.len()), (LIMITS.len(), LIMITS.len()));
    }
}
