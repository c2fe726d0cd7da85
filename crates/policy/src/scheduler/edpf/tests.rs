//! Deliveries counted are deliveries computed one by one.

use super::*;
use crate::Truth;
use crate::scheduler::testing::*;
use anabranch_units::Rate;
use proptest::prelude::*;

fn edpf(conserving: bool) -> Edpf {
    Edpf { conserving, paths: Vec::new() }
}

/// A path of that rate and one-way delay, whose window never binds.
fn path(id: u16, mbps: u64, delay_ms: u64) -> SubflowView {
    let truth = Truth { rate: Rate::from_mbps(mbps), delay: Duration::from_millis(delay_ms), loss: 0.0 };
    SubflowView { truth: Some(truth), ..subflow(SubflowId(id), 2 * delay_ms, 1000, 0) }
}

fn paths(all: &[(u64, u64)]) -> Vec<SubflowView> {
    (0..).zip(all).map(|(id, &(mbps, delay_ms))| path(id, mbps, delay_ms)).collect()
}

/// Sends until it waits: the paths in turn, each with the segments it skipped.
fn trace(edpf: &mut Edpf, subflows: &mut [SubflowView], mut unsent: u64) -> Vec<(u16, u64)> {
    let mut sent = Vec::new();
    while unsent > 0
        && let Decision::Send { on, skip } = edpf.decide(at(0), &view(subflows, unsent))
    {
        subflows[usize::from(on.0)].in_flight += segments(1);
        edpf.observe(at(0), &Event::Sent { on, dsn: Default::default(), skip, length: segments(1) });
        sent.push((on.0, skip.get() / 1000));
        unsent -= 1;
    }
    sent
}

/// Rate [Mbit/s] and delay [ms] of each path; who sends. Made by a throw-away Python script in exact fractions.
type Row<'a> = (&'a [(u64, u64)], &'a [u16]);

#[test]
fn each_segment_takes_the_path_that_delivers_it_first() {
    let rows: &[Row] = &[
        (
            &[(20, 50), (2, 10)],
            &[1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        ),
        (
            &[(5, 50), (2, 5)],
            &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0],
        ),
        (
            &[(20, 50), (10, 25)],
            &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
        ),
        (&[(2, 80), (2, 50)], &[1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]),
        (&[(1, 5), (10, 5)], &[1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        (
            &[(10, 80), (5, 25), (20, 25)],
            &[2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2],
        ),
        (&[(20, 50), (10, 50)], &[0, 0, 1, 0, 0, 1, 0, 0]),
        (&[(2, 80), (5, 50), (20, 50)], &[2, 2, 2, 1, 2, 2, 2, 2]),
        (&[(10, 5), (1, 10)], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        (&[(1, 2), (20, 50)], &[0, 0, 0, 0, 0, 1, 1, 1]),
        (
            &[(2, 2), (5, 2), (1, 2)],
            &[1, 1, 0, 1, 1, 0, 1, 2, 1, 1, 0, 1, 1, 0, 1, 2, 1, 1, 0, 1, 1, 0, 1, 2, 1, 1, 0, 1, 1, 0],
        ),
        (&[(1, 5), (10, 10), (20, 10)], &[2, 1, 2, 2, 1, 2, 2, 1]),
        (&[(1, 10), (5, 10), (2, 25)], &[1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 2, 1, 1, 2, 1, 0, 1]),
        (
            &[(2, 10), (10, 10), (20, 10)],
            &[2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 0, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 0],
        ),
    ];
    for (all, expected) in rows {
        let sent = trace(&mut edpf(false), &mut paths(all), expected.len() as u64);
        assert_eq!(sent, expected.iter().map(|&on| (on, 0)).collect::<Vec<_>>(), "{all:?}");
    }
}

/// 8.64 ms a segment at 1 Mbit/s and 2 ms away: five of them are there before the first over the path of 50 ms.
#[test]
fn a_thin_path_takes_what_it_can_deliver() {
    let thin_and_fat = || paths(&[(1, 2), (20, 50)]);
    let sent = trace(&mut edpf(false), &mut thin_and_fat(), 8);
    assert_eq!(sent.iter().filter(|sent| sent.0 == 0).count(), 5);
    // A prediction from cwnd and SRTT ignores that: the whole window would leave at once.
    let mut blind = thin_and_fat();
    blind.iter_mut().for_each(|subflow| subflow.truth = None);
    assert_eq!(trace(&mut edpf(false), &mut blind, 8), vec![(0, 0); 8]);
}

/// The thin path's window holds two; three more are its own.
#[test]
fn what_belongs_to_a_full_window_is_left_to_it() {
    let full = || {
        let mut both = paths(&[(1, 2), (20, 50)]);
        both[0].cwnd = segments(2);
        both
    };
    let sent = [(0, 0), (0, 0), (1, 3), (1, 3), (1, 3)];
    assert_eq!(trace(&mut edpf(false), &mut full(), 8), sent);
    assert_eq!(trace(&mut edpf(false), &mut full(), 5), sent[..2], "it waits");
    assert_eq!(trace(&mut edpf(true), &mut full(), 5), [(0, 0), (0, 0), (1, 0), (1, 0), (1, 0)]);
}

/// Segments queued at 1 Mbit/s, then a rate of 100: A_i falls to what is in flight at the new rate.
#[test]
fn a_path_is_free_no_later_than_what_is_in_flight_takes() {
    let mut edpf = edpf(false);
    let mut both = paths(&[(1, 2), (1, 500)]);
    assert_eq!(trace(&mut edpf, &mut both, 30).len(), 30);
    assert_eq!(edpf.paths[0].free, at(2) + Duration::from_micros(8640) * 30);
    both[0] = SubflowView { in_flight: segments(10), ..path(0, 100, 2) };
    edpf.decide(at(100), &view(&both, 5));
    assert_eq!(edpf.paths[0].free, at(102) + Duration::from_nanos(86_400) * 10);
    // A path that delivers nothing is never chosen.
    both[0] = path(0, 0, 2);
    assert_eq!(edpf.decide(at(101), &view(&both, 5)), Decision::send(SLOW));
}

#[test]
fn never_waits_for_a_subflow_with_nothing_in_flight() {
    let mut both = paths(&[(10, 2), (10, 50)]);
    both[0].throttled = true;
    assert_eq!(edpf(false).decide(at(0), &view(&both, 3)), Decision::send(SLOW));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Against the paper's loop over all segments, windows full or not.
    #[test]
    fn counting_is_walking(
        all in prop::collection::vec((1u64..40, 0u64..60, 0u64..20, any::<bool>()), 2..6),
        unsent in 1u64..200,
    ) {
        let mut subflows = paths(&all.iter().map(|path| (path.0, path.1)).collect::<Vec<_>>());
        for (subflow, path) in subflows.iter_mut().zip(&all) {
            subflow.in_flight = segments(path.2);
            subflow.cwnd = if path.3 { segments(path.2) } else { subflow.cwnd };
        }
        let per_segment = |path: &(u64, u64, u64, bool)| 8_640_000 / path.0 + u64::from(8_640_000 % path.0 > 0);
        let mut free: Vec<u64> = all.iter().map(|path| path.1 * 1_000_000 + path.2 * per_segment(path)).collect();
        let mut first = None;
        for segment in 0..unsent {
            let best = (0..all.len()).min_by_key(|&at| free[at] + per_segment(&all[at])).unwrap_or_default();
            free[best] += per_segment(&all[best]);
            if subflows[best].has_room() {
                first = Some((best, segment));
                break;
            }
        }
        if subflows.iter().any(SubflowView::has_room) {
            let decision = edpf(false).decide(at(0), &view(&subflows, unsent));
            match first {
                Some((best, skip)) => {
                    prop_assert_eq!(decision, Decision::Send { on: SubflowId(best as u16), skip: segments(skip) });
                }
                None => {
                    let idle = subflows.iter().any(|subflow| subflow.in_flight.is_zero());
                    prop_assert!(decision == Decision::WAIT || idle);
                }
            }
        }
    }
}
