//! Path of each segment when its data was first sent: the decisions of a scheduler, as papers draw them.

use crate::address::sender;
use crate::session::Session;
use crate::stage::Stage;
use anabranch_paths::Direction;
use anabranch_wire::Segment;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Segments in a row that took the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Index into the paths of the specification.
    pub path: usize,
    /// Number of segments.
    pub segments: u64,
    /// The sender had waited: these left after the first of those before had been acknowledged at the data level.
    pub waited: bool,
}

/// Notes decisions, if that was asked for.
#[derive(Default)]
pub(crate) struct Decisions {
    on: bool,
    /// Runs by connection, in the order in which they were opened.
    runs: BTreeMap<usize, Vec<Decided>>,
    /// Bytes sent for the first time, by connection. (The endpoint counts a train of segments before they leave.)
    sent: BTreeMap<usize, u64>,
    /// Bytes that had been sent before the present round, by connection.
    rounds: BTreeMap<usize, u64>,
    /// The connection that a subflow belongs to, by the addresses of its host and of the other.
    owners: BTreeMap<(SocketAddr, SocketAddr), usize>,
}

impl Decisions {
    pub(crate) fn new(on: bool) -> Self {
        Decisions { on, ..Decisions::default() }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Returns one list for each of the first `connections` connections; `None` unless decisions are recorded.
    pub(crate) fn into_runs(mut self, connections: usize) -> Option<Vec<Vec<Decided>>> {
        self.on.then(|| (0..connections).map(|session| self.runs.remove(&session).unwrap_or_default()).collect())
    }
}

impl Stage<'_> {
    /// A host under test sends data for the first time. Data before the first transfer, a warm-up, is not noted.
    #[cold]
    pub(crate) fn note_decision(&mut self, host: usize, segment: &Segment, path: usize) {
        let flow = segment.flow;
        let ends = (SocketAddr::new(flow.src, flow.src_port), SocketAddr::new(flow.dst, flow.dst_port));
        let known = self.decisions.owners.get(&ends).copied();
        let Some(session) = known.or_else(|| self.session_of(host, ends)) else { return };
        self.decisions.owners.insert(ends, session);
        let Session { ends, direction, ids, .. } = &self.sessions[session];
        let (sending, direction) = (ends[sender(*direction)], *direction);
        let stats = ids[sender(direction)].and_then(|id| self.hosts[sending].endpoint.connection_stats(id));
        let (Some(stats), true) = (stats, sending == host) else { return };
        let sent = self.decisions.sent.entry(session).or_default();
        let before = *sent;
        *sent += segment.payload.len() as u64;
        if before < self.warm_up(session, direction) {
            return;
        }
        let runs = self.decisions.runs.entry(session).or_default();
        let waited =
            !runs.is_empty() && self.decisions.rounds.get(&session).is_some_and(|&round| stats.data_acked > round);
        if runs.is_empty() || waited {
            self.decisions.rounds.insert(session, before);
        }
        let room = runs.len() < MOST;
        match runs.last_mut() {
            Some(last) if last.path == path && !waited => last.segments += 1,
            _ if room => runs.push(Decided { path, segments: 1, waited }),
            _ => {}
        }
    }

    /// The connection of a pair under test that has this subflow.
    fn session_of(&self, host: usize, (local, remote): (SocketAddr, SocketAddr)) -> Option<usize> {
        let place = self.hosts[host].place;
        let side = place.side as usize;
        let own =
            (0..self.sessions.len()).filter(|&session| place.pair == 0 && self.sessions[session].ends[side] == host);
        own.rev().find(|&session| {
            let id = self.sessions[session].ids[side];
            let subflows = id.map_or(Vec::new(), |id| self.hosts[host].endpoint.subflow_stats(id));
            subflows.iter().any(|subflow| (subflow.local, subflow.remote) == (local, remote))
        })
    }

    /// Returns the bytes written before the first transfer of a connection.
    fn warm_up(&self, session: usize, direction: Direction) -> u64 {
        let first = self.transfers.iter().find(|transfer| transfer.report.connection == session);
        first.map_or_else(|| self.target(session, direction), |transfer| transfer.base)
    }
}

/// Longest list; longer ones are cut.
const MOST: usize = 10_000;
