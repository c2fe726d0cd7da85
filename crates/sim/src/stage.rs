//! What applications act on: hosts, sessions, links, timers and the transfers they report.

use crate::digest::Digest;
use crate::host::Host;
use crate::pool::{Packet, Pool};
use crate::session::{ByteStream, News, Session};
use crate::topology::{PerDirection, Topology, address, owner, path_between, sender, service};
use crate::{ConnectionOutcome, Direction, EventKind, EventRecord, Middlebox, SubflowOutcome, Transfer, UdpOutcome};
use crate::{outcome, pattern};
use anabranch_engine::{ConnectionId, Event, Transmit};
use anabranch_net::{Delivery, Departure};
use anabranch_units::{Bytes, Instant};
use anabranch_wire::Segment;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;

/// Everything of a run but its applications.
pub(crate) struct Stage {
    pub(crate) now: Instant,
    pub(crate) topology: Topology,
    pub(crate) hosts: Vec<Host>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) transfers: Vec<TransferState>,
    pub(crate) udp: Vec<UdpOutcome>,
    pub(crate) events: Option<Vec<EventRecord>>,
    pub(crate) digest: Digest,
    /// TCP segments with payload, delivered.
    pub(crate) packets: u64,
    pub(crate) corrupted: u64,
    /// Some first hop reports departures, so endpoints wait for them; where none does, packets depart at once.
    answers_departures: bool,
    middleboxes: Vec<Middlebox>,
    pool: Pool,
    primary: usize,
    /// Sessions whose server has not accepted, by the address of their client.
    awaited: BTreeMap<SocketAddr, usize>,
    timers: BinaryHeap<Reverse<(Instant, u64, usize, u32)>>,
    /// Numbers the timers, so that equal times fire in the order in which they were set.
    timers_set: u64,
    news: VecDeque<(usize, usize, News)>,
    touched: Vec<usize>,
    departures: Departures,
}

/// A transfer under way.
pub(crate) struct TransferState {
    pub(crate) report: Transfer,
    direction: Direction,
    /// Where in the stream it begins.
    base: u64,
}

/// What waits at first hops: each packet's host and the tag that the host gave it. The network carries the index.
#[derive(Default)]
struct Departures {
    waiting: Vec<Option<(usize, u64)>>,
    free: Vec<u32>,
}

impl Stage {
    pub(crate) fn new(spec: &crate::Spec, topology: Topology, hosts: Vec<Host>) -> Self {
        Stage {
            now: Instant::ZERO,
            topology,
            hosts,
            sessions: Vec::new(),
            transfers: Vec::new(),
            udp: Vec::new(),
            events: spec.record_events.then(Vec::new),
            digest: Digest::new(),
            packets: 0,
            corrupted: 0,
            answers_departures: spec.paths.iter().any(|path| path.nic.is_some()),
            middleboxes: spec.paths.iter().map(|path| path.middlebox).collect(),
            pool: Pool::default(),
            primary: spec.primary,
            awaited: BTreeMap::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            news: VecDeque::new(),
            touched: Vec::new(),
            departures: Departures::default(),
        }
    }

    // What applications do.

    /// Wakes `app` at `at` with `token`.
    pub(crate) fn set_timer(&mut self, app: usize, at: Instant, token: u32) {
        self.timers.push(Reverse((at, self.timers_set, app, token)));
        self.timers_set += 1;
    }

    /// Opens a connection between the hosts of `pair`, over the path `path` or else the primary one.
    pub(crate) fn open(&mut self, opening: Opening) -> usize {
        let Opening { app, workload, label, pair, path, direction } = opening;
        let (session, client) = (self.sessions.len(), 2 * pair);
        let local = address(client, path.unwrap_or(self.primary));
        let host = &mut self.hosts[client];
        let id = host.endpoint.open(self.now, local, service(pair));
        host.bind(id, session);
        let first = host.endpoint.subflows(id).first().map(|subflow| subflow.local);
        self.awaited.insert(first.expect("a connection just opened has its first subflow"), session);
        self.sessions.push(Session {
            app,
            workload,
            label,
            pair,
            direction,
            ids: [Some(id), None],
            multipath: [false; 2],
            streams: PerDirection { down: ByteStream::default(), up: ByteStream::default() },
            over: [false; 2],
            concluded: false,
            outcome: None,
        });
        self.touch(client);
        session
    }

    /// Has the sending application write `amount` more bytes.
    pub(crate) fn write(&mut self, session: usize, direction: Direction, amount: u64) {
        let stream = self.sessions[session].streams.of_mut(direction);
        stream.target = stream.target.saturating_add(amount);
        self.pump(session, direction);
    }

    /// Closes this direction once all is written.
    pub(crate) fn finish(&mut self, session: usize, direction: Direction) {
        self.sessions[session].streams.of_mut(direction).finish = true;
        self.pump(session, direction);
    }

    /// Tells the application once so many bytes are read in this direction, counted from the beginning.
    pub(crate) fn expect(&mut self, session: usize, direction: Direction, total: u64) {
        self.sessions[session].streams.of_mut(direction).milestone = Some(total);
    }

    /// How much was read in this direction.
    pub(crate) fn read(&self, session: usize, direction: Direction) -> u64 {
        self.sessions[session].streams.of(direction).read
    }

    /// How much was, or is to be, written in this direction.
    pub(crate) fn target(&self, session: usize, direction: Direction) -> u64 {
        self.sessions[session].streams.of(direction).target
    }

    /// The application has what it wanted of this session: its statistics stay as they are now.
    pub(crate) fn conclude(&mut self, session: usize) {
        self.sessions[session].concluded = true;
        self.freeze(session);
    }

    /// Keeps the statistics of a session as they are now, unless that was done before.
    fn freeze(&mut self, session: usize) {
        if self.sessions[session].outcome.is_none() {
            self.sessions[session].outcome = Some(self.connection_outcome(session));
        }
    }

    /// Ends the session at once.
    pub(crate) fn abort(&mut self, session: usize) {
        self.conclude(session);
        let client = 2 * self.sessions[session].pair;
        if let ([Some(id), _], [false, _]) = (self.sessions[session].ids, self.sessions[session].over) {
            self.hosts[client].endpoint.abort(self.now, id);
            self.touch(client);
        }
    }

    /// Begins a transfer that starts with the next byte written to the session.
    pub(crate) fn begin_transfer(&mut self, session: usize, label: String, asked: Option<u64>) -> usize {
        let Session { workload, direction, .. } = self.sessions[session];
        let (connection, started) = (session, self.now);
        let report = Transfer { workload, label, connection, started, finished: None, bytes: 0, asked };
        let base = self.target(session, direction);
        self.transfers.push(TransferState { report, direction, base });
        self.transfers.len() - 1
    }

    /// The transfer is through.
    pub(crate) fn finish_transfer(&mut self, transfer: usize) {
        let bytes = self.transferred(transfer);
        let report = &mut self.transfers[transfer].report;
        report.finished = Some(self.now);
        report.bytes = bytes;
    }

    /// The report of a transfer, with what was read so far if it is not through.
    pub(crate) fn transfer_outcome(&self, transfer: usize) -> Transfer {
        let report = self.transfers[transfer].report.clone();
        let bytes = if report.finished.is_some() { report.bytes } else { self.transferred(transfer) };
        Transfer { bytes, ..report }
    }

    /// How many of its bytes were read.
    fn transferred(&self, transfer: usize) -> u64 {
        let TransferState { report, direction, base } = &self.transfers[transfer];
        let read = self.read(report.connection, *direction).saturating_sub(*base);
        report.asked.map_or(read, |asked| read.min(asked))
    }

    /// Sends a datagram of a UDP workload, numbered among those.
    pub(crate) fn send_datagram(&mut self, udp: usize, path: usize, direction: Direction, size: Bytes) {
        self.udp[udp].sent += 1;
        let route = self.topology.route(path, direction);
        let tag = if self.topology.has_nic(path) { self.departures.expect(None) } else { 0 };
        self.topology.network.send(self.now, route, Packet::Datagram(udp as u32), size, tag);
    }

    // What the world does.

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// The first timer due: which application, with which token.
    pub(crate) fn pop_timer(&mut self) -> Option<(usize, u32)> {
        self.timers.pop().map(|Reverse((_, _, app, token))| (app, token))
    }

    /// What an application has not heard yet: which one, of which session, what.
    #[inline]
    pub(crate) fn pop_news(&mut self) -> Option<(usize, usize, News)> {
        self.news.pop_front()
    }

    #[inline]
    pub(crate) fn pop_touched(&mut self) -> Option<usize> {
        let host = self.touched.pop()?;
        self.hosts[host].touched = false;
        Some(host)
    }

    /// Something was done to the host: it may have something to say.
    #[inline]
    pub(crate) fn touch(&mut self, host: usize) {
        if !std::mem::replace(&mut self.hosts[host].touched, true) {
            self.touched.push(host);
        }
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
    fn forward(&mut self, host: usize, Transmit { mut segment, tag }: Transmit) {
        let path = path_between(segment.flow.src, segment.flow.dst);
        assert!(path < self.topology.paths(), "a segment travels between addresses that exist: {:?}", segment.flow);
        if self.events.is_some() {
            self.record(host, EventKind::Sent, &segment);
        }
        self.middleboxes[path].pass(&mut segment);
        let direction = if host.is_multiple_of(2) { Direction::Up } else { Direction::Down };
        let (route, size) = (self.topology.route(path, direction), segment.wire_length());
        let notified = self.topology.has_nic(path);
        let net_tag = if notified { self.departures.expect(Some((host, tag))) } else { 0 };
        self.topology.network.send(self.now, route, Packet::Segment(self.pool.put(segment)), size, net_tag);
        if self.answers_departures && !notified {
            self.hosts[host].endpoint.handle_departure(self.now, tag, size);
        }
    }

    /// Acts on all the host's events; false if there were none.
    #[inline]
    pub(crate) fn drain_events(&mut self, host: usize) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.hosts[host].endpoint.poll_event() {
            self.on_event(host, id, event);
            any = true;
        }
        any
    }

    #[inline]
    fn on_event(&mut self, host: usize, id: ConnectionId, event: Event) {
        self.digest.add(code(&event) << 8 | host as u64);
        if let Event::Accepted { .. } = event
            && !self.accept(host, id)
        {
            return self.hosts[host].endpoint.abort(self.now, id);
        }
        let Some(session) = self.hosts[host].session(id) else {
            return; // Of a connection that its application has already left.
        };
        let side = host % 2;
        let (sends, receives) =
            if side == 0 { (Direction::Up, Direction::Down) } else { (Direction::Down, Direction::Up) };
        match event {
            Event::Connected { multipath } | Event::Accepted { multipath } => {
                self.sessions[session].multipath[side] = multipath;
                self.pump(session, sends);
            }
            Event::Readable => self.drink(host, id, session, receives),
            Event::Writable => self.pump(session, sends),
            Event::PeerFinished => {
                self.drink(host, id, session, receives);
                // Who sees the end of the other's stream ends its own.
                self.finish(session, sends);
            }
            Event::Closed => self.leave(host, id, session),
            Event::Reset => {
                self.report_failure(session);
                self.leave(host, id, session);
            }
            Event::Fallback(_) | Event::SubflowEstablished(_) | Event::SubflowClosed(_) => {}
        }
    }

    /// Finds the session of a connection that the server just learned of.
    fn accept(&mut self, host: usize, id: ConnectionId) -> bool {
        let client = self.hosts[host].endpoint.subflows(id).first().map(|subflow| subflow.remote);
        let Some(session) = client.and_then(|client| self.awaited.remove(&client)) else {
            return false;
        };
        self.sessions[session].ids[1] = Some(id);
        self.hosts[host].bind(id, session);
        true
    }

    /// Reads all there is and checks it.
    #[inline]
    fn drink(&mut self, host: usize, id: ConnectionId, session: usize, direction: Direction) {
        let (now, endpoint) = (self.now, &mut self.hosts[host].endpoint);
        let Session { app, concluded, streams, .. } = &mut self.sessions[session];
        let stream = streams.of_mut(direction);
        while let Some(chunk) = endpoint.read(now, id) {
            assert!(
                pattern::matches(stream.read, &chunk),
                "what the application reads is what was written, from byte {} of session {session} on",
                stream.read
            );
            stream.read += chunk.len() as u64;
        }
        assert!(stream.read <= stream.written, "no byte is read that was not written");
        if stream.milestone.is_some_and(|milestone| stream.read >= milestone) && !*concluded {
            stream.milestone = None;
            self.news.push_back((*app, session, News::Reached(direction)));
        }
    }

    /// Writes as much as the endpoint takes.
    #[inline]
    fn pump(&mut self, session: usize, direction: Direction) {
        let side = sender(direction);
        let Session { pair, ids, streams, over, .. } = &mut self.sessions[session];
        let host = 2 * *pair + side;
        let (Some(id), false) = (ids[side], over[side]) else {
            return;
        };
        let (stream, endpoint) = (streams.of_mut(direction), &mut self.hosts[host].endpoint);
        while stream.written < stream.target {
            let chunk = pattern::slice(stream.written, stream.target - stream.written);
            let (offered, taken) = (chunk.len(), endpoint.write(self.now, id, chunk));
            stream.written += taken as u64;
            if taken < offered {
                break;
            }
        }
        if stream.finish && !stream.shut && stream.written == stream.target {
            stream.shut = true;
            endpoint.shutdown(self.now, id);
        }
        self.touch(host);
    }

    fn report_failure(&mut self, session: usize) {
        if !self.sessions[session].concluded {
            self.conclude(session);
            self.news.push_back((self.sessions[session].app, session, News::Failed));
        }
    }

    /// The host is through with the connection; nothing of it is kept but its outcome.
    fn leave(&mut self, host: usize, id: ConnectionId, session: usize) {
        self.sessions[session].over[host % 2] = true;
        self.freeze(session);
        self.hosts[host].unbind(id);
    }

    /// The connection's statistics as they were when it was concluded, or else as they are now.
    pub(crate) fn final_outcome(&self, session: usize) -> ConnectionOutcome {
        self.sessions[session].outcome.clone().unwrap_or_else(|| self.connection_outcome(session))
    }

    fn connection_outcome(&self, session: usize) -> ConnectionOutcome {
        let Session { workload, label, pair, direction, ids, multipath, .. } = &self.sessions[session];
        let stats = |side: usize| ids[side].and_then(|id| self.hosts[2 * pair + side].endpoint.connection(id).cloned());
        let side = sender(*direction);
        let (sender, receiver) = (stats(side), stats(1 - side));
        let fell_back = [&sender, &receiver].into_iter().flatten().any(|stats| stats.fallback.is_some());
        let subflows = ids[side].map_or(Vec::new(), |id| self.hosts[2 * pair + side].endpoint.subflows(id));
        let with_path = |stats: anabranch_engine::SubflowStats| SubflowOutcome {
            path: path_between(stats.local.ip(), stats.remote.ip()),
            stats,
        };
        ConnectionOutcome {
            workload: *workload,
            label: label.clone(),
            multipath: multipath[0] && !fell_back,
            sender,
            receiver,
            subflows: subflows.into_iter().map(with_path).collect(),
        }
    }

    #[cold]
    fn record(&mut self, host: usize, kind: EventKind, segment: &Segment) {
        if let Some(events) = &mut self.events {
            events.push(outcome::record(self.now, host, kind, segment));
        }
    }
}

/// How to open a session.
pub(crate) struct Opening {
    pub(crate) app: usize,
    pub(crate) workload: usize,
    pub(crate) label: String,
    pub(crate) pair: usize,
    pub(crate) path: Option<usize>,
    pub(crate) direction: Direction,
}

impl Departures {
    /// A tag for a packet that will depart; `None` if nobody waits for that.
    #[inline]
    fn expect(&mut self, whose: Option<(usize, u64)>) -> u64 {
        match self.free.pop() {
            Some(slot) => {
                self.waiting[slot as usize] = whose;
                u64::from(slot)
            }
            None => {
                self.waiting.push(whose);
                (self.waiting.len() - 1) as u64
            }
        }
    }

    #[inline]
    fn settle(&mut self, tag: u64) -> Option<(usize, u64)> {
        self.free.push(tag as u32);
        self.waiting[tag as usize].take()
    }
}

/// Tells events apart in the digest.
fn code(event: &Event) -> u64 {
    match event {
        Event::Readable => 1,
        Event::Writable => 2,
        Event::Connected { multipath } => 3 + u64::from(*multipath),
        Event::Accepted { multipath } => 5 + u64::from(*multipath),
        Event::PeerFinished => 7,
        Event::Closed => 8,
        Event::Reset => 9,
        Event::Fallback(_) => 10,
        Event::SubflowEstablished(subflow) => 11 + (u64::from(subflow.0) << 8),
        Event::SubflowClosed(subflow) => 12 + (u64::from(subflow.0) << 8),
    }
}
