//! Properties of every reinjection policy of the registry: it answers legally, answers alike to the same history, never
//! asks for the same copy twice, and comes to an end.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_policy::registry::{Built, REINJECTIONS};
use anabranch_policy::reinjection::{
    Capabilities, Carrier, Cause, FlightView, Opportunity, Order, Outstanding, Piece, Reinjection, Repeat, Request,
    SubflowSet, SubflowState, Transmission,
};
use anabranch_policy::{SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, Seed, Stream, SubflowId};
use common::{Build, each_setting};
use proptest::prelude::*;
use std::collections::BTreeSet;

const MSS: u64 = 1000;

/// Each policy with its defaults, with every flag turned over, and at both ends of every range.
fn each_policy() -> Vec<(String, Build<dyn Reinjection>)> {
    each_setting(REINJECTIONS)
}

/// A connection as far as a policy can notice it: pieces leave, sometimes ahead of others, are acknowledged in the
/// order of the data, get stuck; windows fill; subflows fail, come back and close.
struct Toy {
    now: Instant,
    chance: Stream,
    subflows: Vec<SubflowView>,
    states: Vec<SubflowState>,
    pieces: Vec<Piece>,
    una: u64,
    /// Number of pieces from there on that the peer's window admits.
    window: u64,
    /// True for the pieces of the stream that have left.
    left: Vec<bool>,
    /// Pieces that each subflow carried, by number.
    carried: BTreeSet<(u64, SubflowId)>,
}

impl Outstanding for Toy {
    fn piece(&self, dsn: Dsn) -> Option<Piece> {
        self.pieces.iter().find(|piece| piece.end().after(dsn)).copied()
    }

    fn transmissions(&self, on: SubflowId, order: Order, visit: &mut dyn FnMut(Transmission) -> bool) {
        let mark = SubflowSet::from_bits(1 << on.0);
        let mut carried: Vec<&Piece> = self.pieces.iter().filter(|piece| piece.carriers.meets(mark)).collect();
        carried.sort_by_key(|piece| piece.sent);
        if order == Order::NewestFirst {
            carried.reverse();
        }
        let _ = carried.into_iter().all(|piece| visit(Transmission { piece: *piece, lost: false }));
    }
}

/// Actions of a policy in the course of a history.
#[derive(Debug, Default, PartialEq)]
struct Deeds {
    copies: Vec<Repeat>,
    stale: Vec<SubflowSet>,
    answers: Vec<Request>,
    timeouts: Vec<bool>,
}

impl Toy {
    fn new(seed: u64) -> Self {
        let mut chance = Seed(seed).stream("toy");
        let subflows: Vec<_> = (0..chance.between(2, 5))
            .map(|id| {
                let srtt = Duration::from_millis(chance.between(1, 300));
                let cwnd = Bytes::new(MSS * chance.between(1, 40));
                let loss = [0.0, 0.01, 0.2, 0.5][chance.below(4) as usize];
                SubflowView { loss, ..SubflowView::steady(SubflowId(id as u16), Bytes::new(MSS), srtt, cwnd) }
            })
            .collect();
        let state = |subflow: &SubflowView| SubflowState::at_rest(subflow.id, SubflowSet::from_bits(1 << subflow.id.0));
        let states = subflows.iter().map(state).collect();
        let left = vec![false; chance.between(1, 60) as usize];
        let window = Seed(seed).stream("window").between(2, 60);
        let (pieces, carried) = (Vec::new(), BTreeSet::new());
        Toy { now: Instant::ZERO, chance, subflows, states, pieces, una: 0, window, left, carried }
    }

    /// The usable subflows, as the engine shows them.
    fn usable(&self) -> Vec<SubflowView> {
        let usable = |subflow: &&SubflowView| self.states.iter().any(|s| s.id == subflow.id && s.usable);
        self.subflows.iter().filter(usable).copied().collect()
    }

    fn show<T>(&self, ask: impl FnOnce(&FlightView<'_>) -> T) -> T {
        let subflows = self.usable();
        let unsent = self.left.iter().filter(|left| !**left).count() as u64 * MSS;
        let sendable = self.admitted().count() as u64 * MSS;
        let unsent_from = self.left.iter().position(|left| !left).unwrap_or(self.left.len()) as u64 * MSS;
        let view = View {
            subflows: &subflows,
            unsent: Bytes::new(unsent),
            sendable: Bytes::new(sendable),
            window: Bytes::new(self.window * MSS),
            buffer: Bytes::new(100 * MSS),
            data_una: Dsn::new(self.una * MSS),
            unsent_from: Dsn::new(unsent_from),
        };
        ask(&FlightView { view: &view, states: &self.states, outstanding: self, opportunity: None })
    }

    /// Unsent data within the peer's window.
    fn admitted(&self) -> impl Iterator<Item = usize> {
        let edge = usize::try_from(self.una + self.window).unwrap();
        (0..self.left.len().min(edge)).filter(|&number| !self.left[number])
    }

    fn room(&mut self, at: usize) {
        let subflow = self.subflows[at];
        let (idle, has_room) = (subflow.in_flight.is_zero(), subflow.has_room());
        let timeout = (!idle).then_some(self.now + subflow.rto);
        if let Some(state) = self.states.iter_mut().find(|state| state.id == subflow.id) {
            (state.idle, state.has_room, state.timeout) = (idle, has_room, state.timeout.or(timeout));
            if idle {
                state.timeout = None;
            }
        }
    }

    /// One thing happens.
    fn step(&mut self, policy: &mut Built<dyn Reinjection>, deeds: &mut Deeds) -> Result<(), String> {
        self.now += Duration::from_micros(self.chance.below(40_000));
        let at = self.chance.below(self.subflows.len() as u64) as usize;
        match self.chance.below(10) {
            0..5 => self.send(at, policy),
            5 | 6 => self.acknowledge(),
            7 => {
                self.subflows[at].in_flight = Bytes::ZERO;
                self.room(at);
                let (id, now) = (self.subflows[at].id, self.now);
                self.states.iter_mut().filter(|state| state.id == id).for_each(|state| {
                    (state.heard, state.usable, state.timeouts) = (now, true, 0);
                });
            }
            8 => {
                deeds.timeouts.push(policy.on_rto(self.now, self.subflows[at].id));
                let id = self.subflows[at].id;
                self.states.iter_mut().filter(|state| state.id == id).for_each(|state| {
                    state.usable &= !deeds.timeouts[deeds.timeouts.len() - 1];
                    state.timeouts += 1;
                });
            }
            _ if policy.capabilities.opportunities => self.offer(at, policy, deeds)?,
            _ => {}
        }
        if policy.capabilities.copies {
            self.serve(policy, deeds)?;
        }
        Ok(())
    }

    /// The next piece leaves, or one a little further on.
    fn send(&mut self, at: usize, policy: &mut Built<dyn Reinjection>) {
        let skip = if self.chance.chance(0.2) { self.chance.below(4) as usize } else { 0 };
        let unsent: Vec<_> = self.admitted().collect();
        let subflow = self.subflows[at];
        let usable = self.states.iter().find(|state| state.id == subflow.id).filter(|s| s.usable);
        let (Some(&number), Some(state)) = (unsent.get(skip), usable) else { return };
        let piece = Piece {
            from: Dsn::new(number as u64 * MSS),
            length: Bytes::new(MSS),
            sent: self.now,
            carriers: state.mark,
        };
        self.left[number] = true;
        self.pieces.push(piece);
        self.pieces.sort_by_key(|piece| piece.from.get());
        self.carried.insert((number as u64, subflow.id));
        self.subflows[at].in_flight += Bytes::new(MSS);
        self.room(at);
        if policy.capabilities.copies {
            self.show(|flight| policy.on_sent(self.now, &piece, subflow.id, flight));
        }
    }

    /// A DATA_ACK for the beginning of what is under way.
    fn acknowledge(&mut self) {
        let contiguous = self.left.iter().position(|left| !left).unwrap_or(self.left.len()) as u64;
        self.una = self.chance.between(self.una, contiguous.max(self.una));
        let una = Dsn::new(self.una * MSS);
        self.pieces.retain(|piece| piece.end().after(una));
    }

    /// Asks for copies until there are no more, and wakes the policy when it wants to be.
    fn serve(&mut self, policy: &mut Built<dyn Reinjection>, deeds: &mut Deeds) -> Result<(), String> {
        while let Some(repeat) = self.show(|flight| policy.next(self.now, flight)).repeat {
            self.carry_out(&repeat)?;
            deeds.copies.push(repeat);
        }
        let wake = self.show(|flight| policy.wake(self.now, flight)).filter(|at| *at > self.now);
        if let Some(at) = wake.filter(|_| !self.pieces.is_empty())
            && self.chance.chance(0.3)
        {
            self.now = at;
            let stale = self.show(|flight| policy.on_wake(self.now, flight));
            let usable =
                |mark: SubflowSet| self.states.iter().any(|s| s.usable && !stale.meets(s.mark) && s.mark != mark);
            if stale != SubflowSet::NONE && !usable(SubflowSet::NONE) {
                return Err(format!("all that is usable is stale: {stale:?}"));
            }
            self.states.iter_mut().filter(|s| stale.meets(s.mark)).for_each(|s| s.usable = false);
            deeds.stale.push(stale);
            return self.serve(policy, deeds);
        }
        Ok(())
    }

    fn check(&mut self, repeat: &Repeat) -> Result<(), String> {
        let number = repeat.from.get() / MSS;
        if self.outstanding_at(repeat.from).is_none() {
            return Err(format!("{repeat:?}: not under way"));
        }
        let state = self.states.iter().find(|state| state.id == repeat.on);
        if !state.is_some_and(|state| state.usable && state.has_room) {
            return Err(format!("{repeat:?}: cannot take it"));
        }
        if !self.carried.insert((number, repeat.on)) {
            return Err(format!("{repeat:?}: carried it before"));
        }
        Ok(())
    }

    fn outstanding_at(&self, dsn: Dsn) -> Option<Piece> {
        self.piece(dsn).filter(|piece| piece.from == dsn && dsn.get() >= self.una * MSS)
    }

    /// Sends a copy, if the answer is legal.
    fn carry_out(&mut self, repeat: &Repeat) -> Result<(), String> {
        self.check(repeat)?;
        let at = self.subflows.iter().position(|subflow| subflow.id == repeat.on).unwrap();
        let piece = self.pieces.iter_mut().find(|piece| piece.from == repeat.from).unwrap();
        piece.carriers = piece.carriers.with(SubflowSet::from_bits(1 << repeat.on.0));
        self.subflows[at].in_flight += Bytes::new(MSS);
        self.room(at);
        Ok(())
    }

    /// Offers a subflow with room while nothing new can leave.
    fn offer(&mut self, at: usize, policy: &mut Built<dyn Reinjection>, deeds: &mut Deeds) -> Result<(), String> {
        let carried = self.outstanding_at(Dsn::new(self.una * MSS)).map_or(SubflowSet::NONE, |oldest| oldest.carriers);
        let on = self.subflows[at].id;
        if !self.states.iter().any(|state| state.id == on && state.usable && state.has_room) {
            return Ok(());
        }
        let cause = if self.chance.chance(0.5) { Cause::Window } else { Cause::Drained };
        let (send_buffer_full, calm) = (self.chance.chance(0.5), self.chance.below(256) as u32);
        let marked = self.states.iter().filter(|state| state.mark.meets(carried));
        let carrier = |state: &SubflowState, open| Carrier { id: state.id, mark: state.mark, open };
        let carriers: Vec<_> = marked.zip(0..).map(|(state, n)| carrier(state, calm >> n & 1 == 1)).collect();
        let opportunity = Some(Opportunity { cause, send_buffer_full, on, carriers: &carriers });
        let now = self.now;
        let request = self.show(|flight| policy.next(now, &FlightView { opportunity, ..*flight }));
        let all = carriers.iter().fold(SubflowSet::NONE, |all, carrier| all.with(carrier.mark));
        if request.penalise.with(all) != all {
            return Err(format!("{request:?}: penalises somebody else"));
        }
        if let Some(repeat) = &request.repeat {
            self.carry_out(repeat)?;
        }
        deeds.answers.push(request);
        Ok(())
    }
}

fn live(seed: u64, policy: &mut Built<dyn Reinjection>) -> Result<Deeds, String> {
    let (mut toy, mut deeds) = (Toy::new(seed), Deeds::default());
    for _ in 0..200 {
        toy.step(policy, &mut deeds)?;
    }
    Ok(deeds)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_legal_and_depend_on_the_history_alone(seed: u64) {
        for (name, build) in each_policy() {
            let one = live(seed, &mut build());
            prop_assert!(one.is_ok(), "{}: {} (Toy::new({}))", name, one.unwrap_err(), seed);
            prop_assert_eq!(one, live(seed, &mut build()), "{}", name);
        }
    }
}

/// Over some histories no two policies of the table do the same, nor does one that asks for copies never get one.
#[test]
fn each_policy_differs_from_the_others() {
    let deeds = |build: &dyn Fn() -> Built<dyn Reinjection>| -> Vec<_> {
        (0..40).map(|seed| live(seed, &mut build()).unwrap()).collect()
    };
    let mut known: Vec<(&str, Vec<Deeds>)> = Vec::new();
    for entry in REINJECTIONS {
        let new = deeds(&|| entry.build_default());
        assert!(known.iter().all(|(_, deeds)| *deeds != new), "{} does what another does", entry.name);
        let copied = new.iter().any(|deeds| !deeds.copies.is_empty());
        assert_eq!(copied, entry.build_default().capabilities.copies, "{}", entry.name);
        known.push((&*entry.name, new));
    }
}

/// The check can fail: these would not pass it.
#[test]
fn a_policy_that_repeats_itself_or_lies_is_found_out() {
    struct Constant(Repeat);
    impl Reinjection for Constant {
        fn next(&mut self, _now: Instant, _flight: &FlightView<'_>) -> Request {
            self.0.into()
        }
    }
    let why = anabranch_policy::reinjection::Why::Tail;
    for (on, from) in [(0, 0), (9, 0), (1, 1_000_000)] {
        for copies in [true, false] {
            let repeat = Repeat { on: SubflowId(on), from: Dsn::new(from), why };
            let capabilities = Capabilities { copies, opportunities: !copies };
            let mut bad = Built { capabilities, ..Constant(repeat).into() };
            assert!((0..20).all(|seed| live(seed, &mut bad).is_err()), "{repeat:?}, {capabilities:?}");
        }
    }
}
