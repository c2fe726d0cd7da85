//! Properties of every congestion control, tested over the registry.

use super::rules::EXAMPLE;
use super::*;
use anabranch_units::{Bytes, Duration, SubflowId};
use proptest::prelude::*;

const MSS: [u64; 3] = [1460, 536, 9000];

#[derive(Clone, Debug)]
enum Step {
    Add,
    Remove,
    Counted(bool),
    Ack { bytes: u64, srtt: Option<u64>, limited: bool, in_recovery: bool, path: Path },
    FastRetransmit(u64),
    Mark(u64),
    Lost(Path),
    Recovered,
    Rto { in_flight: u64, first: bool },
    Spurious,
    Idle { idle_ms: u64, rto_ms: u64 },
    Penalise,
}

/// Fields of an ACK beyond those that every algorithm reads.
#[derive(Clone, Copy, Debug)]
struct Path {
    rtt: Option<u64>,
    lost: u64,
    marked: u64,
    in_flight: u64,
    /// Bytes delivered after the departure of the segment that this ACK delivers, and the time for them in nanoseconds.
    since: u64,
    over: Option<u64>,
    app_limited: bool,
}

impl Path {
    /// The flight of the segment that the ACK delivers, or of one that is lost.
    fn flight(self) -> Option<Flight> {
        let noted = !self.since.is_multiple_of(3);
        noted.then(|| Flight {
            at_departure: Bytes::new(self.since),
            lost_since: Bytes::new(self.lost),
            selective: !self.since.is_multiple_of(2),
        })
    }
}

fn path() -> impl Strategy<Value = Path> {
    let rtt = prop::option::of(prop_oneof![0..3_000_000_000_u64, 10_000_000..10_500_000_u64]);
    let over = prop::option::of(prop_oneof![0..3_000_000_000_u64, Just(u64::MAX)]);
    let marked = prop_oneof![Just(0_u64), 0..20_000_u64];
    (rtt, 0..4000_u64, marked, 0..200_000_u64, 0..200_000_u64, over, any::<bool>()).prop_map(
        |(rtt, lost, marked, in_flight, since, over, app_limited)| Path {
            rtt,
            lost,
            marked,
            in_flight,
            since,
            over,
            app_limited,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Add),
        1 => Just(Step::Remove),
        2 => any::<bool>().prop_map(Step::Counted),
        40 => (
            prop_oneof![0..20_000_u64, Just(u64::MAX)],
            prop::option::of(0..3_000_000_000_u64),
            prop::bool::weighted(0.8),
            prop::bool::weighted(0.05),
            path(),
        )
            .prop_map(|(bytes, srtt, limited, in_recovery, path)| {
                Step::Ack { bytes, srtt, limited, in_recovery, path }
            }),
        3 => (0..200_000_u64).prop_map(Step::FastRetransmit),
        3 => (0..200_000_u64).prop_map(Step::Mark),
        3 => path().prop_map(Step::Lost),
        4 => Just(Step::Recovered),
        2 => (0..200_000_u64, any::<bool>()).prop_map(|(in_flight, first)| Step::Rto { in_flight, first }),
        1 => Just(Step::Spurious),
        1 => (0..10_000_u64, 0..1000_u64).prop_map(|(idle_ms, rto_ms)| Step::Idle { idle_ms, rto_ms }),
        2 => Just(Step::Penalise),
    ]
}

fn controller(entry: &Entry) -> Controller {
    Controller::new(entry.build_default(), EXAMPLE)
}

fn apply(controller: &mut Controller, now: Instant, id: SubflowId, step: &Step) {
    match *step {
        Step::Add => controller.add(id, Bytes::new(MSS[usize::from(id.0) % MSS.len()])),
        Step::Remove => controller.remove(id),
        Step::Counted(counted) => controller.set_counted(id, counted),
        Step::Ack { bytes, srtt, limited, in_recovery, path } => {
            // Any number that does not fall.
            let delivered = now.as_nanos() / 1000;
            let sample = path.over.map(|over| RateSample {
                prior_delivered: delivered.saturating_sub(path.since),
                over: Some(Duration::from_nanos(over)),
                app_limited: path.app_limited,
                flight: path.flight(),
            });
            let ack = Ack {
                acked: Bytes::new(bytes),
                lost: Bytes::new(path.lost),
                marked: Bytes::new(path.marked.min(bytes)),
                srtt: srtt.map(Duration::from_nanos),
                rtt: path.rtt.map(Duration::from_nanos),
                in_flight_before: Bytes::new(path.in_flight),
                in_flight: Bytes::new(path.in_flight / 2),
                cwnd_limited: limited,
                in_recovery,
                delivered,
                sample,
            };
            controller.on_ack(now, id, &ack);
        }
        Step::FastRetransmit(in_flight) => controller.on_fast_retransmit(now, id, Bytes::new(in_flight)),
        Step::Mark(in_flight) => {
            controller.on_mark(now, id, Bytes::new(in_flight));
        }
        Step::Lost(path) => {
            if let Some(flight) = path.flight() {
                let (start, bytes, delivered) = (path.in_flight, Bytes::new(path.lost), now.as_nanos() / 1000);
                let lost = LostSegment { start, bytes, flight, app_limited: path.app_limited, delivered };
                controller.on_lost(now, id, &lost);
            }
        }
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
                    prop_assert!(flow.cwnd.is_finite() && flow.cwnd >= flow.segment(), "{}: {:?}", entry.name, flow);
                    prop_assert!(flow.ssthresh >= flow.segments(2.0), "{}: {:?}", entry.name, flow);
                    let model = one.model(flow.id, Some(Duration::from_millis(1)));
                    prop_assert_eq!(model, other.model(flow.id, Some(Duration::from_millis(1))));
                    prop_assert_eq!(model.is_some(), one.is_model_based());
                    prop_assert!(model.is_none_or(|model| !model.pacing.is_zero()), "{}: {:?}", entry.name, model);
                    prop_assert!(one.phase(flow.id).is_none() || one.is_model_based(), "{}", entry.name);
                    let variables = one.variables(flow.id);
                    let number = variables.iter().all(|(_, value)| !value.is_nan() && *value >= 0.0);
                    prop_assert!(number, "{}: {:?}", entry.name, variables);
                }
                let after = one.flows().iter().find(|flow| flow.id == id).copied();
                let (Some(before), Some(after)) = (before, after) else { continue };
                let model = one.is_model_based();
                match step {
                    // A model-based control sets its window by the model, at every ACK.
                    Step::Ack { .. } if model => {}
                    Step::Ack { in_recovery, .. } if before.recovering || *in_recovery => {
                        prop_assert_eq!(before.cwnd, after.cwnd, "{}: changed its window in recovery", entry.name);
                    }
                    // A delay-based control may shrink its window.
                    Step::Ack { limited: false, .. } => {
                        prop_assert!(after.cwnd <= before.cwnd, "{}: grew without need", entry.name);
                    }
                    Step::Penalise | Step::Spurious | Step::Lost(_) if model => {
                        prop_assert_eq!(before.cwnd, after.cwnd, "{}: the model sets the window", entry.name);
                    }
                    // After a pause a model may give back what it took for a measurement.
                    Step::Idle { .. } if model => {
                        prop_assert!(after.cwnd >= before.cwnd, "{}: a pause took window", entry.name);
                    }
                    Step::Lost(_) => prop_assert_eq!(before, after, "{}: only models want single losses", entry.name),
                    // A loss in the round trip of a mark may count where marks are answered by little.
                    Step::FastRetransmit(_) if before.recovering && one.capabilities().precise_marks => {
                        prop_assert!(after.cwnd <= before.cwnd, "{}: a loss raised the window", entry.name);
                    }
                    Step::FastRetransmit(_) | Step::Mark(_) if before.recovering => {
                        prop_assert_eq!(before, after, "{}", entry.name);
                    }
                    Step::FastRetransmit(_) | Step::Mark(_) | Step::Rto { .. } | Step::Penalise => {
                        prop_assert!(after.cwnd <= before.cwnd, "{}: a loss or mark raised the window", entry.name);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Two subflows of 100 and 50 ms over queues that hold what is beyond 40 segments, some growth, a loss, two rounds of
/// which a quarter is marked, ten seconds of growth: the windows afterwards \[bytes\]. A round trip is as long as its
/// queue makes it. All its ACKs come at one instant, which looks like ever more aggregation to a model of that: windows
/// are bounded.
fn windows(entry: &Entry, queues: bool) -> Vec<Bytes> {
    let mut controller =
        Controller::new(entry.build_default(), Rules { max_cwnd: Some(Bytes::new(4_000_000)), ..EXAMPLE });
    let ids = [SubflowId(0), SubflowId(1)];
    for id in ids {
        controller.add(id, Bytes::new(1000));
        controller.set_counted(id, true);
    }
    let mut delivered = [0_u64; 2];
    for round in 0..100 {
        let now = Instant::ZERO + Duration::from_millis(100) * round;
        for (id, base_ms) in ids.into_iter().zip([100, 50]) {
            let delivered = &mut delivered[usize::from(id.0)];
            if round == 4 {
                controller.on_fast_retransmit(now, id, controller.cwnd(id));
                controller.on_recovered(now, id);
            }
            // Queues of their own mark at times of their own.
            let first = 50 + 10 * u64::from(id.0);
            let marks = |round| round == first || round == first + 20;
            if marks(round) {
                controller.on_mark(now, id, controller.cwnd(id));
            }
            if round > 0 && marks(round - 1) {
                controller.on_recovered(now, id);
            }
            let (cwnd, began) = (controller.cwnd(id).get() / 1000, *delivered);
            let queue = if queues { cwnd.saturating_sub(PIPE) } else { 0 };
            let rtt = Duration::from_millis(base_ms * (PIPE + queue) / PIPE);
            for segment in 0..cwnd {
                *delivered += 1000;
                let marked = marks(round) && segment % 4 == 0;
                let ack = Ack {
                    acked: Bytes::new(1000),
                    marked: Bytes::new(if marked { 1000 } else { 0 }),
                    srtt: Some(rtt),
                    rtt: Some(rtt),
                    in_flight_before: Bytes::new(cwnd * 1000),
                    in_flight: Bytes::new(cwnd * 1000 - 1000),
                    cwnd_limited: true,
                    delivered: *delivered,
                    sample: Some(RateSample { prior_delivered: began, over: Some(rtt), ..RateSample::default() }),
                    ..Ack::default()
                };
                controller.on_ack(now, id, &ack);
            }
        }
    }
    ids.iter().map(|&id| controller.cwnd(id)).collect()
}

/// Segments that fill a path without queueing.
const PIPE: u64 = 40;

/// Queues of their own, however: over these a detector of shared bottlenecks leaves CUBIC as it is.
#[test]
fn each_grows_differently_from_its_neighbours() {
    for (index, entry) in CONGESTION.iter().enumerate() {
        for other in &CONGESTION[..index] {
            if (&*other.name, &*entry.name) == ("cubic", "cubic-sbd") {
                assert_eq!(windows(entry, true), windows(other, true));
                continue;
            }
            assert_ne!(windows(entry, true), windows(other, true), "{} and {}", entry.name, other.name);
        }
    }
}

#[test]
fn linked_subflows_take_no_more_than_uncoupled_ones() {
    let total = |name| {
        let entry = crate::registry::find(CONGESTION, "congestion control", name).expect("the table has it");
        windows(entry, false).iter().map(|cwnd| cwnd.get()).sum::<u64>()
    };
    for (linked, by_itself) in [("lia", "reno"), ("olia", "reno"), ("balia", "reno"), ("mveno-r", "veno")] {
        let (linked, by_itself) = (total(linked), total(by_itself));
        assert!(linked < by_itself, "{linked} {by_itself}");
    }
}

/// An algorithm that takes over in the middle continues from the current windows, after any other.
#[test]
fn one_takes_over_from_another_while_the_connection_runs() {
    for before in CONGESTION {
        for after in CONGESTION {
            let mut controller = controller(before);
            for id in 0..3 {
                apply(&mut controller, Instant::ZERO, SubflowId(id), &Step::Add);
            }
            apply(&mut controller, Instant::ZERO, SubflowId(1), &Step::FastRetransmit(10_000));
            let flows = controller.flows().to_vec();
            controller.replace(Instant::ZERO, after.build_default());
            assert_eq!(controller.flows(), flows, "{} to {}", before.name, after.name);
            let path =
                Path { rtt: Some(9), lost: 0, marked: 9, in_flight: 9, since: 0, over: Some(9), app_limited: false };
            for (id, step) in [
                (2, Step::Ack { bytes: 1000, srtt: Some(9), limited: true, in_recovery: false, path }),
                (1, Step::Recovered),
                (1, Step::Mark(1000)),
                (1, Step::Rto { in_flight: 1000, first: true }),
                (0, Step::Remove),
                (2, Step::Penalise),
            ] {
                apply(&mut controller, Instant::ZERO + Duration::from_millis(1), SubflowId(id), &step);
            }
            assert_eq!(controller.model(SubflowId(2), None).is_some(), after.build_default().is_model_based());
        }
    }
}
