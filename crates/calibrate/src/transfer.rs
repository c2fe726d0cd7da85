//! Transfers over one new connection: direction, plan and errors.

use anabranch_sim::Direction;
use anabranch_units::Bytes;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A transfer over one new connection.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// Sizes and times.
    pub plan: Plan,
    /// Give up after this long.
    pub patience: Duration,
}

/// Sizes and times of a transfer, with the simulator's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// One file of so many bytes. A download begins with a request of [`REQUEST`] bytes. Time counts from the opening
    /// of the connection to the reading of the last byte.
    File(Bytes),
    /// Bursts on a warm connection. Time counts from the writing of each to the reading of its last byte.
    Bursts(Bursts),
}

/// Bursts that are sent on time whether or not the one before has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Sent right after connecting.
    pub warm_up: Bytes,
    /// Of each burst.
    pub size: Bytes,
    /// Number of bursts.
    pub count: usize,
    /// Between the beginnings of bursts, and between connecting and the first.
    pub interval: Duration,
}

impl Plan {
    /// All bytes that are sent.
    pub fn total(&self) -> u64 {
        self.ends().last().copied().unwrap_or(0)
    }

    /// The end of the file, or of each burst, in the stream.
    pub fn ends(&self) -> Vec<u64> {
        match self {
            Plan::File(size) => vec![size.get()],
            Plan::Bursts(bursts) => {
                (1..=bursts.count as u64).map(|n| bursts.warm_up.get() + n * bursts.size.get()).collect()
            }
        }
    }
}

/// The mean of the times from each beginning to its end; both on the same clock.
pub fn mean(begun: &[Instant], ended: &[Instant]) -> Duration {
    let times = begun.iter().zip(ended).map(|(begun, ended)| ended.saturating_duration_since(*begun));
    times.sum::<Duration>() / begun.len().min(ended.len()).max(1) as u32
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// It took too long.
    #[error("{read} of {size} bytes had arrived after {after:?}")]
    Unfinished {
        /// What had arrived.
        read: u64,
        /// What was to arrive.
        size: u64,
        /// When it was given up.
        after: Duration,
    },
    /// The connection broke.
    #[error("the connection broke after {read} bytes: {reason}")]
    Broken {
        /// What had arrived.
        read: u64,
        /// Why, as far as is known.
        reason: String,
    },
    /// What arrived is not what was sent.
    #[error("the bytes from {at} on are not those that were sent")]
    Altered {
        /// Where they begin to differ.
        at: u64,
    },
    /// The machine did not do what it should.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// Where the ends are: the client's addresses by path, the first subflow's first, and the server's.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The client's, each with whether it is a backup.
    pub client: Vec<(IpAddr, bool)>,
    /// Which of them opens the connection.
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
        assert_eq!(Plan::Bursts(bursts).ends(), [107, 114, 121]);
        assert_eq!((Plan::Bursts(bursts).total(), Plan::File(Bytes::new(9)).total()), (121, 9));
        assert_eq!(Plan::Bursts(Bursts { count: 0, ..bursts }).total(), 0);
    }

    #[test]
    fn the_mean_is_of_each_from_its_own_beginning() {
        let at =
            |start: Instant, ms: &[u64]| ms.iter().map(|ms| start + Duration::from_millis(*ms)).collect::<Vec<_>>();
        let start = Instant::now();
        assert_eq!(mean(&at(start, &[0, 100]), &at(start, &[10, 130])), Duration::from_millis(20));
    }
}
