//! The contract of an endpoint with its driver: arguments that cannot be, and drivers that do only what they must.
#![allow(clippy::unwrap_used)]

use anabranch_engine::{
    Config, ConfigError, Endpoint, Event, Keepalive, LocalAddress, OpenError, Profile, Read, ReadError, WriteError,
};
use anabranch_units::{Bytes, Duration, Instant, Seed};
use bytes::Bytes as Payload;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};

const OURS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

fn peer() -> SocketAddr {
    ([10, 1, 0, 1], 80).into()
}

fn config(addresses: &[IpAddr]) -> Config {
    let addresses = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
    Config::new(Profile::tcp(), addresses)
}

fn host() -> Endpoint {
    Endpoint::new(config(&[OURS]), Seed(1)).unwrap()
}

/// An end of `transfer`, which knows no more than the documentation of [`Endpoint`] demands of a driver.
struct End {
    endpoint: Endpoint,
    /// Data still to be written, if it is the client.
    unwritten: Payload,
    /// Offers no more than there is room for.
    asks_for_space: bool,
    read: usize,
}

impl End {
    fn on_events(&mut self) -> bool {
        let mut idle = true;
        while let Some((id, event)) = self.endpoint.poll_event() {
            idle = false;
            match event {
                Event::Connected { .. } | Event::Writable if !self.unwritten.is_empty() => {
                    loop {
                        let space = if self.asks_for_space { self.endpoint.write_space(id) } else { usize::MAX };
                        let offer = self.unwritten.slice(..space.min(self.unwritten.len()));
                        let taken = self.endpoint.write(id, &offer).unwrap();
                        self.unwritten = self.unwritten.slice(taken..);
                        if offer.is_empty() || taken < offer.len() {
                            break;
                        }
                    }
                    if self.unwritten.is_empty() {
                        self.endpoint.shutdown(id);
                    }
                }
                Event::Readable => {
                    while let Ok(Read::Data(piece)) = self.endpoint.read(id) {
                        self.read += piece.len();
                    }
                }
                Event::PeerFinished => self.endpoint.shutdown(id),
                _ => {}
            }
        }
        idle
    }
}

/// Bytes that arrive of `length`, between hosts with this configuration on two paths of 10 and 40 ms.
fn transfer(length: usize, asks_for_space: bool, change: impl Fn(&mut Config)) -> usize {
    let addresses = |host: u8| [0, 1].map(|path| IpAddr::from([10, host, path, 1]));
    let mut ends = [0, 1].map(|host: u8| {
        let mut config = config(&addresses(host));
        change(&mut config);
        let endpoint = Endpoint::new(config, Seed(u64::from(host))).unwrap();
        End { endpoint, unwritten: Payload::new(), asks_for_space, read: 0 }
    });
    ends[0].unwritten = Payload::from(vec![7; length]);
    ends[1].endpoint.listen(80);
    let mut now = Instant::ZERO;
    ends[0].endpoint.open(now, addresses(0)[0], (addresses(1)[0], 80).into()).unwrap();
    let mut wire = BinaryHeap::new();
    let mut segments = Vec::new();
    loop {
        for (number, end) in ends.iter_mut().enumerate() {
            loop {
                let mut idle = end.on_events();
                while let Some(transmit) = end.endpoint.poll_transmit(now) {
                    idle = false;
                    let flow = transmit.segment.flow;
                    let is_slow = [0, 1].iter().any(|host| [flow.src, flow.dst].contains(&addresses(*host)[1]));
                    let delay = Duration::from_millis(if is_slow { 40 } else { 10 });
                    wire.push(Reverse((now + delay, segments.len(), 1 - number)));
                    segments.push(Some(transmit.segment));
                }
                if idle {
                    break;
                }
            }
        }
        let timers = ends.iter().filter_map(|end| end.endpoint.poll_timeout());
        let Some(next) = timers.chain(wire.peek().map(|Reverse((at, ..))| *at)).min() else { break };
        now = next;
        while wire.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, segment, to))) = wire.pop() else { break };
            let mut segment = segments[segment].take().unwrap();
            ends[to].endpoint.handle_segment(now, &mut segment);
        }
        ends.iter_mut().for_each(|end| end.endpoint.handle_timeout(now));
    }
    ends[1].read
}

/// TCP Small Queues are on in this profile, and the driver does not report departures.
#[test]
fn a_driver_that_only_does_its_duties_never_stalls() {
    assert!(Profile::tcp().tsq.is_some());
    assert_eq!(transfer(1 << 20, false, |_| {}), 1 << 20);
}

/// A driver that claims to report departures and does not makes the sender wait, as it must.
#[test]
fn small_queues_wait_for_departures() {
    assert!(transfer(1 << 20, false, |config| config.reports_departures = true) < 1 << 20);
}

/// A writer that cuts its data to the space there is never has a byte refused; it is told of room all the same.
#[test]
fn a_writer_that_asks_for_the_space_is_told_of_room() {
    assert_eq!(transfer(1 << 20, true, |config| config.send_buffer = Bytes::new(1 << 16)), 1 << 20);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(&[OURS]);
        change(&mut config);
        Endpoint::new(config, Seed(1)).err().expect("it is refused")
    };
    assert_eq!(refused(&|it| it.max_subflows = 64), ConfigError::MaxSubflows(64));
    assert_eq!(refused(&|it| it.max_subflows = 0), ConfigError::MaxSubflows(0));
    assert!(matches!(refused(&|it| it.profile.mss = 0), ConfigError::Mss { given: 0, .. }));
    assert_eq!(refused(&|it| it.addresses.push(it.addresses[0])), ConfigError::AddressTwice(OURS));
    let any = IpAddr::from([0; 4]);
    assert_eq!(refused(&|it| it.addresses[0].ip = any), ConfigError::Address(any));
    let many = |it: &mut Config| {
        it.addresses = (0..=255).map(|host| LocalAddress { ip: [10, 0, 1, host].into(), backup: false }).collect();
    };
    assert_eq!(refused(&many), ConfigError::Addresses(256));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let none = 9..=5;
    assert_eq!(refused(&|it| it.ports = Some(none.clone())), ConfigError::Ports(none.clone()));
    assert_eq!(refused(&|it| it.ports = Some(0..=5)), ConfigError::Ports(0..=5));
    assert_eq!(refused(&|it| it.send_buffer = Bytes::ZERO), ConfigError::Buffer("send_buffer"));
    assert_eq!(refused(&|it| it.burst = Some(Bytes::ZERO)), ConfigError::Burst);
    let restless = Keepalive { idle: Some(Duration::ZERO), ..Keepalive::default() };
    assert_eq!(refused(&|it| it.keepalive = restless), ConfigError::Keepalive);
    let text = refused(&|it| it.max_subflows = 64).to_string();
    assert_eq!(text, "`max_subflows` is 64; accepted: 1 to 16");
}

#[test]
fn connections_that_cannot_be_are_refused() {
    let now = Instant::ZERO;
    let mut host = host();
    let foreign = IpAddr::from([9; 4]);
    assert_eq!(host.open(now, foreign, peer()), Err(OpenError::NotLocal(foreign)));
    let six: SocketAddr = "[fd00::1]:80".parse().unwrap();
    assert_eq!(host.open(now, OURS, six), Err(OpenError::MixedFamilies { local: OURS, remote: six }));
    for remote in ["10.1.0.1:0", "0.0.0.0:80", "224.0.0.1:80"].map(|text| text.parse().unwrap()) {
        assert_eq!(host.open(now, OURS, remote), Err(OpenError::Remote(remote)));
    }
    assert!(host.poll_transmit(now).is_none(), "nothing has left");
    assert_eq!(host.connection_count(), 0);
}

/// Two connections never share one 4-tuple.
#[test]
fn the_last_port_is_given_once() {
    let now = Instant::ZERO;
    let mut host = Endpoint::new(Config { ports: Some(5..=5), ..config(&[OURS]) }, Seed(1)).unwrap();
    let first = host.open(now, OURS, peer()).unwrap();
    assert_eq!(host.open(now, OURS, peer()), Err(OpenError::NoPort { local: OURS, remote: peer() }));
    assert!(host.open(now, OURS, ([10, 1, 0, 1], 81).into()).is_ok(), "another peer, another 4-tuple");
    host.abort(now, first);
    while host.poll_transmit(now).is_some() {}
    assert!(host.open(now, OURS, peer()).is_ok(), "it is free again");
}

#[test]
fn reading_and_writing_tell_why_not() {
    let now = Instant::ZERO;
    let mut host = host();
    let id = host.open(now, OURS, peer()).unwrap();
    let data = Payload::from_static(b"x");
    assert_eq!(host.write(id, &data), Ok(1));
    assert_eq!(host.read(id), Ok(Read::Pending));
    host.shutdown(id);
    assert_eq!(host.write(id, &data), Err(WriteError::Finished));
    host.abort(now, id);
    while host.poll_transmit(now).is_some() {}
    assert_eq!(host.write(id, &data), Err(WriteError::Gone));
    assert_eq!(host.read(id), Err(ReadError));
}

/// A connection that ended in order still tells so.
#[test]
fn the_end_can_be_asked_for_again() {
    let addresses = [[10, 0, 0, 1], [10, 1, 0, 1]].map(IpAddr::from);
    let mut ends = addresses.map(|ip| Endpoint::new(config(&[ip]), Seed(1)).unwrap());
    let (mut now, mut ids) = (Instant::ZERO, [None, None]);
    ends[1].listen(80);
    ids[0] = Some(ends[0].open(now, addresses[0], (addresses[1], 80).into()).unwrap());
    for _ in 0..200 {
        for number in 0..2 {
            while let Some((id, event)) = ends[number].poll_event() {
                ids[number] = Some(id);
                if matches!(event, Event::Connected { .. } | Event::PeerFinished) {
                    ends[number].shutdown(id);
                }
            }
            while let Some(transmit) = ends[number].poll_transmit(now) {
                ends[1 - number].handle_segment(now, &mut transmit.segment.clone());
            }
        }
        now += Duration::from_secs(1);
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }
    for (end, id) in ends.iter_mut().zip(ids) {
        assert_eq!(end.connection_count(), 0, "it is over");
        assert_eq!(end.read(id.unwrap()), Ok(Read::End));
        end.forget(id.unwrap());
        assert_eq!(end.read(id.unwrap()), Err(ReadError));
    }
}

/// The first path refuses, and the second has gone when its turn comes: the application hears of it.
#[test]
fn a_race_without_paths_left_ends() {
    let other = IpAddr::from([10, 0, 1, 1]);
    let mut config = config(&[OURS, other]);
    config.addresses[1].backup = true;
    config.policies = anabranch_engine::Policies::of(&Profile::named("anabranch").unwrap());
    let mut host = Endpoint::new(config, Seed(1)).unwrap();
    let mut now = Instant::ZERO;
    let id = host.open(now, OURS, peer()).unwrap();
    let syn = host.poll_transmit(now).unwrap().segment;
    assert!(host.poll_transmit(now).is_none(), "the second path waits for its turn");
    host.set_carrier(now, other, false);
    let mut refusal = anabranch_wire::Segment::new(
        syn.flow.reversed(),
        anabranch_wire::Flags::RST.with(anabranch_wire::Flags::ACK),
        anabranch_units::SubflowSeq::new(0),
        syn.seq + 1,
    );
    host.handle_segment(now, &mut refusal);
    for _ in 0..10 {
        while host.poll_transmit(now).is_some() {}
        let Some(next) = host.poll_timeout() else { break };
        now = next;
        host.handle_timeout(now);
    }
    let events: Vec<_> = std::iter::from_fn(|| host.poll_event()).collect();
    assert!(events.contains(&(id, Event::Reset)), "{events:?}");
    assert_eq!(host.connection_count(), 0);
}
