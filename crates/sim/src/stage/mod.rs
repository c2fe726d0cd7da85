//! Stage on which applications act: hosts, sessions, links, timers and the transfers they report.

mod dialogue;
mod passage;
mod states;
mod traffic;
mod watch;

use self::passage::Passage;
use self::traffic::Departures;
use self::watch::Watch;
use crate::address::{address, owner, service};
use crate::codec::Codec;
use crate::decisions::Decisions;
use crate::digest::Digest;
use crate::host::{Host, Side};
use crate::packet::Packet;
use crate::sample::Sampler;
use crate::session::{ByteStream, News, Session};
use crate::{EventRecord, Observer, PageOutcome, PhaseRecord, Transfer, UdpOutcome};
use anabranch_net::Deadlines;
use anabranch_paths::{Direction, PerDirection, Topology};
use anabranch_units::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Everything of a run but its applications.
pub(crate) struct Stage<'a> {
    pub(crate) now: Instant,
    pub(crate) topology: Topology<Packet>,
    pub(crate) hosts: Vec<Host>,
    /// Times at which hosts want to be woken, by their numbers.
    pub(crate) alarms: Deadlines,
    pub(crate) sessions: Vec<Session>,
    pub(crate) transfers: Vec<TransferState>,
    pub(crate) udp: Vec<UdpOutcome>,
    pub(crate) pages: Vec<PageOutcome>,
    pub(crate) events: Option<Vec<EventRecord>>,
    /// Changes of phase of congestion controls.
    pub(crate) phases: Vec<PhaseRecord>,
    pub(crate) digest: Digest,
    /// TCP segments with payload, delivered.
    pub(crate) packets: u64,
    pub(crate) corrupted: u64,
    /// True if some first hop reports departures, so that endpoints wait for them; otherwise packets depart at once.
    answers_departures: bool,
    pub(crate) passage: Passage,
    /// A middlebox alters payload, so that what is read may be other than what was written.
    alters_payload: bool,
    pub(crate) altered_bytes: u64,
    /// Codec, if segments travel as bytes.
    codec: Option<Codec>,
    primary: usize,
    /// Sessions whose server has not accepted, by the address of their client.
    awaited: BTreeMap<SocketAddr, usize>,
    timers: BinaryHeap<Reverse<(Instant, u64, usize, u32)>>,
    /// Numbers the timers, so that equal times fire in the order in which they were set.
    timers_set: u64,
    news: VecDeque<(usize, usize, News)>,
    touched: Vec<usize>,
    departures: Departures,
    watch: Watch<'a>,
    pub(crate) sampler: Sampler,
    pub(crate) decisions: Decisions,
}

/// A transfer under way.
pub(crate) struct TransferState {
    pub(crate) report: Transfer,
    direction: Direction,
    /// Offset in the stream at which it begins.
    pub(crate) base: u64,
    /// Parts of the stream that belong to it, as beginnings and lengths; `None` if all from `base` on does.
    pieces: Option<Vec<(u64, u64)>>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        spec: &crate::Spec,
        mut topology: Topology<Packet>,
        hosts: Vec<Host>,
        observer: Option<&'a mut dyn Observer>,
    ) -> Self {
        if observer.is_some() {
            topology.network.report_drops();
        }
        let mut alarms = Deadlines::default();
        hosts.iter().for_each(|_| alarms.add());
        let passage = Passage::new(spec, &topology);
        Stage {
            now: Instant::ZERO,
            topology,
            hosts,
            alarms,
            sessions: Vec::new(),
            transfers: Vec::new(),
            udp: Vec::new(),
            pages: Vec::new(),
            events: spec.record_events.then(Vec::new),
            phases: Vec::new(),
            digest: Digest::new(),
            packets: 0,
            corrupted: 0,
            answers_departures: spec.network.paths.iter().any(|path| path.nic.is_some()),
            passage,
            alters_payload: spec
                .network
                .paths
                .iter()
                .flat_map(|path| &path.middleboxes)
                .any(|it| it.kind.alters_payload()),
            altered_bytes: 0,
            codec: spec.codec.then(|| Codec::new(spec.seed, spec.audit)),
            primary: spec.network.primary,
            awaited: BTreeMap::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            news: VecDeque::new(),
            touched: Vec::new(),
            departures: Departures::default(),
            watch: Watch::new(observer, spec.network.paths.len()),
            sampler: Sampler::new(&spec.samples),
            decisions: Decisions::new(spec.decisions),
        }
    }

    // What applications do.

    /// Wakes `app` at `at` with `token`.
    pub(crate) fn set_timer(&mut self, app: usize, at: Instant, token: u32) {
        self.timers.push(Reverse((at, self.timers_set, app, token)));
        self.timers_set += 1;
    }

    /// Opens a connection between the hosts `ends`, over the path `path` or else the primary one.
    pub(crate) fn open(&mut self, opening: Opening) -> usize {
        let Opening { app, workload, label, ends, path, direction } = opening;
        let (session, client) = (self.sessions.len(), ends[0]);
        let local = address(client, path.unwrap_or(self.primary));
        let host = &mut self.hosts[client];
        // Between two hosts there are no more connections than ports.
        let id = host.endpoint.open(self.now, local, service(ends[1])).ok();
        if let Some(id) = id {
            if direction == Direction::Down {
                // The client sends a request for data, and no more.
                host.endpoint.set_replayable(id);
            }
            host.bind(id, session);
            let first = host.endpoint.subflow_stats(id).first().map(|subflow| subflow.local);
            self.awaited.insert(first.expect("a connection just opened has its first subflow"), session);
        }
        self.sessions.push(Session {
            app,
            workload,
            label,
            opened: self.now,
            ends,
            direction,
            ids: [id, None],
            multipath: [false; 2],
            fell_back: false,
            streams: PerDirection { down: ByteStream::default(), up: ByteStream::default() },
            over: [false; 2],
            concluded: false,
            baseline: None,
            outcome: None,
        });
        if id.is_none() {
            self.report_failure(session);
        }
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

    /// Tells the application once `total` bytes are read in this direction, counted from the beginning.
    pub(crate) fn expect(&mut self, session: usize, direction: Direction, total: u64) {
        self.sessions[session].streams.of_mut(direction).milestone = Some(total);
    }

    /// Returns the bytes read in this direction.
    pub(crate) fn read(&self, session: usize, direction: Direction) -> u64 {
        self.sessions[session].streams.of(direction).read
    }

    /// Returns the bytes that were, or are to be, written in this direction.
    pub(crate) fn target(&self, session: usize, direction: Direction) -> u64 {
        self.sessions[session].streams.of(direction).target
    }

    /// Leaves out of the session's statistics what its connection has counted up to now.
    pub(crate) fn count_from_here(&mut self, session: usize) {
        self.sessions[session].baseline = Some(Box::new(self.connection_outcome(session)));
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

    /// Aborts the session at once.
    pub(crate) fn abort(&mut self, session: usize) {
        self.conclude(session);
        let client = self.sessions[session].ends[0];
        if let ([Some(id), _], [false, _]) = (self.sessions[session].ids, self.sessions[session].over) {
            self.hosts[client].endpoint.abort(self.now, id);
            self.touch(client);
        }
    }

    /// Begins a transfer that starts with the next byte written to the session in this direction.
    pub(crate) fn begin_transfer(
        &mut self,
        session: usize,
        direction: Direction,
        label: String,
        asked: Option<u64>,
    ) -> usize {
        let workload = self.sessions[session].workload;
        let (connection, started) = (session, self.now);
        let report = Transfer { workload, label, connection, started, finished: None, bytes: 0, asked };
        let base = self.target(session, direction);
        self.transfers.push(TransferState { report, direction, base, pieces: None });
        self.transfers.len() - 1
    }

    /// Returns the bytes to be written in this direction that the endpoint has not taken yet.
    pub(crate) fn backlog(&self, session: usize, direction: Direction) -> u64 {
        let stream = self.sessions[session].streams.of(direction);
        stream.target - stream.written
    }

    /// Tells the application once there is no backlog. To be asked for only while there is one.
    pub(crate) fn expect_drained(&mut self, session: usize, direction: Direction) {
        self.sessions[session].streams.of_mut(direction).drains = true;
    }

    /// Begins a transfer whose bytes are the pieces of the stream that are added later.
    pub(crate) fn begin_object(&mut self, session: usize, label: String, size: u64) -> usize {
        let direction = self.sessions[session].direction;
        let transfer = self.begin_transfer(session, direction, label, Some(size));
        self.transfers[transfer].pieces = Some(Vec::new());
        transfer
    }

    /// Adds `length` bytes of the stream from `begin` on to the transfer.
    pub(crate) fn add_piece(&mut self, transfer: usize, begin: u64, length: u64) {
        if let Some(pieces) = &mut self.transfers[transfer].pieces {
            pieces.push((begin, length));
        }
    }

    /// A page is asked for.
    pub(crate) fn begin_page(&mut self, client: usize, workload: usize) -> usize {
        self.pages.push(PageOutcome { client, workload, started: self.now, finished: None });
        self.pages.len() - 1
    }

    /// All of a page is there.
    pub(crate) fn finish_page(&mut self, page: usize) {
        self.pages[page].finished = Some(self.now);
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

    /// Returns the bytes of the transfer that were read.
    fn transferred(&self, transfer: usize) -> u64 {
        let TransferState { report, direction, base, pieces } = &self.transfers[transfer];
        let read = self.read(report.connection, *direction);
        if let Some(pieces) = pieces {
            return pieces.iter().map(|&(begin, length)| read.saturating_sub(begin).min(length)).sum();
        }
        let read = read.saturating_sub(*base);
        report.asked.map_or(read, |asked| read.min(asked))
    }

    // What the world does.

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// The first timer due: which application, with which token.
    pub(crate) fn pop_timer(&mut self) -> Option<(usize, u32)> {
        self.timers.pop().map(|Reverse((_, _, app, token))| (app, token))
    }

    /// Takes the next news for an application: the application, the session, and the news.
    #[inline]
    pub(crate) fn pop_news(&mut self) -> Option<(usize, usize, News)> {
        self.news.pop_front()
    }

    /// A host that may have something to say; to be followed by `rest`.
    #[inline]
    pub(crate) fn pop_touched(&mut self) -> Option<usize> {
        self.touched.pop()
    }

    /// The host has nothing more to do now.
    #[inline]
    pub(crate) fn rest(&mut self, host: usize) {
        self.watch_rest(host);
        let deadline = self.hosts[host].rest();
        self.alarms.set(host, deadline);
    }

    /// The client and its server that are under test on the paths of client `client`.
    pub(crate) fn under_test(&self, client: usize) -> [usize; 2] {
        let number = client * (self.hosts.len() / self.clients());
        [number, self.hosts[number].place.peer]
    }

    /// Returns the number of clients, each with paths of its own.
    pub(crate) fn clients(&self) -> usize {
        self.topology.paths() / self.topology.paths_per_client()
    }

    /// Returns true if the connection is one of a pair under test, rather than competing TCP.
    pub(crate) fn is_under_test(&self, session: usize) -> bool {
        self.hosts[self.sessions[session].ends[0]].place.pair == 0
    }

    /// The path between two addresses, by its number in the topology: the client's address says which one it is.
    #[inline]
    pub(crate) fn path_between(&self, local: IpAddr, remote: IpAddr) -> usize {
        let (host, index) = owner(local);
        let place = self.hosts[host].place;
        let index = if place.side == Side::Client { index } else { owner(remote).1 };
        place.client * self.topology.paths_per_client() + index
    }

    /// The index in the specification of the path with this number in the topology.
    #[inline]
    pub(crate) fn path_in_spec(&self, path: usize) -> usize {
        path % self.topology.paths_per_client()
    }

    /// Something was done to the host: it may have something to say.
    #[inline]
    pub(crate) fn touch(&mut self, host: usize) {
        if !std::mem::replace(&mut self.hosts[host].touched, true) {
            self.touched.push(host);
        }
    }
}

/// Parameters of a session to be opened.
pub(crate) struct Opening {
    pub(crate) app: usize,
    pub(crate) workload: usize,
    pub(crate) label: String,
    /// The hosts: the client and the server.
    pub(crate) ends: [usize; 2],
    /// An index into the paths of the specification.
    pub(crate) path: Option<usize>,
    pub(crate) direction: Direction,
}
