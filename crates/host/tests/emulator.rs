//! Effects of the emulator on packets, between devices that the test itself holds: neither privileges nor wall-clock
//! time.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_host::emulator::{EmulatorReport, Handle, Options, Validity};
use anabranch_host::{Device, Emulator, PathEnds};
use anabranch_net::{Change, LossModel, QueueLimit, Reordering};
use anabranch_paths::{
    Affected, AlterPayload, Coalesce, Middlebox, MiddleboxSpec, Nat, NetworkSpec, PathSpec, RewriteSequence,
    SharedLink, Stripped, TimedChange,
};
use anabranch_units::{Duration, Rate, Seed, SubflowSeq};
use anabranch_wire::{Checksums, Flags, FlowKey, MpCapable, MpOption, Segment};
use bytes::{Bytes, BytesMut};
use common::{link, path};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration as Span;

/// One end of a pair of sockets; the test holds the other.
struct Wire {
    socket: OwnedFd,
    host: Arc<Interface>,
}

/// State of the interface that the host of a wire sees, and its drops.
#[derive(Default)]
struct Interface {
    carrier: Mutex<Vec<bool>>,
    drops: AtomicU64,
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for Wire {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        match rustix::net::send(&self.socket, packet, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn set_carrier(&mut self, up: bool) -> io::Result<bool> {
        self.host.carrier.lock().unwrap().push(up);
        Ok(true)
    }

    fn queue_drops(&mut self) -> io::Result<Option<u64>> {
        Ok(Some(self.host.drops.load(Ordering::SeqCst)))
    }
}

/// A host with the other ends.
struct Host(Vec<OwnedFd>);

impl Host {
    fn send(&self, path: usize, packet: &[u8]) {
        rustix::net::send(&self.0[path], packet, SendFlags::NOSIGNAL).unwrap();
    }

    /// The next packet; the time is only against hanging.
    fn receive(&self, path: usize) -> Vec<u8> {
        let mut buffer = vec![0; 70_000];
        let (length, _) =
            rustix::net::recv(&self.0[path], &mut buffer[..], RecvFlags::empty()).expect("a packet comes");
        buffer.truncate(length);
        buffer
    }

    fn receive_numbers(&self, path: usize, count: usize) -> Vec<u8> {
        (0..count).map(|_| *self.receive(path).last().unwrap()).collect()
    }
}

struct Bench {
    emulator: Handle,
    client: Host,
    server: Host,
    /// Interfaces of the client, by path.
    interfaces: Vec<Arc<Interface>>,
}

fn bench(spec: &NetworkSpec) -> Bench {
    bench_with(spec, Options::default())
}

fn bench_with(spec: &NetworkSpec, options: Options) -> Bench {
    let (mut client, mut server, mut interfaces) = (Host(Vec::new()), Host(Vec::new()), Vec::new());
    let wire = |host: &mut Host, interface: &Arc<Interface>| -> Box<dyn Device> {
        let pair = |flags| rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let (ours, theirs) = pair(SocketFlags::CLOEXEC);
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let patience = Some(Span::from_secs(300));
        rustix::net::sockopt::set_socket_timeout(&theirs, rustix::net::sockopt::Timeout::Recv, patience).unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&theirs, 1 << 20).unwrap();
        host.0.push(theirs);
        Box::new(Wire { socket: ours, host: Arc::clone(interface) })
    };
    let mut ends = Vec::new();
    for _ in &spec.paths {
        let interface = Arc::default();
        ends.push(PathEnds { client: wire(&mut client, &interface), server: wire(&mut server, &Arc::default()) });
        interfaces.push(interface);
    }
    let emulator = Emulator::start(spec, Seed(1), ends, options).unwrap();
    Bench { emulator, client, server, interfaces }
}

impl Bench {
    /// Waits until the emulator has read this number of packets of the client over path `path`.
    fn wait_until_read(&self, path: usize, packets: u64) -> EmulatorReport {
        loop {
            let report = self.emulator.snapshot().unwrap();
            if report.paths[path].traffic.up.read >= packets {
                return report;
            }
            std::thread::sleep(Span::from_millis(1));
        }
    }

    /// States of the cable that the client's interface has shown.
    fn carrier(&self, path: usize) -> Vec<bool> {
        self.interfaces[path].carrier.lock().unwrap().clone()
    }

    fn change(&self, path: &str, change: Change) {
        self.emulator.change(path, Affected::Both, change).unwrap();
    }
}

/// A UDP packet that ends in `number`.
fn packet(number: u8) -> Vec<u8> {
    let mut packet = vec![0; 1000];
    packet[..10].copy_from_slice(&[0x45, 0, 1000u16.to_be_bytes()[0], 1000u16.to_be_bytes()[1], 0, 0, 0x40, 0, 64, 17]);
    packet[999] = number;
    packet
}

fn segment(flags: Flags, payload: &'static [u8]) -> Segment {
    let flow = FlowKey::new(([10, 77, 1, 2], 40_000).into(), ([10, 77, 1, 1], 80).into());
    let mut segment = Segment::new(flow, flags, SubflowSeq::new(1), SubflowSeq::new(0));
    segment.payload = Bytes::from_static(payload).into();
    segment
}

fn bytes(segment: &Segment) -> BytesMut {
    let mut packet = BytesMut::new();
    anabranch_wire::emit(segment, &mut packet).unwrap();
    packet
}

fn at_rest() -> anabranch_net::LinkConfig {
    anabranch_net::LinkConfig::new(Rate::default(), Duration::ZERO)
}

#[test]
fn packets_take_their_delay_and_keep_their_order_in_spite_of_jitter() {
    let mut config = link(100, 20);
    config.jitter = Duration::from_millis(10);
    let bench = bench(&NetworkSpec::new(vec![path("a", &config)]));
    (0..60).for_each(|number| bench.client.send(0, &packet(number)));
    assert_eq!(bench.server.receive_numbers(0, 60), (0..60).collect::<Vec<_>>());
    (0..60).for_each(|number| bench.server.send(0, &packet(number)));
    assert_eq!(bench.client.receive_numbers(0, 60), (0..60).collect::<Vec<_>>());
    let report = bench.emulator.stop().unwrap();
    for traffic in [&report.paths[0].traffic.up, &report.paths[0].traffic.down] {
        assert_eq!((traffic.read, traffic.delivered, traffic.delay.count), (60, 60, 60));
        assert!(traffic.delay.p50 >= Duration::from_millis(20), "{traffic:?}");
    }
    assert_eq!(report.lateness.count, 120);
    assert!(report.links.iter().all(|link| link.queue_delay.count == 60), "{report:?}");
}

#[test]
fn a_queue_holds_what_it_may_and_moves_at_the_rate_it_is_given() {
    let mut config = at_rest();
    config.queue = QueueLimit::Packets(10);
    let bench = bench(&NetworkSpec::new(vec![path("a", &config)]));
    (0..15).for_each(|number| bench.client.send(0, &packet(number)));
    let stats = bench.wait_until_read(0, 15).links[1].stats;
    assert_eq!((stats.offered, stats.queued, stats.dropped.queue, stats.delivered), (15, 10, 5, 0));
    bench.change("a", Change::Rate(Rate::from_mbps(1)));
    assert_eq!(bench.server.receive_numbers(0, 10), (0..10).collect::<Vec<_>>());
    let report = bench.emulator.stop().unwrap();
    assert_eq!(report.links[1].name, "a/up");
    // Ten packets of 1000 bytes at 1 Mbit/s: the last has waited for 80 ms.
    assert!(report.links[1].queue_delay.max >= Duration::from_millis(79), "{:?}", report.links[1]);
}

#[test]
fn each_cause_of_loss_is_counted() {
    let mut config = link(1000, 1);
    config.loss = LossModel::List(vec![0, 2]);
    let bench = bench(&NetworkSpec::new(vec![path("a", &config)]));
    (0..5).for_each(|number| bench.client.send(0, &packet(number)));
    assert_eq!(bench.server.receive_numbers(0, 3), [1, 3, 4]);
    bench.change("a", Change::Loss(LossModel::None));
    bench.change("a", Change::Blackhole);
    bench.client.send(0, &packet(5));
    while bench.emulator.snapshot().unwrap().links[1].stats.dropped.blackhole == 0 {}
    bench.change("a", Change::Restore);
    bench.change("a", Change::Down);
    bench.client.send(0, &packet(6));
    bench.wait_until_read(0, 7);
    bench.change("a", Change::Up);
    bench.client.send(0, &packet(7));
    assert_eq!(bench.server.receive_numbers(0, 1), [7]);
    assert_eq!(bench.carrier(0), [false, true], "the client's interface shows it");
    let dropped = bench.emulator.stop().unwrap().links[1].stats.dropped;
    assert_eq!((dropped.loss, dropped.blackhole, dropped.down, dropped.queue), (2, 1, 1, 0));
}

/// Kernels drop outgoing packets while an interface has no carrier, and a little longer.
#[test]
fn what_an_interface_drops_while_its_cable_is_out_is_the_scenarios_doing() {
    let bench = bench(&NetworkSpec::new(vec![path("a", &link(1000, 1))]));
    let interface = &bench.interfaces[0];
    let counted = |drops: u64, valid: bool, unplugged: u64, queue_drops: u64| {
        interface.drops.store(drops, Ordering::SeqCst);
        let report = bench.emulator.snapshot().unwrap();
        let traffic = &report.paths[0].traffic.up;
        let counts = (report.validity.is_valid(), traffic.unplugged, traffic.queue_drops);
        assert_eq!(counts, (valid, unplugged, Some(queue_drops)), "{:?}", report.validity);
    };
    for (way_back, dropped) in [(Change::Up, 0), (Change::Restore, 40)] {
        bench.change("a", Change::Down);
        counted(dropped + 28, true, dropped + 28, 0);
        bench.change("a", way_back);
        counted(dropped + 40, true, dropped + 40, 0);
        let read = bench.emulator.snapshot().unwrap().paths[0].traffic.up.read;
        bench.client.send(0, &packet(1));
        bench.wait_until_read(0, read + 1);
        assert_eq!(bench.server.receive_numbers(0, 1), [1], "the path works again");
    }
    assert_eq!(bench.carrier(0), [false, true, false, true], "the client's interface shows it");
    counted(80, true, 80, 0);
    counted(83, false, 80, 3);
}

#[test]
fn changes_wait_for_the_beginning_and_only_those_that_say_so_show() {
    let mut spec = NetworkSpec::new(vec![path("a", &link(1000, 1)), path("b", &link(1000, 1))]);
    let down = |path: &str, notify| TimedChange {
        at: Duration::ZERO,
        path: path.to_owned(),
        affected: Affected::Both,
        change: Change::Down,
        notify,
    };
    spec.changes = vec![down("a", true), down("b", false)];
    let bench = bench_with(&spec, Options { hold_changes: true, ..Options::default() });
    bench.client.send(0, &packet(1));
    assert_eq!(bench.server.receive_numbers(0, 1), [1]);
    bench.emulator.begin().unwrap();
    while bench.carrier(0).is_empty() {}
    bench.client.send(0, &packet(2));
    bench.wait_until_read(0, 2);
    bench.client.send(1, &packet(3));
    let report = bench.wait_until_read(1, 1);
    assert_eq!((report.links[1].stats.dropped.down, report.links[3].stats.dropped.down), (1, 1));
    assert!(bench.carrier(1).is_empty());
}

#[test]
fn packets_fall_behind_are_doubled_and_damaged() {
    let mut behind = link(1000, 1);
    behind.reordering = Some(Reordering { probability: 0.5, extra: Duration::from_millis(300) });
    let mut doubled = link(1000, 1);
    doubled.duplication = 1.0;
    let mut damaged = link(1000, 1);
    damaged.corruption = 1.0;
    let bench =
        bench(&NetworkSpec::new(vec![path("behind", &behind), path("doubled", &doubled), path("damaged", &damaged)]));
    (0..40).for_each(|number| bench.client.send(0, &packet(number)));
    let arrived = bench.server.receive_numbers(0, 40);
    let mut sorted = arrived.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..40).collect::<Vec<_>>());
    assert_ne!(arrived, sorted);
    (0..3).for_each(|number| bench.client.send(1, &packet(number)));
    assert_eq!(bench.server.receive_numbers(1, 6), [0, 0, 1, 1, 2, 2]);
    let whole = bytes(&segment(Flags::ACK, b"payload"));
    for _ in 0..20 {
        bench.client.send(2, &whole);
        let hit = bench.server.receive(2);
        assert_eq!(hit.len(), whole.len());
        assert!(anabranch_wire::parse(&hit.into(), Checksums::Verify).is_err(), "the receiver's checksum finds it");
    }
    assert_eq!(bench.emulator.stop().unwrap().links[5].stats.corrupted, 20);
}

#[test]
fn paths_share_a_bottleneck() {
    let mut near = [path("a", &link(1000, 1)), path("b", &link(1000, 1))];
    near.iter_mut().for_each(|path| path.via = Some("core".to_owned()));
    let mut core = at_rest();
    core.queue = QueueLimit::Packets(5);
    let mut spec = NetworkSpec::new(near.into());
    spec.shared = vec![SharedLink { name: "core".to_owned(), down: core.clone(), up: core }];
    let bench = bench(&spec);
    (0..4).for_each(|number| bench.client.send(0, &packet(number)));
    (4..8).for_each(|number| bench.client.send(1, &packet(number)));
    let full = loop {
        let report = bench.emulator.snapshot().unwrap();
        if report.links[5].stats.offered == 8 {
            break report;
        }
    };
    let core = &full.links[5];
    assert_eq!((core.name.as_str(), core.stats.queued, core.stats.dropped.queue), ("core/up", 5, 3));
    bench.change("core", Change::Rate(Rate::from_mbps(100)));
    while bench.emulator.snapshot().unwrap().links[5].stats.delivered < 5 {}
    let report = bench.emulator.stop().unwrap();
    assert_eq!(report.paths.iter().map(|path| path.traffic.up.delivered).sum::<u64>(), 5);
}

#[test]
fn middleboxes_see_segments_and_nothing_else() {
    let mut stripped = path("a", &link(1000, 1));
    stripped.middleboxes = vec![MiddleboxSpec::at_server(Middlebox::strip(Stripped::All))];
    let mut merged = path("b", &link(1000, 1));
    let wait = Duration::from_millis(5);
    merged.middleboxes = vec![MiddleboxSpec::new(Middlebox::Coalesce(Coalesce { size: 2000, wait, direction: None }))];
    let bench = bench(&NetworkSpec::new(vec![stripped, merged]));
    let plain = segment(Flags::ACK, b"as it was");
    let mut capable = segment(Flags::SYN, b"");
    capable.options.push_mptcp(MpOption::Capable(MpCapable::OFFER));
    bench.client.send(0, &bytes(&capable));
    let arrived = anabranch_wire::parse(&bench.server.receive(0).into(), Checksums::Verify).unwrap();
    assert!(arrived.options.mptcp().is_empty() && arrived.seq == capable.seq, "{arrived:?}");
    for untouched in [packet(9), bytes(&plain).to_vec()] {
        bench.client.send(0, &untouched);
        assert_eq!(bench.server.receive(0), untouched);
    }
    // Held back for another that never comes.
    bench.client.send(1, &bytes(&plain));
    assert_eq!(
        anabranch_wire::parse(&bench.server.receive(1).into(), Checksums::Verify).unwrap().payload[..],
        *b"as it was"
    );
    let boxes = bench.emulator.stop().unwrap().middleboxes;
    assert_eq!((boxes[0].name.as_str(), boxes[0].altered, boxes[1].name.as_str()), ("a/strip", 1, "b/coalesce"));
}

#[test]
fn nothing_that_a_device_hands_over_is_too_much() {
    let kinds = [
        Middlebox::strip(Stripped::All),
        Middlebox::RewriteSequence(RewriteSequence),
        Middlebox::Coalesce(Coalesce { size: 65_000, wait: Duration::from_millis(1), direction: None }),
        Middlebox::AlterPayload(AlterPayload { offset: 0, remove: 1, insert: 1000, direction: None }),
        Middlebox::Nat(Nat { rebind: None, unmapped: anabranch_paths::Unmapped::Reset }),
    ];
    let mut config = link(10_000, 0);
    (config.corruption, config.duplication) = (0.3, 0.3);
    let mut fuzzed = PathSpec::new("a", config.clone(), config);
    fuzzed.middleboxes = kinds.into_iter().map(MiddleboxSpec::new).collect();
    let bench = bench(&NetworkSpec::new(vec![fuzzed]));
    let mut chance = Seed(7).stream("fuzz");
    let valid = bytes(&segment(Flags::ACK, &[7; 1400]));
    let mut not_ip = 0;
    for round in 0..4000 {
        let mut packet = if round % 2 == 0 { valid.to_vec() } else { Vec::new() };
        if packet.is_empty() {
            let length = if round % 50 == 1 { chance.between(1, 65_575) } else { chance.between(1, 200) };
            packet = (0..length).map(|_| chance.below(256) as u8).collect();
            packet[0] = if round % 4 == 1 { packet[0] & 0x0f | 0x40 } else { packet[0] };
        } else {
            for _ in 0..chance.below(6) {
                let at = chance.below(packet.len() as u64) as usize;
                packet[at] = chance.below(256) as u8;
            }
            packet.truncate(chance.between(1, packet.len() as u64) as usize);
        }
        not_ip += u64::from(match packet[0] >> 4 {
            4 => packet.len() < 20,
            6 => packet.len() < 40,
            _ => true,
        });
        let (sender, receiver) =
            if round % 3 == 0 { (&bench.server, &bench.client) } else { (&bench.client, &bench.server) };
        sender.send(0, &packet);
        // Whatever has come, so that buffers stay empty.
        let mut buffer = [0; 70_000];
        while rustix::net::recv(&receiver.0[0], &mut buffer[..], RecvFlags::DONTWAIT).is_ok() {}
    }
    let report = loop {
        let report = bench.emulator.snapshot().unwrap();
        if report.paths[0].traffic.up.read + report.paths[0].traffic.down.read == 4000 {
            break report;
        }
    };
    assert_eq!(report.paths[0].traffic.up.not_ip + report.paths[0].traffic.down.not_ip, not_ip);
    assert!(report.paths[0].failures.is_empty());
}

/// Packets that kernels send when an interface comes up must not draw from the loss of the links.
#[test]
fn what_no_router_forwards_stays_off_the_links() {
    let bench = bench(&NetworkSpec::new(vec![path("a", &link(100, 1))]));
    let mut report = vec![0; 76];
    report[0] = 0x60;
    report[24..26].copy_from_slice(&[0xff, 0x02]);
    report[39] = 0x16;
    for bytes in [&report, &report, &packet(7), &report] {
        bench.client.send(0, bytes);
    }
    assert_eq!(bench.server.receive_numbers(0, 1), [7]);
    let report = bench.wait_until_read(0, 4);
    assert_eq!(report.paths[0].traffic.up.link_local, 3);
    assert_eq!(report.links.iter().map(|link| link.stats.offered).sum::<u64>(), 1);
}

#[test]
fn what_makes_a_run_worthless_is_said_with_a_remedy() {
    let bench = bench(&NetworkSpec::new(vec![path("wlan", &link(1000, 1))]));
    bench.interfaces[0].drops.store(3, Ordering::SeqCst);
    let Validity::Invalid(faults) = bench.emulator.snapshot().unwrap().validity else {
        panic!("the device has dropped packets");
    };
    let text = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(text.contains("wlan/up: 3 packets dropped by the transmit queue of the client's interface"), "{text}");
    assert!(text.contains("txqueuelen"), "{text}");
    drop(bench.client);
    let failed = loop {
        let report = bench.emulator.snapshot().unwrap();
        if !report.paths[0].failures.is_empty() {
            break report;
        }
    };
    assert!(failed.paths[0].failures[0].contains("client"), "{:?}", failed.paths[0]);
    // The rest goes on.
    bench.server.send(0, &packet(1));
    while bench.emulator.snapshot().unwrap().paths[0].traffic.down.read == 0 {}
}

#[test]
fn what_cannot_be_started_says_why() {
    let lone = NetworkSpec::new(vec![path("a", &link(1, 1))]);
    let error = Emulator::start(&lone, Seed(1), Vec::new(), Options::default()).err().unwrap();
    assert_eq!(error.to_string(), "the specification has 1 paths, but there are devices for 0");
    let bench = bench(&lone);
    let error = bench.emulator.change("b", Affected::Both, Change::Down).unwrap_err();
    assert!(error.to_string().contains("no path or shared link `b`"), "{error}");
    let error = bench.emulator.change("a", Affected::Both, Change::Loss(LossModel::Bernoulli { p: 2.0 })).unwrap_err();
    assert!(error.to_string().contains("probability"), "{error}");
}
