//! The path with the lowest round-trip time, without asking the network.
//!
//! In a simulation that is the configured one, twice the propagation delay from client to server: knowledge that no
//! host has, and the mark that a race on idle paths can come near. On the wire it is what the memory has; a path of
//! which nothing is known counts as slower than all others. Paths that lead nowhere, that are backups, or on which
//! MPTCP does not come about are taken when there is nothing else.

use super::order::{Group, group};
use super::{Attempt, Candidate, Entry, FirstPath};
use anabranch_units::Duration;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "lowest-rtt",
    "the path with the lowest RTT as the simulator knows it, or else as remembered; no other",
    include_str!("lowest_rtt.rs"),
    |_| Box::new(LowestRtt),
);

/// The path of the lowest known RTT.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowestRtt;

fn rtt(candidate: &Candidate) -> Option<Duration> {
    let told = candidate.truth.map(|truth| truth.delay * 2);
    told.or(candidate.known.map(|known| known.rtt))
}

impl FirstPath for LowestRtt {
    fn attempts(&mut self, candidates: &[Candidate]) -> Vec<Attempt> {
        let standing = |(index, candidate): (usize, &Candidate)| {
            let leads_nowhere = candidate.truth.is_some_and(|truth| truth.rate.is_zero());
            let group = if leads_nowhere { Group::Dead } else { group(candidate) };
            (group, rtt(candidate).is_none(), rtt(candidate), index)
        };
        let best = candidates.iter().enumerate().map(standing).min();
        best.map(|(.., candidate)| Attempt { candidate, delay: Duration::ZERO }).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::Truth;
    use anabranch_units::Rate;

    fn told(n: u8, delay_ms: u64, mbps: u64) -> Candidate {
        Candidate { truth: Some(Truth { rate: Rate::from_mbps(mbps), delay: ms(delay_ms), loss: 0.0 }), ..path(n) }
    }

    #[test]
    fn the_truth_goes_before_the_memory() {
        let backup = Candidate { backup: true, ..told(3, 1, 10) };
        for (candidates, expected) in [
            (vec![told(0, 150, 100), told(1, 5, 1)], 1),
            (vec![told(0, 5, 100), told(1, 5, 1)], 0),
            // 1 ms one way, but it is down, or a backup.
            (vec![told(0, 20, 10), told(1, 1, 0), backup], 0),
            (vec![Candidate { known: known(0, 1, 1).known, ..told(0, 20, 10) }, told(1, 10, 10)], 1),
            (vec![path(0), known(1, 400, 1), known(2, 300, 3000)], 2),
            (vec![path(0), path(1)], 0),
        ] {
            assert_eq!(times(&LowestRtt.attempts(&candidates)), [(expected, 0)], "{candidates:?}");
        }
    }
}
