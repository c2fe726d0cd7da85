//! The order in which paths are tried: by what speaks against them, then remembered fastest first.

use super::{Attempt, Candidate, Known, MIN_DELAY};
use anabranch_units::{Bytes, Duration};

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

/// Bytes that a path carries alone before another can join: an initial window of ten segments (RFC 6928 §2).
const ALONE: Bytes = Bytes::new(14_600);

/// Time in which the path is expected to bring these bytes: a round trip, and what they take at its rate.
fn first_flight(known: &Known) -> Duration {
    known.rtt + known.rate.filter(|rate| !rate.is_zero()).map_or(Duration::ZERO, |rate| rate.time_for(ALONE))
}

/// Candidates by their group, then by the time of a [`first_flight`] with unknown ones behind, then as listed.
pub(super) fn sorted(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let time = |index: usize| candidates[index].known.as_ref().map(first_flight);
    order.sort_by_key(|index| (group(&candidates[*index]), time(*index).is_none(), time(*index), *index));
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
