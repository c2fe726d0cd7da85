//! Transfers between two hosts: direction, plan, result and errors.

use anabranch_paths::Direction;
use anabranch_sim::page::{Page, Protocol, Work};
use anabranch_units::Bytes;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A transfer between two hosts.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Direction of the data.
    pub direction: Direction,
    /// Sizes and times.
    pub plan: Plan,
    /// Give up after this long.
    pub patience: Duration,
}

/// Sizes and times of a transfer, with the simulator's meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// One file of this size over one new connection. A download begins with a request of [`REQUEST`] bytes. Time
    /// counts from the opening of the connection to the reading of the last byte.
    File(Bytes),
    /// Bursts on a warm connection. Time counts from the writing of each to the reading of its last byte.
    Bursts(Bursts),
    /// A web page, over connections that are opened as it needs them. Time counts from its being asked for until its
    /// last activity is through.
    Page(Arc<Page>, Protocol),
    /// As much as possible over one connection, for this long from its opening on. A download begins with a request of
    /// [`REQUEST`] bytes.
    Bulk(Duration),
}

/// Bursts that are sent on time whether or not the one before has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Sent right after connecting.
    pub warm_up: Bytes,
    /// Size of each burst.
    pub size: Bytes,
    /// Number of bursts.
    pub count: usize,
    /// Between the beginnings of bursts, and between connecting and the first.
    pub interval: Duration,
}

impl Plan {
    /// Number of files, bursts, objects or bulk transfers.
    pub fn parts(&self) -> usize {
        match self {
            Plan::File(_) | Plan::Bulk(_) => 1,
            Plan::Bursts(bursts) => bursts.count,
            Plan::Page(page, _) => {
                page.activities.iter().filter(|activity| matches!(activity.work, Work::Download(_))).count()
            }
        }
    }

    /// All bytes that are to arrive, headers apart; none for bulk, which has no size.
    pub fn total(&self) -> u64 {
        match self {
            Plan::File(size) => size.get(),
            Plan::Bursts(bursts) => bursts.ends().last().copied().unwrap_or(0),
            Plan::Page(page, _) => page.total().get(),
            Plan::Bulk(_) => 0,
        }
    }
}

impl Bursts {
    /// The end of each burst in the stream.
    pub fn ends(&self) -> Vec<u64> {
        (1..=self.count as u64).map(|n| self.warm_up.get() + n * self.size.get()).collect()
    }
}

/// Times of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// Completion time of the whole; the mean for bursts.
    pub completion: Duration,
    /// For a page, the mean time from the request of an object to its last byte.
    pub object: Option<Duration>,
    /// Of bulk, the beginning, the bytes that had been read by each time, and the end; nothing of others.
    pub arrivals: Vec<(Instant, u64)>,
}

/// Why the transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The time limit passed.
    #[error("{read} of {size} bytes had arrived after {after:?}")]
    Unfinished {
        /// Bytes that had arrived.
        read: u64,
        /// Bytes expected.
        size: u64,
        /// Time limit.
        after: Duration,
    },
    /// The connection broke.
    #[error("the connection broke after {read} bytes: {reason}")]
    Broken {
        /// Bytes that had arrived.
        read: u64,
        /// The reason, as far as it is known.
        reason: String,
    },
    /// The bytes received differ from those sent.
    #[error("the bytes from {at} on are not those that were sent")]
    Altered {
        /// Offset of the first difference.
        at: u64,
    },
    /// The machine did not do what it should.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// Addresses of the ends.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The client's, each with whether it is a backup.
    pub client: Vec<(IpAddr, bool)>,
    /// Index of the client address that opens the connections.
    pub primary: usize,
    /// The server's, at least one.
    pub server: Vec<IpAddr>,
}

/// Bytes of a request.
pub const REQUEST: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_end_where_the_next_begins() {
        let bursts =
            Bursts { warm_up: Bytes::new(100), size: Bytes::new(7), count: 3, interval: Duration::from_secs(1) };
        assert_eq!(bursts.ends(), [107, 114, 121]);
        assert_eq!((Plan::Bursts(bursts).total(), Plan::File(Bytes::new(9)).total()), (121, 9));
        assert_eq!(Plan::Bursts(Bursts { count: 0, ..bursts }).total(), 0);
    }
}
