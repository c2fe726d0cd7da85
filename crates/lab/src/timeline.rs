//! Timeline of a run: path and time of each transmission of data, repeated transmissions, and data held at the receiver
//! behind a gap. It is drawn as a time-sequence diagram.
//!
//! Everything is read from the segments, as in captures of both hosts, except for the engine's purpose of each segment.
//! Data is counted from the first byte of its connection.

use anabranch_engine::{ConnectionId, Event, Purpose};
use anabranch_paths::{End, PacketId};
use anabranch_sim::{Condition, Content, Host, Loss, Observer, Onlook, SessionState, Sight};
use anabranch_units::{Dsn, Instant, Token};
use anabranch_wire::{Flags, FlowKey, MpOption, Segment};
use std::collections::BTreeMap;

/// Timeline of a run, by connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Connections in the order in which they were opened, without those of competing TCP.
    pub connections: Vec<Traced>,
}

/// Timeline of one connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    /// Segments with data, in the order in which they were sent.
    pub sent: Vec<SentData>,
    /// DATA_ACKs at the sender: time, and first byte not acknowledged. Empty for plain TCP.
    pub acked: Vec<(Instant, u64)>,
    /// Bytes held at the receiver behind a gap in the data, on whichever subflow; one entry for each change. Segments
    /// that middleboxes split or merged do not count.
    pub held: Vec<(Instant, u64)>,
}

/// Segment with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentData {
    /// Time at which it was sent.
    pub at: Instant,
    /// Index of the path.
    pub path: usize,
    /// First byte.
    pub from: u64,
    /// Length in bytes.
    pub length: u64,
    /// Earlier transmission of the data, if any.
    pub copy: Copied,
    /// Time at which it arrived undamaged; `None` if it was lost, or became part of another packet in a middlebox.
    pub arrived: Option<Instant>,
    /// True if it did not arrive.
    pub lost: bool,
}

/// Earlier transmission of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Copied {
    /// None: sent for the first time.
    New,
    /// Sent before on the same subflow.
    Retransmitted,
    /// Sent before on another subflow.
    Reinjected,
}

/// Observer that makes a [`Timeline`].
pub struct TimelineObserver {
    sender: Host,
    receiver: Host,
    connections: Vec<Traced>,
    state: Vec<State>,
    /// Subflows by addresses and ports as the client has them.
    flows: BTreeMap<FlowKey, Flow>,
    tokens: BTreeMap<Token, usize>,
    /// Data in flight: connection, and index in `sent`.
    under_way: BTreeMap<PacketId, (usize, usize)>,
}

/// State of a connection.
#[derive(Default)]
struct State {
    /// Data sequence number of the first byte of the sender's data.
    first: Option<Dsn>,
    /// Last data sequence number seen, which short ones are close to.
    near: Option<Dsn>,
    received: Received,
}

/// State of a subflow.
struct Flow {
    connection: usize,
    /// Initial sequence number of the host that sends data.
    isn: Option<u32>,
    /// Last position on the subflow, counted from the SYN, without wrapping.
    position: u64,
    /// Difference from the position to the number of the byte, by the last mapping; at first the SYN alone.
    shift: u64,
}

/// Data received, with the ranges above the first gap.
#[derive(Default)]
struct Received {
    next: u64,
    above: BTreeMap<u64, u64>,
    held: u64,
}

impl TimelineObserver {
    /// Makes an observer for a run in which the client sends the data, or else the server.
    pub fn new(client_sends: bool) -> Self {
        let (sender, receiver) = if client_sends { (Host::Client, Host::Server) } else { (Host::Server, Host::Client) };
        TimelineObserver {
            sender,
            receiver,
            connections: Vec::new(),
            state: Vec::new(),
            flows: BTreeMap::new(),
            tokens: BTreeMap::new(),
            under_way: BTreeMap::new(),
        }
    }

    /// Returns the timeline at the end of the run. Data still in flight counts as lost.
    pub fn finish(mut self) -> Timeline {
        for (connection, place) in self.under_way.into_values() {
            self.connections[connection].sent[place].lost = true;
        }
        Timeline { connections: self.connections }
    }

    /// Returns the connection of the segment, and records the handshake.
    fn know(&mut self, key: FlowKey, from_sender: bool, segment: &Segment) -> Option<usize> {
        let options = || segment.options.mptcp().iter();
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && !self.flows.contains_key(&key) {
            let joins = options().find_map(|option| match option {
                MpOption::JoinSyn(join) => Some(join.token),
                _ => None,
            });
            let connection = match joins {
                Some(token) => *self.tokens.get(&token)?,
                None => {
                    self.connections.push(Traced::default());
                    self.state.push(State::default());
                    self.connections.len() - 1
                }
            };
            self.flows.insert(key, Flow { connection, isn: None, position: 0, shift: 1u64.wrapping_neg() });
        }
        let flow = self.flows.get_mut(&key)?;
        if segment.flags.has(Flags::SYN) && from_sender {
            flow.isn = Some(segment.seq.get());
        }
        let connection = flow.connection;
        for option in options() {
            let MpOption::Capable(capable) = option else { continue };
            let Some(key) = capable.sender_key else { continue };
            self.tokens.insert(key.token(), connection);
            if from_sender {
                self.state[connection].first.get_or_insert(Dsn::new(key.idsn().get().wrapping_add(1)));
            }
        }
        Some(connection)
    }

    /// Returns the number of the segment's first byte.
    fn number(&mut self, key: FlowKey, segment: &Segment) -> Option<u64> {
        let flow = self.flows.get_mut(&key)?;
        let state = &mut self.state[flow.connection];
        let relative = segment.seq.get().wrapping_sub(flow.isn?);
        // The nearest position to the last one: 32 bits wrap after 4 GiB.
        let ahead = relative.wrapping_sub(flow.position as u32) as i32;
        let position = flow.position.wrapping_add_signed(i64::from(ahead));
        flow.position = position;
        let map = segment.options.dss().and_then(|dss| dss.map).filter(|map| map.length > 0);
        if let (Some(map), Some(first)) = (map, state.first) {
            let dsn = map.dsn.near(state.near.unwrap_or(first));
            state.near = Some(dsn);
            let into = relative.wrapping_sub(map.subflow_seq) as i32;
            let number = dsn.get().wrapping_sub(first.get()).wrapping_add_signed(i64::from(into));
            flow.shift = number.wrapping_sub(position);
        }
        Some(position.wrapping_add(flow.shift))
    }
}

impl Observer for TimelineObserver {
    fn on_sent(&mut self, sight: Sight<'_>, purpose: Option<Purpose>) {
        let Content::Segment(segment) = sight.content else { return };
        if sight.host != self.sender && sight.host != self.receiver {
            return;
        }
        let key = if sight.host == Host::Client { segment.flow } else { segment.flow.reversed() };
        let from_sender = sight.host == self.sender;
        let Some(connection) = self.know(key, from_sender, segment) else { return };
        if !from_sender || segment.payload.is_empty() {
            return;
        }
        let Some(from) = self.number(key, segment) else { return };
        let copy = match purpose {
            Some(Purpose::Retransmission(_)) => Copied::Retransmitted,
            Some(Purpose::Reinjection(_)) => Copied::Reinjected,
            _ => Copied::New,
        };
        let sent = &mut self.connections[connection].sent;
        self.under_way.insert(sight.id, (connection, sent.len()));
        let length = segment.payload.len() as u64;
        sent.push(SentData { at: sight.at, path: sight.path, from, length, copy, arrived: None, lost: false });
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        let Content::Segment(segment) = sight.content else { return };
        if condition == Condition::Damaged {
            return self.lose(sight.id);
        }
        if sight.host == self.receiver {
            let Some((connection, place)) = self.under_way.remove(&sight.id) else { return };
            let traced = &mut self.connections[connection];
            traced.sent[place].arrived = Some(sight.at);
            let SentData { from, length, .. } = traced.sent[place];
            let received = &mut self.state[connection].received;
            let before = received.held;
            received.take(from, from.wrapping_add(length));
            if received.held != before {
                traced.held.push((sight.at, received.held));
            }
        } else if sight.host == self.sender {
            let key = if sight.host == Host::Client { segment.flow.reversed() } else { segment.flow };
            let Some(connection) = self.flows.get(&key).map(|flow| flow.connection) else { return };
            let Some(first) = self.state[connection].first else { return };
            let Some(ack) = segment.options.dss().and_then(|dss| dss.data_ack) else { return };
            let acked = &mut self.connections[connection].acked;
            let last = acked.last().map_or(0, |(_, number)| *number);
            let number = ack.near(Dsn::new(first.get().wrapping_add(last))).get().wrapping_sub(first.get());
            // DATA_ACK of one below the first byte acknowledges only the handshake.
            if number > last && number != u64::MAX {
                acked.push((sight.at, number));
            }
        }
    }

    fn on_lost(&mut self, id: PacketId, _loss: Loss<'_>) {
        self.lose(id);
    }

    fn on_kept(&mut self, id: PacketId, _path: usize, _end: End) {
        // It may still arrive as part of another segment: counted neither as lost nor as received.
        self.under_way.remove(&id);
    }
}

impl TimelineObserver {
    fn lose(&mut self, id: PacketId) {
        if let Some((connection, place)) = self.under_way.remove(&id) {
            self.connections[connection].sent[place].lost = true;
        }
    }
}

impl Received {
    fn take(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from.max(self.next), to);
        if to <= from {
            return;
        }
        // Merges the range with those that it touches.
        let first = self.above.range(..=from).next_back().filter(|(_, end)| **end >= from).map_or(from, |(at, _)| *at);
        let touched: Vec<u64> = self.above.range(first..=to).map(|(at, _)| *at).collect();
        for at in touched {
            let end = self.above.remove(&at).expect("it was found just now");
            self.held -= end - at;
            (from, to) = (from.min(at), to.max(end));
        }
        if from == self.next {
            self.next = to;
        } else {
            self.above.insert(from, to);
            self.held += to - from;
        }
    }
}

/// Observer that passes each event to others, in their order.
pub struct All<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for All<'_> {
    fn on_sent(&mut self, sight: Sight<'_>, purpose: Option<Purpose>) {
        self.0.iter_mut().for_each(|it| it.on_sent(sight, purpose));
    }

    fn on_received(&mut self, sight: Sight<'_>, condition: Condition) {
        self.0.iter_mut().for_each(|it| it.on_received(sight, condition));
    }

    fn on_lost(&mut self, id: PacketId, loss: Loss<'_>) {
        self.0.iter_mut().for_each(|it| it.on_lost(id, loss));
    }

    fn on_kept(&mut self, id: PacketId, path: usize, end: End) {
        self.0.iter_mut().for_each(|it| it.on_kept(id, path, end));
    }

    fn watches_states(&self) -> bool {
        self.0.iter().any(|it| it.watches_states())
    }

    fn on_state(&mut self, state: &SessionState) {
        self.0.iter_mut().for_each(|it| it.on_state(state));
    }

    fn watches_endpoints(&self) -> bool {
        self.0.iter().any(|it| it.watches_endpoints())
    }

    fn on_event(&mut self, onlook: Onlook<'_>, connection: usize, id: ConnectionId, event: Event) {
        self.0.iter_mut().for_each(|it| it.on_event(onlook, connection, id, event));
    }

    fn on_rest(&mut self, onlook: Onlook<'_>) {
        self.0.iter_mut().for_each(|it| it.on_rest(onlook));
    }

    fn is_enough(&mut self) -> bool {
        // All are asked: each may count.
        let mut enough = false;
        for it in &mut self.0 {
            enough |= it.is_enough();
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Keep;
    use anabranch_scenario::{Origin, Scenario};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn scenario(rest: &str) -> Scenario {
        let paths = "[path.P1]\nrate = \"20mbit\"\nrtt = \"10ms\"\nloss = \"1%\"\n\
                     [path.P2]\nrate = \"10mbit\"\nrtt = \"80ms\"\nloss = \"1%\"\n";
        let catalogue = Arc::new(anabranch_policy::Catalogue::default());
        let none = |_: &str, _| Err(std::io::ErrorKind::NotFound.into());
        Scenario::read(&catalogue, "test", "test.toml", &format!("{paths}{rest}"), Origin::default(), &none).unwrap()
    }

    const FILES: &str = "[[workload]]\nkind = \"files\"\nsize = \"1MB\"\ncount = 2\n";

    /// With `opportunistic`, a copy can complete the file: its statistics are then closed while lost data is still
    /// repeated.
    #[test]
    fn each_byte_leaves_once_as_new_and_all_of_them_do() {
        for more in ["reinjection = \"opportunistic\"", "multipath = false"] {
            let rest = format!("{FILES}[host]\n{more}\n");
            let keep = Keep { timeline: true, ..Keep::default() };
            let run = crate::run(&scenario(&rest), 3, &keep).unwrap();
            let timeline = run.timeline.unwrap();
            let bytes: u64 = run.outcome.transfers.iter().map(|transfer| transfer.bytes).sum();
            let mut new = 0;
            for traced in &timeline.connections {
                let mut seen = BTreeSet::new();
                for sent in &traced.sent {
                    assert!(sent.copy != Copied::New || seen.insert(sent.from), "byte {} is new twice", sent.from);
                    new += if sent.copy == Copied::New { sent.length } else { 0 };
                }
                assert_eq!(traced.held.last().map_or(0, |(_, held)| *held), 0, "nothing waits in the end");
            }
            assert_eq!(new, bytes, "{rest}");
            let again = timeline.connections.iter().flat_map(|traced| &traced.sent);
            let again = again.filter(|sent| sent.copy == Copied::Retransmitted).count() as u64;
            assert!(again > 0, "a link that loses makes for retransmissions");
            // The engine counts FINs too, which hold no data: at most one on each subflow.
            let fins = run.measured.counted.count("retransmitted").checked_sub(again);
            assert!(
                fins.is_some_and(|fins| fins <= 4),
                "{again} of {}: {rest}",
                run.measured.counted.count("retransmitted")
            );
        }
    }

    #[test]
    fn watching_changes_nothing() {
        let scenario = scenario(FILES);
        let plain = crate::run(&scenario, 1, &Keep::default()).unwrap();
        let watched = crate::run(&scenario, 1, &Keep { timeline: true, ..Keep::default() }).unwrap();
        assert_eq!(plain.measured, watched.measured);
    }

    #[test]
    fn what_waits_is_counted_once() {
        let mut received = Received::default();
        for (from, to, held) in
            [(0, 10, 0), (20, 30, 10), (25, 35, 15), (40, 50, 25), (35, 40, 30), (5, 15, 30), (15, 20, 0), (10, 50, 0)]
        {
            received.take(from, to);
            assert_eq!(received.held, held, "after {from}..{to}");
        }
        assert_eq!(received.next, 50);
    }
}
