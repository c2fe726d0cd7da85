//! First-path policies: choose the path on which a connection begins.
//!
//! The subflow of the handshake carries all data until others have joined, which takes two round trips more, so that a
//! short transfer is as fast as this path. The client may try several: the engine's `connection/race.rs` sends SYNs
//! with MP_CAPABLE as the policy spaces them, continues on the path that is answered first, and joins from the others.
//! A [`Candidate`] holds the results of earlier connections on its path, from the memory of the endpoint.

mod order;

#[cfg(test)]
mod conformance;

pub use as_listed::AsListed;
pub use lowest_rtt::LowestRtt;
pub use raced::Raced;
pub use remembered::Remembered;

use crate::Truth;
use crate::registry::{self, Built, Kind, policies};
use anabranch_units::{Duration, Rate};
use std::net::IpAddr;

/// One path on which a connection could begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// True if it is to be used only when no other works (RFC 8684 §3.3.8).
    pub backup: bool,
    /// True if attempts there had no reply lately.
    pub dead: bool,
    /// A connection that began there lately became plain TCP because of the path: SYNs with MP_CAPABLE vanish, or lose
    /// the option that the same peer answers elsewhere.
    pub plain: bool,
    /// Measurements of an earlier subflow there.
    pub known: Option<Known>,
    /// Facts from the driver, as a simulator knows them.
    pub truth: Option<Truth>,
}

/// Measurements of a path by an earlier subflow of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Time since the latest of them.
    pub age: Duration,
    /// The shortest round trip.
    pub rtt: Duration,
    /// Rate of the path in the busier direction, as a train of segments has shown it.
    pub rate: Option<Rate>,
    /// Share of our segments that was lost.
    pub loss: f64,
}

/// One SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its path, as an index among the candidates.
    pub candidate: usize,
    /// Pause after the attempt before; of no meaning for the first, which leaves at once.
    pub delay: Duration,
}

/// Decides where a connection of ours begins.
pub trait FirstPath: Send {
    /// The attempts of one connection in their order, each candidate at most once. Those that have not begun when one
    /// is answered never do. `candidates` begins with the path that the application named and has at least that one.
    fn attempts(&mut self, candidates: &[Candidate]) -> Vec<Attempt>;
}

/// "A subsequent connection MUST NOT be started within 10 milliseconds of the previous attempt" (RFC 8305 §5). Kept
/// where the path of the previous attempt is known; A-RACE says why not elsewhere.
pub const MIN_DELAY: Duration = Duration::from_millis(10);

impl Kind for dyn FirstPath {
    type Policy = Box<Self>;
    type Capabilities = ();
}

impl<P: FirstPath + 'static> From<P> for Built<dyn FirstPath> {
    /// Wraps a policy with default capabilities.
    fn from(policy: P) -> Self {
        Built { policy: Box::new(policy), capabilities: () }
    }
}

/// A first-path policy that can be named.
pub type Entry = registry::Entry<dyn FirstPath>;

policies! {
    FIRST_PATHS:
    as_listed,
    lowest_rtt,
    raced,
    remembered,
}

#[cfg(test)]
mod testing {
    use super::*;

    pub(super) fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Path `n`, of which nothing is known.
    pub(super) fn path(n: u8) -> Candidate {
        let (local, remote) = ([10, 0, n, 1].into(), [10, 1, 0, 1].into());
        Candidate { local, remote, backup: false, dead: false, plain: false, known: None, truth: None }
    }

    /// Path `n`, whose round trip was measured so long ago.
    pub(super) fn known(n: u8, rtt_ms: u64, age_s: u64) -> Candidate {
        let known = Known { age: Duration::from_secs(age_s), rtt: ms(rtt_ms), rate: None, loss: 0.0 };
        Candidate { known: Some(known), ..path(n) }
    }

    /// Candidates tried, each with the time of its SYN in ms.
    pub(super) fn times(attempts: &[Attempt]) -> Vec<(usize, u64)> {
        let mut at = 0;
        let time = |(n, attempt): (usize, &Attempt)| {
            at += if n == 0 { 0 } else { attempt.delay.as_millis() };
            (attempt.candidate, at)
        };
        attempts.iter().enumerate().map(time).collect()
    }
}
