//! Decisions, and what is learnt from them.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::registry::{SCHEDULERS, Value, find};
use crate::scheduler::testing::*;
use std::collections::BTreeMap;

fn peekaboo(given: &[(&str, f64)]) -> Peekaboo {
    let entry = find(SCHEDULERS, "scheduler", NAME).unwrap();
    let given: BTreeMap<_, _> = given.iter().map(|&(name, n)| (name.to_owned(), Value::Number(n))).collect();
    Peekaboo::new(&entry.params(&given).unwrap())
}

/// The fast subflow's window is full.
fn blocked() -> [SubflowView; 2] {
    [subflow(FAST, 10, 10, 10), subflow(SLOW, 100, 10, 2)]
}

/// `acknowledged` bytes so far at the data level.
fn seen(subflows: &[SubflowView], acknowledged: u64) -> View<'_> {
    View { data_una: Dsn::new(1 + acknowledged), ..view(subflows, 50) }
}

#[test]
fn the_fast_subflow_sends_while_it_has_room() {
    let both = [subflow(FAST, 10, 10, 9), subflow(SLOW, 100, 10, 2)];
    let mut all = [peekaboo(&[]), peekaboo(&[("wait", 1.0)]), peekaboo(&[("send", 0.0)])];
    assert!(all.iter_mut().all(|one| one.decide(at(0), &view(&both, 50)) == Decision::send(FAST)));
}

#[test]
fn never_waits_for_a_subflow_with_nothing_in_flight() {
    let both = [SubflowView { throttled: true, ..subflow(FAST, 10, 10, 0) }, subflow(SLOW, 100, 10, 0)];
    assert_eq!(peekaboo(&[("send", 0.0)]).decide(at(0), &view(&both, 5)), Decision::send(SLOW));
}

/// Without knowledge no action scores higher: it sends nine times of ten. If waiting scores higher it waits seven
/// times.
#[test]
fn chance_has_its_say() {
    let waits = |learnt: bool| {
        let mut one = peekaboo(&[("alpha", 0.0)]);
        let x = features(&blocked()[0], &blocked()[1], segments(1_000_000));
        one.bandits[Action::Wait as usize].learn(&x, if learnt { 5.0 } else { 0.0 });
        let wait = |one: &mut Peekaboo| {
            one.waiting = false;
            one.decide(at(0), &view(&blocked(), 50)) == Decision::WAIT
        };
        (0..2000).filter(|_| wait(&mut one)).count()
    };
    // Standard deviations 13 and 20: five either way.
    let (unknown, better) = (waits(false), waits(true));
    assert!((133..=267).contains(&unknown), "{unknown}");
    assert!((1300..=1500).contains(&better), "{better}");
}

#[test]
fn a_wait_lasts_until_the_fast_subflow_has_room() {
    let mut one = peekaboo(&[("send", 0.0)]);
    assert_eq!(one.decide(at(0), &view(&blocked(), 50)), Decision::WAIT);
    one.obeys = [1.0, 1.0]; // Asked again, it would send.
    assert_eq!(one.decide(at(1), &view(&blocked(), 50)), Decision::WAIT);
    let room = [subflow(FAST, 10, 10, 9), subflow(SLOW, 100, 10, 2)];
    assert_eq!(one.decide(at(2), &view(&room, 50)), Decision::send(FAST));
    assert_eq!(one.decide(at(3), &view(&blocked(), 50)), Decision::send(SLOW));
    let mut other = peekaboo(&[("send", 0.0)]);
    assert_eq!(other.decide(at(0), &view(&blocked(), 50)), Decision::WAIT);
    other.obeys = [1.0, 1.0];
    other.observe(at(1), &Event::SubflowsChanged);
    assert_eq!(other.decide(at(1), &view(&blocked(), 50)), Decision::send(SLOW));
}

/// A decision to send at 0 is worth the bytes acknowledged in the 100 ms of the slow subflow, in eighths of 12.5 ms:
/// 1000 bytes in the first, 2000 in the fourth, and 3/4 of 4000 that come between 85 and 105 ms. With γ = 1/2 that is
/// `(1000 + 2000/8 + 3000/64) · 8 bits / 100 ms`. The last eighth had not been entered at the last look.
#[test]
fn the_reward_is_discounted_goodput_over_the_rtt() {
    let mut one = peekaboo(&[("discount", 0.5), ("alpha", 0.0)]);
    one.obeys = [0.0, 1.0];
    assert_eq!(one.decide(at(0), &seen(&blocked(), 0)), Decision::send(SLOW));
    let x = one.trials[0].features;
    for (ms, acknowledged) in [(10, 1000), (40, 3000), (85, 3000), (105, 7000)] {
        one.watch(at(ms), Dsn::new(1 + acknowledged));
    }
    assert!(one.trials.is_empty());
    let mut expected = Bandit::new();
    expected.learn(&x, (1000.0 + 250.0 + 3000.0 / 64.0) * 8e-6 / 0.1);
    assert_eq!(one.bandits[Action::Send as usize].score(&x, 0.0), expected.score(&x, 0.0));
    assert_eq!(one.bandits[Action::Wait as usize].score(&x, 0.0), 0.0);
}

#[test]
fn a_wait_is_judged_by_the_rtt_of_the_fast_subflow() {
    let mut one = peekaboo(&[("send", 0.0)]);
    assert_eq!(one.decide(at(0), &seen(&blocked(), 0)), Decision::WAIT);
    assert_eq!((one.trials[0].action, one.trials[0].end), (Action::Wait, at(10)));
    one.watch(at(10), Dsn::new(10_001));
    let x = features(&blocked()[0], &blocked()[1], segments(1_000_000));
    assert!(one.bandits[Action::Wait as usize].score(&x, 0.0) > 0.0);
}

/// Waits in situations where waiting brought more, and sends where sending did.
#[test]
fn it_learns_which_action_pays() {
    for waiting_pays in [true, false] {
        let mut one = peekaboo(&[]);
        let (mut acknowledged, mut waits) = (0, 0);
        for round in 0..400 {
            one.waiting = false;
            let now = at(200 * round);
            let waited = one.decide(now, &seen(&blocked(), acknowledged)) == Decision::WAIT;
            acknowledged += if waited == waiting_pays { 20_000 } else { 1_000 };
            one.watch(now + Duration::from_millis(5), Dsn::new(1 + acknowledged));
            waits += u32::from(waited && round >= 200);
        }
        let expected = if waiting_pays { 110..=170 } else { 5..=40 };
        assert!(expected.contains(&waits), "{waiting_pays}: {waits} of 200");
    }
}

#[test]
fn the_seed_is_the_only_chance() {
    let decisions = |seed: u64| {
        let mut one = peekaboo(&[]);
        one.seed(Seed(seed));
        let decide = |n: u64| {
            one.waiting = false;
            one.decide(at(n), &view(&blocked(), 50))
        };
        (0..100).map(decide).collect::<Vec<_>>()
    };
    assert_eq!(decisions(1), decisions(1));
    assert_ne!(decisions(1), decisions(2));
}

#[test]
fn observations_are_bounded() {
    let mut one = peekaboo(&[]);
    let capacity = one.trials.capacity();
    for n in 0..100 {
        one.waiting = false;
        one.decide(Instant::ZERO + Duration::from_micros(n), &view(&blocked(), 50));
    }
    assert_eq!((one.trials.len(), one.trials.capacity()), (MOST_TRIALS, capacity));
}
