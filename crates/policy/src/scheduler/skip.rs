//! Skipping ahead: a slow subflow starts behind what the faster ones will take meanwhile.
//!
//! The ground on which every forward-prediction scheduler stands (A-SKIP). They differ in one number: how much of the
//! unsent data a slow subflow leaves to the faster ones, its [`Reserve`]. The rest is common:
//!
//! - The fastest subflow with room goes first, and takes the head of the unsent data if no faster one is usable.
//! - A slower one begins behind its reserve, which counts unsent bytes: holes left earlier are not counted twice. It is
//!   silent if all that is unsent is reserved, or if the peer's window does not admit what lies behind.
//! - The reserve is asked for anew at every decision, from the subflows usable then. One that failed counts no more,
//!   nor does one that may carry no new data for now (RTO recovery, its share of the peer's window used up): the head
//!   would wait for it.
//! - Silence is waiting for a faster subflow. If none has an acknowledgment under way, nothing would end it, and the
//!   head goes to the fastest with room.

use super::{Scheduler, ack_due};
use crate::{Decision, Event, SubflowView, View};
use anabranch_units::{Bytes, Instant};

/// Amount of unsent data that a slow subflow leaves to the faster ones.
pub(super) trait Reserve: Send {
    /// Bytes at the front of the unsent data that the subflows faster than `slow` are to take. Asked only if there is
    /// one.
    fn reserve(&mut self, now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes;
    /// Called with the view before each decision.
    fn look(&mut self, _now: Instant, _view: &View<'_>) {}
    /// Like [`Scheduler::observe`].
    fn observe(&mut self, _now: Instant, _event: &Event) {}
}

/// A scheduler that skips ahead by its reserve.
pub(super) struct SkipAhead<R>(pub(super) R);

impl<R: Reserve> Scheduler for SkipAhead<R> {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        self.0.look(now, view);
        if view.sendable.is_zero() {
            return Decision::WAIT;
        }
        let mut asked = None;
        while let Some(subflow) = next_with_room(view, asked) {
            let alone = faster(view, subflow).next().is_none();
            let skip = if alone { Bytes::ZERO } else { self.0.reserve(now, subflow, view) };
            if view.admits(skip, subflow.mss) {
                return Decision::Send { on: subflow.id, skip };
            }
            asked = Some(subflow);
        }
        match view.fastest_with_room() {
            Some(fastest) if !faster(view, fastest).any(ack_due) => Decision::send(fastest.id),
            _ => Decision::WAIT,
        }
    }

    fn observe(&mut self, now: Instant, event: &Event) {
        self.0.observe(now, event);
    }
}

/// The subflows with a lower SRTT than `slow` that may carry new data, with room or without, in the order of their ids.
pub(super) fn faster<'a>(view: &View<'a>, slow: &SubflowView) -> impl Iterator<Item = &'a SubflowView> {
    let srtt = slow.srtt;
    view.subflows.iter().filter(move |subflow| subflow.srtt < srtt && subflow.open && !subflow.share.is_zero())
}

/// Returns this number of segments in bytes, rounded half up to whole ones. NaN and negative numbers give zero.
pub(super) fn whole_segments(segments: f64, mss: Bytes) -> Bytes {
    mss.times((segments + 0.5) as u64)
}

/// Returns the first subflow with room behind `asked`, by SRTT, then by id.
fn next_with_room<'a>(view: &View<'a>, asked: Option<&SubflowView>) -> Option<&'a SubflowView> {
    let mut next: Option<&SubflowView> = None;
    for subflow in view.subflows {
        let key = (subflow.srtt, subflow.id);
        if subflow.has_room()
            && next.is_none_or(|next| key < (next.srtt, next.id))
            && asked.is_none_or(|asked| key > (asked.srtt, asked.id))
        {
            next = Some(subflow);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::*;
    use anabranch_units::{Duration, SubflowId};

    /// Leaves this number of segments per faster subflow.
    struct Each(u64);

    impl Reserve for Each {
        fn reserve(&mut self, _now: Instant, slow: &SubflowView, view: &View<'_>) -> Bytes {
            segments(self.0 * faster(view, slow).count() as u64)
        }
    }

    fn decide(each: u64, view: &View<'_>) -> Decision {
        SkipAhead(Each(each)).decide(at(0), view)
    }

    fn send(on: SubflowId, skip: u64) -> Decision {
        Decision::Send { on, skip: segments(skip) }
    }

    const THIRD: SubflowId = SubflowId(2);

    /// Subflows of 10, 50 and 100 ms, windows of ten, with these segments in flight.
    fn three(in_flight: [u64; 3]) -> [SubflowView; 3] {
        [(FAST, 10), (SLOW, 50), (THIRD, 100)].map(|(id, srtt)| subflow(id, srtt, 10, in_flight[usize::from(id.0)]))
    }

    #[test]
    fn the_fastest_takes_the_head_and_each_slower_one_skips_more() {
        for (in_flight, decision) in [
            ([0, 0, 0], send(FAST, 0)),
            ([10, 0, 0], send(SLOW, 7)),
            ([10, 10, 0], send(THIRD, 14)),
            ([9, 10, 0], send(FAST, 0)),
        ] {
            assert_eq!(decide(7, &view(&three(in_flight), 100)), decision, "{in_flight:?}");
        }
    }

    #[test]
    fn silent_when_all_that_is_unsent_is_left_to_the_faster_ones() {
        let subflows = three([10, 10, 0]);
        assert_eq!(decide(7, &view(&subflows, 14)), Decision::WAIT);
        assert_eq!(decide(7, &view(&subflows, 15)), send(THIRD, 14));
        // The middle one needs less.
        assert_eq!(decide(7, &view(&three([10, 0, 0]), 8)), send(SLOW, 7));
        assert_eq!(decide(7, &view(&three([10, 0, 0]), 7)), Decision::WAIT);
    }

    #[test]
    fn silent_when_the_window_does_not_admit_what_lies_behind() {
        let subflows = three([10, 10, 0]);
        for (sendable, decision) in [(15, send(THIRD, 14)), (14, Decision::WAIT)] {
            let tight = View { sendable: segments(sendable), ..view(&subflows, 100) };
            assert_eq!(decide(7, &tight), decision, "{sendable}");
        }
    }

    #[test]
    fn a_slower_one_may_go_where_a_faster_one_is_silent_too() {
        // Reserves of nothing but of the middle one's.
        struct Middle;
        impl Reserve for Middle {
            fn reserve(&mut self, _now: Instant, slow: &SubflowView, _view: &View<'_>) -> Bytes {
                segments(if slow.id == SLOW { 1000 } else { 3 })
            }
        }
        let subflows = three([10, 0, 0]);
        assert_eq!(SkipAhead(Middle).decide(at(0), &view(&subflows, 100)), send(THIRD, 3));
    }

    #[test]
    fn waits_only_for_an_acknowledgment_that_is_due() {
        let [mut fast, slow, _] = three([10, 0, 0]);
        assert_eq!(decide(99, &view(&[fast, slow], 10)), Decision::WAIT);
        (fast.in_flight, fast.throttled) = (Bytes::ZERO, true);
        assert_eq!(decide(99, &view(&[fast, slow], 10)), send(SLOW, 0));
        assert_eq!(decide(99, &view(&[], 10)), Decision::WAIT);
    }

    #[test]
    fn nothing_is_left_to_a_subflow_that_may_not_send() {
        let [fast, slow, third] = three([10, 10, 0]);
        let shut = SubflowView { open: false, ..fast };
        assert_eq!(decide(7, &view(&[fast, slow, third], 100)), send(THIRD, 14));
        assert_eq!(decide(7, &view(&[shut, slow, third], 100)), send(THIRD, 7));
        assert_eq!(decide(7, &view(&[shut, third], 100)), send(THIRD, 0));
        let without_share = SubflowView { share: Bytes::ZERO, ..fast };
        assert_eq!(decide(7, &view(&[without_share, slow, third], 100)), send(THIRD, 7));
    }

    #[test]
    fn nobody_is_faster_than_one_as_fast() {
        let [fast, slow, _] = three([10, 0, 0]);
        let twin = SubflowView { srtt: Duration::from_millis(10), ..slow };
        assert_eq!(decide(7, &view(&[fast, twin], 100)), send(SLOW, 0));
        assert_eq!(decide(7, &view(&[slow], 100)), send(SLOW, 0));
    }
}
