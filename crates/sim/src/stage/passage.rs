//! The ends of paths: between hosts and links, past the middleboxes that stand there.

use super::Stage;
use super::traffic::Departing;
use crate::Spec;
use crate::address::path_between;
use anabranch_paths::{Chain, Moving};
use anabranch_paths::{Direction, End, MiddleboxOutcome};
use anabranch_units::Instant;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The middleboxes of all paths.
pub(crate) struct Passage {
    /// By path: at the client's end, and at the server's.
    chains: Vec<[Chain; 2]>,
    /// When the first of them wants to be woken.
    deadline: Instant,
    /// What has left a chain and is not yet on its way; empty between calls, kept for its memory.
    left: VecDeque<Moving>,
}

impl Passage {
    pub(super) fn new(spec: &Spec) -> Self {
        let chain = |path: &anabranch_paths::PathSpec, end| Chain::new(&path.name, &path.middleboxes, end, spec.seed);
        let chains =
            spec.network.paths.iter().map(|path| [chain(path, End::Client), chain(path, End::Server)]).collect();
        Passage { chains, deadline: Instant::MAX, left: VecDeque::new() }
    }

    /// When `Stage::wake_middleboxes` is due; `Instant::MAX` for never.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Nothing stands there.
    #[inline]
    pub(super) fn is_free(&self, path: usize, end: End) -> bool {
        self.chains[path][end as usize].is_empty()
    }

    /// What the client calls the address that the server knows as `outside`.
    pub(super) fn inside(&self, outside: SocketAddr) -> SocketAddr {
        let [client, server] = &self.chains[path_between(outside.ip(), outside.ip())];
        client.inside(server.inside(outside))
    }

    /// What each middlebox has done.
    pub(crate) fn outcomes(&self) -> Vec<MiddleboxOutcome> {
        self.chains.iter().flatten().flat_map(Chain::outcomes).cloned().collect()
    }

    fn set_deadline(&mut self) {
        self.deadline = self.chains.iter().flatten().map(Chain::deadline).min().unwrap_or(Instant::MAX);
    }
}

impl Stage<'_> {
    /// Takes a segment that travels `direction` past the boxes at one end of a path. True if one goes on to the links with
    /// `departure` as the tag of its first hop.
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
        self.passage.set_deadline();
        if !left.iter().any(|moving| moving.id == id) {
            self.watch_kept(id, path, end);
        }
        self.leave_middleboxes(path, end, left, departure)
    }

    /// Lets the middleboxes act whose time has come.
    #[cold]
    pub(crate) fn wake_middleboxes(&mut self) {
        for path in 0..self.passage.chains.len() {
            for end in [End::Client, End::Server] {
                if self.passage.chains[path][end as usize].deadline() <= self.now {
                    let mut left = std::mem::take(&mut self.passage.left);
                    self.passage.chains[path][end as usize].on_deadline(self.now, &mut left);
                    self.leave_middleboxes(path, end, left, None);
                }
            }
        }
        self.passage.set_deadline();
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
                self.send_on_links((path, direction), Box::new(segment), id, size, departure.take());
            }
        }
        self.passage.left = left;
        waited && departure.is_none()
    }
}
