//! Redundancy: every first transmission is copied on the other usable subflows, as they have room.
//!
//! The reinjection-side sibling of the `redundant` scheduler, and put together here from it (A-REDUNDANT): the lowest
//! latency that copies can buy, at the price of the best path's rate in place of the sum.
//!
//! Each subflow goes through the first transmissions of the others, in the order of sending, and copies those that it
//! has not carried before it gets new data. Acknowledged data is skipped, so a subflow that lags jumps forward. Backup
//! subflows carry copies only when no regular one is usable.
//!
//! Difference between the two: the scheduler decides itself where the first copy of a segment leaves, so each subflow
//! runs through the data at its own pace. Here any scheduler decides that: one that waits for the fast subflow keeps
//! doing so, and the slow ones, which it would have left idle, carry the copies.
//!
//! The bound (reconstructed): at most `copies` copies of a piece, whatever their reason; each subflow carries a piece
//! once; and acknowledged data is never copied, so there is never more to copy than the data in flight. Includes
//! `on-rto`.

use super::flight::{Flight, under_way};
use super::{Capabilities, Entry, FlightView, Piece, Reinjection, Repeat, Request, Why};
use crate::registry::{Number, Params, number};
use anabranch_units::{Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "redundant",
    "copies everything on the other subflows as they have room, whatever the scheduler",
    include_str!("redundant.rs"),
    |p| Box::new(Redundant::new(p)),
)
.parameters(&[COPIES.parameter()])
.capabilities(|_| Capabilities { copies: true, opportunities: false });

const COPIES: Number = number("copies", "copies of a piece beside the original, at most", 7.0, 1.0..=15.0);

/// Redundant reinjection for one connection.
#[derive(Debug)]
pub struct Redundant {
    copies: u32,
    flight: Flight,
    /// Subflows, each with the number of the entry of `flight` it has come to.
    cursors: Vec<(SubflowId, u64)>,
    /// True once data in flight at the beginning has been taken over.
    begun: bool,
}

impl Redundant {
    /// Reads the bound from `params`.
    pub fn new(params: &Params) -> Self {
        let copies = COPIES.of(params) as u32;
        Redundant { copies, flight: Flight::default(), cursors: Vec::new(), begun: false }
    }

    /// Takes over what was under way when this policy was put in place of another. True if that is all there is.
    fn begin(&mut self, shown: &FlightView<'_>) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            return false;
        }
        under_way(shown.view.data_una, shown.outstanding).iter().for_each(|piece| self.flight.push(piece));
        true
    }

    /// Returns the next piece that this subflow has to copy.
    fn due(&mut self, on: SubflowId, mark: super::SubflowSet, shown: &FlightView<'_>) -> Option<Piece> {
        let (flight, copies) = (&self.flight, self.copies);
        let at = self.cursors.iter().position(|(id, _)| *id == on).unwrap_or_else(|| {
            self.cursors.push((on, flight.first()));
            self.cursors.len() - 1
        });
        let cursor = &mut self.cursors[at].1;
        *cursor = (*cursor).max(flight.first());
        let due = |piece: &Piece| !piece.carriers.meets(mark) && (1..=copies).contains(&piece.carriers.count());
        while let Some(sending) = flight.get(*cursor) {
            let piece = shown.first_piece(sending.from, sending.end, due);
            if piece.is_some() {
                return piece;
            }
            *cursor += 1;
        }
        None
    }
}

impl Reinjection for Redundant {
    fn on_sent(&mut self, _now: Instant, sent: &Piece, _on: SubflowId, shown: &FlightView<'_>) {
        self.flight.release(shown.view.data_una);
        if !self.begin(shown) {
            self.flight.push(sent);
        }
    }

    fn next(&mut self, _now: Instant, shown: &FlightView<'_>) -> Request {
        self.begin(shown);
        self.flight.release(shown.view.data_una);
        for (subflow, state) in shown.marked().filter(|(subflow, _)| subflow.has_room_to_repeat()) {
            if let Some(piece) = self.due(subflow.id, state.mark, shown) {
                return Repeat { on: subflow.id, from: piece.from, why: Why::Redundancy }.into();
            }
        }
        Request::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, at};
    use super::*;
    use crate::registry::{REINJECTIONS, Value, find};
    use anabranch_units::Bytes;

    fn redundant(copies: f64) -> Redundant {
        let entry = find(REINJECTIONS, "reinjection", "redundant").expect("it is registered");
        let given = [("copies".to_owned(), Value::Number(copies))].into();
        Redundant::new(&entry.params(&given).expect("it is accepted"))
    }

    #[test]
    fn each_subflow_copies_what_the_others_sent() {
        let (mut scene, mut policy) = (Scene::new(&[20, 90, 50]), redundant(7.0));
        scene.unsent = 5;
        scene.send(&mut policy, 0, 0, 0);
        scene.send(&mut policy, 1, 0, 1);
        assert_eq!(scene.copies(&mut policy, 0), [(1, 0), (0, 1), (0, 2), (1, 2)]);
        scene.send(&mut policy, 2, 1, 0);
        assert_eq!(scene.copies(&mut policy, 1), [(2, 1), (2, 2)]);
    }

    #[test]
    fn the_bound_counts_copies_however_they_came_about() {
        let (mut scene, mut policy) = (Scene::new(&[20, 90, 50]), redundant(1.0));
        scene.send(&mut policy, 0, 0, 0);
        assert_eq!(scene.copies(&mut policy, 0), [(0, 1)]);
        scene.send(&mut policy, 1, 0, 1);
        scene.copied(&Repeat { on: SubflowId(2), from: super::super::testing::dsn(1), why: Why::Timer });
        assert_eq!(scene.copies(&mut policy, 0), []);
    }

    /// Copies follow the order of sending: a hole that is filled later is copied after the data sent ahead of it.
    #[test]
    fn a_subflow_that_lags_jumps_over_what_is_acknowledged() {
        let (mut scene, mut policy) = (Scene::new(&[20, 90]), redundant(7.0));
        let full = scene.subflows[1].cwnd;
        scene.subflows[1].in_flight = full;
        for number in [4, 0, 1, 2, 3] {
            scene.send(&mut policy, number, 0, 0);
        }
        assert_eq!(scene.copies(&mut policy, 0), [], "no room");
        scene.acked(2);
        scene.subflows[1].in_flight = Bytes::ZERO;
        assert_eq!(scene.copies(&mut policy, 9), [(4, 1), (2, 1), (3, 1)]);
        scene.acked(5);
        scene.send(&mut policy, 5, 10, 1);
        assert_eq!(scene.copies(&mut policy, 10), [(5, 0)]);
        assert_eq!(policy.flight.first(), 5, "what is acknowledged is forgotten");
    }

    #[test]
    fn put_in_place_of_another_it_copies_what_is_under_way() {
        let (mut scene, mut policy) = (Scene::new(&[20, 90]), redundant(7.0));
        scene.sent(0, 5, 0);
        scene.sent(1, 3, 0);
        assert_eq!(scene.copies(&mut policy, 6), [(1, 1), (0, 1)]);
        let mut other = redundant(7.0);
        scene.sent(2, 7, 0);
        let piece = scene.pieces[2];
        scene.show(|shown| other.on_sent(at(7), &piece, SubflowId(0), shown));
        assert_eq!(scene.copies(&mut other, 7), [(2, 1)], "once, though both were told");
    }
}
