//! The ends of paths: between hosts and links, past the middleboxes that stand there.

use super::Stage;
use super::traffic::Departing;
use crate::Spec;
use crate::packet::Packet;
use anabranch_net::{Deadlines, RouteId};
use anabranch_paths::{Chain, Direction, End, MiddleboxOutcome, Moving, Topology, copy_name};
use anabranch_units::Instant;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// One direction of a path: the facts that a packet needs of it, in one place.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) path: usize,
    pub(super) direction: Direction,
    /// The end at which its packets arrive.
    pub(super) end: End,
    pub(super) route: RouteId,
    /// Departures from its first hop are reported.
    pub(super) has_nic: bool,
    /// True if no middlebox stands before its links.
    pub(super) leaves_freely: bool,
    /// True if no middlebox stands behind its links.
    pub(super) arrives_freely: bool,
}

/// The middleboxes of all paths.
pub(crate) struct Passage {
    /// Ways by route.
    ways: Vec<Way>,
    /// Middleboxes by path: at the client's end, and at the server's. Empty if no path of the run has a middlebox.
    chains: Vec<[Chain; 2]>,
    /// Times at which they want to be woken, by twice the path and the end.
    deadlines: Deadlines,
    /// Packets that have left a chain and are not yet on their way; empty between calls, kept for its memory.
    left: VecDeque<Moving>,
}

impl Passage {
    pub(super) fn new(spec: &Spec, topology: &Topology<Packet>) -> Self {
        let mut chains = Vec::new();
        let mut deadlines = Deadlines::default();
        let is_free = spec.network.paths.iter().all(|path| path.middleboxes.is_empty());
        for client in 0..spec.clients {
            for path in spec.network.paths.iter().filter(|_| !is_free) {
                let name = copy_name(client, &path.name);
                chains.push([End::Client, End::Server].map(|end| {
                    deadlines.add();
                    Chain::new(&name, &path.middleboxes, end, spec.seed)
                }));
            }
        }
        let paths = 0..topology.paths();
        let mut ways: Vec<_> = paths
            .flat_map(|path| [Direction::Down, Direction::Up].map(|towards| way(topology, &chains, path, towards)))
            .collect();
        ways.sort_by_key(|way| way.route.index());
        Passage { ways, chains, deadlines, left: VecDeque::new() }
    }

    /// The way that takes this route.
    #[inline]
    pub(super) fn way(&self, route: RouteId) -> Way {
        self.ways[route.index()]
    }

    /// Returns the time at which `Stage::wake_middleboxes` is due; `Instant::MAX` for never.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.deadlines.first().0
    }

    /// The address at the client on this path that the server knows as `outside`.
    pub(super) fn inside(&self, path: usize, outside: SocketAddr) -> SocketAddr {
        match self.chains.get(path) {
            Some([client, server]) => client.inside(server.inside(outside)),
            None => outside,
        }
    }

    /// Returns the counts of each middlebox, its copies on the paths of all clients together.
    pub(crate) fn outcomes(&self, paths_per_client: usize) -> Vec<MiddleboxOutcome> {
        let mut clients = self.chains.chunks(paths_per_client).map(|chains| chains.iter().flatten());
        let first = clients.next().into_iter().flatten().flat_map(Chain::outcomes);
        let mut sums: Vec<MiddleboxOutcome> = first.cloned().collect();
        for chains in clients {
            for (sum, copy) in sums.iter_mut().zip(chains.flat_map(Chain::outcomes)) {
                sum.altered += copy.altered;
                sum.dropped += copy.dropped;
                sum.made += copy.made;
            }
        }
        sums
    }

    fn set_deadline(&mut self, path: usize, end: End) {
        self.deadlines.set(2 * path + end as usize, self.chains[path][end as usize].deadline());
    }

    /// The chains that are due, each once, in the order of paths.
    fn take_due(&mut self, now: Instant) -> Vec<(usize, End)> {
        let mut due = Vec::new();
        while let (at, number) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.set(number, Instant::MAX);
            due.push(number);
        }
        due.sort_unstable();
        due.into_iter().map(|number| (number / 2, [End::Client, End::Server][number % 2])).collect()
    }
}

/// Gathers what a packet needs to know of one direction of a path.
fn way(topology: &Topology<Packet>, chains: &[[Chain; 2]], path: usize, direction: Direction) -> Way {
    let is_free = |end: End| chains.get(path).is_none_or(|chains| chains[end as usize].is_empty());
    let (from, end) = match direction {
        Direction::Down => (End::Server, End::Client),
        Direction::Up => (End::Client, End::Server),
    };
    let (route, has_nic) = (topology.route(path, direction), topology.has_nic(path));
    Way { path, direction, end, route, has_nic, leaves_freely: is_free(from), arrives_freely: is_free(end) }
}

impl Stage<'_> {
    /// Takes a segment that travels `direction` past the boxes at one end of a path. True if one goes on to the links
    /// with `departure` as the tag of its first hop.
    #[cold]
    pub(super) fn pass_middleboxes(
        &mut self,
        path: usize,
        end: End,
        moving: Moving,
        departure: Option<Departing>,
    ) -> bool {
        let mut left = std::mem::take(&mut self.passage.left);
        let id = moving.id;
        self.passage.chains[path][end as usize].pass(self.now, moving, &mut left);
        self.passage.set_deadline(path, end);
        if !left.iter().any(|moving| moving.id == id) {
            self.watch_kept(id, path, end);
        }
        self.leave_middleboxes(path, end, left, departure)
    }

    /// Lets the middleboxes act whose time has come.
    #[cold]
    pub(crate) fn wake_middleboxes(&mut self) {
        for (path, end) in self.passage.take_due(self.now) {
            let mut left = std::mem::take(&mut self.passage.left);
            self.passage.chains[path][end as usize].on_deadline(self.now, &mut left);
            self.passage.set_deadline(path, end);
            self.leave_middleboxes(path, end, left, None);
        }
    }

    /// Hands what has left the boxes to the host on one side or to the links on the other.
    fn leave_middleboxes(
        &mut self,
        path: usize,
        end: End,
        mut left: VecDeque<Moving>,
        mut departure: Option<Departing>,
    ) -> bool {
        let waited = departure.is_some();
        for moving in left.drain(..) {
            let arrives =
                matches!((end, moving.direction), (End::Client, Direction::Down) | (End::Server, Direction::Up));
            if arrives {
                // What a box has made, or sends back, has crossed no link.
                let segment = self.through_codec(Box::new(moving.segment));
                self.hand_over(segment, moving.id);
            } else {
                let Moving { direction, segment, id } = moving;
                let size = segment.wire_length();
                let way = self.passage.way(self.topology.route(path, direction));
                self.send_on_links(way, Box::new(segment), id, size, departure.take());
            }
        }
        self.passage.left = left;
        waited && departure.is_none()
    }
}
