//! Queues of segments, and their reassignment when a queue is gone.

use super::*;
use crate::scheduler::testing::*;
use anabranch_units::SubflowId;
use proptest::prelude::*;

/// SRTT [ms], cwnd and in flight in segments.
type Row = (u64, u64, u64);
/// Segments in a row that wait for the same subflow.
type Run = (usize, u64);

fn otias(floor: bool) -> Otias {
    Otias { floor, leave_out_throttled: false, tags: Tags::default() }
}

fn subflows(rows: &[Row]) -> Vec<SubflowView> {
    (0..).zip(rows).map(|(id, &(srtt, cwnd, in_flight))| subflow(SubflowId(id), srtt, cwnd, in_flight)).collect()
}

/// The places of the first `unsent` segments as runs, found by taking the first away again and again.
fn queues(otias: &mut Otias, view: &View<'_>) -> Vec<Run> {
    otias.decide(at(0), view);
    let mut runs: Vec<Run> = Vec::new();
    while let Some(place) = otias.tags.holder() {
        otias.tags.remove(Bytes::ZERO, segments(1));
        match runs.last_mut() {
            Some(last) if last.0 == place => last.1 += 1,
            _ => runs.push((place, 1)),
        }
    }
    runs
}

/// Made by a throw-away Python script that computes the cost of every subflow for every segment.
#[test]
fn segments_queue_where_they_arrive_first() {
    let rows: &[(&[Row], u64, bool, &[Run])] = &[
        (&[(50, 17, 15), (15, 2, 2)], 12, false, &[(1, 2), (0, 2), (1, 6), (0, 2)]),
        (
            &[(90, 2, 0), (90, 10, 8), (90, 10, 2)],
            40,
            false,
            &[(0, 2), (1, 2), (2, 8), (0, 2), (1, 10), (2, 10), (0, 2), (1, 4)],
        ),
        (&[(10, 2, 2), (50, 10, 2), (20, 5, 2)], 12, true, &[(0, 2), (2, 8), (0, 2)]),
        (&[(50, 2, 2), (20, 10, 3), (15, 10, 0)], 40, false, &[(2, 10), (1, 7), (2, 10), (1, 10), (2, 3)]),
        (&[(15, 5, 1), (90, 2, 1), (10, 10, 10)], 12, false, &[(0, 4), (2, 8)]),
        (&[(20, 17, 15), (33, 5, 0)], 40, true, &[(0, 19), (1, 10), (0, 11)]),
        (&[(90, 17, 16), (20, 10, 4)], 90, false, &[(1, 16), (0, 1), (1, 50), (0, 17), (1, 6)]),
        (&[(20, 5, 5), (33, 2, 2)], 12, false, &[(0, 5), (1, 2), (0, 5)]),
        (&[(33, 5, 4), (20, 5, 3)], 12, true, &[(1, 7), (0, 5)]),
        (&[(15, 17, 12), (90, 17, 4), (15, 2, 0)], 40, false, &[(0, 5), (2, 2), (0, 17), (2, 2), (0, 14)]),
        (&[(50, 5, 5), (10, 5, 2)], 90, false, &[(1, 33), (0, 5), (1, 25), (0, 5), (1, 22)]),
        (&[(90, 5, 4), (20, 17, 16)], 90, true, &[(1, 35), (0, 6), (1, 49)]),
        (&[(20, 17, 6), (10, 17, 12), (20, 2, 2)], 12, false, &[(1, 5), (0, 7)]),
        (&[(50, 17, 14), (20, 5, 2)], 40, false, &[(1, 3), (0, 3), (1, 15), (0, 17), (1, 2)]),
        (&[(90, 2, 2), (20, 17, 11)], 90, true, &[(1, 40), (0, 2), (1, 48)]),
        (&[(20, 5, 3), (90, 17, 17)], 40, false, &[(0, 32), (1, 8)]),
    ];
    for (rows, unsent, floor, expected) in rows {
        assert_eq!(queues(&mut otias(*floor), &view(&subflows(rows), *unsent)), *expected, "{rows:?} {unsent} {floor}");
    }
}

/// The paper's example of a queue on the fast path: it takes 50 segments at 10 ms, while the slow path's 50 ms is
/// later.
#[test]
fn the_fast_path_queues_until_its_wait_exceeds_the_slow_delay() {
    let both = subflows(&[(10, 10, 0), (100, 10, 0)]);
    assert_eq!(queues(&mut otias(false), &view(&both, 70)), [(0, 50), (1, 10), (0, 10)]);
    // As published the first segment that does not fit arrives with those that do, and so does a whole window behind
    // it.
    assert_eq!(queues(&mut otias(true), &view(&both, 90)), [(0, 60), (1, 20), (0, 10)]);
}

#[test]
fn what_is_queued_stays_when_windows_change() {
    let mut otias = otias(false);
    let before = subflows(&[(10, 10, 10), (100, 10, 0)]);
    assert_eq!(otias.decide(at(0), &view(&before, 50)), Decision::Send { on: SLOW, skip: segments(40) });
    // The fast path has doubled its window and would take all; but the tags stay.
    let after = subflows(&[(10, 20, 20), (100, 10, 0)]);
    assert_eq!(otias.decide(at(5), &view(&after, 50)), Decision::Send { on: SLOW, skip: segments(40) });
    // A scheduler that sees it for the first time waits for the fast path.
    assert_eq!(self::otias(false).decide(at(5), &view(&after, 50)), Decision::WAIT);
}

#[test]
fn each_subflow_sends_its_own_in_turn() {
    let mut otias = otias(false);
    let both = subflows(&[(10, 10, 10), (100, 10, 0)]);
    for unsent in (46..=50).rev() {
        let decision = otias.decide(at(0), &view(&both, unsent));
        assert_eq!(decision, Decision::Send { on: SLOW, skip: segments(40) }, "{unsent}");
        let sent = Event::Sent { on: SLOW, dsn: Default::default(), skip: segments(40), length: segments(1) };
        otias.observe(at(0), &sent);
    }
    let fast_has_room = subflows(&[(10, 10, 9), (100, 10, 5)]);
    assert_eq!(otias.decide(at(1), &view(&fast_has_room, 45)), Decision::send(FAST));
}

/// The fast path fails with 40 segments waiting for it: they go to the slow one, before what waits there.
#[test]
fn what_waited_for_a_failed_subflow_is_put_elsewhere() {
    let mut otias = otias(false);
    let third = SubflowId(2);
    let all = subflows(&[(10, 10, 10), (100, 10, 0), (120, 10, 4)]);
    assert_eq!(otias.decide(at(0), &view(&all, 55)), Decision::Send { on: SLOW, skip: segments(40) });
    let left = &all[1..];
    assert_eq!(otias.decide(at(1), &view(left, 55)), Decision::send(third), "60 ms: the slow path's window is taken");
    let runs = queues(&mut otias, &view(left, 55));
    assert_eq!(runs.iter().map(|run| run.1).sum::<u64>(), 55);
    assert!(runs.iter().all(|run| run.0 < 2));
}

#[test]
fn a_held_back_subflow_is_left_out_only_on_request() {
    let held_back = SubflowView { throttled: true, ..subflow(FAST, 10, 10, 6) };
    let both = [held_back, subflow(SLOW, 100, 10, 0)];
    assert_eq!(otias(false).decide(at(0), &view(&both, 9)), Decision::WAIT);
    let mut as_the_code = Otias { leave_out_throttled: true, ..otias(false) };
    assert_eq!(as_the_code.decide(at(0), &view(&both, 9)), Decision::send(SLOW));
}

#[test]
fn never_waits_for_a_subflow_with_nothing_in_flight() {
    let held_back = SubflowView { throttled: true, ..subflow(FAST, 10, 10, 0) };
    let both = [held_back, subflow(SLOW, 100, 10, 0)];
    assert_eq!(otias(false).decide(at(0), &view(&both, 5)), Decision::send(SLOW));
}

/// Assigns only data within the peer's window.
#[test]
fn the_window_bounds_the_queues() {
    let mut otias = otias(false);
    let both = subflows(&[(10, 10, 10), (100, 10, 0)]);
    let narrow = View { sendable: segments(45), ..view(&both, 200) };
    assert_eq!(otias.decide(at(0), &narrow), Decision::Send { on: SLOW, skip: segments(40) });
    assert_eq!(otias.tags.total(), segments(45));
}

/// The formula as it is printed, in whole segments; half an RTT is one.
fn printed(queued: u64, free: u64, cwnd: u64, floor: bool) -> u64 {
    let wait = match (queued < free, floor) {
        (true, _) => 0,
        (false, true) => (queued - free) / cwnd,
        (false, false) => (queued - free + 1).div_ceil(cwnd),
    };
    2 * wait + 1
}

proptest! {
    #[test]
    fn bytes_give_what_segments_give(queued in 0u64..60_000, cwnd in 1u64..30_000, out in 0u64..30_000, floor: bool) {
        let subflow = SubflowView { cwnd: Bytes::new(cwnd), in_flight: Bytes::new(out), ..subflow(FAST, 2, 0, 0) };
        let (whole, free, cwnd) = (queued.div_ceil(1000), cwnd.saturating_sub(out) / 1000, (cwnd / 1000).max(1));
        let (arrival, alike) = expected(&subflow, Bytes::new(queued), floor);
        prop_assert_eq!(arrival.as_millis(), printed(whole, free, cwnd, floor));
        let alike = alike.get() / 1000;
        for behind in 0..alike {
            prop_assert_eq!(printed(whole + behind, free, cwnd, floor), arrival.as_millis());
        }
        // As published the first window that does not fit looks like the one before it.
        let next = printed(whole + alike, free, cwnd, floor);
        prop_assert!(next > arrival.as_millis() || floor && whole < free);
    }
}
