//! HTTP/1.1: a few persistent connections, one request at a time on each (RFC 9112 §9.3, without pipelining).

use super::{Arrival, Order, begin};
use crate::apps::Identity;
use crate::session::News;
use crate::stage::Stage;
use anabranch_paths::Direction;
use std::collections::{BTreeMap, VecDeque};

pub(super) struct Http1 {
    identity: Identity,
    /// Limit on connections.
    connections: usize,
    sessions: Vec<usize>,
    /// Sessions that wait for a request; the last used one is used first, since its window has grown.
    idle: Vec<usize>,
    /// Exchange under way, by session.
    busy: BTreeMap<usize, Exchange>,
    /// Objects that wait for a connection.
    queue: VecDeque<Order>,
}

/// A request and its answer.
struct Exchange {
    order: Order,
    transfer: usize,
    /// Parts of the answer still to come, each with the byte of the stream that completes it.
    milestones: VecDeque<(u64, Arrival)>,
}

impl Http1 {
    pub(super) fn new(identity: Identity, connections: usize) -> Self {
        let (sessions, idle, busy, queue) = (Vec::new(), Vec::new(), BTreeMap::new(), VecDeque::new());
        Http1 { identity, connections, sessions, idle, busy, queue }
    }

    /// Wants an object. Answers which requests went out, as all that follow.
    pub(super) fn fetch(&mut self, order: Order, stage: &mut Stage) -> Vec<(usize, usize)> {
        self.queue.push_back(order);
        self.go_on(stage)
    }

    /// Gives waiting requests to connections that are idle or may still be opened.
    pub(super) fn go_on(&mut self, stage: &mut Stage) -> Vec<(usize, usize)> {
        let mut requested = Vec::new();
        while !self.queue.is_empty() && (!self.idle.is_empty() || self.sessions.len() < self.connections) {
            let Some(order) = self.queue.pop_front() else { break };
            let session = self.idle.pop().unwrap_or_else(|| {
                let label = format!("{} connection {}", self.identity.kind, self.sessions.len() + 1);
                let session = self.identity.open(label, stage);
                self.sessions.push(session);
                session
            });
            let transfer = begin(self.identity, session, order, stage);
            let request = order.object.request.get();
            let asked = stage.target(session, Direction::Up) + request;
            stage.expect(session, Direction::Up, asked);
            stage.write(session, Direction::Up, request);
            self.busy.insert(session, Exchange { order, transfer, milestones: VecDeque::new() });
            requested.push((order.activity, transfer));
        }
        requested
    }

    pub(super) fn on_news(&mut self, session: usize, news: News, stage: &mut Stage) -> Vec<Arrival> {
        let Some(exchange) = self.busy.get_mut(&session) else { return Vec::new() };
        match news {
            News::Reached(Direction::Up) => {
                let Order { activity, object } = exchange.order;
                let body = stage.target(session, Direction::Down) + object.header.get();
                let end = body + object.size.get();
                stage.add_piece(exchange.transfer, body, object.size.get());
                // An empty object has come with its header.
                exchange.milestones = VecDeque::from([
                    ((body + 1).min(end), Arrival::FirstByte(activity)),
                    (end, Arrival::End(activity)),
                ]);
                stage.expect(session, Direction::Down, (body + 1).min(end));
                stage.write(session, Direction::Down, end - stage.target(session, Direction::Down));
                Vec::new()
            }
            News::Reached(Direction::Down) => {
                let read = stage.read(session, Direction::Down);
                let mut arrivals = Vec::new();
                while let Some(&(at, arrival)) = exchange.milestones.front()
                    && at <= read
                {
                    arrivals.push(arrival);
                    exchange.milestones.pop_front();
                }
                match exchange.milestones.front() {
                    Some(&(at, _)) => stage.expect(session, Direction::Down, at),
                    None => {
                        self.busy.remove(&session);
                        self.idle.push(session);
                    }
                }
                arrivals
            }
            News::Drained(_) | News::Failed => Vec::new(),
        }
    }

    /// The page is there: the client closes what is open.
    pub(super) fn close(&mut self, stage: &mut Stage) {
        for &session in &self.sessions {
            stage.finish(session, Direction::Up);
            stage.conclude(session);
        }
    }
}
