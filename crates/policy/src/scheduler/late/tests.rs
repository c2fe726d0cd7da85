//! LATE on hand-made views. The slave is `FAST`, the master `SLOW`; loss-free and far from any window unless said.

use super::*;
use crate::registry;
use crate::scheduler::SCHEDULERS;
use crate::scheduler::testing::*;
use anabranch_units::{Dsn, Duration};
use std::collections::BTreeMap;

fn late(strict: bool) -> Late {
    switched(if strict { &["strict"] } else { &[] })
}

/// Builds LATE with these flags set.
fn switched(flags: &[&str]) -> Late {
    let entry = registry::find(SCHEDULERS, "scheduler", "late").expect("it is in the table");
    let given: BTreeMap<_, _> = flags.iter().map(|flag| ((*flag).to_owned(), registry::Value::Flag(true))).collect();
    Late::new(&entry.params(&given).expect("these are flags"))
}

/// Slave: 10 ms, RTO 210 ms, window 10 in congestion avoidance and full. Master: 100 ms, window 10, empty.
fn pair() -> [SubflowView; 2] {
    let slave = SubflowView { ssthresh: Some(segments(10)), ..subflow(FAST, 10, 10, 10) };
    [slave, subflow(SLOW, 100, 10, 0)]
}

fn send(on: SubflowId, skip: u64) -> Decision {
    Decision::Send { on, skip: segments(skip) }
}

fn sent(late: &mut Late, on: SubflowId, skip: u64, n: u64) {
    late.observe(at(0), &Event::Sent { on, dsn: Dsn::new(1), skip: segments(skip), length: segments(n) });
}

/// Segments left in each block.
fn left(late: &Late) -> Vec<u64> {
    late.blocks.iter().map(|block| block.left.get() / 1000).collect()
}

/// Vectors of an independent script: RTT, RTO of the slave and RTT of the master in ms (twice the horizon), loss,
/// ssthresh. The master's first segment goes behind what the slave is expected to deliver.
#[test]
fn the_master_skips_what_the_slave_is_expected_to_deliver() {
    for ([rtt, rto, master], loss, ssthresh, skip) in [
        ([10, 210, 100], 0.0, 10, 60),
        ([10, 210, 100], 0.01, 10, 51),    //  50.9054
        ([10, 210, 100], 0.05, 10, 33),    //  33.1996
        ([10, 210, 100], 0.01, 1000, 142), // 142.0839
        ([50, 250, 250], 0.01, 20, 44),    //  43.9393
        ([10, 210, 1000], 0.01, 10, 547),  // 547.2260
    ] {
        let slave = SubflowView {
            loss,
            ssthresh: Some(segments(ssthresh)),
            rto: Duration::from_millis(rto),
            ..subflow(FAST, rtt, 10, 10)
        };
        let subflows = [slave, subflow(SLOW, master, 10, 0)];
        let decision = late(false).decide(at(0), &view(&subflows, 5000));
        assert_eq!(decision, send(SLOW, skip), "{rtt} {master} {loss} {ssthresh}");
    }
}

/// 100 ms before 500 ms, threshold 16, six of ten in flight since 0 ms: four leave now, 16 when the six are
/// acknowledged, at 100 ms, and 17 at 200 ms. A fresh window would bring 10 + 16 + 17 within 250 ms.
#[test]
fn the_round_under_way_counts_with_what_is_free_of_it() {
    let slave = SubflowView { ssthresh: Some(segments(16)), throttled: true, ..subflow(FAST, 100, 10, 6) };
    let slave = SubflowView { sent: 6000, last_sent: Some(at(0)), ..slave };
    let subflows = [slave, subflow(SLOW, 500, 10, 0)];
    for (flags, skip) in [(&[][..], 10 + 16 + 17), (&["phase_aware"], 4 + 16 + 17)] {
        assert_eq!(switched(flags).decide(at(0), &view(&subflows, 500)), send(SLOW, skip), "{flags:?}");
    }
    // At the end of the data the master is silent.
    let end = |n| switched(&["phase_aware"]).decide(at(0), &view(&subflows, n));
    assert_eq!(end(38), send(SLOW, 37));
    assert!(matches!(end(37), Decision::Wait { .. }));
}

/// The largest window at a loss bounds growth: five rounds of 10, or of 12 at most; so does the peer's.
#[test]
fn growth_ends_at_the_window_of_the_latest_loss_and_at_the_peers() {
    for (cwnd_at_loss, window, skip) in
        [(None, 9000, 60), (Some(10), 9000, 50), (Some(3), 9000, 50), (Some(12), 9000, 57), (None, 11, 54)]
    {
        let [slave, master] = pair();
        let subflows = [SubflowView { cwnd_at_loss: cwnd_at_loss.map(segments), ..slave }, master];
        let mut late = late(false);
        late.decide(at(0), &View { window: segments(window), ..view(&subflows, 5000) });
        assert_eq!(left(&late), [skip, 10], "{cwnd_at_loss:?} {window}");
    }
}

#[test]
fn blocks_stand_by_srtt_and_the_masters_is_its_free_window() {
    let third = SubflowId(2);
    let subflows = [subflow(FAST, 100, 10, 4), subflow(SLOW, 50, 10, 10), subflow(third, 20, 10, 10)];
    let mut late = late(false);
    // Horizon 50 ms: 10 + 20 + 40 of the 20 ms subflow (at 10, 30, 50 ms), 10 of the 50 ms one (25 ms), six free.
    assert_eq!(late.decide(at(0), &view(&subflows, 500)), send(FAST, 80));
    assert_eq!(left(&late), [70, 10, 6]);
    let order: Vec<_> = late.blocks.iter().map(|block| block.subflow).collect();
    assert_eq!(order, [third, SLOW, FAST]);
    // All with room: the fastest first, each at its own head.
    let with_room = subflows.map(|subflow| SubflowView { in_flight: segments(4), ..subflow });
    assert_eq!(late.decide(at(0), &view(&with_room, 500)), send(third, 0));
    let full = |ids: &[u16]| {
        with_room.map(|mut subflow| {
            if ids.contains(&subflow.id.0) {
                subflow.in_flight = subflow.cwnd;
            }
            subflow
        })
    };
    assert_eq!(late.decide(at(0), &view(&full(&[2]), 500)), send(SLOW, 70));
    assert_eq!(late.decide(at(0), &view(&full(&[1, 2]), 500)), send(FAST, 80));
}

#[test]
fn a_block_shrinks_by_what_leaves_of_it_whoever_sends_it() {
    let mut late = late(false);
    late.decide(at(0), &view(&pair(), 500));
    assert_eq!(left(&late), [60, 10]);
    sent(&mut late, SLOW, 60, 1);
    assert_eq!(left(&late), [60, 9]);
    sent(&mut late, FAST, 0, 2);
    assert_eq!(left(&late), [58, 9]);
    sent(&mut late, SLOW, 0, 1); // The engine's own choice, from the slave's block.
    assert_eq!(left(&late), [57, 9]);
    sent(&mut late, FAST, 55, 4); // Across the border.
    assert_eq!(left(&late), [55, 7]);
    sent(&mut late, FAST, 62, 4); // Behind all blocks.
    assert_eq!(left(&late), [55, 7]);
    sent(&mut late, FAST, 0, 500);
    assert_eq!((left(&late), late.assigned), (vec![0, 0], Bytes::ZERO));
}

/// A loss-free slave delivers 60 segments before the master's first arrives.
#[test]
fn the_master_is_silent_at_the_end_of_the_data() {
    for (unsent, decision) in [(61, send(SLOW, 60)), (60, Decision::Wait { until: Some(at(107)) })] {
        assert_eq!(late(false).decide(at(7), &view(&pair(), unsent)), decision, "{unsent}");
    }
    // Less than the slave's first window: no forecast is needed.
    let mut short = late(false);
    assert!(matches!(short.decide(at(7), &view(&pair(), 10)), Decision::Wait { .. }));
    assert_eq!(left(&short), [10, 0]);
}

#[test]
fn without_a_block_a_subflow_takes_what_no_block_holds_unless_strict() {
    for (strict, decision) in [(false, send(FAST, 10)), (true, Decision::Wait { until: Some(at(100)) })] {
        let mut late = late(strict);
        let [mut slave, mut master] = pair();
        late.decide(at(0), &view(&[slave, master], 500));
        sent(&mut late, FAST, 0, 60);
        slave.in_flight = segments(9);
        master.in_flight = segments(10);
        assert_eq!(late.decide(at(5), &view(&[slave, master], 440)), decision, "strict: {strict}");
    }
}

#[test]
fn blocks_are_dealt_out_again_when_the_masters_round_ends() {
    // Bytes that the master sent and had acknowledged since the last dealing at 0 ms, the time now, and the verdict.
    for (sent, acked, now, over) in [
        (0, 0, 99, false),
        (0, 0, 100, true),     // an RTT without any ACK
        (0, 1, 1, true),       // any ACK, as it sent nothing
        (5000, 900, 1, false), // an ACK of older data
        (5000, 900, 500, false),
        (5000, 4001, 1, true), // an ACK of its first segment since
    ] {
        let mut late = late(false);
        let [slave, mut master] = pair();
        (master.sent, master.acked) = (4000, 0);
        late.decide(at(0), &view(&[slave, master], 500));
        (master.sent, master.acked) = (4000 + sent, acked);
        assert_eq!(late.is_stale(at(now), &view(&[slave, master], 500)), over, "{sent} {acked} {now}");
        late.decide(at(now), &view(&[slave, master], 500));
        assert_eq!(late.dealt.at, if over { at(now) } else { at(0) });
    }
}

#[test]
fn blocks_are_dealt_out_again_when_something_changes() {
    let fresh = || {
        let mut late = late(false);
        late.decide(at(0), &view(&pair(), 500));
        late
    };
    let [slave, master] = pair();
    let third = subflow(SubflowId(2), 50, 10, 0);
    assert!(!fresh().is_stale(at(1), &view(&pair(), 500)));
    for (what, subflows) in [
        ("one more", vec![slave, master, third]),
        ("another", vec![slave, third]),
        ("the order", vec![SubflowView { srtt: Duration::from_millis(101), ..slave }, master]),
    ] {
        assert!(fresh().is_stale(at(1), &view(&subflows, 500)), "{what}");
    }
    for (event, stale) in [
        (Event::FastRetransmit { on: FAST }, true),
        (Event::Rto { on: SLOW }, true),
        (Event::SubflowsChanged, true),
        (Event::DataWritten, true),
        (Event::Sent { on: FAST, dsn: Dsn::new(1), skip: Bytes::ZERO, length: segments(70) }, true), // blocks are empty
        (Event::Sent { on: FAST, dsn: Dsn::new(1), skip: Bytes::ZERO, length: segments(69) }, false),
        (Event::WindowBlocked { on: FAST }, false),
        (Event::Reinjected { on: FAST }, false),
    ] {
        let mut late = fresh();
        late.observe(at(1), &event);
        assert_eq!(late.is_stale(at(1), &view(&pair(), 500)), stale, "{event:?}");
    }
}

#[test]
fn nothing_is_skipped_to_beyond_the_peers_window() {
    for (sendable, decision) in [(61, send(SLOW, 60)), (60, Decision::Wait { until: Some(at(100)) })] {
        let subflows = pair();
        let tight = View { sendable: segments(sendable), ..view(&subflows, 500) };
        assert_eq!(late(false).decide(at(0), &tight), decision, "{sendable}");
    }
}

#[test]
fn a_slave_with_nothing_in_flight_is_not_waited_for() {
    let [mut slave, master] = pair();
    (slave.in_flight, slave.throttled) = (Bytes::ZERO, true);
    assert_eq!(late(false).decide(at(0), &view(&[slave, master], 20)), send(SLOW, 0));
}

/// The head would wait for it to the end of its RTO recovery, however much room the master has.
#[test]
fn a_slave_that_may_not_send_has_no_block_until_it_may() {
    let [slave, master] = pair();
    let recovering = SubflowView { open: false, in_flight: segments(5), ..slave };
    let mut late = late(false);
    assert_eq!(late.decide(at(0), &view(&[recovering, master], 20)), send(SLOW, 0));
    assert_eq!(left(&late), [0, 10]);
    late.decide(at(1), &view(&[slave, master], 500));
    assert_eq!(left(&late), [60, 10]);
}

#[test]
fn one_subflow_takes_everything() {
    let [_, master] = pair();
    for strict in [false, true] {
        assert_eq!(late(strict).decide(at(0), &view(&[master], 1)), send(SLOW, 0));
        assert_eq!(late(strict).decide(at(0), &view(&[], 1)), Decision::WAIT);
    }
}

/// A script's numbers for A-LATE-1 (96.6, 58.0), and others by hand: W not taken from the losses, five rounds of
/// 10 to 14 instead of 10; the whole RTT of 100 ms, ten rounds; the master's window of ten of which six are in flight.
#[test]
fn each_reading_changes_the_blocks_the_way_it_says() {
    let [slave, master] = pair();
    let lossy = SubflowView { loss: 0.01, ..slave };
    let lost_at_ten = SubflowView { cwnd_at_loss: Some(segments(10)), ..slave };
    let small =
        SubflowView { cwnd: segments(1), in_flight: segments(1), ssthresh: Some(segments(1)), loss: 0.1, ..slave };
    let busy = SubflowView { in_flight: segments(6), ..master };
    for (flags, slave, master, blocks) in [
        (&[][..], lossy, master, [51, 10]),
        (&["unweighted"], lossy, master, [97, 10]),
        (&["own_branch"], lossy, master, [58, 10]),
        (&["own_branch", "unweighted"], lossy, master, [58, 10]),
        (&[], small, master, [8, 10]),
        (&["from_zero"], small, master, [10, 10]),
        (&[], lost_at_ten, master, [50, 10]),
        (&["unbounded"], lost_at_ten, master, [60, 10]),
        (&["rtt"], slave, master, [145, 10]),
        (&[], slave, busy, [60, 4]),
        (&["master_cwnd"], slave, busy, [60, 10]),
    ] {
        let mut late = switched(flags);
        late.decide(at(0), &view(&[slave, master], 5000));
        assert_eq!(left(&late), blocks, "{flags:?}");
    }
}

#[test]
fn any_ack_of_the_master_ends_its_round_if_so_switched() {
    for (flags, stale) in [(&[][..], false), (&["every_ack"], true)] {
        let mut late = switched(flags);
        let [slave, mut master] = pair();
        (master.sent, master.acked) = (4000, 0);
        late.decide(at(0), &view(&[slave, master], 500));
        (master.sent, master.acked) = (9000, 900);
        assert_eq!(late.is_stale(at(1), &view(&[slave, master], 500)), stale, "{flags:?}");
    }
}
