//! The path that the application names: in a scenario `run.primary`, or else the first path of the file; on the wire
//! the first address of the engine.
//!
//! A SYN that is lost is repeated there after a second (RFC 6298 §2.1), and no other path is tried. Kernels do the same
//! with the source address that their routing table gives.

use super::{Attempt, Candidate, Entry, FirstPath};
use anabranch_units::Duration;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "as-listed",
    "the path that the application or the scenario names, and no other",
    include_str!("as_listed.rs"),
    |_| Box::new(AsListed),
);

/// The first path listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsListed;

impl FirstPath for AsListed {
    fn attempts(&mut self, _candidates: &[Candidate]) -> Vec<Attempt> {
        vec![Attempt { candidate: 0, delay: Duration::ZERO }]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn nothing_else_counts() {
        let slow = Candidate { dead: true, ..known(0, 600, 1) };
        assert_eq!(times(&AsListed.attempts(&[slow, known(1, 10, 1)])), [(0, 0)]);
    }
}
