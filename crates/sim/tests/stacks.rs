//! Each rule of a stack (docs/stacks.md) in a simulation whose outcome changes when the rule is switched.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{Profile, ReceiveTuning, RtoRule};
use anabranch_net::{Change, LinkStats, LossModel, QueueLimit};
use anabranch_paths::{Affected, Direction, PathSpec, TimedChange};
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_policy::registry::{CONGESTION, REINJECTIONS, SCHEDULERS};
use anabranch_policy::scheduler::{MinRtt, Scheduler};
use anabranch_policy::{Decision, View};
use anabranch_sim::{EventKind, HostSpec, Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Instant, Rate, SubflowId};
use common::{complete, download, goodput, lossy_path, ms, order, path, spec, swallowed};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Returns the specification with changed profiles of both hosts.
fn with(spec: &Spec, change: impl Fn(&mut Profile)) -> Spec {
    let mut spec = spec.clone();
    for host in [&mut spec.client, &mut spec.server] {
        change(&mut host.config.profile);
    }
    spec
}

fn cubic(host: &mut HostSpec) {
    let entry = CONGESTION.iter().find(|entry| entry.name == "cubic").unwrap();
    host.config.policies.congestion = Arc::new(|| entry.build_default());
}

/// One file from a host as in the simulations with mptcp-ns3: Reno, round-robin, no reinjection.
fn ns3(paths: Vec<PathSpec>, profile: Profile, bytes: u64) -> Spec {
    let mut spec = spec(paths, vec![download(bytes)]);
    for host in [&mut spec.client, &mut spec.server] {
        host.config.profile = profile.clone();
        let find = |name| SCHEDULERS.iter().find(|entry| entry.name == name).unwrap();
        let scheduler = find("round-robin");
        host.config.policies.scheduler = Arc::new(|| scheduler.build_default());
        let congestion = CONGESTION.iter().find(|entry| entry.name == "reno").unwrap();
        host.config.policies.congestion = Arc::new(|| congestion.build_default());
        let reinjection = REINJECTIONS.iter().find(|entry| entry.name == "none").unwrap();
        host.config.policies.reinjection = Arc::new(|| reinjection.build_default());
    }
    spec
}

/// Returns fast recoveries and timeouts, over all subflows of the sender.
fn repairs(outcome: &Outcome) -> (u64, u64) {
    let subflows = &outcome.connections[0].subflows;
    (subflows.iter().map(|it| it.stats.fast_recoveries).sum(), subflows.iter().map(|it| it.stats.rtos).sum())
}

fn down<'a>(outcome: &'a Outcome, path: &str) -> &'a LinkStats {
    &outcome.links.iter().find(|link| link.name == format!("{path}/down")).unwrap().stats
}

/// 100 kB, then 4 MB on the same connection, over paths of 10 and 200 ms. The first object is read within a round trip
/// of the slow path, 7 times what was read before: the rule of Linux 4.16 opens the window to megabytes at once, the
/// older one to 446 kB, which is less than the fast path carries while a segment is under way on the slow one.
#[test]
fn the_older_receive_tuning_opens_the_window_less() {
    let mut spec = spec(vec![path("a", 100, 5), path("b", 10, 100)], vec![objects(&[100_000, 4_000_000], 300)]);
    spec.client.config.initial_receive_buffer = Some(Bytes::new(65_536));
    spec.client.config.receive_buffer = Bytes::new(6 << 20);
    spec.server.config.send_buffer = Bytes::new(6 << 20);
    let [newer, older] = [ReceiveTuning::Proportional, ReceiveTuning::Stepwise].map(|rule| {
        let outcome = complete(&with(&spec, |profile| profile.receive_tuning = rule));
        let blocked = outcome.connections[0].sender.as_ref().unwrap().blocked.receive_window;
        (outcome.transfers[1].duration().unwrap(), blocked)
    });
    assert!(older.0 > newer.0 && older.1 > newer.1, "{older:?} against {newer:?}");
}

/// Objects one after the other on one connection.
fn objects(sizes: &[u64], think_ms: u64) -> Workload {
    Workload::Files {
        direction: Direction::Down,
        sizes: sizes.iter().map(|&size| Bytes::new(size)).collect(),
        order: order(false, true, ms(think_ms)),
        start: Duration::ZERO,
    }
}

/// 256 KiB over 200 ms are 10.5 Mbit/s, half of them 5.2, on a link of 20 Mbit/s.
#[test]
fn half_of_the_buffer_as_window_halves_what_it_limits() {
    let mut spec = spec(vec![path("a", 20, 100)], vec![download(24_000_000)]);
    spec.client.config.receive_buffer = Bytes::new(256 << 10);
    let [whole, half] =
        [None, Some(1)].map(|scale| goodput(&complete(&with(&spec, |profile| profile.adv_win_scale = scale))));
    assert!((whole / half - 2.0).abs() < 0.15, "{whole:.2} and {half:.2} Mbit/s");
}

/// 1 MB over 100 ms at 20 Mbit/s: slow start is through in 0.8 s, from ten segments on by one segment per round trip it
/// takes more than twice as long.
#[test]
fn a_remembered_threshold_slows_a_new_connection_down() {
    let spec = spec(vec![path("a", 20, 50)], vec![download(1_000_000)]);
    let [none, ten] =
        [None, Some(10)].map(|n| goodput(&complete(&with(&spec, |profile| profile.initial_ssthresh = n))));
    assert!(ten < 0.5 * none, "{ten:.2} against {none:.2} Mbit/s");
}

/// Min-RTT that notes of each subflow whether its path's rate was known when it was first seen.
struct FirstSight(Arc<Mutex<BTreeMap<SubflowId, bool>>>);

impl Scheduler for FirstSight {
    fn decide(&mut self, now: Instant, view: &View<'_>) -> Decision {
        let mut seen = self.0.lock().unwrap();
        for subflow in view.subflows {
            seen.entry(subflow.id).or_insert(subflow.path_rate.is_some());
        }
        MinRtt.decide(now, view)
    }
}

/// A path with a queue of a bandwidth-delay product goes away and comes back. The subflow that then begins overflows it
/// in slow start. With what the one before it left there it does not, and its rate is known from the first segment on.
#[test]
fn temporal_sharing_spares_a_new_subflow_the_overflow_of_its_path() {
    let mut spec = spec(vec![path("a", 40, 10), path("b", 20, 30)], vec![download(30_000_000)]);
    spec.network.paths[1].down.queue = QueueLimit::Packets(100);
    let change =
        |at, change| TimedChange { at: ms(at), path: "b".to_owned(), affected: Affected::Both, change, notify: true };
    spec.network.changes = vec![change(2_000, Change::Down), change(4_000, Change::Up)];
    let [without, with] = [false, true].map(|sharing| {
        let seen = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let mut spec = with(&spec, |profile| profile.temporal_sharing = sharing);
        let of_server = seen.clone();
        spec.server.config.policies.scheduler = Arc::new(move || FirstSight(of_server.clone()).into());
        let outcome = complete(&spec);
        let of_b = outcome.connections[0].subflows.iter().filter(|subflow| subflow.path == 1);
        let repeated: Vec<u64> = of_b.map(|subflow| subflow.stats.retransmitted).collect();
        // Those of path b; the first subflow was in use when the scheduler was first asked.
        let known: Vec<bool> = seen.lock().unwrap().values().skip(1).copied().collect();
        (repeated, known)
    });
    println!("segments repeated by first and second subflow: {:?}, with sharing {:?}", without.0, with.0);
    assert_eq!((without.0.len(), with.0.len()), (2, 2), "one subflow before the pause and one after it");
    assert_eq!(without.0[0], with.0[0], "nothing is known at first");
    assert!(with.0[1] * 10 < without.0[1], "{with:?} against {without:?}");
    assert_eq!((without.1, with.1), (vec![false, false], vec![false, true]));
}

/// Two alike paths behind interfaces of 10 Mbit/s, written to at once: the first path takes as many segments in a row
/// as its first hop may hold, then the other gets its turn.
#[test]
fn small_queues_let_their_segments_out_in_a_row() {
    for (segments, expected) in [(2, 2), (3, 3), (57, 10)] {
        let mut paths = vec![path("a", 100, 10), path("b", 100, 10)];
        paths.iter_mut().for_each(|path| path.nic = Some(Rate::from_mbps(10)));
        let mut spec = spec(paths, vec![objects(&[1_000, 60_000], 100)]);
        spec.decisions = true;
        let outcome = complete(&with(&spec, |profile| profile.tsq_segments = segments));
        let decided = &outcome.decisions.as_ref().unwrap()[0];
        assert_eq!(decided[1].segments, expected, "{decided:?}");
    }
}

/// 20 Mbit/s and 100 ms one way hold 167 full packets in flight. Where a queue of 100 packets counts them, they are the
/// most that can be in flight: 12 Mbit/s.
#[test]
fn a_queue_that_counts_the_delay_line_limits_what_is_in_flight() {
    let [plain, counted] = [false, true].map(|counts| {
        let mut spec = spec(vec![path("a", 20, 100)], vec![download(20_000_000)]);
        (spec.network.paths[0].down.queue, spec.network.paths[0].down.queue_counts_delay) =
            (QueueLimit::Packets(100), counts);
        goodput(&complete(&spec))
    });
    assert!(counted < 12.0 && plain > 1.2 * counted, "{plain:.2} and {counted:.2} Mbit/s");
}

/// CUBIC over a queue of a bandwidth-delay product: with HyStart slow start ends before the queue overflows.
#[test]
fn hystart_leaves_slow_start_before_the_queue_is_full() {
    let mut spec = spec(vec![path("a", 20, 25)], vec![download(2_000_000)]);
    spec.network.paths[0].down.queue = QueueLimit::Packets(83);
    cubic(&mut spec.server);
    let dropped = [None, Some(HyStart::Sixteenth), Some(HyStart::Eighth)].map(|rule| {
        let outcome = complete(&with(&spec, |profile| profile.hystart = rule));
        down(&outcome, "a").dropped.queue
    });
    assert!(dropped[0] > 10 && dropped[1] == 0 && dropped[2] == 0, "{dropped:?}");
}

/// Reno, which has no HyStart of Linux, over a queue of three bandwidth-delay products.
#[test]
fn hystart_plus_plus_is_for_all_and_drops_little() {
    let mut spec = spec(vec![path("a", 20, 25)], vec![download(5_000_000)]);
    spec.network.paths[0].down.queue = QueueLimit::Packets(250);
    let [without, of_linux, plus_plus] = [None, Some(HyStart::Eighth), Some(HyStart::PlusPlus)].map(|rule| {
        let outcome = complete(&with(&spec, |profile| profile.hystart = rule));
        (down(&outcome, "a").dropped.queue, outcome.transfers[0].duration().unwrap())
    });
    println!("{without:?} {of_linux:?} {plus_plus:?}");
    assert_eq!(without, of_linux);
    assert!(plus_plus.0 * 2 < without.0 && plus_plus.1 <= without.1, "{without:?} {plus_plus:?}");
}

/// One loss in a window of about 40 segments: without PRR nothing leaves until half a window has arrived (the longest
/// pause is 47 ms of a round trip of 50), with it every other ACK lets a segment out (28 ms).
#[test]
fn prr_sends_through_a_recovery() {
    let mut spec = spec(vec![lossy_path("a", 20, 25, 0.0)], vec![download(2_000_000)]);
    spec.network.paths[0].down.loss = LossModel::List(vec![150]);
    spec.record_events = true;
    let pause = [false, true].map(|prr| {
        let outcome = complete(&with(&spec, |profile| profile.prr = prr));
        let sent: Vec<_> = outcome
            .events
            .as_ref()
            .unwrap()
            .iter()
            .filter(|event| event.kind == EventKind::Sent && event.length > 0)
            .map(|event| event.at)
            .collect();
        let after = sent.iter().copied().skip(150).collect::<Vec<_>>();
        after.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap()
    });
    assert!(pause[1] * 3 < pause[0] * 2, "{pause:?}");
}

/// Paths of 20 and 120 ms without loss, filled in turns: what arrives on the fast one is ahead of the stream until the
/// slow one has caught up. Acknowledged only then, it looks lost: fast retransmits and a lower goodput, with nothing
/// missing.
#[test]
fn reordering_between_paths_looks_like_loss_where_acks_are_coupled() {
    let paths = vec![path("a", 5, 10), path("b", 5, 60)];
    let [plain, coupled] = [false, true].map(|coupled_acks| {
        let profile = Profile { coupled_acks, initial_window: 1, initial_ssthresh: Some(47), ..Profile::newreno() };
        let outcome = complete(&ns3(paths.clone(), profile, 4_000_000));
        (repairs(&outcome), goodput(&outcome))
    });
    assert_eq!(plain.0, (0, 0));
    assert!(coupled.0.0 > 3 && coupled.1 < 0.9 * plain.1, "{coupled:?} against {plain:?}");
}

/// Three losses in a window of some 40 segments: NewReno repairs one per round trip, mptcp-ns3 needs three new
/// duplicate ACKs for each, which a halved window without inflation does not bring.
#[test]
fn one_repetition_per_signal_leaves_the_rest_to_timeouts() {
    let [newreno, single] = [false, true].map(|single_repair| {
        let mut paths = vec![path("a", 5, 50)];
        paths[0].down.loss = LossModel::List(vec![100, 102, 104, 106, 108]);
        let profile = Profile { single_repair, initial_ssthresh: Some(47), ..Profile::newreno() };
        let outcome = complete(&ns3(paths, profile, 1_000_000));
        repairs(&outcome)
    });
    assert!(newreno.1 == 0 && single.1 > 0, "{newreno:?} {single:?}");
}

/// A path that swallows everything from 2 s to 2.3 s: mptcp-ns3 goes on with half of its window after each timeout, RFC
/// 5681 with one segment.
#[test]
fn halving_leaves_more_than_a_timeout_otherwise_does() {
    let windows = [LossResponse::Standard, LossResponse::Halve].map(|loss_response| {
        let profile = Profile { loss_response, initial_ssthresh: Some(20), ..Profile::newreno() };
        let mut spec = ns3(vec![path("a", 5, 50)], profile, 2_000_000);
        spec.network.changes = swallowed("a", 2000, 2300);
        spec.samples = (1..400).map(|n| ms(10 * n)).collect();
        let outcome = complete(&spec);
        assert!(repairs(&outcome).1 > 0);
        outcome.samples.iter().map(|sample| sample.paths[0].cwnd).filter(|cwnd| *cwnd > 0).min().unwrap()
    });
    assert!(windows[0] <= 1400 && windows[1] > 2 * 1400, "{windows:?}");
}

/// 1 MB and two files of 100 kB on a warm connection; the fifth segment from the end of the first of the two is lost,
/// where little is in flight: Linux goes on with half of the window, RFC 5681 with half of what was in flight.
#[test]
fn a_loss_at_the_end_of_a_burst_costs_linux_less() {
    let run = |loss_response, lost: Option<u64>| {
        let mut paths = vec![path("a", 20, 20)];
        paths[0].down.loss = LossModel::List(lost.into_iter().collect());
        let mut spec = with(&spec(paths, Vec::new()), |profile| profile.loss_response = loss_response);
        let (sizes, order) = ([1000, 100, 100].map(|kb| Bytes::new(1000 * kb)).to_vec(), order(false, true, ms(100)));
        spec.workloads = vec![Workload::Files { direction: Direction::Down, sizes, order, start: Duration::ZERO }];
        complete(&spec)
    };
    let took = |outcome: &Outcome, file: usize| outcome.transfers[file].duration().unwrap();
    let clean = run(LossResponse::Linux, None);
    let delayed = |&n: &u64| took(&run(LossResponse::Linux, Some(n)), 1) > took(&clean, 1);
    let last = (0..down(&clean, "a").offered).rev().find(delayed).unwrap();
    let [linux, standard] = [LossResponse::Linux, LossResponse::Standard].map(|response| {
        let outcome = run(response, Some(last - 4));
        assert_eq!(repairs(&outcome), (1, 0));
        took(&outcome, 2).as_millis_f64()
    });
    assert!(standard > linux + 40.0, "a round trip at least: {standard} and {linux} ms");
}

/// A segment near the end of a file is lost on a path of 300 ms, with too few behind it for three duplicate ACKs: its
/// repetition comes after twice the RTT, rather than after the RTT and a variance that is all but gone.
#[test]
fn the_timeout_of_mptcp_ns3_is_twice_a_steady_round_trip() {
    let run = |rto, lost: Option<u64>| {
        let mut paths = vec![path("a", 50, 150)];
        paths[0].down.loss = LossModel::List(lost.into_iter().collect());
        complete(&ns3(paths, Profile { rto, ..Profile::newreno() }, 500_000))
    };
    let rfc = RtoRule::Rfc6298 { min: ms(200), granularity: ms(1) };
    let offered = down(&run(rfc, None), "a").offered;
    let lost = (1..10).map(|n| offered - n).find(|&lost| repairs(&run(rfc, Some(lost))) == (0, 1)).unwrap();
    let [rfc, ns3] = [rfc, RtoRule::MptcpNs3 { min: ms(200) }]
        .map(|rto| run(rto, Some(lost)).transfers[0].duration().unwrap().as_millis_f64());
    assert!(ns3 > rfc + 100.0, "{ns3} and {rfc} ms");
}

/// Three paths of 1 Mbit/s, 20 to 100 ms, no loss. Data that waits for the stream counts against the window of its
/// subflow. A scheduler that leaves a gap in the stream for a later segment can fill all windows with data behind the
/// gap: then no subflow may send the data of the gap, the repetitions of timeouts are not answered, and the connection
/// stands for ever. One that sends in order always has the missing byte under way.
#[test]
fn coupled_acks_lock_up_under_a_scheduler_that_skips() {
    for (name, coupled_acks, through) in
        [("late", true, false), ("fps", true, false), ("late", false, true), ("round-robin", true, true)]
    {
        let mut paths = [20, 60, 100].map(|delay| path(&format!("{delay}"), 1, delay)).to_vec();
        paths.iter_mut().for_each(|path| path.down.queue = QueueLimit::Packets(100));
        let mut spec = ns3(paths, Profile { mss: 1428, coupled_acks, ..Profile::mptcp_ns3() }, 300_000);
        for host in [&mut spec.client, &mut spec.server] {
            let scheduler = SCHEDULERS.iter().find(|entry| entry.name == name).unwrap();
            host.config.policies.scheduler = Arc::new(|| scheduler.build_default());
            let congestion = CONGESTION.iter().find(|entry| entry.name == "lia").unwrap();
            host.config.policies.congestion = Arc::new(|| congestion.build_default());
            (host.config.receive_buffer, host.config.send_buffer) = (Bytes::new(131_072), Bytes::new(16 << 20));
        }
        (spec.stop, spec.linger, spec.loss_oracle) = (ms(60_000), None, true);
        let outcome = run(&spec).unwrap();
        assert_eq!(outcome.finished, through, "{name}, coupled: {coupled_acks}");
        if !through {
            let connection = &outcome.connections[0];
            let (sender, receiver) = (connection.sender.as_ref().unwrap(), connection.receiver.as_ref().unwrap());
            assert_eq!(sender.sent - sender.data_acked, receiver.ofo_bytes, "all that was sent has arrived");
        }
    }
}

/// The profile as a whole, with losses, unlike paths and a small buffer: everything arrives, and a run is as its seed
/// says.
#[test]
fn mptcp_ns3_delivers_everything() {
    for seed in 1..=40 {
        let paths = vec![lossy_path("a", 5, 50, 0.02), lossy_path("b", 2, 250, 0.001)];
        let mut spec = ns3(paths, Profile::mptcp_ns3(), 1_000_000);
        spec.seed = anabranch_units::Seed(seed);
        spec.client.config.receive_buffer = Bytes::new(65_536);
        let outcome = complete(&spec);
        assert_eq!(outcome.digest, complete(&spec).digest);
    }
}
