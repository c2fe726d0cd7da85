//! One file over one new connection: who sends it, and what came of it.

use anabranch_sim::Direction;
use anabranch_units::Bytes;
use std::net::IpAddr;
use std::time::Duration;

/// What is to be transferred. As in the simulator, a download begins with a request of [`REQUEST`] bytes and is over when
/// the last byte has been read; time counts from the opening of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// How much.
    pub size: Bytes,
    /// Give up after this long.
    pub patience: Duration,
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
