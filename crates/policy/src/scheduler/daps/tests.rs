use super::*;
use crate::scheduler::testing::*;
use anabranch_units::{Bytes, Dsn, SubflowId};

fn daps(round_delay: u64, use_planned_cwnd: bool, smooth_cwnd: bool) -> Daps {
    Daps {
        round_delay,
        use_planned_cwnd,
        smooth_cwnd,
        flows: PerSubflow::default(),
        laid_out: None,
        turns: Tags::default(),
    }
}

/// Forward delays in ms, windows in segments, full or empty.
fn path(id: u16, delay: u64, cwnd: u64, full: bool) -> SubflowView {
    subflow(SubflowId(id), 2 * delay, cwnd, if full { cwnd } else { 0 })
}

/// The first turns as (subflow, segments), neighbours of one subflow together.
fn plan(daps: &mut Daps, subflows: &[SubflowView], runs: usize) -> Vec<(u16, u64)> {
    let view = view(subflows, 1_000_000);
    daps.follow(&view);
    while daps.turns.runs() <= runs {
        assert!(daps.lay_out(&view).is_some());
    }
    let mut plan = Vec::new();
    for _ in 0..runs {
        let holder = daps.turns.holder().expect("a run for each");
        let others = places(&view, |_| true) & !(1 << holder);
        let (_, length) = daps.turns.first_of(others).expect("another run behind it");
        plan.push((subflows[holder].id.0, length.get() / 1000));
        daps.turns.remove(Bytes::ZERO, length);
    }
    plan
}

fn send(daps: &mut Daps, on: SubflowId, skip: u64, n: u64) {
    let (skip, length) = (segments(skip), segments(n));
    daps.observe(at(0), &Event::Sent { on, dsn: Dsn::new(1), skip, length });
}

/// Computed by hand: d = (5, 20), windows of 10. The slow path starts with segment 41.
#[test]
fn worked_example() {
    let subflows = [path(0, 5, 10, true), path(1, 20, 10, false)];
    let mut first = daps(1, true, true);
    assert_eq!(first.decide(at(0), &view(&subflows, 500)), Decision::Send { on: SLOW, skip: segments(40) });
    assert_eq!(plan(&mut daps(1, true, true), &subflows, 4), [(0, 40), (1, 10), (0, 40), (1, 10)]);
    // 5 is rounded to 4: five turns.
    assert_eq!(plan(&mut daps(4, true, true), &subflows, 2), [(0, 50), (1, 10)]);
}

/// The turns of a loop over all milliseconds up to the least common multiple, by a script of our own.
#[test]
fn turns_are_those_of_the_loop() {
    let subflows = [path(0, 6, 1, false), path(1, 4, 1, false), path(2, 9, 1, false)];
    let order = [1, 0, 1, 2, 1, 0, 1, 0, 2, 1, 1, 0, 2, 1, 0, 1, 1, 0, 2];
    let mut expected: Vec<(u16, u64)> = Vec::new();
    for id in order {
        match expected.last_mut() {
            Some(last) if last.0 == id => last.1 += 1,
            _ => expected.push((id, 1)),
        }
    }
    assert_eq!(plan(&mut daps(0, true, true), &subflows, expected.len()), expected);
}

#[test]
fn delays_are_rounded() {
    for (delay, base, expected) in [
        (5, 4, 4),
        (6, 4, 8),
        (7, 4, 8),
        (1, 4, 1),
        (0, 4, 1),
        (2, 4, 4),
        (9, 5, 10),
        (12, 5, 15),
        (11, 5, 10),
        (0, 0, 1),
        (7, 0, 7),
        (7, 1, 7),
        (0, 1, 1),
    ] {
        assert_eq!(rounded(delay, base), expected, "{delay} to {base}");
    }
}

#[test]
fn a_turn_begins_where_those_before_it_end_and_shrinks_whoever_sends() {
    let mut daps = daps(1, true, true);
    let [fast, slow] = [path(0, 5, 10, false), path(1, 20, 10, false)];
    let full = |subflow: SubflowView| SubflowView { in_flight: subflow.cwnd, ..subflow };
    let both = [fast, slow];
    assert_eq!(daps.decide(at(0), &view(&both, 500)), Decision::send(FAST));
    send(&mut daps, FAST, 0, 10);
    let waiting = [full(fast), slow];
    assert_eq!(daps.decide(at(0), &view(&waiting, 490)), Decision::Send { on: SLOW, skip: segments(30) });
    send(&mut daps, SLOW, 30, 10);
    // Its turn is used up; the next is behind four more windows of the fast one.
    assert_eq!(daps.decide(at(0), &view(&waiting, 480)), Decision::Send { on: SLOW, skip: segments(70) });
    // The window binds: the whole segment must fit.
    for (sendable, decision) in [(70_999, Decision::WAIT), (71_000, Decision::Send { on: SLOW, skip: segments(70) })] {
        let narrow = View { sendable: Bytes::new(sendable), ..view(&waiting, 480) };
        assert_eq!(daps.decide(at(0), &narrow), decision);
    }
    assert_eq!(daps.decide(at(0), &view(&waiting, 70)), Decision::WAIT);
    // The engine sends five segments of the slow turn on the fast subflow.
    send(&mut daps, FAST, 70, 5);
    assert_eq!(daps.decide(at(0), &view(&waiting, 475)), Decision::Send { on: SLOW, skip: segments(70) });
    send(&mut daps, SLOW, 70, 5);
    assert_eq!(daps.decide(at(0), &view(&waiting, 470)), Decision::Send { on: SLOW, skip: segments(110) });
}

#[test]
fn windows_are_those_of_the_plan_or_of_the_turn() {
    for (planned, expected) in [(true, 10 + 3 * 10), (false, 10 + 3 * 20)] {
        let mut daps = daps(1, planned, false);
        // One turn is laid out; then the fast window doubles.
        let before = [path(0, 5, 10, false), path(1, 20, 10, true)];
        assert_eq!(daps.decide(at(0), &view(&before, 500)), Decision::send(FAST));
        let after = [path(0, 5, 20, true), path(1, 20, 10, false)];
        assert_eq!(daps.decide(at(0), &view(&after, 500)), Decision::Send { on: SLOW, skip: segments(expected) });
    }
}

/// 80 eighths; one sample of 20 per window makes 90, then 99 (90 - 11 + 20), then 107.
#[test]
fn windows_are_smoothed_once_per_window() {
    let mut flow = Flow { smoothed: 0, sample_at: 0, delay: 1, next: 1, planned: 1 };
    let state = |cwnd, sent, acked| SubflowView { sent, acked, ..path(0, 5, cwnd, false) };
    let mut windows = Vec::new();
    for now in [(10, 5_000, 0), (20, 9_000, 4_999), (20, 9_000, 5_000), (20, 12_000, 8_999), (20, 12_000, 9_000)] {
        flow.sample(&state(now.0, now.1, now.2));
        windows.push((flow.smoothed, flow.window(&state(now.0, now.1, now.2), true)));
    }
    assert_eq!(windows, [(80, 10), (80, 10), (90, 11), (90, 11), (99, 12)]);
    assert_eq!(flow.window(&state(20, 0, 0), false), 20);
}

#[test]
fn who_may_not_send_has_no_turn() {
    let mut daps = daps(1, true, true);
    let [fast, slow] = [path(0, 5, 10, true), path(1, 20, 10, false)];
    assert_eq!(daps.decide(at(0), &view(&[fast, slow], 500)), Decision::Send { on: SLOW, skip: segments(40) });
    let recovering = SubflowView { open: false, ..fast };
    assert_eq!(daps.decide(at(0), &view(&[recovering, slow], 500)), Decision::send(SLOW));
    // Gone, and back: plans anew.
    assert_eq!(daps.decide(at(0), &view(&[slow], 500)), Decision::send(SLOW));
    assert_eq!(daps.decide(at(0), &view(&[fast, slow], 500)), Decision::Send { on: SLOW, skip: segments(40) });
}

/// The turns that it had not while it might not send are not made up for: delays of 5, 35 and 36 ms, of which the
/// fastest is back when the others have had turns at 35, 36 and 70 ms.
#[test]
fn who_may_send_again_has_no_arrears() {
    let mut daps = daps(1, true, true);
    let paths = [path(0, 5, 1, false), path(1, 35, 1, false), path(2, 36, 1, false)];
    let recovering = SubflowView { open: false, ..paths[0] };
    assert_eq!(plan(&mut daps, &[recovering, paths[1], paths[2]], 2), [(1, 1), (2, 1)]);
    daps.turns.clear();
    assert_eq!(plan(&mut daps, &paths, 3), [(2, 1), (0, 7), (1, 1)]);
}

/// Same samples as in the kernel: 80 eighths, then 90, 99 and 107, though no data was sent in between.
#[test]
fn an_idle_subflow_gives_a_sample_each_time() {
    let mut flow = Flow { smoothed: 0, sample_at: 0, delay: 1, next: 1, planned: 1 };
    for (cwnd, smoothed) in [(10, 80), (20, 90), (20, 99), (20, 107)] {
        flow.sample(&SubflowView { sent: 5_000, acked: 5_000, ..path(0, 5, cwnd, false) });
        assert_eq!(flow.smoothed, smoothed);
    }
}

#[test]
fn a_silent_subflow_is_not_waited_for() {
    let held_back = SubflowView { throttled: true, ..path(0, 5, 10, false) };
    let subflows = [held_back, path(1, 20, 10, false)];
    assert_eq!(daps(1, true, true).decide(at(0), &view(&subflows, 30)), Decision::send(SLOW));
}

/// Delays without a common divisor, and one a thousand times the other: memory stays bounded, and all have turns.
#[test]
fn long_plans_are_bounded() {
    let wild: Vec<_> = [101, 103, 107, 109, 113, 127, 131, 100_000]
        .into_iter()
        .enumerate()
        .map(|(id, delay)| path(id as u16, delay, 1, id != 7))
        .collect();
    let mut daps = daps(0, true, true);
    daps.decide(at(0), &view(&wild, 1_000_000));
    assert_eq!(daps.turns.runs(), MOST_RUNS);
    assert!((0..7).all(|place| !daps.turns.queued(place).is_zero()));
    let far = [path(0, 1, 1, true), path(1, 100_000, 1, false)];
    assert_eq!(daps.decide(at(0), &view(&far, 1_000_000)), Decision::Send { on: SLOW, skip: segments(100_000) });
}
