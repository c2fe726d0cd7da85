//! What every congestion control keeps to, over the registry.

use super::*;
use anabranch_units::Bytes;
use proptest::prelude::*;

const MSS: [u64; 3] = [1460, 536, 9000];

#[derive(Clone, Debug)]
enum Step {
    Add,
    Remove,
    Counted(bool),
    Ack { bytes: u64, srtt: Option<u64>, limited: bool },
    FastRetransmit(u64),
    Recovered,
    Rto { in_flight: u64, first: bool },
    Spurious,
    Idle { idle_ms: u64, rto_ms: u64 },
    Penalise,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Add),
        1 => Just(Step::Remove),
        2 => any::<bool>().prop_map(Step::Counted),
        40 => (prop_oneof![0..20_000_u64, Just(u64::MAX)], prop::option::of(0..3_000_000_000_u64), prop::bool::weighted(0.8))
            .prop_map(|(bytes, srtt, limited)| Step::Ack { bytes, srtt, limited }),
        3 => (0..200_000_u64).prop_map(Step::FastRetransmit),
        4 => Just(Step::Recovered),
        2 => (0..200_000_u64, any::<bool>()).prop_map(|(in_flight, first)| Step::Rto { in_flight, first }),
        1 => Just(Step::Spurious),
        1 => (0..10_000_u64, 0..1000_u64).prop_map(|(idle_ms, rto_ms)| Step::Idle { idle_ms, rto_ms }),
        2 => Just(Step::Penalise),
    ]
}

fn controller(entry: &Entry<dyn CongestionControl>) -> Controller {
    let rules = Rules {
        initial_window: InitialWindow::Segments(10),
        idle_restart: true,
        cwnd_limited_check: true,
        byte_counting_limit_segments: 2,
        max_cwnd: None,
    };
    Controller::new(entry.build_default(), rules)
}

fn apply(controller: &mut Controller, now: Instant, id: SubflowId, step: &Step) {
    match *step {
        Step::Add => controller.add(id, Bytes::new(MSS[usize::from(id.0) % MSS.len()])),
        Step::Remove => controller.remove(id),
        Step::Counted(counted) => controller.set_counted(id, counted),
        Step::Ack { bytes, srtt, limited } => {
            controller.on_ack(now, id, Bytes::new(bytes), srtt.map(Duration::from_nanos), limited);
        }
        Step::FastRetransmit(in_flight) => controller.on_fast_retransmit(now, id, Bytes::new(in_flight)),
        Step::Recovered => controller.on_recovered(now, id),
        Step::Rto { in_flight, first } => controller.on_rto(now, id, Bytes::new(in_flight), first),
        Step::Spurious => controller.on_spurious(now, id),
        Step::Idle { idle_ms, rto_ms } => {
            controller.on_idle(now, id, Duration::from_millis(idle_ms), Duration::from_millis(rto_ms));
        }
        Step::Penalise => controller.penalise(now, id),
    }
}

proptest! {
    #[test]
    fn windows_keep_to_the_rules_whatever_happens(
        steps in prop::collection::vec((0..3_u16, 0..500_000_000_u64, step()), 1..300)
    ) {
        for entry in CONGESTION {
            let (mut one, mut other) = (controller(entry), controller(entry));
            let mut now = Instant::ZERO;
            for id in [0, 2] {
                apply(&mut one, now, SubflowId(id), &Step::Add);
                apply(&mut other, now, SubflowId(id), &Step::Add);
            }
            for (id, wait, step) in &steps {
                now += Duration::from_nanos(*wait);
                let id = SubflowId(*id);
                let before = one.flows().iter().find(|flow| flow.id == id).copied();
                apply(&mut one, now, id, step);
                apply(&mut other, now, id, step);
                prop_assert_eq!(one.flows(), other.flows(), "{}: two instances differ", entry.name);
                for flow in one.flows() {
                    prop_assert!(flow.cwnd.is_finite() && flow.cwnd >= flow.mss, "{}: {:?}", entry.name, flow);
                    prop_assert!(flow.ssthresh >= 2.0 * flow.mss, "{}: {:?}", entry.name, flow);
                }
                let after = one.flows().iter().find(|flow| flow.id == id).copied();
                let (Some(before), Some(after)) = (before, after) else { continue };
                match step {
                    Step::Ack { limited, .. } if before.recovering || !limited => {
                        prop_assert_eq!(before.cwnd, after.cwnd, "{}: grew without need", entry.name);
                    }
                    Step::FastRetransmit(_) if before.recovering => prop_assert_eq!(before, after, "{}", entry.name),
                    Step::FastRetransmit(_) | Step::Rto { .. } | Step::Penalise => {
                        prop_assert!(after.cwnd <= before.cwnd, "{}: a loss raised the window", entry.name);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Two subflows, some growth, a loss, ten seconds of growth: the windows afterwards \[bytes\].
fn windows(entry: &Entry<dyn CongestionControl>) -> Vec<Bytes> {
    let mut controller = controller(entry);
    let ids = [SubflowId(0), SubflowId(1)];
    for id in ids {
        controller.add(id, Bytes::new(1000));
        controller.set_counted(id, true);
    }
    for round in 0..100 {
        let now = Instant::ZERO + Duration::from_millis(100) * round;
        for (id, rtt_ms) in ids.into_iter().zip([100, 50]) {
            if round == 4 {
                controller.on_fast_retransmit(now, id, controller.cwnd(id));
                controller.on_recovered(now, id);
            }
            for _ in 0..controller.cwnd(id).get() / 1000 {
                controller.on_ack(now, id, Bytes::new(1000), Some(Duration::from_millis(rtt_ms)), true);
            }
        }
    }
    ids.iter().map(|&id| controller.cwnd(id)).collect()
}

#[test]
fn each_grows_differently_from_its_neighbours() {
    for (index, entry) in CONGESTION.iter().enumerate() {
        for other in &CONGESTION[..index] {
            assert_ne!(windows(entry), windows(other), "{} and {}", entry.name, other.name);
        }
    }
}

#[test]
fn linked_subflows_take_no_more_than_uncoupled_ones() {
    let total = |name| {
        let entry = crate::registry::find(CONGESTION, "congestion control", name).expect("the table has it");
        windows(entry).iter().map(|cwnd| cwnd.get()).sum::<u64>()
    };
    assert!(total("lia") < total("reno"), "{} {}", total("lia"), total("reno"));
}
