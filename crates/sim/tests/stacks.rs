//! Each rule of a stack (docs/stacks.md) in a simulation whose outcome changes when the rule is switched.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_engine::{Profile, ReceiveTuning};
use anabranch_net::{LinkStats, LossModel, QueueLimit};
use anabranch_policy::congestion::HyStart;
use anabranch_policy::registry::CONGESTION;
use anabranch_sim::{Direction, EventKind, HostSpec, Outcome, Spec, Workload};
use anabranch_units::{Bytes, Duration, Rate};
use common::{complete, download, goodput, lossy_path, ms, path, spec};
use std::sync::Arc;

/// Both hosts with the profile `linux`, changed.
fn with(spec: &Spec, change: impl Fn(&mut Profile)) -> Spec {
    let mut spec = spec.clone();
    for host in [&mut spec.client, &mut spec.server] {
        change(&mut host.profile);
    }
    spec
}

fn cubic(host: &mut HostSpec) {
    let entry = CONGESTION.iter().find(|entry| entry.name == "cubic").unwrap();
    host.policies.congestion = Arc::new(|| entry.build_default());
}

fn down<'a>(outcome: &'a Outcome, path: &str) -> &'a LinkStats {
    &outcome.links.iter().find(|link| link.name == format!("{path}/down")).unwrap().stats
}

/// 100 kB, then 4 MB on the same connection, over paths of 10 and 200 ms. The first object is read within a round trip of the
/// slow path, 7 times what was read before: the rule of Linux 4.16 opens the window to megabytes at once, the older one to
/// 446 kB, which is less than the fast path carries while a segment is under way on the slow one.
#[test]
fn the_older_receive_tuning_opens_the_window_less() {
    let mut spec = spec(vec![path("a", 100, 5), path("b", 10, 100)], vec![objects(&[100_000, 4_000_000], 300)]);
    spec.client.initial_receive_buffer = Some(Bytes::new(65_536));
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
        concurrent: false,
        warm: true,
        start: Duration::ZERO,
        think: ms(think_ms),
    }
}

/// 256 KiB over 200 ms are 10.5 Mbit/s, half of them 5.2, on a link of 20 Mbit/s.
#[test]
fn half_of_the_buffer_as_window_halves_what_it_limits() {
    let mut spec = spec(vec![path("a", 20, 100)], vec![download(24_000_000)]);
    spec.client.receive_buffer = Bytes::new(256 << 10);
    let [whole, half] =
        [None, Some(1)].map(|scale| goodput(&complete(&with(&spec, |profile| profile.adv_win_scale = scale))));
    assert!((whole / half - 2.0).abs() < 0.15, "{whole:.2} and {half:.2} Mbit/s");
}

/// 1 MB over 100 ms at 20 Mbit/s: slow start is through in 0.8 s, from ten segments on by one segment per round trip it takes
/// more than twice as long.
#[test]
fn a_remembered_threshold_slows_a_new_connection_down() {
    let spec = spec(vec![path("a", 20, 50)], vec![download(1_000_000)]);
    let [none, ten] = [None, Some(10)].map(|n| goodput(&complete(&with(&spec, |profile| profile.initial_ssthresh = n))));
    assert!(ten < 0.5 * none, "{ten:.2} against {none:.2} Mbit/s");
}

/// Two alike paths behind interfaces of 10 Mbit/s, written to at once: the first path takes as many segments in a row as its
/// first hop may hold, then the other gets its turn.
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

/// 20 Mbit/s and 100 ms one way hold 167 full packets in flight. Where a queue of 100 packets counts them, they are the most
/// that can be in flight: 12 Mbit/s.
#[test]
fn a_queue_that_counts_the_delay_line_limits_what_is_in_flight() {
    let [plain, counted] = [false, true].map(|counts| {
        let mut spec = spec(vec![path("a", 20, 100)], vec![download(20_000_000)]);
        (spec.paths[0].down.queue, spec.paths[0].down.queue_counts_delay) = (QueueLimit::Packets(100), counts);
        goodput(&complete(&spec))
    });
    assert!(counted < 12.0 && plain > 1.2 * counted, "{plain:.2} and {counted:.2} Mbit/s");
}

/// CUBIC over a queue of a bandwidth-delay product: with HyStart slow start ends before the queue overflows.
#[test]
fn hystart_leaves_slow_start_before_the_queue_is_full() {
    let mut spec = spec(vec![path("a", 20, 25)], vec![download(2_000_000)]);
    spec.paths[0].down.queue = QueueLimit::Packets(83);
    cubic(&mut spec.server);
    let dropped = [None, Some(HyStart::Sixteenth), Some(HyStart::Eighth)].map(|rule| {
        let outcome = complete(&with(&spec, |profile| profile.hystart = rule));
        down(&outcome, "a").dropped.queue
    });
    assert!(dropped[0] > 10 && dropped[1] == 0 && dropped[2] == 0, "{dropped:?}");
}

/// One loss in a window of about 40 segments: without PRR nothing leaves until half a window has arrived (the longest pause is
/// 47 ms of a round trip of 50), with it every other ACK lets a segment out (28 ms).
#[test]
fn prr_sends_through_a_recovery() {
    let mut spec = spec(vec![lossy_path("a", 20, 25, 0.0)], vec![download(2_000_000)]);
    spec.paths[0].down.loss = LossModel::List(vec![150]);
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
