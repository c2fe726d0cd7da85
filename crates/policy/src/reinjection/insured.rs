//! Insured: copies of data that holds up other data or comes last, within a budget.
//!
//! Two moments make a copy worth its bytes. When all data has been sent, the end waits for data in flight on a slow
//! path, or lost without later data that would reveal the loss, while faster subflows idle. When the peer's window
//! admits less than a subflow could send in a round trip, the oldest data hold up all new data.
//!
//! Then the subflow with the lowest SRTT of those with room inspects the data in flight on the others, unless one whose
//! window is full should bring a copy earlier even so, and copies data that has not been repeated if it is
//!
//! 1. *late*: counted as lost there and not sent again; or its acknowledgment is late by four variations,
//!    `now > sent + srtt + max(4 · rttvar, 4 ms)`; or the subflow is silent for as long, or for twice the SRTT, with
//!    data in flight (a failed path is one loss, not many); or the subflow is not usable;
//! 2. *overtaken*: the copy should arrive before the original may be expected, four variations behind its arrival, by a
//!    millisecond at least: what holds up the end is the path that turns out slower than it was;
//! 3. *insured*: neither, but all data has been sent, the carrier loses data, and half of the budget is left. A path
//!    that has carried 128 segments and lost none loses nothing.
//!
//! Late data go first, the oldest of them. At the end of the data the last to arrive follow, at a full window the
//! oldest.
//!
//! A thin stream, of messages that together stay below 100 kbit/s (speech, calls, keys), is copied whole once there is
//! nothing else to send: what a copy costs there no other flow feels, and each message is there when the faster path
//! has brought it, lost or late on the other or not. These copies count in no budget, and go on no path that would
//! bring them later than the other path its own repair.
//!
//! A segment should arrive one way after its sending, `srtt - rtt_min / 2`: a queue stands in the direction of the
//! data. It arrives later if the path's rate is known and the data in flight before it needs longer at that rate.
//!
//! Copies of lost data stay below `allowance` segments plus `share` of the first transmissions, and so do all others
//! together, which bounds the rate that they take from others at a bottleneck. Copies of data that is neither lost nor
//! on a failed path (silent while another is heard) also stay below 100 kB, 250 kB/s and ten times the loss rate of
//! what is sent: where paths are fast and lose nothing, a copy saves microseconds and takes the place of new data.
//! Includes [`Opportunistic`](super::Opportunistic), whose copies at a full window have the second bound alone.

use super::budget::{Budget, Need};
use super::opportunistic::pays;
use super::thin_stream::ThinStream;
use super::{
    Capabilities, Entry, FlightView, Opportunistic, Order, Piece, Reinjection, Repeat, Request, SubflowSet,
    SubflowState, Transmission, Why,
};
use crate::SubflowView;
use crate::registry::{Flag, Number, Params, flag, number};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};
use std::cmp::Reverse;

/// Entry in the table of its kind.
pub const ENTRY: Entry = Entry::new(
    "insured",
    "opportunistic; once all data is sent, copies its end where that pays, within a budget",
    include_str!("insured.rs"),
    |p| Box::new(Insured::new(p)),
)
.parameters(&[PENALISE.parameter(), SHARE.parameter(), ALLOWANCE.parameter()])
.capabilities(|_| Capabilities { copies: true, opportunities: true });

const PENALISE: Flag = flag("penalise", "halve the windows of the slower subflows that hold the oldest data", true);
const SHARE: Number = number(
    "share",
    "bytes copied at most of those sent for the first time, lost ones and others each, but for thin streams",
    30.0,
    0.0..=100.0,
)
.in_unit("%");
const ALLOWANCE: Number =
    number("allowance", "segments that may be copied besides", 10.0, 0.0..=10_000.0).in_unit("segments");

/// Insured reinjection for one connection.
#[derive(Debug)]
pub struct Insured {
    opportunistic: Opportunistic,
    budget: Budget,
    thin: ThinStream,
}

/// Transmissions that were repeated already and that are passed in search of one that was not.
const REACH: usize = 512;
/// Gain in time below which a copy is not worth its bytes: arrivals are not foretold better than this.
const LEAST_GAIN: Duration = Duration::from_millis(1);

impl Insured {
    /// Reads the bounds from `params`.
    pub fn new(params: &Params) -> Self {
        Insured {
            opportunistic: Opportunistic::new(PENALISE.of(params)),
            budget: Budget::new(SHARE.of(params) / 100.0, ALLOWANCE.of(params)),
            thin: ThinStream::default(),
        }
    }

    /// The copy of the oldest data on `on`, which pays, if the budget has room for it.
    fn at_opportunity(&mut self, now: Instant, on: SubflowId, flight: &FlightView<'_>) -> Request {
        let mss = flight.view.subflow(on).map_or(Bytes::ZERO, |subflow| subflow.mss);
        if !self.budget.affords(mss, Need::Window) {
            return Request::default();
        }
        let request = self.opportunistic.next(now, flight);
        if let Some(repeat) = &request.repeat {
            let length = flight.outstanding.piece(repeat.from).map_or(mss, |piece| piece.length);
            self.budget.on_copied(length.min(mss), false);
        }
        request
    }

    /// The copy that pays most, on the subflow with the lowest SRTT of those with room.
    fn best(&mut self, now: Instant, flight: &FlightView<'_>) -> Option<Repeat> {
        let ends = flight.view.unsent.is_zero();
        let thin = ends && self.thin.is_thin(now, flight.view);
        let wants = |(subflow, _): &Taker<'_>| ends || is_tight(flight, subflow);
        let affords = |subflow: &SubflowView| {
            thin || self.budget.affords(subflow.mss, Need::Lost) || self.budget.affords(subflow.mss, Need::Late)
        };
        let able = |(subflow, _): &Taker<'_>| subflow.has_room_to_repeat() && affords(subflow);
        let takers = flight.marked().filter(wants).filter(able);
        let best = takers.filter_map(|on| {
            let others = carriers(flight).filter(|carrier| carrier.state.id != on.1.id);
            let copies = others.filter_map(|carrier| match thin {
                true => whole(now, on, carrier, flight),
                false => self.copy(now, on, carrier, flight),
            });
            let copies = copies.filter(|copy| !is_earlier_elsewhere(now, on.0, copy.from, flight));
            // Late data first, the oldest of them; or else the last to arrive.
            let copy = copies.min_by_key(|copy| (copy.due.map(Reverse), copy.from.distance(flight.view.data_una)))?;
            Some((on.0.srtt, on.0, copy))
        });
        let (_, on, copy) = best.min_by_key(|(srtt, on, _)| (*srtt, on.id))?;
        if !thin {
            self.budget.on_copied(copy.length.min(on.mss), copy.lost);
        }
        Some(Repeat { on: on.id, from: copy.from, why: if ends { Why::Tail } else { Why::Window } })
    }

    /// The copy that `on` should send of data that `carrier` has under way.
    ///
    /// Runs for each packet, so that a search ends where no later transmission can be the answer.
    fn copy(&self, now: Instant, on: Taker<'_>, carrier: Carrier<'_>, flight: &FlightView<'_>) -> Option<Candidate> {
        let (view, state) = on;
        let ends = flight.view.unsent.is_zero();
        let affords_late = self.budget.affords(view.mss, Need::Late);
        // While the peer is heard here, a path that is silent has failed; if it is not, both wait for the peer. Where
        // nothing is under way here, nothing could be heard: then it counts what was since the other sent.
        let since = |its: &SubflowView, silent: Instant| match its.oldest_sent {
            Some(sent) if view.in_flight.is_zero() && now > silent && many(its) => sent,
            _ => silent,
        };
        let failed = |its: &SubflowView| its.silent_from().is_some_and(|silent| view.heard > since(its, silent));
        let healthy = carrier.view.filter(|its| !failed(its));
        let late = |piece: &Piece| carrier.view.is_some_and(|its| now > overdue(piece, its));
        // Lost data come first, then the oldest: behind data that are not late none are.
        let in_time =
            |at: &Transmission, _| !at.lost && healthy.is_some() && (!affords_late || (ends && !late(&at.piece)));
        // Late data are the oldest: the first that has not been repeated decides.
        if let Some((Transmission { piece, lost }, passed)) =
            first_single(carrier.state.id, Order::OldestFirst, state.mark, flight, in_time)
        {
            let arrival = || carrier.arrival(now, piece.sent, passed + piece.length);
            let pays =
                || late(&piece) || (!ends && carrier.view.is_some_and(|its| overtakes(now, view, arrival(), its)));
            let failed = healthy.is_none();
            let lost = lost || (failed && carrier.view.is_none_or(many));
            let repairs = lost && self.budget.affords(view.mss, Need::Lost);
            if repairs || (affords_late && (lost || failed || pays())) {
                return Some(Candidate { from: piece.from, length: piece.length, due: None, lost: repairs });
            }
        }
        let its = carrier.view.filter(|_| ends)?;
        let insures = self.budget.affords(view.mss, Need::Insurance { loss: its.loss });
        let pays = |arrival| insures || (affords_late && overtakes(now, view, arrival, its));
        // The last byte arrives no later than one that leaves now: on fast paths that ends most searches before they
        // begin.
        if !pays(carrier.arrival(now, now, its.in_flight)) {
            return None;
        }
        let before = |behind| its.in_flight.saturating_sub(behind);
        // What left earlier arrives earlier: where a copy does not overtake, it overtakes nothing behind.
        let in_vain = |at: &Transmission, behind| !pays(carrier.arrival(now, at.piece.sent, before(behind)));
        let (newest, behind) = first_single(carrier.state.id, Order::NewestFirst, state.mark, flight, in_vain)?;
        let Piece { from, length, .. } = newest.piece;
        let due = carrier.arrival(now, newest.piece.sent, before(behind));
        Some(Candidate { from, length, due: Some(due), lost: false })
    }
}

/// A subflow with room for a copy.
type Taker<'a> = (&'a SubflowView, &'a SubflowState);

/// A subflow that has data under way; it has no view while it is not usable.
#[derive(Clone, Copy)]
struct Carrier<'a> {
    view: Option<&'a SubflowView>,
    state: &'a SubflowState,
}

/// A copy that would be worth its bytes.
struct Candidate {
    from: Dsn,
    length: Bytes,
    /// Expected arrival of the original; `None` if it is late.
    due: Option<Instant>,
    /// The original counts as lost, or its path has failed, and what is for such data pays.
    lost: bool,
}

impl Carrier<'_> {
    /// Expected arrival of data that left at `sent`, with `before` bytes under way up to its end.
    fn arrival(&self, now: Instant, sent: Instant, before: Bytes) -> Instant {
        self.view.map_or(now, |its| (sent + its.one_way_delay()).max(drained(now, before, its)))
    }
}

/// True if another subflow that has not carried the data from `from` on, and whose window is full now, should bring
/// them earlier than `on` when its next acknowledgment has come. Data are copied once, so that a copy on a path that
/// happens to have room would be the only one.
fn is_earlier_elsewhere(now: Instant, on: &SubflowView, from: Dsn, flight: &FlightView<'_>) -> bool {
    let Some(piece) = flight.outstanding.piece(from) else { return false };
    let own = copy_arrival(now, on);
    let others = flight.marked().filter(|(its, state)| its.id != on.id && !piece.carriers.meets(state.mark));
    // It has to want them then.
    let full = others.filter(|(its, _)| its.open && !its.has_room_to_repeat());
    let mut full = full.filter(|(its, _)| flight.view.unsent.is_zero() || is_tight(flight, its));
    full.any(|(its, _)| {
        let silent = its.silent_from().is_none_or(|silent| now > silent);
        let due = its.oldest_sent.map(|sent| (sent + its.srtt).max(now));
        !silent && due.is_some_and(|due| copy_arrival(due, its) + LEAST_GAIN < own)
    })
}

/// Time at which a copy should arrive that leaves on `on` at `leaves`.
fn copy_arrival(leaves: Instant, on: &SubflowView) -> Instant {
    (leaves + on.one_way_delay()).max(drained(leaves, on.in_flight + on.mss, on))
}

/// True if a copy that leaves now on `on` should arrive before the original, which is expected at `arrival` on `its`
/// path and may be as much later as its acknowledgment may.
fn overtakes(now: Instant, on: &SubflowView, arrival: Instant, its: &SubflowView) -> bool {
    copy_arrival(now, on) + LEAST_GAIN < arrival + its.rttvar * 4
}

/// The oldest data that `carrier` alone has under way, if a copy on `on` would arrive before the carrier's own repair.
fn whole(now: Instant, on: Taker<'_>, carrier: Carrier<'_>, flight: &FlightView<'_>) -> Option<Candidate> {
    // A loss without data behind it shows after two round trips (RFC 8985 §7.2).
    let repair = |its: &SubflowView| now + its.srtt * 2 + its.one_way_delay();
    if carrier.view.is_some_and(|its| now + on.0.one_way_delay() > repair(its)) {
        return None;
    }
    let (Transmission { piece, .. }, _) =
        first_single(carrier.state.id, Order::OldestFirst, on.1.mark, flight, |_, _| false)?;
    Some(Candidate { from: piece.from, length: piece.length, due: None, lost: false })
}

/// Returns the first transmission of subflow `of` that has not been repeated and that no subflow of `except` has
/// carried, with the bytes of those before it in this order. The search ends at one that is `hopeless`, given the same
/// bytes.
fn first_single(
    of: SubflowId,
    order: Order,
    except: SubflowSet,
    flight: &FlightView<'_>,
    hopeless: impl Fn(&Transmission, Bytes) -> bool,
) -> Option<(Transmission, Bytes)> {
    let (mut found, mut passed, mut looks) = (None, Bytes::ZERO, 0);
    flight.outstanding.transmissions(of, order, &mut |transmission| {
        let piece = &transmission.piece;
        if hopeless(&transmission, passed) {
            return false;
        }
        if piece.is_single() && !piece.carriers.meets(except) {
            found = Some((transmission, passed));
            return false;
        }
        passed += piece.length;
        looks += 1;
        looks < REACH
    });
    found
}

/// True if more is under way on `on` than the peer may leave without an acknowledgment for a while.
fn many(on: &SubflowView) -> bool {
    on.in_flight > on.mss.times(2)
}

/// True if the rest of the peer's window is gone within a round trip.
fn is_tight(flight: &FlightView<'_>, on: &SubflowView) -> bool {
    flight.view.sendable < flight.view.unsent.min(on.cwnd)
}

/// Returns the time at which these bytes in flight have left the path at its rate, if that is known.
fn drained(now: Instant, bytes: Bytes, subflow: &SubflowView) -> Instant {
    subflow.path_rate.map_or(now, |rate| now + rate.time_for(bytes))
}

/// The time from which on the acknowledgment of `piece` is late: its own, or of all that `carrier` has under way.
fn overdue(piece: &Piece, carrier: &SubflowView) -> Instant {
    let own = piece.sent + carrier.srtt + carrier.spread();
    carrier.silent_from().map_or(own, |silent| own.min(silent))
}

impl Reinjection for Insured {
    fn on_sent(&mut self, now: Instant, sent: &Piece, on: SubflowId, flight: &FlightView<'_>) {
        let loss = flight.view.subflow(on).map_or(0.0, |subflow| subflow.loss);
        self.budget.on_sent(now, sent.length, loss);
        self.thin.on_sent(now, sent.length);
    }

    fn next(&mut self, now: Instant, flight: &FlightView<'_>) -> Request {
        match &flight.opportunity {
            // Subflows are penalised only together with a copy: without one, the penalty would help no subflow.
            Some(opportunity) if pays(opportunity, flight.view) => self.at_opportunity(now, opportunity.on, flight),
            Some(_) => Request::default(),
            None => self.best(now, flight).into(),
        }
    }

    fn wake(&mut self, now: Instant, flight: &FlightView<'_>) -> Option<Instant> {
        let tight = || flight.view.subflows.iter().any(|subflow| is_tight(flight, subflow));
        if flight.view.subflows.len() < 2 || !(flight.view.unsent.is_zero() || tight()) {
            return None;
        }
        // Of a silent path all is late already.
        let silent = |view: &SubflowView| view.silent_from().is_some_and(|silent| silent < now);
        let late = flight.marked().filter(|(view, _)| !silent(view)).filter_map(|(view, state)| {
            let (oldest, _) = first_single(state.id, Order::OldestFirst, SubflowSet::NONE, flight, |_, _| false)?;
            Some(overdue(&oldest.piece, view) + Duration::from_nanos(1))
        });
        // A copy may wait for a subflow that turns out to be silent.
        let silences = flight.marked().filter_map(|(view, _)| view.silent_from());
        late.chain(silences.map(|at| at + Duration::from_nanos(1))).filter(|late| *late > now).min()
    }
}

/// All open subflows.
fn carriers<'a>(flight: &FlightView<'a>) -> impl Iterator<Item = Carrier<'a>> {
    let view = |id: SubflowId| flight.view.subflow(id);
    flight.states.iter().map(move |state| Carrier { view: view(state.id), state })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, at, mark};
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

    /// The original is expected at 45 ms and the copy at 50: it overtakes if the original varies by 4 · 2 ms.
    #[test]
    fn what_varies_may_arrive_later() {
        for (variation_us, copies) in [(0, vec![]), (1500, vec![]), (2000, vec![(0, FAST)])] {
            let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
            scene.sent(0, 0, SLOW);
            scene.subflows[1].rttvar = Duration::from_micros(variation_us);
            assert_eq!(scene.copies(&mut insured, 40), copies, "{variation_us}");
        }
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

    /// Originals of the slow subflow arrive at 45 and 50 ms.
    #[test]
    fn what_holds_a_full_window_up_is_repeated_the_oldest_first() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
        for (number, ms, on) in [(0, 0, SLOW), (1, 5, SLOW), (2, 50, FAST), (3, 50, FAST), (4, 50, FAST)] {
            scene.sent(number, ms, on);
        }
        (scene.unsent, scene.sendable) = (100, Some(11));
        assert_eq!(scene.copies(&mut insured, 60), [], "a window of ten segments is less than what is admitted");
        scene.sendable = Some(9);
        assert_eq!(scene.copies(&mut insured, 60), [], "they should have arrived by now");
        // A window that is gone in a round trip, and copies that arrive at 40 ms: before 45 and 50.
        assert_eq!(scene.copies(&mut insured, 30), [(0, FAST), (1, FAST)]);
        let woken = scene.show(|flight| insured.wake(at(60), flight)).expect("the fast one's are under way");
        assert!(woken > at(74) && woken < at(75), "20 ms and 4 after 50");
    }

    /// The SRTT is 90 ms, its variation as large. Something left at 0 ms, and nothing came since: after 180 ms data
    /// that left at 170 are late as well. If anything came, neither is before 450.
    #[test]
    fn a_silent_path_is_one_loss() {
        for (heard, expected) in [(0, vec![(0, FAST), (1, FAST)]), (100, vec![])] {
            let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
            scene.subflows[1].rttvar = Duration::from_millis(90);
            scene.subflows[1].oldest_sent = Some(at(0));
            scene.sent(0, 0, SLOW);
            scene.sent(1, 170, SLOW);
            scene.subflows[1].heard = at(heard);
            scene.subflows[0].srtt = Duration::from_secs(3); // no copy overtakes
            assert_eq!(scene.copies(&mut insured, 181), expected, "heard at {heard} ms");
        }
    }

    /// The slow path with segments that left at 0 ms, of which nothing is heard; the fast one was heard at 20 ms, when
    /// it had brought its own, and has nothing under way that it could be heard by later.
    fn failed_path(segments: u64) -> Scene {
        let mut scene = two_paths();
        for number in 0..segments {
            scene.sent(number, 0, SLOW);
        }
        scene.subflows[1].in_flight = Bytes::new(1000 * segments);
        scene.subflows[1].oldest_sent = Some(at(0));
        scene.subflows[0].heard = at(20);
        scene
    }

    /// The budget of copies on suspicion is spent. Of two segments the peer may be about to tell.
    #[test]
    fn a_path_that_has_failed_is_repaired_whatever_was_copied_before() {
        for (segments, expected) in [(3, vec![(0, FAST), (1, FAST), (2, FAST)]), (2, vec![])] {
            let (mut scene, mut insured) = (failed_path(segments), insured(0.0, 3.0));
            insured.budget.on_copied(Bytes::new(3000), false);
            assert_eq!(scene.copies(&mut insured, 90), [], "the round trip is 90 ms, and 4 its least variation");
            assert_eq!(scene.copies(&mut insured, 95), expected, "{segments}");
        }
    }

    /// Ten segments on a path that has failed, and a budget of three for repairs and three for the rest.
    #[test]
    fn both_accounts_end() {
        let (mut scene, mut insured) = (failed_path(10), insured(0.0, 3.0));
        assert_eq!(scene.copies(&mut insured, 95).len(), 6);
        assert_eq!(scene.copies(&mut insured, 500), []);
    }

    /// A path of 300 ms happens to have room, but the fast one has it again at 20 ms, and its copy arrives at 30. The
    /// original may take until 45 + 4 · 100 ms.
    #[test]
    fn a_copy_waits_for_the_path_that_brings_it_first() {
        let (mut scene, mut insured) = (Scene::new(&[20, 90, 300]), insured(0.0, 10.0));
        scene.sent(0, 0, SLOW);
        scene.subflows[1].rttvar = Duration::from_millis(100);
        scene.subflows[0].in_flight = Bytes::new(10_000);
        scene.subflows[0].oldest_sent = Some(at(0));
        assert_eq!(scene.copies(&mut insured, 1), []);
        scene.subflows[0].in_flight = Bytes::new(9000);
        assert_eq!(scene.copies(&mut insured, 20), [(0, FAST)]);
        // What the fast one does not say when it should is not waited for.
        scene.sent(1, 20, SLOW);
        scene.subflows[0].in_flight = Bytes::new(10_000);
        assert_eq!(scene.copies(&mut insured, 25), [(1, 2)]);
    }

    #[test]
    fn what_is_late_is_repeated_when_the_timer_says_so() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 10.0));
        scene.sent(0, 0, FAST);
        // 20 ms, and four times the least variation.
        let woken = scene.show(|flight| insured.wake(at(0), flight)).expect("something is under way");
        assert!(woken > at(24) && woken < at(25));
        assert_eq!(scene.copies(&mut insured, 24), []);
        assert_eq!(scene.copies(&mut insured, 25), [(0, SLOW)]);
    }

    /// Messages of 160 bytes each 20 ms: in the second second each is copied, in no budget, as soon as it has left.
    #[test]
    fn a_thin_stream_is_copied_whole() {
        let (mut scene, mut insured) = (two_paths(), insured(0.0, 0.0));
        let mut copied = 0;
        for n in 0..100 {
            scene.acked(n);
            scene.sent(n, 20 * n, FAST);
            let sent = Piece { length: Bytes::new(160), ..scene.pieces[0] };
            scene.show(|flight| insured.on_sent(at(20 * n), &sent, SubflowId(FAST), flight));
            let copies = scene.copies(&mut insured, 20 * n);
            assert!(copies.is_empty() || copies == [(n, SLOW)]);
            copied += copies.len();
        }
        assert_eq!(copied, 50);
        // More under way, more to send, or a file ends it.
        scene.acked(100);
        scene.sent(100, 2000, FAST);
        scene.subflows[0].in_flight = Bytes::new(8001);
        assert_eq!(scene.copies(&mut insured, 2000), []);
        scene.subflows[0].in_flight = Bytes::new(160);
        scene.unsent = 1;
        assert_eq!(scene.copies(&mut insured, 2000), []);
        scene.unsent = 0;
        let file = Piece { length: Bytes::new(5000), ..scene.pieces[0] };
        scene.show(|flight| insured.on_sent(at(2000), &file, SubflowId(FAST), flight));
        assert_eq!(scene.copies(&mut insured, 2000), []);
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
        assert_eq!(scene.copies(&mut insured, 30), [(0, SLOW), (1, SLOW), (2, SLOW)]);
    }

    #[test]
    fn the_budget_grows_with_what_is_sent() {
        let (mut scene, mut insured) = (two_paths(), insured(10.0, 0.0));
        (0..25).for_each(|number| scene.send(&mut insured, number, 0, SLOW));
        assert_eq!(scene.copies(&mut insured, 1), [(24, FAST), (23, FAST)], "a tenth of 25, whole segments");
    }

    /// A hundred segments wait on each of two equal paths, and the newest 40 of one have been repeated. A copy would
    /// overtake nothing (budget for ten), or there is no budget.
    #[test]
    fn a_search_ends_where_no_later_data_can_be_worth_a_copy() {
        for allowance in [10.0, 0.0] {
            let (mut scene, mut insured) = (Scene::new(&[20, 20]), insured(0.0, allowance));
            for number in 0..200 {
                scene.sent(number, number / 20, (number % 2) as u16);
            }
            for piece in scene.pieces[120..].iter_mut().filter(|piece| piece.carriers == mark(SLOW)) {
                piece.carriers = piece.carriers.with(mark(FAST));
            }
            assert_eq!(scene.copies(&mut insured, 10), [], "allowance {allowance}");
            assert!(scene.looks.get() <= 2, "{} looks with an allowance of {allowance}", scene.looks.get());
        }
    }
}
