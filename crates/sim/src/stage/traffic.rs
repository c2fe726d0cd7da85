//! Packets between hosts and network.

use super::Stage;
use super::watch::{packet_of, tag};
use crate::outcome;
use crate::pool::Packet;
use crate::topology::{owner, path_between};
use crate::{Direction, EventKind};
use anabranch_engine::Transmit;
use anabranch_net::{Delivery, Departure};
use anabranch_units::Bytes;
use anabranch_wire::Segment;

impl Stage<'_> {
    /// Sends a datagram of a UDP workload, numbered among those.
    pub(crate) fn send_datagram(&mut self, udp: usize, path: usize, direction: Direction, size: Bytes) {
        self.udp[udp].sent += 1;
        let route = self.topology.route(path, direction);
        let departure = if self.topology.has_nic(path) { self.departures.expect(None) } else { 0 };
        let tag = tag(self.watch_datagram(udp, path, direction, size), departure);
        self.topology.network.send(self.now, route, Packet::Datagram(udp as u32), size, tag);
    }

    /// A packet came out of the network.
    #[inline]
    pub(crate) fn deliver(&mut self, delivery: Delivery<Packet>) {
        self.digest.add(self.now.as_nanos());
        self.digest
            .add((delivery.route.index() as u64) << 33 | u64::from(delivery.corrupted) << 32 | delivery.size.get());
        let pooled = match delivery.packet {
            Packet::Segment(pooled) => pooled,
            Packet::Datagram(udp) => {
                let Delivery { route, size, corrupted, .. } = delivery;
                self.watch_datagram_received(packet_of(delivery.tag), udp as usize, route, size, corrupted);
                let udp = &mut self.udp[udp as usize];
                udp.received += u64::from(!delivery.corrupted);
                udp.bytes += if delivery.corrupted { Bytes::ZERO } else { delivery.size };
                self.corrupted += u64::from(delivery.corrupted);
                return;
            }
        };
        let segment = pooled.take();
        self.digest.add(u64::from(segment.seq.get()) << 32 | u64::from(segment.ack.get()));
        let (host, _) = owner(segment.flow.dst);
        if self.events.is_some() {
            let kind = if delivery.corrupted { EventKind::Corrupted } else { EventKind::Received };
            self.record(host, kind, &segment);
        }
        self.watch_received(packet_of(delivery.tag), &segment, delivery.corrupted);
        if delivery.corrupted {
            self.corrupted += 1;
            return;
        }
        self.packets += u64::from(!segment.payload.is_empty());
        self.hosts[host].endpoint.handle_segment(self.now, segment);
        self.touch(host);
    }

    /// A packet left a first hop.
    #[inline]
    pub(crate) fn depart(&mut self, departure: Departure) {
        if let Some((host, tag)) = self.departures.settle(departure.tag) {
            self.hosts[host].endpoint.handle_departure(self.now, tag, departure.size);
            self.touch(host);
        }
    }

    /// Hands the host's segments to the network; false if there were none.
    #[inline]
    pub(crate) fn transmit(&mut self, host: usize) -> bool {
        let mut any = false;
        while let Some(transmit) = self.hosts[host].endpoint.poll_transmit(self.now) {
            self.forward(host, transmit);
            any = true;
        }
        any
    }

    #[inline]
    fn forward(&mut self, host: usize, Transmit { mut segment, tag: host_tag, purpose }: Transmit) {
        let path = path_between(segment.flow.src, segment.flow.dst);
        assert!(path < self.topology.paths(), "a segment travels between addresses that exist: {:?}", segment.flow);
        if self.events.is_some() {
            self.record(host, EventKind::Sent, &segment);
        }
        let id = self.watch_sent(host, &segment, purpose);
        self.middleboxes[path].pass(&mut segment);
        let direction = if host.is_multiple_of(2) { Direction::Up } else { Direction::Down };
        let (route, size) = (self.topology.route(path, direction), segment.wire_length());
        let notified = self.topology.has_nic(path);
        let departure = if notified { self.departures.expect(Some((host, host_tag))) } else { 0 };
        let packet = Packet::Segment(self.pool.put(segment));
        self.topology.network.send(self.now, route, packet, size, tag(id, departure));
        if self.answers_departures && !notified {
            self.hosts[host].endpoint.handle_departure(self.now, host_tag, size);
        }
    }

    #[cold]
    fn record(&mut self, host: usize, kind: EventKind, segment: &Segment) {
        if let Some(events) = &mut self.events {
            events.push(outcome::record(self.now, host, kind, segment));
        }
    }
}

/// What waits at first hops: each packet's host and the tag that the host gave it. The network carries the index.
#[derive(Default)]
pub(super) struct Departures {
    waiting: Vec<Option<(usize, u64)>>,
    free: Vec<u32>,
}

impl Departures {
    /// A tag for a packet that will depart; `None` if nobody waits for that.
    #[inline]
    fn expect(&mut self, whose: Option<(usize, u64)>) -> u32 {
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

    #[inline]
    fn settle(&mut self, tag: u64) -> Option<(usize, u64)> {
        let slot = tag as u32; // The upper half is the packet's number.
        self.free.push(slot);
        self.waiting[slot as usize].take()
    }
}
