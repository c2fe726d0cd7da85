//! LWS, largest window space: of the subflows with room, the one whose window has the most left, in whole segments.
//!
//! B. Y. L. Kimura, D. C. S. F. Lima, A. A. F. Loureiro. *Alternative Scheduling Decisions for Multipath TCP.* IEEE
//! Communications Letters 21(11), 2017. Known to us from LATE, which names it beside lowest RTT first.
//!
//! The space is `cwnd - in_flight`. Ties go to the lower id. It never waits. As no RTT enters, it levels the free
//! windows, and the slow subflow, whose window takes longest to free, is used as readily as the fast one.

use super::{Entry, Scheduler};
use crate::{Decision, View};
use anabranch_units::Instant;
use std::cmp::Reverse;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new("lws", "the most room in its window", include_str!("lws.rs"), |_| Box::new(Lws))
    .paper("Kimura et al. 2017, as LATE cites it");

/// Largest window space.
pub struct Lws;

impl Scheduler for Lws {
    fn decide(&mut self, _now: Instant, view: &View<'_>) -> Decision {
        let best = view.lowest_with_room(|subflow| Reverse(subflow.room_segments()));
        best.map_or(Decision::WAIT, |subflow| Decision::send(subflow.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubflowView;
    use crate::scheduler::testing::*;
    use anabranch_units::Bytes;

    #[test]
    fn the_space_decides_not_the_round_trip() {
        for (fast, slow, expected) in [
            ((10, 10, 4), (100, 10, 5), Decision::send(FAST)),
            ((10, 10, 5), (100, 10, 4), Decision::send(SLOW)),
            ((10, 10, 5), (100, 8, 3), Decision::send(FAST)), // a tie
            ((10, 90, 90), (100, 2, 1), Decision::send(SLOW)),
            ((10, 10, 10), (100, 10, 10), Decision::WAIT),
        ] {
            let pair = [subflow(FAST, fast.0, fast.1, fast.2), subflow(SLOW, slow.0, slow.1, slow.2)];
            assert_eq!(Lws.decide(at(0), &view(&pair, 50)), expected, "{fast:?} {slow:?}");
        }
    }

    /// 5,999 bytes of room are five segments, as the other's 5,000 are.
    #[test]
    fn a_part_of_a_segment_is_no_space() {
        let more = SubflowView { cwnd: Bytes::new(10_999), ..subflow(SLOW, 100, 0, 5) };
        assert_eq!(Lws.decide(at(0), &view(&[subflow(FAST, 10, 10, 5), more], 50)), Decision::send(FAST));
    }
}
