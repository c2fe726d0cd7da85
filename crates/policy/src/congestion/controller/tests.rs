//! Rules of the controller, one by one.

use super::super::rules::EXAMPLE as RULES;
use super::*;
use crate::congestion::Reno;
use crate::registry::{CONGESTION, Params, find};

const A: SubflowId = SubflowId(1);
const MSS: Bytes = Bytes::new(1000);
const T: Instant = Instant::ZERO;
const RTO: Duration = Duration::from_millis(200);

fn controller(rules: Rules) -> Controller {
    let mut controller = Controller::new(Reno.into(), rules);
    controller.add(A, MSS);
    controller
}

/// ACK of these bytes of a window in full use.
fn full(bytes: u64) -> Ack {
    Ack { acked: Bytes::new(bytes), cwnd_limited: true, ..Ack::default() }
}

fn ack(controller: &mut Controller, bytes: u64) {
    controller.on_ack(T, A, &full(bytes));
}

fn state(controller: &Controller) -> (u64, Option<u64>) {
    (controller.cwnd(A).get(), controller.ssthresh(A).map(Bytes::get))
}

/// reduceCWND of mptcp-ns3 with segments of 1000 bytes: 10 segments fall to 5 by a fast retransmit, to 2.5 by a timeout
/// and to 1.25 by the next; the threshold is two segments.
#[test]
fn halving_knows_no_collapse_and_no_way_back_to_slow_start() {
    let mut c = controller(Rules { loss_response: LossResponse::Halve, ..RULES });
    c.on_fast_retransmit(T, A, Bytes::new(10_000));
    assert_eq!(state(&c), (5000, Some(2000)));
    c.on_recovered(T, A);
    c.on_rto(T, A, Bytes::new(5000), true);
    assert_eq!(state(&c), (2500, Some(2000)));
    c.on_rto(T, A, Bytes::new(2500), false);
    assert_eq!(state(&c), (1250, Some(2000)));
    c.on_rto(T, A, Bytes::new(1250), false);
    assert_eq!(state(&c), (1000, Some(2000)));
}

/// A window of 10 segments and Reno: at a loss with 6 in flight behind it, ACKs of one segment each let out ceil(n · 5
/// / 10) segments; without PRR none leaves before 5 are in flight. In the end both windows are 5.
#[test]
fn prr_lets_segments_out_as_others_arrive() {
    for (prr, windows) in [(true, [7000, 6000, 5000, 5000]), (false, [5000; 4])] {
        let mut c = controller(Rules { prr, ..RULES });
        c.on_fast_retransmit(T, A, Bytes::new(10_000));
        let mut in_flight = 6000;
        for window in windows {
            let ack = Ack { in_flight: Bytes::new(in_flight), in_recovery: true, ..full(1000) };
            c.on_ack(T, A, &ack);
            assert_eq!(c.cwnd(A).get(), window, "{prr}, {in_flight} in flight");
            let sent = window.saturating_sub(in_flight);
            c.on_sent(A, Bytes::new(sent));
            in_flight += sent;
            in_flight -= 1000;
        }
        c.on_recovered(T, A);
        assert_eq!(state(&c), (5000, Some(5000)));
    }
}

/// 1000-byte segments, a threshold of 12 segments: slow start ends there, and earns the rest as congestion avoidance.
#[test]
fn a_remembered_threshold_ends_slow_start() {
    let mut c = controller(Rules { initial_ssthresh_segments: Some(12), ..RULES });
    assert_eq!(state(&c), (10_000, Some(12_000)));
    ack(&mut c, 2000);
    ack(&mut c, 2000); // In avoidance: 2000 · 1000 / 12 000
    assert_eq!(state(&c), (12_166, Some(12_000)));
    let mut c = controller(Rules { initial_ssthresh_segments: Some(0), ..RULES });
    assert_eq!(state(&c), (10_000, Some(2000)));
    c.set_threshold(A, Bytes::new(5000)); // No less than the window
    assert_eq!(state(&c), (10_000, Some(10_000)));
}

#[test]
fn slow_start_counts_bytes_up_to_the_limit_and_leaves_the_rest_to_avoidance() {
    let mut c = controller(RULES);
    ack(&mut c, 5000);
    assert_eq!(state(&c), (12_000, None)); // L = 2
    let mut linux = controller(Rules { byte_counting_limit_segments: u32::MAX, ..RULES });
    ack(&mut linux, 5000);
    assert_eq!(state(&linux), (15_000, None));
    c.on_rto(T, A, Bytes::new(12_000), true);
    c.on_recovered(T, A);
    assert_eq!(state(&c), (1000, Some(6000)));
    ack(&mut c, 2000);
    ack(&mut c, 2000);
    ack(&mut c, 2000); // 5000 -> 6000, and the other 1000 bytes earn 1000 · 1000 / 6000
    assert_eq!(state(&c), (6166, Some(6000)));
}

/// LATE's W is the largest window at any loss (A-LATE-7).
#[test]
fn the_largest_window_at_a_loss_is_remembered() {
    let mut c = controller(RULES);
    for (acked, at_loss) in [(2000, 12_000), (0, 12_000)] {
        ack(&mut c, acked);
        c.on_fast_retransmit(T, A, c.cwnd(A));
        c.on_recovered(T, A);
        assert_eq!(c.cwnd_at_loss(A), Some(Bytes::new(at_loss)));
    }
}

#[test]
fn one_reduction_per_recovery_and_no_growth_within() {
    let mut c = controller(RULES);
    ack(&mut c, 2000);
    c.on_fast_retransmit(T, A, Bytes::new(9000)); // pipe or flight: the window was in full use
    assert_eq!((state(&c), c.cwnd_at_loss(A)), ((6000, Some(6000)), Some(Bytes::new(12_000))));
    c.on_fast_retransmit(T, A, Bytes::new(6000));
    ack(&mut c, 5000);
    assert_eq!(state(&c), (6000, Some(6000)));
    c.on_recovered(T, A);
    ack(&mut c, 6000);
    assert_eq!(state(&c), (7000, Some(6000)));
}

/// The last 6 segments of a burst under a window of 10: on either kind of loss RFC 5681 halves the 6, Linux the 10.
#[test]
fn a_window_that_was_no_limit_falls_by_what_was_in_flight_or_as_in_linux() {
    for (loss_response, left) in [(LossResponse::Standard, 3000), (LossResponse::Linux, 5000)] {
        let mut c = controller(Rules { loss_response, ..RULES });
        c.on_ack(T, A, &Ack { cwnd_limited: false, ..full(1000) });
        c.on_fast_retransmit(T, A, Bytes::new(6000));
        assert_eq!(state(&c), (left, Some(left)));
        c.on_spurious(T, A);
        c.on_rto(T, A, Bytes::new(6000), true);
        assert_eq!(state(&c), (1000, Some(left)));
    }
}

#[test]
fn only_the_first_timeout_of_a_row_lowers_the_threshold() {
    let mut c = controller(RULES);
    c.on_rto(T, A, Bytes::new(10_000), true);
    assert_eq!(state(&c), (1000, Some(5000)));
    c.on_rto(T, A, Bytes::new(1000), false);
    assert_eq!(state(&c), (1000, Some(5000)));
    ack(&mut c, 4000); // L = 1 after a timeout
    assert_eq!(state(&c), (2000, Some(5000)));
    let mut recovering = controller(RULES);
    recovering.on_fast_retransmit(T, A, Bytes::new(10_000));
    recovering.on_rto(T, A, Bytes::new(10_000), true);
    assert_eq!(state(&recovering), (1000, Some(5000)));
}

#[test]
fn a_spurious_loss_is_undone_once() {
    let mut c = controller(RULES);
    c.on_fast_retransmit(T, A, Bytes::new(10_000));
    c.on_rto(T, A, Bytes::new(10_000), true);
    c.on_spurious(T, A);
    assert_eq!((state(&c), c.cwnd_at_loss(A)), ((10_000, None), None));
    c.on_rto(T, A, Bytes::new(10_000), true);
    c.on_recovered(T, A);
    c.penalise(T, A);
    c.on_spurious(T, A);
    assert_eq!(state(&c), (1000, Some(5000)));
}

#[test]
fn idle_time_halves_the_window_down_to_the_initial_one() {
    for (idle, expected) in [
        (RTO, (40_000, None)),
        (RTO + Duration::from_nanos(1), (20_000, None)),
        (RTO * 2, (20_000, None)),
        (RTO * 100, (10_000, None)),
    ] {
        let mut c = controller(RULES);
        (0..15).for_each(|_| ack(&mut c, 2000));
        c.on_idle(T, A, idle, RTO);
        assert_eq!(state(&c), expected, "{idle}");
    }
    let mut c = controller(RULES);
    c.on_fast_retransmit(T, A, Bytes::new(10_000));
    c.on_recovered(T, A);
    (0..200).for_each(|_| ack(&mut c, 5000));
    let before = state(&c).0;
    c.on_idle(T, A, RTO * 100, RTO);
    assert_eq!(state(&c), (10_000, Some(before * 3 / 4)));
    let mut fixed = controller(Rules { idle_restart: false, ..RULES });
    ack(&mut fixed, 2000);
    fixed.on_idle(T, A, RTO * 100, Duration::ZERO);
    assert_eq!(state(&fixed), (12_000, None));
}

/// A rest ends the round trip of a mark, since nothing in flight could.
#[test]
fn the_first_mark_after_a_rest_counts() {
    let in_flight = Bytes::new(10_000);
    for prr in [true, false] {
        let mut c = controller(Rules { prr, ..RULES });
        assert!(c.on_mark(T, A, in_flight));
        assert!(!c.on_mark(T, A, in_flight), "once in a round trip");
        c.on_idle(T, A, RTO * 2, RTO);
        assert_eq!(state(&c), (5000, Some(5000)));
        assert!(c.on_mark(T, A, Bytes::new(5000)));
        c.on_recovered(T, A);
        assert_eq!(state(&c), (2500, Some(2500)));
    }
}

/// A mark stands for all congestion of a round trip where it takes what a loss would, or nearly (RFC 8511 §3). DCTCP,
/// whose marks may take little, answers a loss as if no mark had been (RFC 8257 §3.5). By a mark Reno and DCTCP, which
/// begins with α = 1, lose half of 10 segments, and CUBIC loses 15 % (RFC 8511).
#[test]
fn a_loss_in_the_round_trip_of_a_mark() {
    for (name, by_mark, by_loss) in [("reno", 5000, 5000), ("cubic", 8500, 8500), ("dctcp", 5000, 2500)] {
        let entry = find(CONGESTION, "congestion control", name).expect("it ships");
        let mut c = Controller::new(entry.build(&Params::default()), Rules { prr: false, ..RULES });
        c.add(A, MSS);
        assert!(c.on_mark(T, A, Bytes::new(10_000)), "{name}");
        assert_eq!(c.cwnd(A).get(), by_mark, "{name}");
        c.on_fast_retransmit(T, A, Bytes::new(by_mark));
        assert_eq!(c.cwnd(A).get(), by_loss, "{name}");
        assert!(!c.on_mark(T, A, Bytes::new(by_loss)), "{name}: within a recovery no mark counts");
    }
}

#[test]
fn a_penalty_halves_the_window_and_spares_slow_start() {
    let mut c = controller(RULES);
    c.penalise(T, A);
    assert_eq!(state(&c), (5000, None));
    c.on_fast_retransmit(T, A, Bytes::new(5000));
    c.penalise(T, A);
    assert_eq!(state(&c), (2500, Some(2500)));
    c.on_recovered(T, A);
    c.penalise(T, A);
    assert_eq!(state(&c), (1250, Some(2000)));
    c.penalise(T, A);
    assert_eq!(state(&c), (1000, Some(2000)));
}

#[test]
fn another_algorithm_takes_the_windows_over() {
    let mut c = controller(RULES);
    c.add(SubflowId(2), MSS);
    ack(&mut c, 2000);
    c.on_fast_retransmit(T, A, Bytes::new(12_000));
    let before = (c.flows().to_vec(), c.cwnd_at_loss(A));
    c.replace(T, crate::congestion::cubic::ENTRY.build_default());
    assert_eq!((c.flows().to_vec(), c.cwnd_at_loss(A)), before);
    // The recovery goes on, and the next loss is answered by the new one: β = 0.7 of 6000.
    c.on_recovered(T, A);
    ack(&mut c, 1);
    c.on_fast_retransmit(T, A, Bytes::new(6000));
    assert_eq!(state(&c).0, 4200);
    // A halving by the old one is undone all the same.
    c.on_spurious(T, A);
    assert_eq!(state(&c).0, 6000);
}

#[test]
fn a_window_stays_below_its_limit() {
    let mut c = controller(Rules { max_cwnd: Some(Bytes::new(11_500)), ..RULES });
    (0..9).for_each(|_| ack(&mut c, 2000));
    assert_eq!(state(&c), (11_500, None));
}

#[test]
fn flows_stay_in_the_order_of_their_ids_and_strangers_have_no_effect() {
    let mut c = controller(RULES);
    c.add(SubflowId(0), MSS);
    c.add(A, Bytes::new(5));
    assert_eq!(c.flows().iter().map(|flow| flow.id.0).collect::<Vec<_>>(), [0, 1]);
    let before = c.flows().to_vec();
    let stranger = SubflowId(9);
    c.on_ack(T, stranger, &full(1000));
    c.on_fast_retransmit(T, stranger, MSS);
    c.on_rto(T, stranger, MSS, true);
    c.on_recovered(T, stranger);
    c.on_spurious(T, stranger);
    c.on_idle(T, stranger, RTO * 2, RTO);
    c.penalise(T, stranger);
    c.set_counted(stranger, true);
    c.remove(stranger);
    assert_eq!(c.flows(), before);
    assert_eq!((c.cwnd(stranger), c.ssthresh(stranger), c.cwnd_at_loss(stranger)), (Bytes::ZERO, None, None));
}

/// Numbers stay with their windows when a subflow before them has gone, and one that is gone has none.
#[test]
fn a_subflow_is_found_after_another_has_gone() {
    let mut c = Controller::new(Reno.into(), RULES);
    let [first, second, third] = [0, 1, 2].map(SubflowId);
    [first, second, third].into_iter().zip([1000, 1100, 1200]).for_each(|(id, mss)| c.add(id, Bytes::new(mss)));
    let before = [second, third].map(|id| c.cwnd(id));
    assert_ne!(before[0], before[1]);
    c.remove(first);
    assert_eq!([second, third].map(|id| c.cwnd(id)), before);
    assert_eq!(c.cwnd(first), Bytes::ZERO);
}
