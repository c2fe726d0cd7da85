//! The loop on a device in memory, with an engine at the other end of it.
#![allow(clippy::unwrap_used)]

use anabranch_engine::{Config, ConnectionId, Endpoint, Event, LocalAddress, Profile, Read};
use anabranch_host::{Application, Clock, Context, Device, Driver, Reactor};
use anabranch_units::{Instant, Seed, SubflowSeq};
use anabranch_wire::{Checksums, Flags, FlowKey, Segment, TcpChecksum, emit_headers, parse};
use bytes::{Bytes, BytesMut};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 7;
/// More than the loop reads in one turn.
const FLOOD: u16 = 500;

/// A device whose other end is a client's engine. Once the client has everything, a flood stands before each of its
/// segments.
struct Peer {
    readiness: OwnedFd,
    clock: Clock,
    client: Endpoint,
    id: ConnectionId,
    waiting: VecDeque<Vec<u8>>,
    flooded: bool,
}

fn config(address: IpAddr) -> Config {
    Config::new(Profile::tcp(), vec![LocalAddress { ip: address, backup: false }])
}

fn packet(segment: &Segment) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    emit_headers(segment, TcpChecksum::Full, &mut bytes).unwrap();
    bytes.extend_from_slice(&segment.payload);
    bytes.to_vec()
}

impl Peer {
    fn new() -> Self {
        let clock = Clock::start();
        let mut client = Endpoint::new(config(CLIENT), Seed(1)).unwrap();
        let id = client.open(clock.now(), CLIENT, SocketAddr::new(SERVER, PORT)).unwrap();
        let readiness = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
        let mut peer = Peer { readiness, clock, client, id, waiting: VecDeque::new(), flooded: false };
        peer.collect();
        peer
    }

    /// Puts what the client sends where the device is read.
    fn collect(&mut self) {
        while let Ok(Read::Data(chunk)) = self.client.read(self.id) {
            assert_eq!(&chunk[..], b"answer");
            self.flooded = true;
            let strangers = (1..=FLOOD).map(|port| {
                let flow = FlowKey::new(SocketAddr::new(CLIENT, port), SocketAddr::new(SERVER, PORT));
                packet(&Segment::new(flow, Flags::RST, SubflowSeq::new(0), SubflowSeq::new(0)))
            });
            self.waiting.extend(strangers);
        }
        while let Some(transmit) = self.client.poll_transmit(self.clock.now()) {
            self.waiting.push_back(packet(&transmit.segment));
        }
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }
}

impl Device for Peer {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(packet) = self.waiting.pop_front() else { return Ok(None) };
        buffer[..packet.len()].copy_from_slice(&packet);
        Ok(Some(packet.len()))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        let mut segment = parse(&Bytes::copy_from_slice(packet), Checksums::Verify).unwrap();
        self.client.handle_segment(self.clock.now(), &mut segment);
        self.collect();
        // The next edge of readiness.
        rustix::io::write(&self.readiness, &1_u64.to_ne_bytes()).unwrap();
        Ok(true)
    }
}

/// Answers each connection with one segment. When that has left, it keeps the processor until a timer is due.
#[derive(Default)]
struct Answer {
    connection: Option<ConnectionId>,
    rounds_since: usize,
    retransmitted: Option<u64>,
}

impl Application for Answer {
    fn on_start(&mut self, cx: &mut Context<'_>) {
        cx.endpoint.listen(PORT);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        if let Event::Accepted { .. } = event {
            self.connection = Some(id);
            assert_eq!(cx.endpoint.write(id, &Bytes::from_static(b"answer")), Ok(6));
        }
    }

    fn on_round(&mut self, cx: &mut Context<'_>) {
        let Some(id) = self.connection else { return };
        let [subflow] = &cx.endpoint.subflow_stats(id)[..] else { panic!("one subflow") };
        if subflow.bytes_sent == 0 {
            return;
        }
        self.rounds_since += 1;
        match self.rounds_since {
            1 => {
                let until = cx.endpoint.poll_timeout().unwrap();
                std::thread::sleep(Duration::from_nanos(until.since(cx.now).as_nanos() + 1_000_000));
            }
            4 => self.retransmitted = Some(subflow.retransmitted),
            _ => {}
        }
    }

    /// One round follows the other.
    fn deadline(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }

    fn is_finished(&self) -> bool {
        self.retransmitted.is_some()
    }
}

#[test]
fn an_acknowledgment_behind_a_flood_stops_the_timer_that_is_due() {
    let driver = Driver::new(config(SERVER), Box::new(Peer::new())).unwrap();
    let (answer, mut driver) = Reactor::new(driver, Answer::default()).unwrap().run().unwrap();
    assert_eq!(answer.retransmitted, Some(0));
    assert!(driver.counters().received > u64::from(FLOOD), "the flood was there");
    assert_eq!(driver.endpoint().counters().unknown_flow, u64::from(FLOOD));
}
