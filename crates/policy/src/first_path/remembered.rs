//! The path remembered as fastest, alone.
//!
//! As `raced`, except where every path about which there are no reservations was measured within `fresh`: then one SYN
//! leaves, on the fastest of them, and the others wait until its answer is overdue. That is after three times its round
//! trip (RFC 6298 §2.2), at least the 100 ms that RFC 8305 §5 recommends as the Minimum Connection Attempt Delay. It
//! saves the SYNs of a race, and finds out later that a path has become slower.

use super::order::{Group, group, overdue, sorted, spaced};
use super::raced::{CONNECTION_ATTEMPT_DELAY, Raced};
use super::{Attempt, Candidate, Entry, FirstPath};
use crate::registry::{Number, Params, number};
use anabranch_units::Duration;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "remembered",
    "the path remembered as fastest, alone until its answer is overdue; raced where memory is old",
    include_str!("remembered.rs"),
    |parameters| Box::new(Remembered::new(parameters)),
)
.paper("RFC 8305 §5")
.parameters(&[FRESH.parameter(), CONNECTION_ATTEMPT_DELAY.parameter()]);

/// The fastest path in memory, and a race where memory fails.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    race: Raced,
    /// Measurements no older than this need no race.
    fresh: Duration,
}

const FRESH: Number =
    number("fresh", "measurements no older than this make a race unnecessary", 600.0, 1.0..=3600.0).in_unit("s");

/// RFC 8305 §5, "Minimum Connection Attempt Delay".
const MIN_PATIENCE: Duration = Duration::from_millis(100);

impl Remembered {
    /// Reads `fresh` and `delay` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        let fresh = Duration::from_secs(1).mul_f64(FRESH.of(parameters));
        Remembered { race: Raced::new(parameters), fresh }
    }

    fn is_fresh(&self, candidate: &Candidate) -> bool {
        candidate.known.is_some_and(|known| known.age <= self.fresh)
    }
}

impl FirstPath for Remembered {
    fn attempts(&mut self, candidates: &[Candidate]) -> Vec<Attempt> {
        let order = sorted(candidates);
        let regular = || candidates.iter().filter(|candidate| group(candidate) == Group::Regular);
        let certain = regular().next().is_some() && regular().all(|candidate| self.is_fresh(candidate));
        spaced(candidates, &order, |before, place| match before.known.filter(|_| certain && place == 0) {
            Some(known) => overdue(known.rtt).max(MIN_PATIENCE),
            None => self.race.pause(candidates, &order, place),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::FIRST_PATHS;
    use super::super::testing::*;
    use super::*;
    use crate::registry::find;

    fn remembered() -> Box<dyn FirstPath> {
        find(FIRST_PATHS, "first path", "remembered").expect("it is registered").build_default().policy
    }

    /// The fastest first; the next after 3 · 50 ms, the third as in a race.
    #[test]
    fn fresh_memory_needs_no_race() {
        let paths = [known(0, 300, 10), known(1, 50, 599), known(2, 90, 1)];
        assert_eq!(times(&remembered().attempts(&paths)), [(1, 0), (2, 150), (0, 160)]);
        let near = [known(0, 10, 1), known(1, 20, 1)];
        assert_eq!(times(&remembered().attempts(&near)), [(0, 0), (1, 100)], "3 · 10 ms is less than 100 ms");
    }

    #[test]
    fn one_path_of_which_too_little_is_known_makes_a_race() {
        let old = [known(0, 300, 601), known(1, 50, 1)];
        assert_eq!(times(&remembered().attempts(&old)), [(1, 0), (0, 10)]);
        assert_eq!(times(&remembered().attempts(&[path(0), known(1, 50, 1)])), [(1, 0), (0, 10)]);
        assert_eq!(times(&remembered().attempts(&[path(0), path(1)])), [(0, 0), (1, 0)]);
    }

    /// A path that is avoided anyway needs no measurement.
    #[test]
    fn reservations_are_no_reason_for_a_race() {
        let dead = Candidate { dead: true, ..path(0) };
        assert_eq!(
            times(&remembered().attempts(&[dead, known(1, 50, 1), known(2, 60, 1)])),
            [(1, 0), (2, 150), (0, 1150)]
        );
    }
}
