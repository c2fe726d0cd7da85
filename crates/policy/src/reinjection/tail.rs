//! Tail: once all data is sent, the data in flight is sent a second time, on another path.
//!
//! XQUIC's default reinjection controller, behind which is Z. Zheng et al. *XLINK: QoE-Driven Multi-Path QUIC Transport
//! in Large-scale Video Services.* Proc. SIGCOMM 2021 (A-XQUIC). The last segments have no successors that would reveal
//! their loss, and no other data is left to send: a copy costs little and covers a short burst of losses, or a slow
//! path that holds the end of the data.
//!
//! While there is no unsent data, each piece under way that one subflow alone has carried is copied once, oldest first,
//! on a usable subflow with room that did not carry it: the one with the lowest SRTT, if there are several.
//!
//! Where we differ: XQUIC makes all copies at once and queues them; here a copy leaves when its subflow has room, and
//! data acknowledged meanwhile is not copied. "At most once" counts every mechanism: data repeated after a timeout has
//! had its copy. Includes `on-rto`, since QUIC sends lost data on any path.

use super::cursors::Cursors;
use super::{Capabilities, Entry, FlightView, Piece, Reinjection, Repeat, Request, Why};
use anabranch_units::Instant;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "tail",
    "once all data is sent, the data in flight is copied on another subflow",
    include_str!("tail.rs"),
    |_| Box::new(Tail::default()),
)
.paper("XQUIC default; Zheng et al. 2021 (XLINK)")
.capabilities(|_| Capabilities { copies: true, opportunities: false });

/// Tail reinjection for one connection.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    cursors: Cursors,
}

impl Reinjection for Tail {
    fn next(&mut self, _now: Instant, flight: &FlightView<'_>) -> Request {
        if !flight.view.unsent.is_zero() {
            // Data sent from here on may lie before the cursors, in holes that the scheduler left.
            self.cursors.clear();
            return Request::default();
        }
        let mut best = None;
        for (subflow, state) in flight.marked().filter(|(subflow, _)| subflow.has_room_to_repeat()) {
            let elsewhere = |piece: &Piece| piece.is_single() && !piece.carriers.meets(state.mark);
            let piece = self.cursors.next(subflow.id, flight, elsewhere);
            let key = (subflow.srtt, subflow.id);
            if let Some(piece) = piece.filter(|_| best.is_none_or(|(known, _)| key < known)) {
                best = Some((key, piece));
            }
        }
        best.map(|((_, on), piece)| Repeat { on, from: piece.from, why: Why::Tail }).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use anabranch_units::SubflowId;

    const FAST: u16 = 0;
    const SLOW: u16 = 1;

    #[test]
    fn copies_all_that_is_under_way_once_the_send_queue_is_empty() {
        let (mut scene, mut tail) = (Scene::new(&[20, 90]), Tail::default());
        for (number, on) in [(0, FAST), (1, SLOW), (2, FAST), (3, SLOW)] {
            scene.sent(number, 0, on);
        }
        scene.unsent = 1;
        assert_eq!(scene.copies(&mut tail, 0), [], "a segment is left");
        scene.unsent = 0;
        // The faster subflow has room and takes what it can; then the other the rest.
        assert_eq!(scene.copies(&mut tail, 0), [(1, FAST), (3, FAST), (0, SLOW), (2, SLOW)]);
        assert_eq!(scene.copies(&mut tail, 5), [], "each once");
    }

    #[test]
    fn a_copy_waits_for_room_and_what_is_acknowledged_meanwhile_needs_none() {
        let (mut scene, mut tail) = (Scene::new(&[20, 90]), Tail::default());
        for number in 0..4 {
            scene.sent(number, 0, SLOW);
        }
        scene.subflows[0].in_flight = scene.subflows[0].cwnd;
        assert_eq!(scene.copies(&mut tail, 0), [], "the slow subflow has room but carried them all");
        scene.subflows[0].in_flight = anabranch_units::Bytes::ZERO;
        scene.acked(2);
        assert_eq!(scene.copies(&mut tail, 10), [(2, FAST), (3, FAST)]);
    }

    #[test]
    fn what_was_repeated_for_another_reason_has_had_its_copy() {
        let (mut scene, mut tail) = (Scene::new(&[20, 90, 30]), Tail::default());
        scene.sent(0, 0, SLOW);
        scene.copied(&Repeat { on: SubflowId(2), from: super::super::testing::dsn(0), why: Why::Timer });
        assert_eq!(scene.copies(&mut tail, 0), []);
    }

    #[test]
    fn a_second_burst_is_copied_as_the_first_was_holes_included() {
        let (mut scene, mut tail) = (Scene::new(&[20, 90]), Tail::default());
        scene.sent(0, 0, FAST);
        scene.sent(2, 0, FAST);
        assert_eq!(scene.copies(&mut tail, 0), [(0, SLOW), (2, SLOW)]);
        scene.unsent = 1;
        assert_eq!(scene.copies(&mut tail, 1), []);
        scene.unsent = 0;
        scene.sent(1, 1, FAST);
        assert_eq!(scene.copies(&mut tail, 1), [(1, SLOW)], "it lies before what was copied");
    }

    #[test]
    fn a_copy_never_leaves_where_the_original_did() {
        let (mut scene, mut tail) = (Scene::new(&[20]), Tail::default());
        scene.sent(0, 0, FAST);
        assert_eq!(scene.copies(&mut tail, 0), []);
    }
}
