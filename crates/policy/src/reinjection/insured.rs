//! Insured: opportunistic at a full window, and once everything is sent, copies of the end within a budget.
//!
//! A full window is for [`Opportunistic`](super::Opportunistic), which is part of this policy. When nothing unsent is
//! left, data under way on a slow path, or lost without anything behind them that would show the loss, hold the end up
//! while faster subflows idle.
//!
//! So while there is no unsent data, the subflow with the lowest SRTT of those with room looks at what others carry,
//! newest data first, since they arrive last, and copies a piece that nobody has repeated if
//!
//! 1. *rescue*: the copy should arrive before the original;
//! 2. *overdue*: its acknowledgment is late by four variations, `now > sent + srtt + 4 · max(rttvar, 1 ms)`;
//! 3. *insurance*: neither, but the carrier loses data, and half of the budget is left.
//!
//! A segment should arrive one way after its sending, `srtt - rtt_min / 2`: a queue stands in the direction of the data.
//! It does so later if the path's rate is known and what is under way before it needs longer at that rate.
//!
//! Copies of all kinds stay below `allowance` segments and `share` of what was sent for the first time, which bounds
//! what others at a bottleneck lose to them.

use super::{Opportunistic, Opportunity, Picture, Piece, Reinjection, Repeat, Rescue, Standing, Why};
use crate::SubflowView;
use crate::registry::{Domain, Parameter, Params};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "penalise",
        about: "halve the windows of the slower subflows that hold the oldest data",
        unit: "",
        domain: Domain::Flag { default: true },
    },
    Parameter {
        name: "share",
        about: "bytes copied at most, of those sent for the first time",
        unit: "%",
        domain: Domain::Number { default: 30.0, min: 0.0, max: 100.0 },
    },
    Parameter {
        name: "allowance",
        about: "segments that may be copied besides",
        unit: "segments",
        domain: Domain::Number { default: 10.0, min: 0.0, max: 10_000.0 },
    },
];

/// Insured reinjection for one connection.
#[derive(Debug)]
pub struct Insured {
    opportunistic: Opportunistic,
    share: f64,
    allowance: f64,
    /// Bytes sent for the first time.
    sent: u64,
    /// Bytes copied.
    copied: u64,
}

/// Pieces that one subflow looks at, from the end of the data on, before it gives up.
const REACH: usize = 512;
/// Part of the budget that insurance may use.
const INSURANCE: f64 = 0.5;
/// A loss estimate below this is none.
const LOSSLESS: f64 = 1e-4;

impl Insured {
    /// With the bounds in `params`.
    pub fn new(params: &Params) -> Self {
        Insured {
            opportunistic: Opportunistic::new(params.flag("penalise")),
            share: params.number("share") / 100.0,
            allowance: params.number("allowance"),
            sent: 0,
            copied: 0,
        }
    }

    /// Whether `part` of the budget has room for another segment.
    fn affords(&self, subflow: &SubflowView, part: f64) -> bool {
        let mss = subflow.mss.as_f64();
        let budget = self.allowance * mss + self.share * self.sent as f64;
        self.copied as f64 + mss <= part * budget
    }

    /// Whether a copy of `piece` on `on` is worth its bytes now; its carrier has sent `behind` bytes after it.
    fn pays(&self, now: Instant, piece: &Piece, behind: u64, on: &SubflowView, carrier: &SubflowView) -> bool {
        let before = carrier.in_flight.saturating_sub(Bytes::new(behind));
        let original = (piece.sent + carrier.one_way_delay()).max(drained(now, before, carrier));
        let copy = (now + on.one_way_delay()).max(drained(now, on.in_flight + on.mss, on));
        copy < original || now > overdue(piece, carrier) || (carrier.loss > LOSSLESS && self.affords(on, INSURANCE))
    }

    /// The newest piece under way that `on` should copy.
    fn newest(&self, now: Instant, on: &SubflowView, standing: &Standing, picture: &Picture<'_>) -> Option<Piece> {
        let una = picture.view.data_una;
        let mut end = picture.view.unsent_from;
        let mut behind = [0; u16::BITS as usize];
        for _ in 0..REACH {
            if !una.before(end) {
                return None;
            }
            let last = Dsn::new(end.get().wrapping_sub(1));
            let piece = picture.outstanding.piece(last)?;
            if piece.is_single() && !piece.carriers.meets(standing.mark) {
                let Some(carrier) = carrier(&piece, picture) else { return Some(piece) };
                let slot = piece.carriers.bits().trailing_zeros() as usize;
                if self.pays(now, &piece, behind[slot], on, carrier) {
                    return Some(piece);
                }
            }
            let carried = |slot: &usize| piece.carriers.bits() & 1 << slot != 0;
            (0..behind.len()).filter(carried).for_each(|slot| behind[slot] += piece.length.get());
            end = piece.from;
        }
        None
    }
}

/// The view of the only subflow that carried `piece`; `None` if it is not usable any more.
fn carrier<'a>(piece: &Piece, picture: &Picture<'a>) -> Option<&'a SubflowView> {
    picture.marked().find(|(_, standing)| standing.mark == piece.carriers).map(|(subflow, _)| subflow)
}

/// When the last of so many bytes under way leaves the path at its rate, if that is known.
fn drained(now: Instant, bytes: Bytes, subflow: &SubflowView) -> Instant {
    subflow.path_rate.map_or(now, |rate| now + rate.time_for(bytes))
}

/// The time from which on the acknowledgment of `piece` is late.
fn overdue(piece: &Piece, carrier: &SubflowView) -> Instant {
    piece.sent + carrier.srtt + carrier.rttvar.max(Duration::from_millis(1)) * 4
}

impl Reinjection for Insured {
    fn copies(&self) -> bool {
        true
    }

    fn on_opportunity(&mut self, now: Instant, opportunity: &Opportunity<'_>) -> Rescue {
        self.opportunistic.on_opportunity(now, opportunity)
    }

    fn on_sent(&mut self, _now: Instant, sent: &Piece, _on: SubflowId, _picture: &Picture<'_>) {
        self.sent += sent.length.get();
    }

    fn next(&mut self, now: Instant, picture: &Picture<'_>) -> Option<Repeat> {
        if !picture.view.unsent.is_zero() {
            return None;
        }
        let takers = picture.marked().filter(|(subflow, _)| subflow.has_room_to_repeat() && self.affords(subflow, 1.0));
        let copy = takers.filter_map(|(subflow, standing)| {
            self.newest(now, subflow, standing, picture).map(|piece| (subflow.srtt, subflow, piece))
        });
        let (_, on, piece) = copy.min_by_key(|(srtt, on, _)| (*srtt, on.id))?;
        self.copied += piece.length.get().min(on.mss.get());
        Some(Repeat { on: on.id, from: piece.from, why: Why::Tail })
    }

    fn wake(&mut self, _now: Instant, picture: &Picture<'_>) -> Option<Instant> {
        if !picture.view.unsent.is_zero() {
            return None;
        }
        let oldest = picture.outstanding.piece(picture.view.data_una).filter(Piece::is_single)?;
        carrier(&oldest, picture).map(|carrier| overdue(&oldest, carrier) + Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, at};
    use super::*;
    use crate::registry::{REINJECTIONS, Value, find};
    use anabranch_units::Rate;

    const FAST: u16 = 0;
    const SLOW: u16 = 1;

    fn insured(share: f64, allowance: f64) -> Insured {
        let entry = find(REINJECTIONS, "reinjection", "insured").expect("it is registered");
        let given = [("share".to_owned(), Value::Number(share)), ("allowance".to_owned(), Value::Number(allowance))];
        Insured::new(&entry.params(&given.into()).expect("they are in range"))
    }

    /// 20 and 90 ms; one way therefore 10 and 45 ms.
    fn two_paths() -> Scene {
        Scene::new(&[20, 90])
    }

    #[test]
    fn repeats_what_the_copy_overtakes_the_newest_first() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
        for (number, ms, on) in [(0, 0, SLOW), (1, 30, SLOW), (2, 30, FAST), (3, 30, SLOW)] {
            scene.sent(number, ms, on);
        }
        scene.unsent = 1;
        assert_eq!(scene.copies(&mut insured, 40), [], "there is something new to send");
        scene.unsent = 0;
        // Originals of the slow subflow arrive at 45 and 75 ms, a copy at 50 ms. Nothing is late, nothing was lost.
        assert_eq!(scene.copies(&mut insured, 40), [(3, FAST), (1, FAST)]);
    }

    #[test]
    fn what_queues_on_a_slow_link_arrives_when_the_queue_has_drained() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
        for number in 0..5 {
            scene.sent(number, 0, FAST);
        }
        scene.subflows[0].in_flight = Bytes::new(5000);
        assert_eq!(scene.copies(&mut insured, 1), [], "in 9 ms all are there, as far as the RTT tells");
        // At 500 kbit/s the last needs 80 ms more, the one before it 64, and 48; a copy arrives after 45.
        scene.subflows[0].path_rate = Some(Rate::from_bps(500_000));
        assert_eq!(scene.copies(&mut insured, 1), [(4, SLOW), (3, SLOW), (2, SLOW)]);
    }

    #[test]
    fn what_is_late_is_repeated_when_the_timer_says_so() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
        scene.sent(0, 0, FAST);
        // 20 ms, and four times the least variation.
        let woken = scene.show(|picture| insured.wake(at(0), picture)).expect("something is under way");
        assert!(woken > at(24) && woken < at(25));
        assert_eq!(scene.copies(&mut insured, 24), []);
        assert_eq!(scene.copies(&mut insured, 25), [(0, SLOW)]);
    }

    #[test]
    fn a_path_that_loses_is_insured_with_half_of_the_budget() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 6.0));
        for number in 0..8 {
            scene.sent(number, 0, FAST);
        }
        scene.subflows[0].loss = 0.01;
        assert_eq!(scene.copies(&mut insured, 1), [(7, SLOW), (6, SLOW), (5, SLOW)]);
        // The rest is for what is late.
        assert_eq!(scene.copies(&mut insured, 30), [(4, SLOW), (3, SLOW), (2, SLOW)]);
    }

    #[test]
    fn the_budget_grows_with_what_is_sent() {
        let (mut scene, mut insured) = (two_paths(), insured(10.0, 0.0));
        (0..25).for_each(|number| scene.send(&mut insured, number, 0, SLOW));
        assert_eq!(scene.copies(&mut insured, 1), [(24, FAST), (23, FAST)], "a tenth of 25, whole segments");
    }
}
