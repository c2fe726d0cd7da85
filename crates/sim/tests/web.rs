//! Web pages: load times that can be reckoned by hand, and bytes that neither protocol gains or loses.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_sim::page::{Activity, After, Moment, Object, Page, Protocol, Work};
use anabranch_sim::{Outcome, Spec, Workload, run};
use anabranch_units::{Bytes, Duration, Instant};
use common::{complete, lossy_path, ms, path, spec};
use std::sync::Arc;

const HTTP1: Protocol = Protocol::Http1 { connections: 6 };

fn object(size: u64) -> Activity {
    Activity::download(Object::of_size(Bytes::new(size)))
}

/// The same once activity 0 has come to this moment, so much later.
fn behind(activity: Activity, moment: Moment, delay_ms: u64) -> Activity {
    Activity { after: vec![After { activity: 0, moment, delay: ms(delay_ms) }], ..activity }
}

fn web(activities: Vec<Activity>, protocol: Protocol) -> Workload {
    Workload::Web { page: Arc::new(Page { activities }), protocol, start: Duration::ZERO }
}

/// Plain TCP over one path of 10 Gbit/s and 20 ms there and back: what takes time is the way, not the sending.
fn load(activities: &[Activity], protocol: Protocol) -> Outcome {
    let mut spec = spec(vec![path("a", 10_000, 10)], vec![web(activities.to_vec(), protocol)]);
    (spec.client.config.multipath, spec.server.config.multipath) = (false, false);
    complete(&spec)
}

/// Returns the page load time in milliseconds, rounded down by the tenth or so that sending takes.
fn page_load_ms(outcome: &Outcome) -> f64 {
    let page = outcome.pages[0];
    (page.finished.unwrap().since(page.started).as_millis_f64() * 5.0).floor() / 5.0
}

/// SYN and back 20 ms, the first object 20 ms, 5 ms of thought, the second 20 ms.
#[test]
fn an_object_is_requested_when_its_parent_is_there_and_processed() {
    let page = [object(1000), behind(object(1000), Moment::End, 5)];
    for protocol in [HTTP1, Protocol::Http2] {
        let outcome = load(&page, protocol);
        assert_eq!(page_load_ms(&outcome), 65.0, "{protocol:?}");
        let [first, second] = outcome.transfers.as_slice() else { panic!("two objects") };
        assert_eq!((first.label.as_str(), second.label.as_str()), ("object 1", "object 2"));
        assert_eq!(second.started.since(first.finished.unwrap()), ms(5));
        assert_eq!(second.duration().unwrap().as_millis(), 20);
        assert_eq!((outcome.connections.len(), outcome.pages[0].started), (1, Instant::ZERO));
    }
}

/// Ten segments in the first round trip and twenty in the second: 40 kB are there after 20 (SYN) + 20 + 20 ms.
#[test]
fn what_exceeds_the_initial_window_takes_more_round_trips() {
    for protocol in [HTTP1, Protocol::Http2] {
        for (size, expected) in [(13_000, 40.0), (40_000, 60.0), (95_000, 80.0)] {
            assert_eq!(page_load_ms(&load(&[object(size)], protocol)), expected, "{size} {protocol:?}");
        }
    }
}

/// After the first object (40 ms) eight more are known. HTTP/1.1 has one connection that is warm and may open five: the
/// warm one brings one at 60 and another at 80 ms, the five cold ones theirs at 80 ms, and the eighth comes at 100 ms.
/// HTTP/2 asks for all at once.
#[test]
fn six_connections_work_in_parallel_and_one_multiplexes() {
    let mut page = vec![object(1000)];
    page.extend((0..8).map(|_| behind(object(1000), Moment::End, 0)));
    let outcome = load(&page, HTTP1);
    assert_eq!((page_load_ms(&outcome), outcome.connections.len()), (100.0, 6));
    let mut ends: Vec<u64> =
        outcome.transfers.iter().map(|it| it.finished.unwrap().since(Instant::ZERO).as_millis()).collect();
    ends.sort_unstable();
    assert_eq!(ends, [40, 60, 80, 80, 80, 80, 80, 80, 100]);
    let outcome = load(&page, Protocol::Http1 { connections: 1 });
    assert_eq!((page_load_ms(&outcome), outcome.connections.len()), (200.0, 1));
    let outcome = load(&page, Protocol::Http2);
    assert_eq!((page_load_ms(&outcome), outcome.connections.len()), (60.0, 1));
}

/// A script runs from the first byte of the page on, which comes at 40 ms of a page that is complete at 60 ms, and
/// takes 50 ms: 90 ms. An image begins 7 ms after the page was requested, on a connection of its own: 7 + 40 ms. What
/// comes last is a computation.
#[test]
fn computations_and_all_moments_count() {
    let compute = Activity { begin: Duration::ZERO, after: Vec::new(), work: Work::Compute(ms(50)) };
    let page = [object(40_000), behind(compute, Moment::FirstByte, 0), behind(object(500), Moment::Begin, 7)];
    let outcome = load(&page, HTTP1);
    assert_eq!(page_load_ms(&outcome), 90.0);
    let image = &outcome.transfers[1];
    assert_eq!((image.started, image.duration().unwrap().as_millis()), (Instant::ZERO + ms(7), 40));
    assert_eq!(outcome.end, outcome.pages[0].finished.unwrap(), "the run goes on until the computation is through");
}

/// Frames of all streams take turns: of two objects that are asked for together the small one does not wait for the
/// large one.
#[test]
fn frames_are_interleaved() {
    let page = [object(10), behind(object(2_000_000), Moment::End, 0), behind(object(40_000), Moment::End, 0)];
    let mut spec = spec(vec![path("a", 10, 10)], vec![web(page.to_vec(), Protocol::Http2)]);
    spec.server.config.send_buffer = Bytes::new(64_000);
    let outcome = complete(&spec);
    let [_, large, small] = outcome.transfers.as_slice() else { panic!("three objects") };
    // 2 MB at 10 Mbit/s are 1.6 s. Of the small one's three frames the last stands behind three of the large one's.
    assert!(large.duration().unwrap() > ms(1600));
    assert!(small.duration().unwrap() < ms(180), "{}", small.duration().unwrap());
}

/// Two paths of MPTCP with loss, a page of objects of all sizes, none included.
fn lossy(protocol: Protocol) -> Spec {
    let mut page = vec![object(30_000)];
    page.extend([0, 1, 100, 1400, 16_384, 16_385, 60_000, 250_000].map(|size| behind(object(size), Moment::End, 3)));
    let paths = vec![lossy_path("wlan", 4, 8, 0.01), lossy_path("lte", 3, 20, 0.005)];
    spec(paths, vec![web(page, protocol)])
}

/// HTTP/1.1 carries a header for each object, HTTP/2 frames: headers of 31 % in frames of 9 bytes, and 9 bytes for each
/// 16384 of a body; and 30 bytes of SETTINGS and their acknowledgment.
#[test]
fn neither_protocol_gains_or_loses_a_byte() {
    let sizes = [30_000u64, 0, 1, 100, 1400, 16_384, 16_385, 60_000, 250_000];
    let bodies: u64 = sizes.iter().sum();
    let frames: u64 = sizes.iter().map(|size| size.div_ceil(16_384)).sum();
    let expected = [(HTTP1, bodies + 9 * 350), (Protocol::Http2, bodies + 30 + 9 * (9 + 108) + 9 * frames)];
    for (protocol, on_the_wire) in expected {
        let outcome = complete(&lossy(protocol));
        assert_eq!(outcome.transfers.iter().map(|it| it.bytes).collect::<Vec<_>>(), sizes);
        let sent: u64 = outcome.connections.iter().map(|it| it.sender.as_ref().unwrap().written).sum();
        assert_eq!(sent, on_the_wire, "{protocol:?}");
        assert!(outcome.connections.iter().all(|connection| connection.multipath));
        let used = |path| {
            outcome.connections.iter().flat_map(|c| &c.subflows).any(|s| s.path == path && s.stats.bytes_sent > 0)
        };
        assert!(used(0) && used(1));
    }
}

#[test]
fn a_page_loads_alike_each_time() {
    for protocol in [HTTP1, Protocol::Http2] {
        let spec = lossy(protocol);
        let (once, again) = (run(&spec).unwrap(), run(&spec).unwrap());
        assert_eq!((once.digest, once.pages), (again.digest, again.pages));
    }
}

/// Objects are asked for at their times on a connection that was opened before.
#[test]
fn an_interactive_session_keeps_its_times() {
    let times = [500, 510, 3000];
    let page = Page { activities: times.map(|at| Activity { begin: ms(at), ..object(5_000) }).to_vec() };
    let spec = spec(vec![path("a", 10_000, 10)], vec![Workload::Interactive { page: Arc::new(page), start: ms(100) }]);
    let outcome = complete(&spec);
    assert_eq!((outcome.connections.len(), outcome.pages.len()), (1, 0));
    for (transfer, at) in outcome.transfers.iter().zip(times) {
        assert_eq!(transfer.started, Instant::ZERO + ms(100 + at));
        assert_eq!(transfer.duration().unwrap().as_millis(), 20, "warm: one round trip");
    }
}

/// A page whose connections die is not there, and says so.
#[test]
fn a_page_that_is_cut_off_does_not_finish() {
    let mut spec = spec(vec![path("a", 10, 10)], vec![web(vec![object(5_000_000)], HTTP1)]);
    (spec.stop, spec.linger) = (Duration::from_secs(1), None);
    let outcome = run(&spec).unwrap();
    assert!(!outcome.finished && outcome.pages[0].finished.is_none() && outcome.transfers[0].finished.is_none());
    assert!((900_000..1_200_000).contains(&outcome.transfers[0].bytes), "{}", outcome.transfers[0].bytes);
}
