//! Flows of programs in real time, measured from the packets at both ends of their paths.
//!
//! No program has to tell anything: a workload is known by its port at the server, and a file is through when a
//! connection has brought as many bytes. Only data from the server to the client counts.

use crate::flow_observer::{FlowObserver, Key, Parcel};
use crate::flows::{Builder, Flows, Span};
use anabranch_paths::PacketId;
use anabranch_units::{Duration, Instant};
use anabranch_wire::carriage::datagram_of;
use anabranch_wire::{Checksums, FlowKey, parse_headers};
use std::collections::BTreeMap;

/// Workload of a run in real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveParty {
    /// True for traffic beside the programs under test.
    pub competing: bool,
    /// Port at the server.
    pub port: u16,
    /// Bytes of each file of the workload; `None` if it sends as much as possible.
    pub size: Option<u64>,
}

/// Watches all flows of a run in real time.
#[derive(Debug)]
pub struct LiveFlows {
    span: Span,
    parties: Vec<LiveParty>,
    /// Beginning of the scenario's time by the clock of the packets.
    begun: Option<Instant>,
    observer: FlowObserver,
    /// Connections by their direction from the server, in which the data goes.
    opened: BTreeMap<Key, Opened>,
}

#[derive(Debug)]
struct Opened {
    /// Time of the first packet in either direction.
    at: Instant,
    bytes: u64,
    /// Time at which the connection had brought a whole file.
    complete: Option<Instant>,
}

/// Place and time at which a packet is seen.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of the packet, the same at both ends.
    pub id: PacketId,
    /// Index of the path.
    pub path: usize,
    /// True at the host that sent the packet.
    pub at_sender: bool,
    /// True if the server sent the packet.
    pub from_server: bool,
    /// Time by the clock of the packets.
    pub at: Instant,
}

impl LiveFlows {
    /// Watches flows of these parties.
    pub fn new(span: Span, parties: Vec<LiveParty>) -> LiveFlows {
        LiveFlows { span, parties, begun: None, observer: FlowObserver::new(span), opened: BTreeMap::new() }
    }

    /// Sets the beginning of the scenario's time; packets before it do not count.
    pub fn begin(&mut self, at: Instant) {
        self.begun = Some(at);
    }

    /// Takes note of an IP packet that a host sends or receives.
    pub fn see(&mut self, place: Place, packet: &[u8]) {
        let Some(begun) = self.begun.filter(|begun| place.at >= *begun) else { return };
        let at = Instant::ZERO + place.at.since(begun);
        let Some((tcp, flow, length, seq)) = headers(packet) else { return };
        let key = Key::Real(tcp, if place.from_server { flow } else { flow.reversed() });
        self.opened.entry(key).or_insert(Opened { at, bytes: 0, complete: None });
        if !place.from_server || length == 0 {
            return;
        }
        let parcel = Parcel { key, path: place.path, length, down: true, seq };
        if place.at_sender {
            return self.observer.note_sent(place.id, at, &parcel);
        }
        let (key, new) = self.observer.note_received(place.id, at, &parcel);
        let size = self.parties.get(self.party(key)).and_then(|party| party.size);
        if let Some(opened) = self.opened.get_mut(&key) {
            opened.bytes += new;
            if opened.complete.is_none() && size.is_some_and(|size| opened.bytes >= size) {
                opened.complete = Some(at);
            }
        }
    }

    /// Takes note that a link has dropped a packet.
    pub fn lose(&mut self, id: PacketId) {
        self.observer.note_lost(id);
    }

    /// Takes note that a packet ended otherwise.
    pub fn end(&mut self, id: PacketId) {
        self.observer.note_ended(id);
    }

    /// Index of the party of a flow: a port that no party has is that of the programs under test.
    fn party(&self, key: Key) -> usize {
        let port = match key {
            Key::Real(_, flow) => flow.src_port,
            Key::Tcp(..) | Key::Udp(_) => 0,
        };
        let named = self.parties.iter().position(|party| party.port == port);
        named.or_else(|| self.parties.iter().position(|party| !party.competing)).unwrap_or(0)
    }

    /// Returns the number of complete files of a party.
    pub fn complete(&self, party: usize) -> usize {
        self.opened.iter().filter(|(key, it)| it.complete.is_some() && self.party(**key) == party).count()
    }

    /// Returns the measurements. `unfinished` are the files that did not arrive: party, and beginning in the scenario's
    /// time; `faults` are reasons to doubt the links.
    pub fn finish(self, seed: u64, unfinished: &[(usize, Duration)], faults: Vec<String>) -> Flows {
        let mut builders: Vec<Builder> = self.parties.iter().map(|party| Builder::new(party.competing)).collect();
        for (key, record) in &self.observer.flows {
            let party = self.party(*key);
            // Connections of one workload count as one: programs may open others for control.
            builders[party].add(record, self.observer.base(record.path, true), Some(party), &self.span);
        }
        let since = |at: Instant| at.since(Instant::ZERO).as_secs_f64();
        for (key, opened) in &self.opened {
            let taken = opened.complete.map(|end| end.since(opened.at).as_secs_f64());
            if taken.is_some() {
                builders[self.party(*key)].party.files.push((since(opened.at), taken));
            }
        }
        for (party, started) in unfinished {
            builders[*party].party.files.push((started.as_secs_f64(), None));
        }
        let finish = |builder: Builder| {
            let mut party = builder.finish(&self.span);
            party.files.sort_by(|a, b| a.0.total_cmp(&b.0));
            if party.connections.is_empty() && !party.competing {
                party.connections.push(0); // It came to nothing, and has its place in what is fair.
            }
            party
        };
        Flows {
            seed,
            finished: unfinished.is_empty(),
            bin_s: self.span.bin.as_secs_f64(),
            span_s: self.span.to.saturating_sub(self.span.from).as_secs_f64(),
            parties: builders.into_iter().map(finish).collect(),
            phases: Vec::new(),
            windows: Vec::new(),
            events_digest: String::new(),
            faults,
        }
    }
}

/// Returns of a packet of TCP or UDP: which of the two, its flow, the length of its payload, and the sequence number.
fn headers(packet: &[u8]) -> Option<(bool, FlowKey, usize, Option<u32>)> {
    if let Some((flow, length)) = datagram_of(packet) {
        return Some((false, flow, length, None));
    }
    let (segment, payload) = parse_headers(packet, Checksums::Ignore).ok()?;
    Some((true, segment.flow, payload.len(), Some(segment.seq.get())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_units::SubflowSeq;
    use anabranch_wire::{Flags, Segment, emit};
    use std::net::{Ipv4Addr, SocketAddr};

    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);

    fn segment(from_server: bool, port: u16, seq: u32, length: usize) -> Vec<u8> {
        let down = FlowKey::new(SocketAddr::from((SERVER, port)), SocketAddr::from((CLIENT, 40_000)));
        let flow = if from_server { down } else { down.reversed() };
        let mut segment = Segment::new(flow, Flags::ACK, SubflowSeq::new(seq), SubflowSeq::new(1));
        segment.payload = bytes::Bytes::from(vec![7; length]).into();
        let mut bytes = bytes::BytesMut::new();
        emit(&segment, &mut bytes).unwrap();
        bytes.to_vec()
    }

    /// A file of 3000 bytes in three segments, of which one is lost and repeated, beside a rival's segment. The clock
    /// of the packets shows 5 s when the scenario begins; a full packet takes 20 ms, and the second waits 30 ms more.
    #[test]
    fn a_workload_is_known_by_its_port_and_a_file_by_its_bytes() {
        let ms = Duration::from_millis;
        let span = Span { from: ms(0), to: ms(2000), after: None, bin: ms(100), closely: false };
        let own = LiveParty { competing: false, port: 5201, size: Some(3000) };
        let rival = LiveParty { competing: true, port: 5202, size: None };
        let mut flows = LiveFlows::new(span, vec![own, rival]);
        let see = |flows: &mut LiveFlows, id, at_sender, from_server, at: u64, packet: &[u8]| {
            let at = Instant::ZERO + ms(5000 + at);
            flows.see(Place { id: PacketId(id), path: 0, at_sender, from_server, at }, packet);
        };
        flows.see(
            Place { id: PacketId(9), path: 0, at_sender: true, from_server: true, at: Instant::ZERO },
            &segment(true, 5201, 1, 1000),
        );
        flows.begin(Instant::ZERO + ms(5000));
        see(&mut flows, 1, true, false, 100, &segment(false, 5201, 1, 10));
        see(&mut flows, 2, true, true, 200, &segment(true, 5201, 1, 1000));
        see(&mut flows, 3, true, true, 200, &segment(true, 5201, 1001, 1000));
        see(&mut flows, 4, true, true, 200, &segment(true, 5201, 2001, 1000));
        see(&mut flows, 2, false, true, 220, &segment(true, 5201, 1, 1000));
        flows.lose(PacketId(3));
        see(&mut flows, 4, false, true, 250, &segment(true, 5201, 2001, 1000));
        assert_eq!(flows.complete(0), 0);
        see(&mut flows, 5, true, true, 300, &segment(true, 5201, 1001, 1000));
        see(&mut flows, 5, false, true, 320, &segment(true, 5201, 1001, 1000));
        see(&mut flows, 6, true, true, 300, &segment(true, 5202, 1, 1200));
        see(&mut flows, 6, false, true, 350, &segment(true, 5202, 1, 1200));
        assert_eq!((flows.complete(0), flows.complete(1)), (1, 0));
        let flows = flows.finish(3, &[(0, ms(1500))], Vec::new());
        let [own, rival] = flows.parties.as_slice() else { panic!("two parties") };
        assert_eq!((own.bytes, own.packets, own.lost, rival.bytes), (3000, 4, 1, 1200));
        assert_eq!(own.files, [(0.1, Some(0.22)), (1.5, None)]);
        assert_eq!((own.connections.as_slice(), flows.finished, flows.seed), (&[3000][..], false, 3));
        let delay = own.delay.unwrap();
        assert!((delay.mean_s - 0.01).abs() < 1e-9 && (rival.delay.unwrap().mean_s - 0.03).abs() < 1e-9, "{delay:?}");
    }
}
