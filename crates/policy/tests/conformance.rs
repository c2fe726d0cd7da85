//! Properties of every scheduler of the registry: it answers legally, answers alike to the same history, waits only for
//! events that can come, and lets every transfer finish.
#![allow(clippy::unwrap_used)]

use anabranch_policy::registry::{Built, Domain, Entry, SCHEDULERS, Value};
use anabranch_policy::scheduler::Scheduler;
use anabranch_policy::{Decision, Delivery, Event, SubflowView, Truth, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Rate, Seed, Stream, SubflowId};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MSS: u64 = 1000;

/// Each scheduler, with its defaults and with every flag turned over.
fn each_scheduler() -> Vec<(String, impl Fn() -> Built<dyn Scheduler>)> {
    let mut all = Vec::new();
    for entry in SCHEDULERS {
        let flags = entry.parameters.iter().filter_map(|parameter| match parameter.domain {
            Domain::Flag { default } => Some((parameter.name, default)),
            _ => None,
        });
        let flipped = flags.map(|(name, default)| BTreeMap::from([(name.to_owned(), Value::Flag(!default))]));
        for given in std::iter::once(BTreeMap::new()).chain(flipped) {
            let params = entry.params(&given).unwrap();
            all.push((format!("{} {given:?}", entry.name), move || entry.build(&params)));
        }
    }
    all
}

// The registry itself.

/// Constructors read what they declare, at both ends of every range.
#[test]
fn every_accepted_parameter_builds() {
    let view_of = |subflows| View {
        subflows,
        unsent: Bytes::new(50 * MSS),
        sendable: Bytes::new(50 * MSS),
        window: Bytes::new(60 * MSS),
        buffer: Bytes::new(60 * MSS),
        data_una: Dsn::new(1),
        unsent_from: Dsn::new(1 + 10 * MSS),
    };
    let subflows = [plain(0, 20, 10, 10), plain(1, 90, 10, 2)];
    for entry in SCHEDULERS {
        for parameter in entry.parameters {
            let values = match parameter.domain {
                Domain::Number { min, max, .. } => vec![Value::Number(min), Value::Number(max)],
                Domain::Flag { default } => vec![Value::Flag(!default)],
                Domain::Text { default, .. } => vec![Value::Text(default.to_owned())],
            };
            for value in values {
                let params = entry.params(&BTreeMap::from([(parameter.name.to_owned(), value)])).unwrap();
                let mut scheduler = entry.build(&params);
                for ms in 0..300 {
                    scheduler.decide(Instant::ZERO + Duration::from_millis(ms), &view_of(&subflows));
                }
            }
        }
    }
}

// Legal answers to any view.

/// A moment in the life of a connection: a view, and what happened before it.
#[derive(Clone, Debug)]
struct Moment {
    later_by: Duration,
    subflows: Vec<SubflowView>,
    unsent: u64,
    sendable: u64,
    window: u64,
    /// Sent and not acknowledged, before the first unsent byte.
    sent: u64,
    event: Option<Event>,
}

impl Moment {
    fn view(&self) -> View<'_> {
        View {
            subflows: &self.subflows,
            unsent: Bytes::new(self.unsent),
            sendable: Bytes::new(self.sendable),
            window: Bytes::new(self.window),
            buffer: Bytes::new(self.window.max(self.sendable)),
            data_una: Dsn::new(1),
            unsent_from: Dsn::new(1 + self.sent),
        }
    }

    /// Returns true if the engine would ask.
    fn is_a_question(&self) -> bool {
        self.sendable > 0 && self.subflows.iter().any(SubflowView::has_room)
    }
}

fn any_subflow() -> impl Strategy<Value = SubflowView> {
    let micros = |max: u64| (0..max).prop_map(Duration::from_micros);
    let loss = prop_oneof![Just(0.0), Just(1e-4), Just(0.03), Just(0.5), Just(1.0)];
    let windows = (0u64..80, prop::option::of(0u64..80), 0u64..60_000, prop::option::of(0u64..80));
    let times = (prop_oneof![micros(2_000_000), micros(50_000)], micros(500_000), micros(300_000), micros(2_000_000));
    let state = (prop::bool::weighted(0.9), prop::bool::weighted(0.1), prop::bool::weighted(0.3), any::<bool>());
    let counts = (0u64..100_000, 0u64..100_000);
    let rate = || prop_oneof![Just(Rate::from_bps(0)), (0..2_000_000_000_u64).prop_map(Rate::from_bps)];
    let truth = (rate(), micros(500_000), 0.0..=1.0).prop_map(|(rate, delay, loss)| Truth { rate, delay, loss });
    let rarely = (prop::option::of(rate()), prop::option::weighted(0.2, 0u64..100_000), prop::option::of(truth));
    (0u16..6, 1u64..1500, windows, times, loss, state, counts, rarely).prop_map(
        |(id, mss, (cwnd, ssthresh, in_flight, at_loss), (srtt, rttvar, spread, rto), loss, state, counts, rarely)| {
            let (sent, acked) = counts;
            let (pacing, bdp, truth) = rarely;
            let (open, throttled, idle, backup) = state;
            SubflowView {
                id: SubflowId(id),
                mss: Bytes::new(mss),
                srtt,
                rttvar,
                rtt_min: srtt.saturating_sub(spread),
                rtt_max: srtt + spread,
                rtt_first: srtt,
                rtt_last: srtt,
                rto,
                cwnd: Bytes::new(cwnd * mss),
                ssthresh: ssthresh.map(|ssthresh| Bytes::new(ssthresh * mss)),
                in_flight: Bytes::new(if idle { 0 } else { in_flight }),
                cwnd_at_loss: at_loss.map(|cwnd| Bytes::new(cwnd * mss)),
                loss,
                sent: sent + acked,
                acked,
                data_acked: (acked % 3 > 0).then(|| Dsn::new(acked)),
                open,
                share: if acked % 4 == 0 { Bytes::new(sent % 3000) } else { Bytes::MAX },
                backup,
                throttled,
                last_sent: (sent % 5 > 0).then(|| Instant::ZERO + Duration::from_micros(sent)),
                pacing,
                bdp: bdp.map(Bytes::new),
                delivery: pacing.map(|rate| Delivery { rate, app_limited: idle }),
                path_rate: pacing,
                oldest_sent: None,
                heard: Instant::ZERO,
                truth,
            }
        },
    )
}

fn any_event() -> impl Strategy<Value = Event> {
    let on = || (0u16..6).prop_map(SubflowId);
    let bytes = || (0u64..100_000).prop_map(Bytes::new);
    let dsn = || (0u64..200_000).prop_map(Dsn::new);
    prop_oneof![
        4 => (on(), dsn(), bytes(), bytes()).prop_map(|(on, dsn, skip, length)| Event::Sent { on, dsn, skip, length }),
        1 => (on(), dsn(), bytes()).prop_map(|(on, dsn, length)| Event::Repeated { on, dsn, length }),
        1 => on().prop_map(|on| Event::FastRetransmit { on }),
        1 => on().prop_map(|on| Event::Rto { on }),
        1 => Just(Event::SubflowsChanged),
        1 => Just(Event::DataWritten),
        1 => on().prop_map(|on| Event::WindowBlocked { on }),
        1 => on().prop_map(|on| Event::Reinjected { on }),
    ]
}

fn any_moment() -> impl Strategy<Value = Moment> {
    let subflows = prop::collection::vec(any_subflow(), 1..=4).prop_map(|mut subflows| {
        subflows.sort_by_key(|subflow| subflow.id);
        subflows.dedup_by_key(|subflow| subflow.id);
        subflows
    });
    let amounts = (prop_oneof![0u64..3_000, 0u64..300_000], 0u64..=100, 0u64..400_000, 0u64..100_000);
    (0u64..200_000, subflows, amounts, prop::option::of(any_event())).prop_map(
        |(later_by, subflows, (unsent, percent, window, sent), event)| Moment {
            later_by: Duration::from_micros(later_by),
            subflows,
            unsent,
            sendable: (unsent * percent).div_ceil(100),
            window,
            sent,
            event,
        },
    )
}

fn check(now: Instant, view: &View<'_>, decision: Decision) -> Result<(), String> {
    match decision {
        Decision::Send { on, skip } => {
            let Some(subflow) = view.subflow(on) else { return Err(format!("{on:?} is not usable")) };
            if !subflow.has_room() {
                return Err(format!("{on:?} has no room"));
            }
            if skip >= view.sendable {
                return Err(format!("skips {skip}, sendable are {}", view.sendable));
            }
        }
        Decision::Repeat { on, from } => {
            if !view.subflow(on).is_some_and(SubflowView::has_room_to_repeat) {
                return Err(format!("{on:?} cannot carry a copy"));
            }
            if from.before(view.data_una) || !from.before(view.unsent_from) {
                return Err(format!("a copy of {from}, which is not in flight"));
            }
        }
        Decision::Wait { until } => {
            if view.subflows.iter().all(|subflow| subflow.in_flight.is_zero()) {
                return Err("waits while nothing is in flight".to_owned());
            }
            if until.is_some_and(|until| until <= now) {
                return Err("waits for the past".to_owned());
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn answers_are_legal_and_depend_on_the_history_alone(history in prop::collection::vec(any_moment(), 1..12)) {
        for (name, build) in each_scheduler() {
            let (mut one, mut other) = (build(), build());
            let mut now = Instant::ZERO;
            for moment in &history {
                now += moment.later_by;
                if let Some(event) = &moment.event {
                    one.observe(now, event);
                    other.observe(now, event);
                }
                let view = moment.view();
                let decision = one.decide(now, &view);
                prop_assert_eq!(decision, other.decide(now, &view), "{}", name);
                let fail = |wrong| TestCaseError::fail(format!("{name}: {wrong}"));
                let legal = || check(now, &view, decision).map_err(fail);
                match decision {
                    _ if moment.is_a_question() => legal()?,
                    // A copy needs no share of the window.
                    Decision::Repeat { .. } => legal()?,
                    Decision::Wait { .. } => {}
                    Decision::Send { .. } => prop_assert_eq!(moment.sendable, 0, "{}", name),
                }
            }
        }
    }

    #[test]
    fn every_transfer_finishes(seed: u64) {
        for (name, build) in each_scheduler() {
            let ended = Toy::new(seed).run(&mut build(), &mut build());
            prop_assert!(ended.is_ok(), "{}: {} (Toy::new({}))", name, ended.unwrap_err(), seed);
        }
    }
}

/// The check can fail: these would not pass it.
#[test]
fn a_scheduler_that_sulks_or_lies_is_found_out() {
    struct Constant(Decision);
    impl Scheduler for Constant {
        fn decide(&mut self, _now: Instant, _view: &View<'_>) -> Decision {
            self.0
        }
    }
    let skip = Bytes::new(900 * MSS);
    for bad in [Decision::WAIT, Decision::send(SubflowId(9)), Decision::Send { on: SubflowId(0), skip }] {
        let constant = || Built::from(Constant(bad));
        let found = (0..20).filter(|&seed| Toy::new(seed).run(&mut constant(), &mut constant()).is_err()).count();
        // In some there is never more than one subflow to choose.
        assert!(found >= 15, "{bad:?}: {found} of 20");
    }
}

/// The suite runs over all entries of the registry.
#[test]
fn the_suite_covers_flags() {
    let flags = |entry: &Entry<dyn Scheduler>| {
        entry.parameters.iter().filter(|parameter| matches!(parameter.domain, Domain::Flag { .. })).count()
    };
    assert_eq!(each_scheduler().len(), SCHEDULERS.iter().map(|entry| 1 + flags(entry)).sum::<usize>());
}

// Whole transfers.

fn plain(id: u16, srtt_ms: u64, cwnd: u64, in_flight: u64) -> SubflowView {
    let srtt = Duration::from_millis(srtt_ms);
    let steady = SubflowView::steady(SubflowId(id), Bytes::new(MSS), srtt, Bytes::new(cwnd * MSS));
    SubflowView { rttvar: srtt / 8, rtt_max: srtt * 2, in_flight: Bytes::new(in_flight * MSS), ..steady }
}

/// As much of an engine as a scheduler can notice: segments leave, are acknowledged an RTT later or time out, subflows
/// join, fail, come back, are shut for a while or only backups, the application writes in two halves, and the peer's
/// window is small.
struct Toy {
    now: Instant,
    chance: Stream,
    flows: Vec<SubflowView>,
    usable: Vec<bool>,
    /// Shown to the scheduler only while no other is usable.
    backup: Vec<bool>,
    /// State of each segment of the transfer.
    segments: Vec<State>,
    /// True for the segments that the peer has, by any subflow.
    delivered: Vec<bool>,
    /// Copies that the scheduler sent: segment, flow, when it is acknowledged.
    copies: Vec<(usize, usize, Instant)>,
    /// Bit n: flow n carried the segment.
    carriers: Vec<u32>,
    /// Number of segments that the application has written.
    written: usize,
    window: usize,
    /// Changes of flows, by time.
    changes: Vec<(Instant, usize, Change)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// A usable flow fails, if there is another; one that is not usable comes (back).
    FailOrCome,
    /// Its share of the peer's window is used up, or it recovers from a timeout.
    Shut,
    Open,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unsent,
    /// On this flow until then; lost, and repaired by a timeout at that time, if so marked.
    InFlight {
        flow: usize,
        due: Instant,
        lost: bool,
    },
    /// Its subflow failed; another repeats it by then.
    Reinjected {
        due: Instant,
    },
    Done,
}

impl Toy {
    fn new(seed: u64) -> Self {
        let mut chance = Seed(seed).stream("toy");
        let n = chance.between(2, 4);
        let flows = (0..n)
            .map(|id| SubflowView { loss: 0.02, ..plain(id as u16, chance.between(1, 300), chance.between(1, 20), 0) })
            .collect();
        let total = chance.between(1, 300) as usize;
        let mut changes = Vec::new();
        for _ in 0..chance.below(8) {
            let at = Instant::ZERO + Duration::from_millis(chance.below(3000));
            changes.push((at, chance.below(n) as usize, Change::FailOrCome));
        }
        for _ in 0..chance.below(6) {
            let (at, flow) = (Instant::ZERO + Duration::from_millis(chance.below(3000)), chance.below(n) as usize);
            changes.push((at, flow, Change::Shut));
            changes.push((at + Duration::from_millis(chance.between(1, 500)), flow, Change::Open));
        }
        // Some join later, with nothing behind them.
        let usable: Vec<_> = (0..n).map(|flow| flow == 0 || chance.chance(0.7)).collect();
        for flow in (0..n as usize).filter(|&flow| !usable[flow]) {
            changes.push((Instant::ZERO + Duration::from_millis(chance.below(1000)), flow, Change::FailOrCome));
        }
        changes.sort();
        let backup = (0..n).map(|_| chance.chance(0.2)).collect();
        Toy {
            now: Instant::ZERO,
            flows,
            usable,
            backup,
            segments: vec![State::Unsent; total],
            delivered: vec![false; total],
            copies: Vec::new(),
            carriers: vec![0; total],
            written: total.div_ceil(2),
            window: chance.between(2, 100) as usize,
            changes,
            chance,
        }
    }

    /// Runs the transfer; the two schedulers must agree all the way.
    fn run(mut self, one: &mut Built<dyn Scheduler>, other: &mut Built<dyn Scheduler>) -> Result<Instant, String> {
        // One RTT per segment on the slowest subflow, each lost once, is slower than anything sensible.
        let limit = Instant::ZERO + Duration::from_millis(1300) * (self.segments.len() as u64 + 10);
        while self.delivered.contains(&false) {
            let tell = |now, event: Event, one: &mut Built<dyn Scheduler>, other: &mut Built<dyn Scheduler>| {
                one.observe(now, &event);
                other.observe(now, &event);
            };
            let mut wake = None;
            loop {
                let unsent = self.unsent();
                let una = self.delivered.iter().position(|&delivered| !delivered).unwrap();
                let sendable = unsent.iter().filter(|&&at| at < una + self.window).count();
                let subflows: Vec<_> = self.shown().into_iter().map(|at| self.flows[at]).collect();
                let with_room = subflows.iter().filter(|subflow| subflow.has_room()).min_by_key(|subflow| subflow.srtt);
                let Some(with_room) = with_room else { break };
                let copies = one.capabilities.repeats && subflows.len() > 1;
                if sendable == 0 && !unsent.is_empty() {
                    tell(self.now, Event::WindowBlocked { on: with_room.id }, one, other);
                }
                if sendable == 0 && !copies {
                    break;
                }
                let first_unsent = unsent.first().copied().unwrap_or(self.written);
                let dsn = |segment: usize| Dsn::new(segment as u64 * MSS);
                let view = View {
                    subflows: &subflows,
                    unsent: Bytes::new(unsent.len() as u64 * MSS),
                    sendable: Bytes::new(sendable as u64 * MSS),
                    window: Bytes::new(self.window as u64 * MSS),
                    buffer: Bytes::new(self.window as u64 * MSS),
                    data_una: dsn(una),
                    unsent_from: dsn(first_unsent),
                };
                let decision = match subflows.len() {
                    1 => Decision::send(subflows[0].id),
                    _ => one.decide(self.now, &view),
                };
                if subflows.len() > 1 && decision != other.decide(self.now, &view) {
                    return Err("the same history, another decision".to_owned());
                }
                if sendable > 0 || decision != Decision::WAIT {
                    check(self.now, &view, decision)?;
                }
                match decision {
                    Decision::Wait { until } => {
                        wake = until;
                        break;
                    }
                    Decision::Send { on, skip } => {
                        let segment = unsent[(skip.get() / MSS) as usize];
                        self.send(usize::from(on.0), segment);
                        tell(
                            self.now,
                            Event::Sent { on, dsn: dsn(segment), skip, length: Bytes::new(MSS) },
                            one,
                            other,
                        );
                    }
                    Decision::Repeat { on, from } => {
                        let from = (from.get() / MSS) as usize;
                        let copied = self.repeat(usize::from(on.0), from..first_unsent);
                        let length = Bytes::new(if copied.is_some() { MSS } else { 0 });
                        tell(
                            self.now,
                            Event::Repeated { on, dsn: dsn(copied.unwrap_or(first_unsent)), length },
                            one,
                            other,
                        );
                    }
                }
            }
            let copies = self.copies.iter().map(|copy| copy.2);
            let due = self.segments.iter().filter_map(|segment| segment.due()).chain(copies);
            let changes = self.changes.first().map(|change| change.0);
            let Some(next) = due.chain(changes).chain(wake).min() else {
                return Err("starved: nothing will ever happen again".to_owned());
            };
            self.now = self.now.max(next);
            if self.now > limit {
                return Err(format!("too slow: past {limit}"));
            }
            for event in self.advance() {
                tell(self.now, event, one, other);
            }
        }
        Ok(self.now)
    }

    /// The usable flows of the better class.
    fn shown(&self) -> Vec<usize> {
        let regular = |&at: &usize| self.usable[at] && !self.backup[at];
        let any = (0..self.flows.len()).any(|at| regular(&at));
        (0..self.flows.len()).filter(|at| if any { regular(at) } else { self.usable[*at] }).collect()
    }

    fn unsent(&self) -> Vec<usize> {
        (0..self.written).filter(|&at| self.segments[at] == State::Unsent).collect()
    }

    fn send(&mut self, on: usize, segment: usize) {
        let (due, lost) = self.carry(on, segment);
        self.segments[segment] = State::InFlight { flow: on, due, lost };
    }

    /// Copies the first of these segments that `on` has not carried; which one, if any.
    fn repeat(&mut self, on: usize, mut among: std::ops::Range<usize>) -> Option<usize> {
        let segment = among.find(|&segment| self.carriers[segment] & 1 << on == 0)?;
        let (due, _) = self.carry(on, segment);
        self.copies.push((segment, on, due));
        Some(segment)
    }

    /// Returns the time at which the segment is acknowledged, and whether that takes a timeout.
    fn carry(&mut self, on: usize, segment: usize) -> (Instant, bool) {
        let lost = self.chance.chance(0.02);
        let flow = &mut self.flows[on];
        flow.in_flight += flow.mss;
        flow.sent += MSS;
        flow.last_sent = Some(self.now);
        self.carriers[segment] |= 1 << on;
        (self.now + if lost { flow.rto + flow.srtt } else { flow.srtt }, lost)
    }

    /// Processes everything due by now, and returns the scheduler's events.
    fn advance(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let acked_before: Vec<_> = self.flows.iter().map(|flow| flow.acked).collect();
        self.copies.retain(|&(segment, flow, due)| {
            if due <= self.now {
                let flow = &mut self.flows[flow];
                flow.in_flight -= flow.mss;
                flow.acked += MSS;
                self.delivered[segment] = true;
            }
            due > self.now
        });
        for (segment, delivered) in self.segments.iter_mut().zip(&mut self.delivered) {
            if segment.due().is_none_or(|due| due > self.now) {
                continue;
            }
            if let State::InFlight { flow, lost, .. } = *segment {
                let subflow = &mut self.flows[flow];
                subflow.in_flight -= subflow.mss;
                subflow.acked += MSS;
                if lost {
                    events.push(Event::Rto { on: subflow.id });
                    subflow.cwnd_at_loss = Some(subflow.cwnd);
                    subflow.ssthresh = Some(Bytes::new((subflow.cwnd.get() / 2).max(2 * MSS)));
                    subflow.cwnd = subflow.mss;
                } else {
                    subflow.cwnd = (subflow.cwnd + Bytes::new(MSS / 4)).min(Bytes::new(40 * MSS));
                }
            }
            *segment = State::Done;
            *delivered = true;
        }
        let una = self.delivered.iter().position(|&delivered| !delivered).unwrap_or(self.delivered.len());
        for (flow, acked) in self.flows.iter_mut().zip(acked_before) {
            if flow.acked > acked {
                flow.data_acked = Some(Dsn::new(una as u64 * MSS));
            }
        }
        let before = self.shown();
        while self.changes.first().is_some_and(|change| change.0 <= self.now) {
            let (_, flow, change) = self.changes.remove(0);
            let others = (0..self.flows.len()).any(|at| at != flow && self.usable[at]);
            match change {
                Change::Shut => self.flows[flow].open = false,
                Change::Open => self.flows[flow].open = true,
                Change::FailOrCome if !self.usable[flow] => self.usable[flow] = true,
                Change::FailOrCome if others => self.fail(flow),
                Change::FailOrCome => {}
            }
        }
        if self.shown() != before {
            events.push(Event::SubflowsChanged);
        }
        if self.written < self.segments.len() && self.unsent().is_empty() {
            self.written = self.segments.len();
            events.push(Event::DataWritten);
        }
        events
    }

    fn fail(&mut self, on: usize) {
        self.usable[on] = false;
        self.flows[on].in_flight = Bytes::ZERO;
        self.copies.retain(|copy| copy.1 != on);
        let due = self.now + Duration::from_millis(200);
        for segment in &mut self.segments {
            if matches!(segment, State::InFlight { flow, .. } if *flow == on) {
                *segment = State::Reinjected { due };
            }
        }
    }
}

impl State {
    fn due(&self) -> Option<Instant> {
        match *self {
            State::InFlight { due, .. } | State::Reinjected { due } => Some(due),
            State::Unsent | State::Done => None,
        }
    }
}
