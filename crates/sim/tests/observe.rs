//! Observers' view of a run.
#![allow(clippy::unwrap_used)]

mod common;
#[allow(dead_code)] // The swarm uses more of it.
mod draw;

use anabranch_engine::{Choice, Detector, Purpose, Reason};
use anabranch_net::{DropCause, QueueLimit};
use anabranch_paths::{Coalesce, Direction, End, Middlebox, MiddleboxSpec, PacketId};
use anabranch_sim::{Condition, Content, Host, Loss, Observer, Sight, Spec, Workload, run, run_observed};
use anabranch_units::{Bytes, Duration, Instant, Rate, Seed, SubflowId};
use common::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Notes {
    last: Instant,
    sent: BTreeMap<PacketId, (Host, Option<Purpose>)>,
    received: BTreeMap<PacketId, Vec<(Host, Condition)>>,
    lost: BTreeMap<PacketId, (String, DropCause)>,
    kept: BTreeSet<PacketId>,
    made: u64,
    datagrams: u64,
}

impl Notes {
    fn of(spec: &Spec) -> (Notes, anabranch_sim::Outcome) {
        let mut notes = Notes::default();
        let outcome = run_observed(spec, &mut notes).unwrap();
        (notes, outcome)
    }

    fn purposes(&self) -> BTreeSet<String> {
        self.sent.values().filter_map(|(_, purpose)| purpose.map(|it| it.to_string())).collect()
    }

    fn has(&self, purpose: Purpose) -> bool {
        self.sent.values().any(|(_, it)| *it == Some(purpose))
    }
}

impl Observer for Notes {
    fn on_sent(&mut self, sight: Sight<'_>, purpose: Option<Purpose>) {
        assert!(self.last <= sight.at, "in the order of time");
        self.last = sight.at;
        self.datagrams += u64::from(matches!(sight.content, Content::Datagram { .. }));
        assert!(self.sent.insert(sight.id, (sight.host, purpose)).is_none(), "each packet has its own number");
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        assert!(self.last <= sight.at);
        self.last = sight.at;
        if sight.id == PacketId::default() {
            self.made += 1;
        } else {
            self.received.entry(sight.id).or_default().push((sight.host, condition));
        }
    }

    fn on_lost(&mut self, id: PacketId, loss: Loss<'_>) {
        let before = self.lost.insert(id, (loss.link.to_owned(), loss.cause));
        assert!(before.is_none() && !self.received.contains_key(&id), "what is lost does not arrive");
    }

    fn on_kept(&mut self, id: PacketId, path: usize, end: End) {
        assert_eq!((path, end), (0, End::Server));
        assert!(self.sent.contains_key(&id) && self.kept.insert(id));
    }
}

#[test]
fn every_packet_has_a_beginning_and_an_end() {
    let mut paths = vec![lossy_path("a", 20, 10, 0.02), lossy_path("b", 10, 30, 0.01)];
    paths[0].nic = Some(Rate::from_mbps(100));
    paths[1].down.queue = QueueLimit::Packets(10);
    paths[1].down.duplication = 0.05;
    paths[1].down.corruption = 0.02;
    let udp = Workload::Udp {
        path: "b".to_owned(),
        direction: Direction::Down,
        rate: Rate::from_mbps(2),
        packet: Bytes::new(500),
        spacing: anabranch_sim::Spacing::Even,
        on: Duration::ZERO,
        off: Duration::ZERO,
        phases: anabranch_sim::Spacing::Even,
        start: Duration::ZERO,
        stop: ms(300),
    };
    let spec = spec(paths, vec![download(1_000_000), udp]);
    let plain = run(&spec).unwrap();
    let (notes, outcome) = Notes::of(&spec);
    assert_eq!(outcome.digest, plain.digest, "a run is the same whether someone watches or not");

    // The run lingers until the network is empty, so every packet has come to its end.
    for (id, (host, _)) in &notes.sent {
        let arrivals = notes.received.get(id).map_or(&[][..], Vec::as_slice);
        assert_eq!(arrivals.is_empty(), notes.lost.contains_key(id), "{id:?} arrives or is lost");
        assert!(arrivals.iter().all(|(at, _)| at != host) && arrivals.len() <= 2);
    }
    let damaged = notes.received.values().flatten().filter(|(_, condition)| *condition == Condition::Damaged).count();
    assert_eq!(damaged as u64, outcome.corrupted);
    let copies: usize = notes.received.values().map(|arrivals| arrivals.len() - 1).sum();
    let duplicated: u64 = outcome.links.iter().map(|link| link.stats.duplicated).sum();
    assert_eq!(copies as u64, duplicated);
    assert_eq!(notes.datagrams, outcome.udp[0].sent);
    for link in &outcome.links {
        let lost = |cause| notes.lost.values().filter(|lost| **lost == (link.name.clone(), cause)).count() as u64;
        let dropped = link.stats.dropped;
        let counted = (lost(DropCause::QueueFull), lost(DropCause::Loss), lost(DropCause::Down));
        assert_eq!(counted, (dropped.queue, dropped.loss, dropped.down), "{}", link.name);
    }
    assert!(damaged > 0 && copies > 0 && notes.lost.len() > 10, "the scenario has something of everything");
}

#[test]
fn what_middleboxes_keep_or_make_is_told() {
    let coalesce = Middlebox::Coalesce(Coalesce { size: 4000, wait: ms(1), direction: None });
    let mut spec = spec(vec![path("a", 20, 10), path("b", 10, 30)], vec![download(1_000_000)]);
    spec.network.paths[0].middleboxes = vec![MiddleboxSpec { end: End::Server, ..MiddleboxSpec::new(coalesce) }];
    let (notes, _) = Notes::of(&spec);
    for id in notes.sent.keys() {
        let ends = [notes.received.contains_key(id), notes.lost.contains_key(id), notes.kept.contains(id)];
        assert_eq!(ends.iter().filter(|it| **it).count(), 1, "{id:?} has one end: {ends:?}");
    }
    assert!(!notes.kept.is_empty() && notes.made > 0 && notes.made < notes.kept.len() as u64);
}

#[test]
fn a_black_hole_shows_what_timeouts_repeat_and_reinject() {
    let mut spec = spec(vec![path("a", 20, 10), path("b", 10, 30)], vec![download(2_000_000)]);
    spec.network.changes = swallowed("a", 200, 900);
    let (notes, _) = Notes::of(&spec);
    for purpose in [
        Purpose::Handshake { retries: 0 },
        Purpose::NewData(Choice::OnlySubflow),
        Purpose::NewData(Choice::Scheduler),
        Purpose::Retransmission(Detector::Rto),
        Purpose::Reinjection(Reason::Rto(SubflowId(0))),
        Purpose::DataFin { retries: 0 },
        Purpose::Fin,
    ] {
        assert!(notes.has(purpose), "{purpose} is not among {:?}", notes.purposes());
    }
    assert!(!notes.has(Purpose::NewData(Choice::Overruled)));
    let holes = notes.lost.values().filter(|(link, cause)| link == "a/down" && *cause == DropCause::Blackhole);
    assert!(holes.count() > 0);
}

#[test]
fn losses_show_what_finds_them() {
    for (profile, detector) in [
        (anabranch_engine::Profile::tcp(), Detector::Rack),
        (anabranch_engine::Profile::named("newreno").unwrap(), Detector::DuplicateAcks),
    ] {
        let mut spec = spec(vec![lossy_path("a", 20, 10, 0.01)], vec![download(2_000_000)]);
        spec.client.config.profile = profile.clone();
        spec.server.config.profile = profile;
        let (notes, _) = Notes::of(&spec);
        assert!(notes.has(Purpose::Retransmission(detector)), "{detector:?}: {:?}", notes.purposes());
    }
}

/// Packets that have begun, and packets that have ended.
#[derive(Default)]
struct Ends {
    last: Instant,
    sent: BTreeSet<PacketId>,
    ended: BTreeSet<PacketId>,
}

impl Ends {
    fn end(&mut self, id: PacketId) {
        assert!(id == PacketId::default() || self.sent.contains(&id), "what ends has begun");
        self.ended.insert(id);
    }
}

impl Observer for Ends {
    fn on_sent(&mut self, sight: Sight<'_>, _purpose: Option<Purpose>) {
        assert!(self.last <= sight.at && self.sent.insert(sight.id));
        self.last = sight.at;
    }

    fn on_received(&mut self, sight: Sight<'_>, _condition: Condition) {
        assert!(self.last <= sight.at);
        self.last = sight.at;
        self.end(sight.id);
    }

    fn on_lost(&mut self, id: PacketId, _loss: Loss<'_>) {
        self.end(id);
    }

    fn on_kept(&mut self, id: PacketId, _path: usize, _end: End) {
        self.end(id);
    }
}

/// Runs as the swarm draws them, with middleboxes, faults and changes of all kinds.
#[test]
fn in_any_run_packets_end_and_the_run_is_the_same() {
    for seed in 0..100 {
        let mut spec = draw::spec(Seed(seed));
        spec.audit = false;
        let plain = run(&spec).unwrap();
        let mut ends = Ends::default();
        let observed = run_observed(&spec, &mut ends).unwrap();
        assert_eq!(observed.digest, plain.digest, "seed {seed}");
        if observed.quiet {
            ends.ended.remove(&PacketId::default());
            assert_eq!(ends.sent.len(), ends.ended.len(), "seed {seed}: every packet ends");
        }
    }
}
