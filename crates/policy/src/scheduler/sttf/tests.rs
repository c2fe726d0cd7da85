//! Decisions agree with the whole assignment pass.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::registry::{SCHEDULERS, Value, find};
use crate::scheduler::testing::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// SRTT [ms], cwnd, in flight and ssthresh in segments.
type Row = (u64, u64, u64, Option<u64>);
/// Subflow that sends, and the segments that it skips.
type Sends = Option<(u16, u64)>;

fn scheduler(name: &str, given: &[(&str, Value)]) -> Box<dyn Scheduler> {
    let entry = find(SCHEDULERS, "scheduler", name).unwrap();
    let given: BTreeMap<_, _> = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    entry.build(&entry.params(&given).unwrap()).policy
}

fn sttf() -> Box<dyn Scheduler> {
    scheduler("sttf", &[("alpha", Value::Number(0.0))])
}

fn subflows(rows: &[Row]) -> Vec<SubflowView> {
    let one = |(id, &(srtt, cwnd, in_flight, ssthresh)): (u16, &Row)| SubflowView {
        ssthresh: ssthresh.map(segments),
        ..subflow(SubflowId(id), srtt, cwnd, in_flight)
    };
    (0..).zip(rows).map(one).collect()
}

/// Sends what it says until it waits: the subflows in turn, each with how far into the unsent segments it began.
fn trace(scheduler: &mut dyn Scheduler, subflows: &mut [SubflowView], mut unsent: u64) -> Vec<(u16, u64)> {
    let mut sent = Vec::new();
    while unsent > 0
        && let Decision::Send { on, skip } = scheduler.decide(at(0), &view(subflows, unsent))
    {
        subflows[usize::from(on.0)].in_flight += segments(1);
        scheduler.observe(at(0), &crate::Event::Sent { on, dsn: Default::default(), skip, length: segments(1) });
        sent.push((on.0, skip.get() / 1000));
        unsent -= 1;
    }
    sent
}

/// Made by a throw-away Python script that predicts every segment in turn, round by round. One subflow has room; it
/// sends the first of its segments, or nothing.
#[test]
fn the_first_segment_of_the_subflow_with_room() {
    let rows: &[(&[Row], u64, Sends)] = &[
        (&[(140, 17, 15, None), (20, 40, 40, None), (50, 40, 40, None)], 20, None),
        (&[(15, 17, 3, None), (33, 2, 2, Some(80))], 5, Some((0, 0))),
        (&[(50, 40, 36, Some(80)), (15, 17, 17, None)], 5, None),
        (
            &[(33, 17, 17, Some(80)), (15, 10, 10, Some(12)), (50, 5, 3, None), (33, 10, 10, Some(80))],
            60,
            Some((2, 12)),
        ),
        (&[(10, 40, 40, None), (15, 40, 40, Some(30)), (33, 10, 7, Some(30)), (140, 2, 2, None)], 500, Some((2, 80))),
        (&[(33, 10, 10, Some(80)), (140, 40, 10, None), (33, 2, 2, Some(12))], 5, None),
        (&[(140, 2, 2, Some(4)), (33, 10, 7, Some(4))], 200, Some((1, 0))),
        (
            &[(50, 5, 1, Some(30)), (140, 10, 10, Some(4)), (20, 17, 17, Some(80)), (90, 17, 17, Some(12))],
            200,
            Some((0, 0)),
        ),
        (&[(20, 10, 10, Some(80)), (140, 17, 13, None)], 200, Some((1, 140))),
        (&[(15, 10, 2, Some(12)), (33, 40, 40, Some(12))], 60, Some((0, 0))),
        (&[(33, 2, 2, None), (15, 5, 5, Some(30)), (140, 17, 6, None)], 200, Some((2, 95))),
        (&[(90, 2, 1, Some(80)), (140, 5, 5, Some(30))], 20, Some((0, 0))),
        (&[(140, 40, 40, Some(80)), (90, 17, 0, Some(4)), (50, 40, 40, Some(12))], 20, Some((1, 0))),
        (&[(20, 5, 2, Some(4)), (15, 5, 5, Some(30)), (33, 2, 2, Some(30))], 20, Some((0, 0))),
        (&[(33, 10, 1, Some(30)), (20, 2, 2, Some(30)), (20, 40, 40, Some(80))], 500, Some((0, 0))),
        (&[(20, 2, 1, Some(12)), (20, 2, 2, Some(4))], 20, Some((0, 0))),
        (&[(90, 17, 17, Some(80)), (140, 5, 2, Some(12))], 5, Some((1, 0))),
        (&[(33, 2, 1, Some(80)), (10, 5, 5, Some(30))], 200, Some((0, 10))),
        (&[(10, 5, 5, None), (50, 17, 0, Some(12)), (10, 5, 5, Some(12))], 200, Some((1, 52))),
        (&[(90, 10, 10, Some(80)), (90, 5, 4, Some(80)), (15, 17, 17, Some(80)), (50, 40, 40, Some(80))], 5, None),
        (&[(15, 2, 2, Some(80)), (33, 10, 10, None), (33, 2, 2, Some(12)), (33, 2, 0, Some(12))], 20, Some((3, 0))),
        (&[(90, 40, 34, Some(4)), (20, 40, 40, Some(12))], 20, None),
        (&[(20, 10, 10, Some(30)), (20, 2, 0, None)], 60, Some((1, 0))),
        (&[(10, 2, 2, Some(12)), (90, 2, 2, Some(12)), (33, 5, 3, Some(12)), (15, 40, 40, Some(12))], 60, Some((2, 4))),
        (&[(50, 2, 1, Some(12)), (15, 2, 2, Some(12))], 60, Some((0, 4))),
        (&[(90, 5, 4, Some(30)), (33, 17, 17, Some(80)), (33, 2, 2, None)], 500, Some((0, 0))),
    ];
    for (rows, unsent, expected) in rows {
        let decision = sttf().decide(at(0), &view(&subflows(rows), *unsent));
        let expected =
            expected.map_or(Decision::WAIT, |(on, skip)| Decision::Send { on: SubflowId(on), skip: segments(skip) });
        assert_eq!(decision, expected, "{rows:?} {unsent}");
    }
}

/// The paper's Section II and Fig. 6: 15 segments, windows of 10, RTTs of 10 and 100 ms. All belong to the fast
/// subflow: ten leave now and arrive after 5 ms, five in the next round after 15 ms; min-RTT's last five would take 50
/// ms.
#[test]
fn fifteen_segments_all_belong_to_the_fast_path() {
    for name in ["sttf", "sttf-code"] {
        let mut both = [subflow(FAST, 10, 10, 0), subflow(SLOW, 100, 10, 0)];
        let first_round = trace(&mut *scheduler(name, &[]), &mut both, 15);
        assert_eq!(first_round, vec![(0, 0); 10], "{name}");
        // TCP Small Queues do not divert it either.
        let mut both = [SubflowView { throttled: true, ..subflow(FAST, 10, 10, 6) }, subflow(SLOW, 100, 10, 0)];
        assert_eq!(trace(&mut *scheduler(name, &[]), &mut both, 9), [], "{name}");
    }
}

/// 310 segments arrive on the fast path before the first on the slow one: 10 + 20 + 40 + 80 + 160.
#[test]
fn the_slow_path_begins_where_the_fast_one_will_be() {
    for (name, given) in [("sttf", &[][..]), ("sttf-code", &[("overshoot", Value::Flag(false))][..])] {
        let mut both = [subflow(FAST, 10, 10, 0), subflow(SLOW, 100, 10, 0)];
        let sent = trace(&mut *scheduler(name, given), &mut both, 400);
        assert_eq!(sent, [vec![(0, 0); 10], vec![(1, 300); 10]].concat(), "{name}");
        let mut both = [subflow(FAST, 10, 10, 0), subflow(SLOW, 100, 10, 0)];
        assert_eq!(trace(&mut *scheduler(name, given), &mut both, 310).len(), 10, "{name}");
    }
}

#[test]
fn alike_first_rtts_make_it_min_rtt() {
    let mut both = [subflow(FAST, 100, 10, 0), subflow(SLOW, 109, 10, 0)];
    let spilt = [vec![(0, 0); 10], vec![(1, 0); 5]].concat();
    assert_eq!(trace(&mut *scheduler("sttf", &[]), &mut both, 15), spilt);
    // Ten per cent apart.
    let mut both = [subflow(FAST, 90, 10, 0), subflow(SLOW, 100, 10, 0)];
    assert_eq!(trace(&mut *scheduler("sttf", &[]), &mut both, 15), spilt, "the slow path's 50 ms beat 135 ms");
    let (mut one, mut other) = (scheduler("sttf", &[]), sttf());
    for (first, symmetric) in [(100, false), (109, true), (112, true), (113, false)] {
        // Later measurements do not matter.
        let long_ago = |first| SubflowView { rtt_first: Duration::from_millis(first), ..subflow(SLOW, 500, 10, 0) };
        let fast = SubflowView {
            rtt_first: Duration::from_millis(if first == 100 { 88 } else { 101 }),
            ..subflow(FAST, 10, 10, 10)
        };
        let both = [fast, long_ago(first)];
        let min_rtt = MinRtt.decide(at(0), &view(&both, 5));
        assert_eq!(one.decide(at(0), &view(&both, 5)) == min_rtt, symmetric, "{first}");
        assert_eq!(other.decide(at(0), &view(&both, 5)), Decision::WAIT);
    }
}

/// A fast path was congested when it was last used, half a second ago: 120 ms instead of 20. It is the fast one again.
#[test]
fn a_stale_rtt_does_not_keep_traffic_away() {
    let fast =
        SubflowView { rtt_first: Duration::from_millis(20), last_sent: Some(at(0)), ..subflow(FAST, 120, 10, 0) };
    let both = [fast, SubflowView { last_sent: Some(at(490)), ..subflow(SLOW, 60, 10, 0) }];
    assert_eq!(sttf().decide(at(300), &view(&both, 5)), Decision::send(SLOW));
    assert_eq!(sttf().decide(at(500), &view(&both, 5)), Decision::send(FAST));
}

#[test]
fn never_waits_for_a_subflow_with_nothing_in_flight() {
    for name in ["sttf", "sttf-code"] {
        let held_back = SubflowView { throttled: true, ..subflow(FAST, 10, 10, 0) };
        let both = [held_back, subflow(SLOW, 100, 10, 0)];
        assert_eq!(scheduler(name, &[]).decide(at(0), &view(&both, 5)), Decision::send(SLOW), "{name}");
    }
}

/// The fast path carries 4, 3, 4, … segments per round. With a sample of 60 ms only the first round arrives before the
/// slow path's 100 ms; with 39 ms, the second as well. That moves one of 5 segments, and nothing happens, or two of 6,
/// and they move.
#[test]
fn the_code_assigns_anew_when_a_share_changes_by_more_than_one() {
    let both = |fast_ms| {
        let fast = SubflowView { rtt_last: Duration::from_millis(fast_ms), ..subflow(FAST, 60, 2, 2) };
        [SubflowView { ssthresh: Some(segments(2)), ..fast }, subflow(SLOW, 200, 10, 0)]
    };
    let slow_sends = Decision::Send { on: SLOW, skip: segments(4) };
    for (unsent, then) in [(5, slow_sends), (6, Decision::WAIT)] {
        let mut code = scheduler("sttf-code", &[]);
        assert_eq!(code.decide(at(0), &view(&both(60), unsent)), slow_sends);
        assert_eq!(code.decide(at(0), &view(&both(39), unsent)), slow_sends, "still the same output run");
        assert_eq!(code.decide(at(1), &view(&both(39), unsent)), then, "{unsent}");
        assert_eq!(scheduler("sttf-code", &[]).decide(at(1), &view(&both(39), unsent)), Decision::WAIT);
    }
}

/// The pass of Algorithm 2, segment by segment: how many each subflow gets, and who gets each.
fn pass(subflows: &[SubflowView], rtts: &[Duration], growth: Growth, unsent: u64) -> Vec<usize> {
    let mut queued = vec![0; subflows.len()];
    let mut assigned = Vec::new();
    for _ in 0..unsent {
        let open = (0..subflows.len()).filter(|&at| subflows[at].open);
        let time = |at: usize| Arrivals::of(&subflows[at], rtts[at], growth).nth(queued[at] + 1).0;
        let Some(best) = open.min_by_key(|&at| (time(at), rtts[at], subflows[at].id)) else { break };
        queued[best] += 1;
        assigned.push(best);
    }
    assigned
}

fn any_subflows() -> impl Strategy<Value = Vec<SubflowView>> {
    let one = (1u64..20, 1u64..30, 0u64..40, prop::option::of(1u64..60), 0u8..10).prop_map(
        |(rtt, cwnd, out, ssthresh, kind)| {
            // RTTs in steps of 8 ms, so that predictions tie.
            let ssthresh = ssthresh.map(segments);
            SubflowView {
                ssthresh,
                open: kind > 0,
                throttled: kind == 1,
                ..subflow(FAST, 8 * rtt, cwnd, out.min(cwnd + 3))
            }
        },
    );
    prop::collection::vec(one, 2..6).prop_map(|mut all| {
        (0..).zip(&mut all).for_each(|(id, subflow)| subflow.id = SubflowId(id));
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// The decision without the pass is the pass's.
    #[test]
    fn counting_is_walking(subflows in any_subflows(), unsent in 1u64..400, overshoot: bool) {
        let rtts: Vec<_> = subflows.iter().map(|subflow| subflow.srtt).collect();
        let growth = if overshoot { Growth::Overshoot } else { Growth::Capped };
        let assigned = pass(&subflows, &rtts, growth, unsent);
        let mut sttf = scheduler("sttf", &[("alpha", Value::Number(0.0)), ("overshoot", Value::Flag(overshoot))]);
        let decision = sttf.decide(at(0), &view(&subflows, unsent));
        let can_leave = assigned.iter().position(|&at| subflows[at].has_room());
        match can_leave {
            Some(skip) => {
                let on = subflows[assigned[skip]].id;
                prop_assert_eq!(decision, Decision::Send { on, skip: segments(skip as u64) });
            }
            None => {
                let holder = assigned.first().map(|&at| &subflows[at]);
                prop_assert_eq!(decision, wait_for(holder, &view(&subflows, unsent)));
            }
        }
    }

    /// Repeats the code's test before each run with two full assignments; its assignment equals the pass's.
    #[test]
    fn the_code_counts_as_if_it_assigned(
        subflows in any_subflows(),
        earlier in any_subflows(),
        unsent in 1u64..300,
        more in 0u64..4,
    ) {
        let n = subflows.len().min(earlier.len());
        let (subflows, mut earlier) = (&subflows[..n], earlier[..n].to_vec());
        earlier.iter_mut().for_each(|subflow| subflow.open = true);
        let new = |name: &str| scheduler(name, &[("alpha", Value::Number(0.0)), ("overshoot", Value::Flag(true))]);
        let rtts = |all: &[SubflowView]| all.iter().map(|subflow| subflow.srtt).collect::<Vec<_>>();
        let share = |assigned: &[usize], at| assigned.iter().filter(|&&other| other == at).count();

        let mut code = new("sttf-code");
        code.decide(at(0), &view(&earlier, unsent));
        let kept = pass(&earlier, &rtts(&earlier), Growth::Overshoot, unsent);
        let anew = pass(subflows, &rtts(subflows), Growth::Overshoot, unsent + more);
        let outdated = (0..n).any(|at| {
            let (has, gets) = (share(&kept, at), share(&anew, at));
            has.abs_diff(gets) > 1 || !subflows[at].open && has > 0
        });
        let decision = code.decide(at(1), &view(subflows, unsent + more));
        let fresh = new("sttf-code").decide(at(1), &view(subflows, unsent + more));
        let pass = new("sttf").decide(at(1), &view(subflows, unsent + more));
        prop_assert_eq!(fresh, pass, "assigned from nothing it is the pass");
        if outdated {
            prop_assert_eq!(decision, fresh);
        } else if let Some(skip) = kept.iter().position(|&at| subflows[at].has_room()) {
            let on = subflows[kept[skip]].id;
            prop_assert_eq!(decision, Decision::Send { on, skip: segments(skip as u64) });
        }
    }
}
