//! DAPS's own rule: while the peer's window is full, every subflow with room repeats data that it has not carried.
//!
//! The kernel module of DAPS that LOWLAT's authors published (`mptcp_daps_priority_send` in `net/mptcp/mptcp_daps.c` of
//! the Karlstad kernel; A-OPT). Like [`Opportunistic`](super::Opportunistic) it acts when the next segment does not fit
//! into the peer's window although a subflow has room. Unlike that it
//!
//! - repeats not only the oldest data but, one after the other, all data in flight, oldest first;
//! - does so on the subflow with the lowest SRTT among those with room that have not carried it, however slow;
//! - never penalises a subflow, and does nothing when all data are sent.
//!
//! Differences: the kernel repeats a whole buffer of up to 64 KB at a time, we a segment. Includes `on-rto`.

use super::cursors::Cursors;
use super::{Capabilities, Entry, FlightView, Piece, Reinjection, Repeat, Request, Why};
use crate::SubflowView;
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "daps",
    "also repeats all data in flight on any subflow with room while the peer's window is full",
    include_str!("daps.rs"),
    |_| Box::new(Daps::default()),
)
.paper("Karlstad MPTCP kernel, with Kuhn et al. 2014")
.capabilities(|_| Capabilities { copies: true, opportunities: false });

/// DAPS's reinjection for one connection.
#[derive(Clone, Debug, Default)]
pub struct Daps {
    cursors: Cursors,
}

/// True if the next segment of new data, of this subflow's size, lies beyond the peer's window.
fn is_shut_out(subflow: &SubflowView, flight: &FlightView<'_>) -> bool {
    flight.view.sendable < flight.view.unsent.min(subflow.mss)
}

impl Reinjection for Daps {
    fn on_sent(&mut self, _now: Instant, sent: &Piece, _on: SubflowId, _flight: &FlightView<'_>) {
        // It may fill a hole that the scheduler left.
        self.cursors.back_to(sent.from);
    }

    fn next(&mut self, _now: Instant, flight: &FlightView<'_>) -> Request {
        let mut best: Option<(Piece, &SubflowView)> = None;
        for (subflow, state) in flight.marked() {
            if !subflow.has_room_to_repeat() || !is_shut_out(subflow, flight) {
                continue;
            }
            let elsewhere = |piece: &Piece| piece.carriers.count() > 0 && !piece.carriers.meets(state.mark);
            let Some(piece) = self.cursors.next(subflow.id, flight, elsewhere) else { continue };
            let sooner = best.is_none_or(|(known, on)| {
                piece.from.before(known.from) || (piece.from == known.from && subflow.srtt < on.srtt)
            });
            if sooner {
                best = Some((piece, subflow));
            }
        }
        best.map(|(piece, on)| Repeat { on: on.id, from: piece.from, why: Why::Window }).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use anabranch_units::Bytes;

    const FAST: u16 = 0;
    const SLOW: u16 = 1;

    /// 20 and 30 ms, less than four times slower, with room on both; pieces 0 to 3 left on the slow, fast, slow and
    /// fast subflow. A segment waits for the peer's window.
    fn shut_out() -> (Scene, Daps) {
        let mut scene = Scene::new(&[20, 30]);
        for (number, on) in [(0, SLOW), (1, FAST), (2, SLOW), (3, FAST)] {
            scene.sent(number, 0, on);
        }
        (scene.unsent, scene.sendable) = (1, Some(0));
        (scene, Daps::default())
    }

    /// `opportunistic` would repeat nothing here, and on the slow subflow never.
    #[test]
    fn repeats_all_that_is_under_way_oldest_first() {
        let (mut scene, mut daps) = shut_out();
        assert_eq!(scene.copies(&mut daps, 0), [(0, FAST), (1, SLOW), (2, FAST), (3, SLOW)]);
        assert_eq!(scene.copies(&mut daps, 5), [], "each once on each");
    }

    #[test]
    fn does_nothing_while_new_data_may_leave_or_none_is_left() {
        for (unsent, sendable) in [(1, Some(1)), (5, Some(1)), (0, Some(0))] {
            let (mut scene, mut daps) = shut_out();
            (scene.unsent, scene.sendable) = (unsent, sendable);
            assert_eq!(scene.copies(&mut daps, 0), [], "{unsent}, {sendable:?}");
        }
    }

    #[test]
    fn of_several_with_room_the_one_with_the_lowest_srtt_repeats() {
        let mut scene = Scene::new(&[90, 50, 20]);
        let mut daps = Daps::default();
        scene.sent(0, 0, 2);
        scene.sent(1, 0, 1);
        (scene.unsent, scene.sendable) = (1, Some(0));
        assert_eq!(scene.copies(&mut daps, 0), [(0, 1), (0, 0), (1, 2), (1, 0)]);
    }

    #[test]
    fn without_room_it_waits_and_passes_over_what_is_acknowledged_meanwhile() {
        let (mut scene, mut daps) = shut_out();
        let full = scene.subflows[0].cwnd;
        scene.subflows[0].in_flight = full;
        assert_eq!(scene.copies(&mut daps, 0), [(1, SLOW), (3, SLOW)]);
        scene.acked(2);
        scene.subflows[0].in_flight = Bytes::ZERO;
        assert_eq!(scene.copies(&mut daps, 9), [(2, FAST)]);
    }

    #[test]
    fn what_fills_a_hole_later_is_repeated_as_well() {
        let mut scene = Scene::new(&[20, 30]);
        let mut daps = Daps::default();
        scene.sent(2, 0, SLOW);
        (scene.unsent, scene.sendable) = (1, Some(0));
        assert_eq!(scene.copies(&mut daps, 0), [(2, FAST)]);
        scene.send(&mut daps, 0, 1, SLOW);
        assert_eq!(scene.copies(&mut daps, 1), [(0, FAST)]);
    }
}
