//! A race: the connection begins on the path that answers first.
//!
//! D. Schinazi, T. Pauly. *Happy Eyeballs Version 2.* RFC 8305 §5: SYNs leave on one path after the other, the
//! Connection Attempt Delay apart, until one is answered; the others are given up. The path remembered as fastest goes
//! first, unknown ones follow as listed. Behind a path with a remembered round trip R the pause is the `delay`, at
//! least the 10 ms that the RFC asks for, but not more than 3·R, the timeout of RFC 6298 §2.2: a lost SYN costs no
//! more. Where a path is known to be thin, its first flight takes longest though it would answer first: then the
//! SYN on it waits until the answer before it is overdue.
//!
//! Deviation (A-RACE): behind a path without a remembered round trip the pause is the `delay` alone, and that is zero,
//! though the RFC recommends 250 ms and forbids less than 10 "to avoid congestion collapse". Its attempts are whole
//! connections to several addresses over one access link. Ours are SYNs of one connection over different links, and
//! each of these gets a SYN anyway, that of the join, a little later. With 250 ms a race finds lost SYNs and hardly
//! ever the faster path, since any path below 250 ms has answered before the second begins; with 10 ms a short file
//! over the second or third path is late by 10 or 20.
//!
//! A path on which nothing answered lately, a backup, or one on which connections become plain TCP is tried a second
//! after the last of the others: RFC 6298's first timeout.

use super::order::{overdue, sorted, spaced};
use super::{Attempt, Candidate, Entry, FirstPath, MIN_DELAY};
use crate::registry::{Number, Params, number};
use anabranch_units::Duration;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "raced",
    "the path that answers first: SYNs on one after the other, remembered fastest first",
    include_str!("raced.rs"),
    |parameters| Box::new(Raced::new(parameters)),
)
.paper("RFC 8305 §5")
.parameters(&[CONNECTION_ATTEMPT_DELAY.parameter()]);

/// SYNs on all paths, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Raced {
    /// The Connection Attempt Delay.
    delay: Duration,
}

/// Pause between attempts, up to the upper bound that RFC 8305 recommends.
pub(super) const CONNECTION_ATTEMPT_DELAY: Number =
    number("delay", "Connection Attempt Delay: pause between the SYNs of two paths", 0.0, 0.0..=2000.0).in_unit("ms");

impl Raced {
    /// Reads `delay` from `parameters`.
    pub fn new(parameters: &Params) -> Self {
        Raced { delay: Duration::from_millis(1).mul_f64(CONNECTION_ATTEMPT_DELAY.of(parameters)) }
    }

    /// The pause after the attempt at `place` of this order.
    pub(super) fn pause(self, candidates: &[Candidate], order: &[usize], place: usize) -> Duration {
        let known = |place: &usize| candidates[*place].known;
        let Some(own) = known(&order[place]) else { return self.delay };
        let pause = overdue(own.rtt).min(self.delay.max(MIN_DELAY));
        let overtakes = |rtt: Duration| pause + rtt <= own.rtt;
        let hasty = order.get(place + 1).and_then(known).is_some_and(|next| overtakes(next.rtt));
        if hasty { overdue(own.rtt) } else { pause }
    }
}

impl FirstPath for Raced {
    fn attempts(&mut self, candidates: &[Candidate]) -> Vec<Attempt> {
        let order = sorted(candidates);
        spaced(candidates, &order, |_, place| self.pause(candidates, &order, place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::super::{FIRST_PATHS, Known};
    use super::*;
    use crate::registry::{Value, find};
    use anabranch_units::Rate;

    fn raced(delay_ms: f64) -> Box<dyn FirstPath> {
        let entry = find(FIRST_PATHS, "first path", "raced").expect("it is registered");
        let given = [("delay".to_owned(), Value::Number(delay_ms))].into_iter().collect();
        entry.build(&entry.params(&given).expect("within its range")).policy
    }

    /// RFC 8305 §5 with its recommended delay, on three paths of which nothing is known: SYNs at 0, 250 and 500 ms.
    #[test]
    fn worked_example() {
        let paths = [path(0), path(1), path(2)];
        assert_eq!(times(&raced(250.0).attempts(&paths)), [(0, 0), (1, 250), (2, 500)]);
        assert_eq!(times(&raced(10.0).attempts(&paths)), [(0, 0), (1, 10), (2, 20)]);
        assert_eq!(times(&raced(0.0).attempts(&paths)), [(0, 0), (1, 0), (2, 0)]);
    }

    /// Fastest first; 3 · 20 ms and 3 · 90 ms, of which the latter is more than the delay.
    #[test]
    fn memory_orders_and_shortens() {
        let paths = [path(0), known(1, 90, 5), known(2, 20, 3000)];
        assert_eq!(times(&raced(250.0).attempts(&paths)), [(2, 0), (1, 60), (0, 310)]);
        // Without a delay those that are known are spared their SYNs for the least that RFC 8305 §5 allows.
        assert_eq!(times(&raced(0.0).attempts(&paths)), [(2, 0), (1, 10), (0, 20)]);
        // 3 · 1 ms is too early (RFC 8305 §5).
        assert_eq!(times(&raced(250.0).attempts(&[known(0, 1, 5), path(1)])), [(0, 0), (1, 10)]);
    }

    /// Ten segments take 58.4 ms at 2 Mbit/s and 1.2 at 100: 68.4 and 21.2 ms with the round trips. The thin path would
    /// answer at 20 ms as well.
    #[test]
    fn a_thin_path_does_not_win_by_its_round_trip() {
        let rate = |mbps, candidate: Candidate| {
            let known = candidate.known.map(|known| Known { rate: Some(Rate::from_mbps(mbps)), ..known });
            Candidate { known, ..candidate }
        };
        let (thin, fat) = (rate(2, known(0, 10, 5)), rate(100, known(1, 20, 5)));
        assert_eq!(times(&raced(0.0).attempts(&[thin, fat])), [(1, 0), (0, 60)]);
        assert_eq!(times(&raced(0.0).attempts(&[rate(20, known(0, 10, 5)), fat])), [(0, 0), (1, 10)]);
        assert_eq!(times(&raced(0.0).attempts(&[known(0, 10, 5), fat])), [(0, 0), (1, 10)], "a rate unknown");
        // It is the thin path alone that waits, three round trips of the one before it.
        assert_eq!(times(&raced(0.0).attempts(&[thin, rate(50, known(2, 25, 5)), fat])), [(2, 0), (1, 10), (0, 85)]);
    }

    #[test]
    fn reservations_wait_for_a_timeout() {
        let dead = Candidate { dead: true, ..known(0, 1, 5) };
        let plain = Candidate { plain: true, ..path(1) };
        let backup = Candidate { backup: true, ..path(2) };
        let found = raced(10.0).attempts(&[dead, plain, backup, path(3), path(4)]);
        assert_eq!(times(&found), [(3, 0), (4, 10), (1, 1010), (2, 2010), (0, 3010)]);
        // All alike: there is nothing better to wait for.
        assert_eq!(times(&raced(10.0).attempts(&[plain, plain])), [(0, 0), (1, 10)]);
    }
}
