//! Packets between hosts and network.

use super::Stage;
use super::passage::Way;
use super::watch::{packet_of, tag};
use crate::address::owner;
use crate::codec::Frame;
use crate::packet::Packet;
use crate::{Content, EventKind, EventRecord};
use anabranch_engine::{Purpose, Transmit};
use anabranch_net::{Delivery, Departure};
use anabranch_paths::Moving;
use anabranch_paths::{Direction, End, PacketId};
use anabranch_units::Bytes;
use anabranch_wire::{Echo, Segment};

impl Stage<'_> {
    /// Sends a datagram of a UDP workload, numbered among those.
    pub(crate) fn send_datagram(&mut self, udp: usize, path: usize, direction: Direction, size: Bytes) {
        self.udp[udp].sent += 1;
        let route = self.topology.route(path, direction);
        let departure = if self.topology.has_nic(path) { self.departures.expect(None) } else { 0 };
        let tag = tag(self.watch_datagram(udp, path, direction, size), departure);
        self.topology.network.send(self.now, route, Packet::Datagram(udp as u32), size, tag);
    }

    /// A packet came out of the network. The one place that calls this does so for every packet.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, delivery: Delivery<Packet>) {
        self.digest.add(self.now.as_nanos());
        self.digest
            .add((delivery.route.index() as u64) << 33 | u64::from(delivery.corrupted) << 32 | delivery.size.get());
        let Delivery { route, size, corrupted, .. } = delivery;
        let id = packet_of(delivery.tag);
        if corrupted {
            self.corrupted += 1;
        }
        let segment = match delivery.packet {
            Packet::Segment(segment) if corrupted => return self.discard(&segment, id),
            Packet::Segment(segment) => segment,
            Packet::Frame(frame) if corrupted => return self.discard_frame(frame, id),
            Packet::Frame(frame) => self.read_frame(frame),
            Packet::Echo(echo) => return self.hear(*echo, id, corrupted),
            Packet::Datagram(udp) => {
                self.watch_datagram_received(id, udp as usize, route, size, corrupted);
                let udp = &mut self.udp[udp as usize];
                udp.received += u64::from(!corrupted);
                udp.bytes += if corrupted { Bytes::ZERO } else { size };
                return;
            }
        };
        let Way { path, direction, end, arrives_freely, .. } = self.passage.way(route);
        if arrives_freely {
            self.hand_over(segment, id);
        } else {
            self.pass_middleboxes(path, end, Moving { direction, segment: *segment, id }, None);
        }
    }

    /// A probe, or its answer, has reached its host. Middleboxes let it pass as it is.
    fn hear(&mut self, echo: Echo, id: PacketId, corrupted: bool) {
        self.watch_echo_received(id, echo, corrupted);
        if !corrupted {
            let (host, _) = owner(echo.destination);
            self.hosts[host].endpoint.handle_echo(self.now, echo);
            self.touch(host);
        }
    }

    /// A damaged segment has reached its host.
    #[cold]
    fn discard(&mut self, segment: &Segment, id: PacketId) {
        self.watch_received(id, segment, true);
        if self.events.is_some() {
            let (host, _) = owner(segment.flow.dst);
            self.record(host, EventKind::Corrupted, segment);
        }
    }

    /// The same as bytes.
    #[cold]
    fn discard_frame(&mut self, frame: Box<Frame>, id: PacketId) {
        let codec = self.codec.as_mut().expect("frames come from the codec");
        let segment = codec.read(frame);
        codec.read_damaged(&segment);
        self.discard(&segment, id);
    }

    /// Encodes and decodes a segment that crosses no link.
    pub(super) fn through_codec(&mut self, segment: Box<Segment>) -> Box<Segment> {
        match &mut self.codec {
            None => segment,
            Some(codec) => {
                let frame = codec.write(segment);
                codec.read(frame)
            }
        }
    }

    #[inline]
    fn read_frame(&mut self, frame: Box<Frame>) -> Box<Segment> {
        self.codec.as_mut().expect("frames come from the codec").read(frame)
    }

    /// A segment has reached its host.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, mut segment: Box<Segment>, id: PacketId) {
        self.digest.add(u64::from(segment.seq.get()) << 32 | u64::from(segment.ack.get()));
        let (host, _) = owner(segment.flow.dst);
        if self.events.is_some() {
            self.record(host, EventKind::Received, &segment);
        }
        self.watch_received(id, &segment, false);
        self.packets += u64::from(!segment.payload.is_empty());
        self.hosts[host].endpoint.handle_segment(self.now, &mut segment);
        // Its memory goes back to the host at the other end, where it came from.
        let peer = self.hosts[host].place.peer;
        self.hosts[peer].endpoint.reuse(segment);
        self.touch(host);
    }

    /// A packet left a first hop.
    #[inline]
    pub(crate) fn depart(&mut self, departure: Departure) {
        if let Some(departing) = self.departures.settle(departure.tag) {
            self.report_departure(departing);
        }
    }

    /// Hands the host's segments to the network; false if there were none.
    #[inline]
    pub(crate) fn transmit(&mut self, host: usize) -> bool {
        let mut any = false;
        loop {
            let endpoint = &mut self.hosts[host].endpoint;
            if let Some(transmit) = endpoint.poll_transmit(self.now) {
                self.forward(host, transmit);
            } else if let Some(echo) = endpoint.poll_echo() {
                self.probe(host, echo);
            } else {
                return any;
            }
            any = true;
        }
    }

    fn probe(&mut self, host: usize, echo: Echo) {
        let path = self.path_between(echo.source, echo.destination);
        assert!(path < self.topology.paths(), "a probe travels between addresses that exist: {echo:?}");
        let direction = self.hosts[host].place.side.sends();
        let departure = if self.topology.has_nic(path) { self.departures.expect(None) } else { 0 };
        let tag = tag(self.watch_echo(host, path, echo), departure);
        let route = self.topology.route(path, direction);
        self.topology.network.send(self.now, route, Packet::Echo(Box::new(echo)), echo.wire_length(), tag);
    }

    #[inline]
    fn forward(&mut self, host: usize, Transmit { segment, size, tag, purpose, .. }: Transmit) {
        let path = self.path_between(segment.flow.src, segment.flow.dst);
        assert!(path < self.topology.paths(), "a segment travels between addresses that exist: {:?}", segment.flow);
        if self.events.is_some() {
            self.record(host, EventKind::Sent, &segment);
        }
        if self.decisions.is_on() && matches!(purpose, Purpose::NewData(_)) {
            self.note_decision(host, &segment, self.path_in_spec(path));
        }
        let id = self.watch_sent(host, &segment, purpose);
        let direction = self.hosts[host].place.side.sends();
        let end = if direction == Direction::Up { End::Client } else { End::Server };
        debug_assert_eq!(size, segment.wire_length(), "an endpoint knows the size of what it sends");
        let departing = Departing { host, tag, size };
        let way = self.passage.way(self.topology.route(path, direction));
        let waits = way.has_nic;
        let departs_later = if way.leaves_freely {
            self.send_on_links(way, segment, id, size, waits.then_some(departing));
            waits
        } else {
            self.pass_middleboxes(path, end, Moving { direction, segment: *segment, id }, waits.then_some(departing))
        };
        if self.answers_departures && !departs_later {
            self.report_departure(departing);
        }
    }

    /// A segment enters the links of a path as a packet of `size`. `departing` is to be told when the first hop has
    /// sent it.
    #[inline(always)]
    pub(super) fn send_on_links(
        &mut self,
        way: Way,
        segment: Box<Segment>,
        id: PacketId,
        size: Bytes,
        departing: Option<Departing>,
    ) {
        let departure = if way.has_nic { self.departures.expect(departing) } else { 0 };
        let packet = match &mut self.codec {
            None => Packet::Segment(segment),
            Some(codec) => Packet::Frame(codec.write(segment)),
        };
        self.topology.network.send(self.now, way.route, packet, size, tag(id, departure));
    }

    #[inline]
    fn report_departure(&mut self, Departing { host, tag, size }: Departing) {
        self.hosts[host].endpoint.handle_departure(tag, size);
        self.touch(host);
    }

    #[cold]
    fn record(&mut self, host: usize, kind: EventKind, segment: &Segment) {
        let path = self.path_between(segment.flow.src, segment.flow.dst);
        let sight = self.sight(PacketId::default(), host, path, Content::Segment(segment));
        if let Some(events) = &mut self.events {
            events.extend(EventRecord::of(&sight, kind));
        }
    }
}

/// A packet as its host knows it, before all changes on the way to the first hop.
#[derive(Clone, Copy)]
pub(super) struct Departing {
    host: usize,
    /// Tag given by the host.
    tag: u64,
    size: Bytes,
}

/// Packets that wait at first hops. The network carries the index.
#[derive(Default)]
pub(super) struct Departures {
    waiting: Vec<Option<Departing>>,
    free: Vec<u32>,
}

impl Departures {
    /// Returns a tag for a packet that will depart; `None` if its departure is not awaited.
    #[inline]
    fn expect(&mut self, whose: Option<Departing>) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.waiting[slot as usize] = whose;
                slot
            }
            None => {
                self.waiting.push(whose);
                (self.waiting.len() - 1) as u32
            }
        }
    }

    /// Gives up what has not departed yet: nothing at this host waits for it.
    pub(super) fn forget(&mut self, host: usize) {
        for waiting in &mut self.waiting {
            waiting.take_if(|departing| departing.host == host);
        }
    }

    #[inline]
    fn settle(&mut self, tag: u64) -> Option<Departing> {
        let slot = tag as u32; // The upper half is the packet's number.
        self.free.push(slot);
        self.waiting[slot as usize].take()
    }
}
