//! The order in which paths are tried: by what speaks against them, then remembered fastest first.

use super::{Attempt, Candidate, MIN_DELAY};
use anabranch_units::Duration;

/// Reservations about a path, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// None.
    Regular,
    /// MPTCP does not come about there.
    Plain,
    /// Marked as a backup.
    Backup,
    /// No reply there lately.
    Dead,
}

/// The gravest of them.
pub(super) fn group(candidate: &Candidate) -> Group {
    match candidate {
        Candidate { dead: true, .. } => Group::Dead,
        Candidate { backup: true, .. } => Group::Backup,
        Candidate { plain: true, .. } => Group::Plain,
        _ => Group::Regular,
    }
}

/// Candidates by their group, then by remembered round trip with unknown ones behind, then as listed.
pub(super) fn sorted(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let rtt = |index: usize| candidates[index].known.map(|known| known.rtt);
    order.sort_by_key(|index| (group(&candidates[*index]), rtt(*index).is_none(), rtt(*index), *index));
    order
}

/// A path about which there are reservations gets its turn after a whole initial timeout (RFC 6298 §2.1): an answer
/// there would win what is better lost.
const RESERVED: Duration = Duration::from_secs(1);

/// Number of round trips after which a reply is overdue: the timeout after a first sample R, with SRTT = R and RTTVAR =
/// R/2, is SRTT + 4·RTTVAR (RFC 6298 §2.2).
const OVERDUE: u64 = 3;

/// Time after which a reply that was expected after `rtt` is overdue.
pub(super) fn overdue(rtt: Duration) -> Duration {
    (rtt * OVERDUE).max(MIN_DELAY)
}

/// Attempts all candidates in this order. `pause` returns the time between two attempts from the path of the former and
/// its place; paths with reservations wait longer, if there are others.
pub(super) fn spaced(
    candidates: &[Candidate],
    order: &[usize],
    pause: impl Fn(&Candidate, usize) -> Duration,
) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::with_capacity(order.len());
    for (place, candidate) in order.iter().copied().enumerate() {
        let delay = attempts.last().map_or(Duration::ZERO, |before| {
            let before = &candidates[before.candidate];
            let graver = group(&candidates[candidate]) > group(before);
            if graver { RESERVED } else { pause(before, place - 1) }
        });
        attempts.push(Attempt { candidate, delay });
    }
    attempts
}
