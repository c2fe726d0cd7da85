//! Deadline: data in flight for too long is sent a second time, on the best other path.
//!
//! XQUIC's deadline reinjection controller, behind which is Z. Zheng et al. *XLINK: QoE-Driven Multi-Path QUIC
//! Transport in Large-scale Video Services.* Proc. SIGCOMM 2021 (A-XQUIC). Before new data is scheduled, a piece is
//! copied once that was first sent at least
//! ```text
//! max( min(factor · min_srtt, hard), floor )      factor 1.1, hard 500 ms, floor 20 ms
//! ```
//! ago, with the lowest SRTT of the usable subflows; and after sending, at once, one that left on a path that is
//! classed low at that moment. Classes have the defaults of XQUIC, and all their limits are parameters:
//! ```text
//! low:   srtt > 2 s,  or at least 2 probe timeouts in a row,  or loss > 30 %
//! mid:   srtt > min(500 ms, 3 · min_srtt),  or bandwidth < 375 kB/s,  or loss > 10 %
//! ```
//!
//! Reconstructed: the subflow of the copy. It is usable, has room, did not carry the piece, is of the best such class,
//! and of these has the lowest SRTT. XLINK also asks how full the player's buffer is, which a byte stream does not
//! know.
//!
//! Where we differ: "at most once" counts every mechanism; a copy leaves when its subflow has room; a probe timeout is
//! a retransmission timeout here, bandwidth is cwnd / SRTT, loss is the decayed estimate that schedulers see. Includes
//! `on-rto`, since QUIC sends lost data on any path.

use super::class::{Class, LOW_LOSS, LOW_SRTT, LOW_TIMEOUTS, Limits, MID_FACTOR, MID_LOSS, MID_RATE, MID_SRTT};
use super::flight::{Flight, under_way};
use super::{Capabilities, Entry, FlightView, Piece, Reinjection, Repeat, Request, SubflowState, Why};
use crate::SubflowView;
use crate::registry::{Number, Params, number};
use anabranch_units::{Duration, Instant, SubflowId};

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "deadline",
    "copies data in flight for longer than about a round trip, or sent on a path classed low",
    include_str!("deadline.rs"),
    |p| Box::new(Deadline::new(p)),
)
.paper("XQUIC deadline; Zheng et al. 2021 (XLINK)")
.parameters(&[
    FACTOR.parameter(),
    HARD.parameter(),
    FLOOR.parameter(),
    LOW_SRTT.parameter(),
    LOW_TIMEOUTS.parameter(),
    LOW_LOSS.parameter(),
    MID_SRTT.parameter(),
    MID_FACTOR.parameter(),
    MID_RATE.parameter(),
    MID_LOSS.parameter(),
])
.capabilities(|_| Capabilities { copies: true, opportunities: false });

const FACTOR: Number = number("factor", "the deadline in lowest SRTTs", 1.1, 0.0..=100.0);
const HARD: Number = number("hard", "the deadline at most", 500.0, 1.0..=60_000.0).in_unit("ms");
const FLOOR: Number =
    number("floor", "the deadline at least; counts more than `hard`", 20.0, 1.0..=60_000.0).in_unit("ms");

/// Deadline reinjection for one connection.
#[derive(Debug)]
pub struct Deadline {
    factor: f64,
    hard: Duration,
    floor: Duration,
    limits: Limits,
    /// Transmissions of each subflow, in the order of sending, so that those due stand in front.
    lanes: Vec<Lane>,
    /// True once data in flight at the beginning has been taken over.
    begun: bool,
}

/// First transmissions of one subflow.
#[derive(Debug)]
struct Lane {
    on: SubflowId,
    /// All of them.
    aging: Flight,
    /// Those that left while the path was classed low.
    low: Flight,
}

impl Deadline {
    /// Reads the limits from `params`.
    pub fn new(params: &Params) -> Self {
        Deadline {
            factor: FACTOR.of(params),
            hard: milliseconds(params, HARD),
            floor: milliseconds(params, FLOOR),
            limits: Limits::new(params),
            lanes: Vec::new(),
            begun: false,
        }
    }

    /// The age from which on a piece is copied.
    fn limit(&self, min_srtt: Duration) -> Duration {
        min_srtt.mul_f64(self.factor).min(self.hard).max(self.floor)
    }

    fn lane(&mut self, on: SubflowId) -> &mut Lane {
        let at = self.lanes.iter().position(|lane| lane.on == on).unwrap_or_else(|| {
            self.lanes.push(Lane { on, aging: Flight::default(), low: Flight::default() });
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    /// Takes over what was under way when this policy was put in place of another. True if that is all there is.
    fn begin(&mut self, flight: &FlightView<'_>) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            return false;
        }
        for piece in under_way(flight.view.data_una, flight.outstanding) {
            let carrier = flight.states.iter().find(|state| state.mark == piece.carriers);
            if let Some(carrier) = carrier {
                self.lane(carrier.id).aging.push(&piece);
            }
        }
        true
    }

    /// The class of each path decides between those that can take the piece, then the SRTT.
    fn taker(&self, flight: &FlightView<'_>, piece: &Piece, min_srtt: Duration) -> Option<SubflowId> {
        let takers = flight
            .marked()
            .filter(|(subflow, state)| subflow.has_room_to_repeat() && !state.mark.meets(piece.carriers));
        let key = |(subflow, state): &(&SubflowView, &SubflowState)| {
            (self.limits.class(subflow, state.timeouts, min_srtt), subflow.srtt, subflow.id)
        };
        takers.min_by_key(key).map(|(subflow, _)| subflow.id)
    }

    /// The first copy that is due and that a subflow can take.
    fn copy(&mut self, now: Instant, flight: &FlightView<'_>) -> Option<Repeat> {
        self.begin(flight);
        let min_srtt = flight.view.fastest()?.srtt;
        let limit = self.limit(min_srtt);
        for at in 0..self.lanes.len() {
            let lane = &mut self.lanes[at];
            let low = lane.low.first_single(flight).map(|(_, piece)| (piece, Why::LowPath));
            let aged = lane.aging.first_single(flight).filter(|(sent, _)| now.since(*sent) >= limit);
            let due = low.or(aged.map(|(_, piece)| (piece, Why::Deadline)));
            if let Some((piece, why)) = due
                && let Some(on) = self.taker(flight, &piece, min_srtt)
            {
                return Some(Repeat { on, from: piece.from, why });
            }
        }
        None
    }
}

impl Reinjection for Deadline {
    fn on_sent(&mut self, _now: Instant, sent: &Piece, on: SubflowId, flight: &FlightView<'_>) {
        let una = flight.view.data_una;
        let taken_over = self.begin(flight);
        let low = flight.view.fastest().is_some_and(|fastest| {
            let sender = flight.marked().find(|(subflow, _)| subflow.id == on);
            sender
                .is_some_and(|(subflow, state)| self.limits.class(subflow, state.timeouts, fastest.srtt) == Class::Low)
        });
        let lane = self.lane(on);
        lane.aging.release(una);
        lane.low.release(una);
        if !taken_over {
            lane.aging.push(sent);
        }
        if low {
            lane.low.push(sent);
        }
    }

    fn next(&mut self, now: Instant, flight: &FlightView<'_>) -> Request {
        self.copy(now, flight).into()
    }

    fn wake(&mut self, now: Instant, flight: &FlightView<'_>) -> Option<Instant> {
        let limit = self.limit(flight.view.fastest()?.srtt);
        let fronts = self.lanes.iter_mut().filter_map(|lane| lane.aging.first_single(flight));
        // Data that is due and still in flight waits for room, and an acknowledgment gives that.
        fronts.map(|(sent, _)| sent + limit).filter(|at| *at > now).min()
    }
}

fn milliseconds(params: &Params, number: Number) -> Duration {
    Duration::from_secs_f64(number.of(params) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, at};
    use super::*;
    use crate::registry::{REINJECTIONS, find};
    use anabranch_units::Bytes;

    const FAST: u16 = 0;
    const SLOW: u16 = 1;

    fn deadline() -> Deadline {
        let entry = find(REINJECTIONS, "reinjection", "deadline").expect("it is registered");
        Deadline::new(&entry.params(&Default::default()).expect("defaults are accepted"))
    }

    fn wake(scene: &Scene, policy: &mut Deadline, ms: u64) -> Option<Instant> {
        scene.show(|flight| policy.wake(at(ms), flight))
    }

    /// max(min(1.1 · min_srtt, 500), 20), by a throw-away Python script in exact fractions.
    #[test]
    fn the_deadline_of_the_reference() {
        for (min_srtt_us, limit_us) in [
            (1_000, 20_000),
            (18_000, 20_000),
            (18_181, 20_000), // 19,999.1
            (18_190, 20_009),
            (20_000, 22_000),
            (100_000, 110_000),
            (454_000, 499_400),
            (454_545, 499_999), // 499,999.5
            (454_550, 500_000), // 500,005
            (2_000_000, 500_000),
        ] {
            let limit = deadline().limit(Duration::from_micros(min_srtt_us));
            assert!(
                limit.abs_diff(Duration::from_micros(limit_us)) < Duration::from_micros(1),
                "{min_srtt_us}: {limit}"
            );
        }
    }

    /// SRTTs of 40 and 100 ms: the deadline is 44 ms.
    #[test]
    fn what_is_under_way_for_too_long_is_copied_before_new_data() {
        let (mut scene, mut policy) = (Scene::new(&[40, 100]), deadline());
        scene.unsent = 100;
        scene.send(&mut policy, 0, 0, SLOW);
        scene.send(&mut policy, 1, 10, FAST);
        scene.send(&mut policy, 2, 12, SLOW);
        assert_eq!(scene.copies(&mut policy, 43), []);
        assert_eq!(wake(&scene, &mut policy, 43), Some(at(44)));
        assert_eq!(scene.copies(&mut policy, 44), [(0, FAST)]);
        assert_eq!(wake(&scene, &mut policy, 44), Some(at(54)));
        assert_eq!(scene.copies(&mut policy, 60), [(2, FAST), (1, SLOW)]);
        assert_eq!((scene.copies(&mut policy, 500), wake(&scene, &mut policy, 500)), (vec![], None), "each once");
    }

    #[test]
    fn what_is_acknowledged_in_time_is_not_copied() {
        let (mut scene, mut policy) = (Scene::new(&[40, 100]), deadline());
        (0..3).for_each(|number| scene.send(&mut policy, number, number, FAST));
        scene.acked(2);
        assert_eq!(wake(&scene, &mut policy, 40), Some(at(46)));
        assert_eq!(scene.copies(&mut policy, 100), [(2, SLOW)]);
    }

    #[test]
    fn one_subflow_out_of_room_does_not_hold_up_copies_to_the_other() {
        let (mut scene, mut policy) = (Scene::new(&[40, 100]), deadline());
        scene.send(&mut policy, 0, 0, SLOW);
        scene.send(&mut policy, 1, 1, FAST);
        scene.subflows[0].in_flight = scene.subflows[0].cwnd;
        assert_eq!(scene.copies(&mut policy, 50), [(1, SLOW)]);
        assert_eq!(wake(&scene, &mut policy, 50), None, "room is what it waits for, not time");
        scene.subflows[0].in_flight = Bytes::ZERO;
        assert_eq!(scene.copies(&mut policy, 51), [(0, FAST)]);
    }

    #[test]
    fn what_leaves_on_a_low_path_is_copied_at_once() {
        let (mut scene, mut policy) = (Scene::new(&[40, 100]), deadline());
        scene.subflows[1].loss = 0.4;
        scene.send(&mut policy, 0, 0, SLOW);
        scene.send(&mut policy, 1, 0, FAST);
        let low = scene.show(|flight| policy.next(at(0), flight)).repeat;
        assert_eq!(low.map(|repeat| (repeat.on.0, repeat.why)), Some((FAST, Why::LowPath)));
        assert_eq!(scene.copies(&mut policy, 0), [(0, FAST)]);
        // It has recovered: what leaves now waits for the deadline.
        scene.subflows[1].loss = 0.0;
        scene.send(&mut policy, 2, 1, SLOW);
        assert_eq!(scene.copies(&mut policy, 1), []);
        // Two timeouts in a row make it low as well.
        scene.states[1].timeouts = 2;
        scene.send(&mut policy, 3, 2, SLOW);
        assert_eq!(scene.copies(&mut policy, 2), [(3, FAST)]);
    }

    /// 60 ms is the lower SRTT, but with 20 % loss the path is mid, and the one of 90 ms is high.
    #[test]
    fn the_copy_goes_to_the_better_class_and_then_to_the_lower_srtt() {
        let (mut scene, mut policy) = (Scene::new(&[40, 60, 90]), deadline());
        for subflow in &mut scene.subflows {
            subflow.cwnd = Bytes::new(100_000);
        }
        scene.send(&mut policy, 0, 0, FAST);
        scene.send(&mut policy, 1, 1, FAST);
        scene.subflows[1].loss = 0.2;
        assert_eq!(scene.copies(&mut policy, 44), [(0, 2)]);
        scene.subflows[1].loss = 0.0;
        assert_eq!(scene.copies(&mut policy, 45), [(1, 1)]);
    }

    #[test]
    fn put_in_place_of_another_it_knows_the_age_of_what_is_under_way() {
        let (mut scene, mut policy) = (Scene::new(&[40, 100]), deadline());
        scene.sent(0, 9, FAST);
        scene.sent(1, 5, FAST);
        assert_eq!(scene.copies(&mut policy, 49), [(1, SLOW)]);
        assert_eq!(wake(&scene, &mut policy, 49), Some(at(53)));
    }
}
