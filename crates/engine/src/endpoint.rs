//! A host's MPTCP: connections, and how segments, timers and applications reach them.

mod info;
mod loads;
mod paths;
mod remains;

use crate::chance::Chance;
use crate::chosen::Chosen;
use crate::connection::{Connection, Opening};
use crate::cookie::{Cookies, PendingJoins};
use crate::demux::Demux;
use crate::locals::Locals;
use crate::memory::Memory;
use crate::path_mtu::Mtus;
use crate::shared::{Route, Shared};
use crate::{
    Config, ConfigError, ConnectionId, ConnectionStats, Counters, Event, OpenError, ReadError, SubflowStats, Switch,
    Transmit, WriteError, connection,
};
use anabranch_units::{Bytes, Entropy, Instant, Secret, Seed, SubflowId};
use anabranch_wire::{Echo, FlowKey, Segment};
use bytes::Bytes as Data;
use remains::Remains;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use strangers::Refusals;

mod strangers;

/// A piece of a stream, or why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// The next bytes.
    Data(Data),
    /// All data that arrived was read; [`Event::Readable`] follows.
    Pending,
    /// The peer has closed its direction, and all of it was read.
    End,
}

impl Read {
    /// The bytes, if there are any.
    pub fn data(self) -> Option<Data> {
        match self {
            Read::Data(piece) => Some(piece),
            Read::Pending | Read::End => None,
        }
    }
}

/// The MPTCP of one host: its connections, without clock, sockets and threads.
///
/// # Duties of a driver
///
/// - It passes the present time to each call that asks for it. Time never runs backwards.
/// - It gives arriving segments whose TCP checksum is right to [`Endpoint::handle_segment`], and ICMP echoes to
///   [`Endpoint::handle_echo`].
/// - After each call it takes events from [`Endpoint::poll_event`] and sends what [`Endpoint::poll_transmit`] returns,
///   until both return `None`; then it sends what [`Endpoint::poll_echo`] returns.
/// - It calls [`Endpoint::handle_timeout`] at the time that [`Endpoint::poll_timeout`] returns, or later.
/// - After [`Event::Readable`] it calls [`Endpoint::read`] until that returns no [`Read::Data`], before the next
///   [`Endpoint::poll_transmit`]; after
///   [`Event::Writable`] it may [`write`](Endpoint::write) again; after [`Event::PeerFinished`] and its own last byte
///   it calls
///   [`Endpoint::shutdown`]; after [`Event::Closed`] or [`Event::Reset`] it reads what is left, and statistics, and
///   calls [`Endpoint::forget`].
///
/// Optional are [`Endpoint::handle_departure`] (for TCP Small Queues; then [`Config::reports_departures`] is set),
/// [`Endpoint::handle_too_big`] (for path MTU discovery), [`Endpoint::set_carrier`] (for interfaces that go down), and
/// [`Endpoint::reuse`] (for speed).
pub struct Endpoint {
    pub(crate) shared: Shared,
    pub(crate) connections: Vec<Slot>,
    free: Vec<u32>,
    listening: Vec<u16>,
    /// Deadlines, earliest first. Entries may be stale: a connection's own `armed` says which one counts.
    timers: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Connections whose handshake the peer has not completed, in no order.
    half_open: Vec<u32>,
    refusals: Refusals,
    /// Connections whose load may have changed; `None` unless the driver asked for it.
    changed: Option<Vec<u32>>,
    /// Connections that are gone and not forgotten.
    closed: BTreeMap<ConnectionId, Remains>,
}

pub(crate) struct Slot {
    generation: u32,
    pub(crate) connection: Option<Box<Connection>>,
    armed: Option<Instant>,
    queued: bool,
    /// Since the timer was armed, only expected data has arrived and been read.
    only_received: bool,
    /// Listed in `Endpoint::changed`.
    changed: bool,
    /// Position in `Endpoint::half_open`.
    half_open: Option<usize>,
}

impl Endpoint {
    /// Creates a host without connections. Its randomness derives from `seed` and can be predicted: for simulations and
    /// tests only.
    ///
    /// # Errors
    ///
    /// If a setting cannot be ([`Config::check`]).
    pub fn new(config: Config, seed: Seed) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Endpoint::with_chance(config, Chance::seeded(seed), Chance::seeded_cookies(seed)))
    }

    /// Creates a host without connections on a real network. `entropy` is of cryptographic quality (`getrandom`), so
    /// that an attacker off the path cannot guess keys, nonces, initial sequence numbers and ports.
    ///
    /// # Errors
    ///
    /// If a setting cannot be ([`Config::check`]).
    pub fn with_entropy(config: Config, entropy: &Entropy) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Endpoint::with_chance(config, Chance::secret(entropy), entropy.secret("cookies")))
    }

    fn with_chance(mut config: Config, chance: Chance, cookies: Secret) -> Self {
        let locals = Locals::new(std::mem::take(&mut config.addresses));
        config.profile.tsq = config.profile.tsq.filter(|_| config.reports_departures);
        config.receive_buffer = config.profile.window_of(config.receive_buffer);
        config.initial_receive_buffer = config.initial_receive_buffer.map(|initial| config.profile.window_of(initial));
        let shared = Shared {
            out: VecDeque::new(),
            spare: Vec::new(),
            events: VecDeque::new(),
            routes: Vec::new(),
            demux: Demux::new(config.ack_rewrite),
            counters: Counters::default(),
            tokens: BTreeMap::new(),
            chance,
            cookies: Cookies::new(cookies),
            pending_joins: PendingJoins::default(),
            mtus: Mtus::default(),
            memory: Memory::default(),
            truths: Vec::new(),
            down: Vec::new(),
            chosen: Chosen::default(),
            echoes: VecDeque::new(),
            #[cfg(test)]
            long_way: false,
            #[cfg(test)]
            short: 0,
            locals,
            config,
        };
        Endpoint {
            shared,
            connections: Vec::new(),
            free: Vec::new(),
            listening: Vec::new(),
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
            half_open: Vec::new(),
            refusals: Refusals::default(),
            changed: None,
            closed: BTreeMap::new(),
        }
    }

    /// Accepts connections to `port` on all addresses.
    pub fn listen(&mut self, port: u16) {
        if !self.listening.contains(&port) {
            self.listening.push(port);
        }
    }

    /// Accepts no further connections to `port`; those that it has go on, and may be joined.
    pub fn stop_listening(&mut self, port: u16) {
        self.listening.retain(|listening| *listening != port);
    }

    /// Opens a connection from `local`, or from another address if the first-path policy chooses one.
    /// [`Event::Connected`] or [`Event::Reset`] follows.
    ///
    /// # Errors
    ///
    /// If `local` is no address of this host, no path can lead to `remote`, or no port is left.
    pub fn open(&mut self, now: Instant, local: IpAddr, remote: SocketAddr) -> Result<ConnectionId, OpenError> {
        if !self.shared.locals.contains(local) {
            return Err(OpenError::NotLocal(local));
        }
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(OpenError::MixedFamilies { local, remote });
        }
        if remote.port() == 0 || remote.ip().is_unspecified() || remote.ip().is_multicast() {
            return Err(OpenError::Remote(remote));
        }
        let opening = Opening::plan(now, local, remote, &mut self.shared);
        let opening = opening.ok_or(OpenError::NoPort { local, remote })?;
        let id = self.allocate();
        let connection = Connection::open(now, id, opening, remote, &mut self.shared);
        self.settle(id, connection);
        Ok(id)
    }

    /// Hands data to a connection, which takes a prefix of it; returns the bytes taken. When they are fewer than
    /// offered, or when the buffer was full already, [`Event::Writable`] follows once there is room.
    ///
    /// # Errors
    ///
    /// After [`Endpoint::shutdown`], and if the connection is over.
    pub fn write(&mut self, id: ConnectionId, data: &Data) -> Result<usize, WriteError> {
        let slot = slot_mut(&mut self.connections, id).ok_or(WriteError::Gone)?;
        let connection = slot.connection.as_mut().ok_or(WriteError::Gone)?;
        connection.check_write()?;
        let taken = connection.write(data, &self.shared);
        self.touch(id.index);
        Ok(taken)
    }

    /// Allows data written before the peer's first answer to reach its application twice, as a GET may (RFC 9110
    /// §9.2.2). If the first path dies before the peer has heard of the connection, it then begins anew on another
    /// ([`Event::Reopened`]) instead of waiting.
    pub fn set_replayable(&mut self, id: ConnectionId) {
        if let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut()) {
            connection.set_replayable();
        }
    }

    /// Bytes `write` would take now. When there are none, only a `write` makes [`Event::Writable`] follow, even one of
    /// no bytes.
    pub fn write_space(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, |connection| connection.write_space(&self.shared))
    }

    /// Takes the next piece of a connection's stream. After [`Event::Closed`] and [`Event::Reset`] it goes on with what
    /// had arrived in order, until [`Endpoint::forget`]; then comes [`Read::End`] if the peer's stream was whole. No
    /// event tells of either.
    ///
    /// # Errors
    ///
    /// If there is no such connection, if we aborted it, or when all is read of a stream that a reset has cut off.
    pub fn read(&mut self, id: ConnectionId) -> Result<Read, ReadError> {
        let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut()) else {
            return self.closed.get_mut(&id).ok_or(ReadError)?.read();
        };
        if connection.is_given_up() {
            return Err(ReadError);
        }
        if let Some(piece) = connection.read(&mut self.shared) {
            self.touch_after(id.index, true);
            return Ok(Read::Data(piece.into()));
        }
        match connection.has_ended() {
            true => Ok(Read::End),
            false if connection.is_gone() => Err(ReadError),
            false => Ok(Read::Pending),
        }
    }

    /// Closes our direction after everything written has been sent (DATA_FIN).
    pub fn shutdown(&mut self, id: ConnectionId) {
        if let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut()) {
            connection.shutdown();
            self.touch(id.index);
        }
    }

    /// Gives a connection up at once (MP_FASTCLOSE, RST).
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, shared| connection.abort(now, shared));
    }

    /// Goes on with another policy, in all connections and those to come. Nothing that was sent or decided is taken
    /// back; what the old policy had in mind is forgotten.
    pub fn switch(&mut self, now: Instant, switch: &Switch) {
        self.shared.config.policies.switch(switch);
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index].connection {
                connection.switch(now, switch);
                self.touch(index as u32);
            }
        }
    }

    /// The same for one connection alone.
    pub fn switch_connection(&mut self, now: Instant, id: ConnectionId, switch: &Switch) {
        self.with(now, id, |connection, _| connection.switch(now, switch));
    }

    /// Requests that a subflow be used only as a backup, or withdraws the request (MP_PRIO).
    pub fn set_backup(&mut self, now: Instant, id: ConnectionId, subflow: SubflowId, backup: bool) {
        self.with(now, id, |connection, shared| {
            if let Some(slot) = connection.subflows.slot(subflow) {
                connection.set_backup(now, slot, backup, shared);
            }
        });
    }

    /// Closes one subflow of several with a FIN; what it carried is sent again on the others (RFC 8684 §3.3.3, §3.4.2).
    /// False if it is not open or the only one.
    pub fn close_subflow(&mut self, now: Instant, id: ConnectionId, subflow: SubflowId) -> bool {
        let mut closed = false;
        self.with(now, id, |connection, shared| {
            if let Some(slot) = connection.subflows.slot(subflow) {
                closed = connection.close_subflow(now, slot, shared);
            }
        });
        closed
    }

    /// Handles a segment that has arrived with a right TCP checksum. May take its payload out, and puts the addresses
    /// of an ACK back that came by way of another subflow's: read before what you need of it. Its memory is the
    /// caller's again, to be read into or given to [`Endpoint::reuse`].
    pub fn handle_segment(&mut self, now: Instant, segment: &mut Segment) {
        let flow = segment.flow.reversed();
        let Some((id, subflow)) = self.shared.demux.find(&flow).or_else(|| self.put_addresses_back(segment)) else {
            return self.handle_stranger(now, segment);
        };
        let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut()) else {
            return;
        };
        let mut expected = false;
        if let Some(slot) = connection.subflows.slot(subflow) {
            expected = connection.handle_segment(now, slot, segment, &mut self.shared);
            connection.note_progress(now);
        }
        self.touch_after(id.index, expected);
        if !self.shared.routes.is_empty() {
            self.apply_routes();
        }
    }

    /// The subflow of ours that `came_as` (as we would send it) may belong to by its ports, between the addresses of
    /// another subflow of the same connection; with its own flow. `None` also if there are several.
    fn by_detour(&self, came_as: &FlowKey) -> Option<(FlowKey, (ConnectionId, SubflowId))> {
        let takes = |owner: &(ConnectionId, SubflowId)| {
            self.get(owner.0).is_some_and(|connection| connection.takes_detour(owner.1, came_as))
        };
        let mut owners = self.shared.demux.with_ports(came_as).iter().filter(|(_, owner)| takes(owner));
        let found = owners.next().copied();
        found.filter(|_| owners.next().is_none())
    }

    /// A pure ACK of one of our subflows may have come by way of the addresses of another of the same connection, if
    /// both ends have agreed to that. Nothing else is taken from between addresses that are not its subflow's own.
    fn put_addresses_back(&mut self, segment: &mut Segment) -> Option<(ConnectionId, SubflowId)> {
        if !self.shared.config.ack_rewrite || !connection::is_pure_ack(segment) {
            return None;
        }
        let (flow, owner) = self.by_detour(&segment.flow.reversed())?;
        segment.flow = flow.reversed();
        if let Some(connection) = slot_mut(&mut self.connections, owner.0).and_then(|slot| slot.connection.as_mut()) {
            connection.stats.acks_restored += 1;
        }
        Some(owner)
    }

    /// An echo request or reply has arrived. Its checksum was right. A request to one of our addresses is answered.
    pub fn handle_echo(&mut self, now: Instant, echo: Echo) {
        if !self.is_local(echo.destination) {
            return;
        }
        if !echo.reply {
            return self.shared.echo(echo.answer());
        }
        // A request of ours bears the lower half of its connection's number.
        for slot in self.connections.iter_mut().skip(usize::from(echo.identifier)).step_by(1 << 16) {
            if let Some(connection) = &mut slot.connection {
                connection.on_echo_reply(now, &echo);
            }
        }
    }

    /// The next echo request or reply to send.
    pub fn poll_echo(&mut self) -> Option<Echo> {
        self.shared.echoes.pop_front()
    }

    /// Tells that the first hop has sent a packet of `size` bytes ([`Transmit::size`], [`Transmit::tag`]), for TCP
    /// Small Queues; see [`Config::reports_departures`].
    pub fn handle_departure(&mut self, tag: u64, size: Bytes) {
        let (index, generation, subflow) = ((tag >> 32) as u32, (tag >> 16) as u16, SubflowId(tag as u16));
        let Some(slot) = self.connections.get_mut(index as usize) else { return };
        if slot.generation as u16 == generation
            && let Some(connection) = &mut slot.connection
        {
            connection.departed(subflow, size.get());
            self.touch(index);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(Reverse((at, index, generation))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let slot = &mut self.connections[index as usize];
            if slot.generation != generation || slot.armed != Some(at) {
                continue;
            }
            slot.armed = None;
            if let Some(connection) = &mut slot.connection
                && connection.next_deadline().is_some_and(|deadline| deadline <= now)
            {
                connection.on_deadline(now, &mut self.shared);
            }
            self.touch(index);
            self.apply_routes();
        }
    }

    /// The next segment to send.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        loop {
            if let Some(transmit) = self.shared.out.pop_front() {
                return Some(transmit);
            }
            let index = self.ready.pop_front()?;
            self.transmit(now, index);
        }
    }

    /// Lets a connection put what it may send now into the queue, and arms its timer.
    fn transmit(&mut self, now: Instant, index: u32) {
        let slot = &mut self.connections[index as usize];
        slot.queued = false;
        let Some(connection) = &mut slot.connection else { return };
        let at_rest = connection.transmit(now, &mut self.shared);
        let only_received = std::mem::replace(&mut slot.only_received, true) && at_rest;
        if only_received {
            let deadline = connection.receiving_deadline();
            self.note_change(index);
            return self.arm_no_later(index, deadline);
        }
        if !self.shared.routes.is_empty() {
            self.apply_routes();
        }
        self.arm(index);
    }

    /// Takes the memory of a segment for one that is to be sent, so that the steady state allocates none. Optional. The
    /// segment is cleared; a few thousand are kept, and what is beyond is freed.
    pub fn reuse(&mut self, segment: Box<Segment>) {
        self.shared.reuse(segment);
    }

    /// Returns the time at which to call `handle_timeout`; may be too early.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// Returns the same as [`Endpoint::poll_timeout`], but never too early. Deadlines that have moved are looked up
    /// again, and connections in TIME-WAIT, whose end may be late, share a timer. For drivers to which a needless call
    /// costs more than that.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, index, generation))) = self.timers.peek().copied() {
            let slot = &mut self.connections[index as usize];
            let is_current = slot.generation == generation && slot.armed == Some(at);
            let connection = slot.connection.as_mut().filter(|_| is_current);
            let due = connection.and_then(|it| it.next_deadline().map(|at| it.latest(at)));
            if due.is_some_and(|due| due <= at) {
                return Some(at);
            }
            self.timers.pop();
            if is_current {
                slot.armed = due;
                self.timers.extend(due.map(|due| Reverse((due, index, generation))));
            }
        }
        None
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.shared.events.pop_front()
    }

    /// Returns true if [`Endpoint::poll_event`] has an event.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.shared.events.is_empty()
    }

    /// Gives `key` to the next connection in place of a random one, unless its token is taken. Needs the feature
    /// `test-hooks`.
    #[cfg(any(test, feature = "test-hooks"))]
    pub fn set_next_key(&mut self, key: anabranch_units::Key) {
        self.shared.chosen.add_key(key);
    }

    /// Makes the stream of the host with `key` begin after `idsn` in place of the key's hash (RFC 8684 §3.1), so that
    /// it wraps soon. Both ends must agree. Needs the feature `test-hooks`.
    #[cfg(any(test, feature = "test-hooks"))]
    pub fn pin_idsn(&mut self, key: anabranch_units::Key, idsn: anabranch_units::Dsn) {
        self.shared.chosen.pin(key, idsn);
    }

    /// Returns the statistics of a connection; `None` for an unknown id. They are kept after its end, until
    /// [`Endpoint::forget`].
    pub fn connection_stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        let alive = self.get(id).map(Connection::stats);
        alive.or_else(|| self.closed.get(&id).map(|remains| remains.stats.clone()))
    }

    /// Returns the statistics of a connection's subflows, in the order of their ids and with those that are gone; empty
    /// for an unknown connection. They are kept as long as those of the connection.
    pub fn subflow_stats(&self, id: ConnectionId) -> Vec<SubflowStats> {
        let alive = self.get(id).map(Connection::subflow_stats);
        alive.or_else(|| self.closed.get(&id).map(|remains| remains.subflows.clone())).unwrap_or_default()
    }

    /// Drops what is left of a connection that is gone, unread data included. The right place is where the application
    /// hears of its end, which is a little before the connection is taken down.
    pub fn forget(&mut self, id: ConnectionId) {
        self.closed.remove(&id);
        if let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut()) {
            connection.forgotten |= connection.is_gone();
        }
    }

    /// Returns the number of connections alive; those that are kept for their statistics do not count.
    pub fn connection_count(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// Returns the counters of the endpoint.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Looks for a broken invariant in everything the endpoint holds; for tests, after the queues are drained.
    pub fn check(&self, now: Instant) -> Result<(), String> {
        for (index, slot) in self.connections.iter().enumerate() {
            let Some(connection) = &slot.connection else { continue };
            connection.check(now, &self.shared).map_err(|fault| format!("connection {index}: {fault}"))?;
            let deadline = connection.deadline().map(|at| connection.latest(at));
            if deadline.is_some_and(|deadline| slot.armed.is_none_or(|armed| armed > deadline)) {
                return Err(format!("connection {index}: due at {deadline:?}, armed for {:?}", slot.armed));
            }
        }
        Ok(())
    }

    fn with(&mut self, _now: Instant, id: ConnectionId, act: impl FnOnce(&mut Connection, &mut Shared)) {
        if let Some(connection) = slot_mut(&mut self.connections, id).and_then(|slot| slot.connection.as_mut()) {
            act(connection, &mut self.shared);
            self.touch(id.index);
            self.apply_routes();
        }
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.connections.get(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        slot.connection.as_deref()
    }

    fn allocate(&mut self) -> ConnectionId {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.connections[index as usize];
            slot.generation = slot.generation.wrapping_add(1);
            return ConnectionId { index, generation: slot.generation };
        }
        let index = self.connections.len() as u32;
        let slot = Slot {
            generation: 0,
            connection: None,
            armed: None,
            queued: false,
            only_received: false,
            changed: false,
            half_open: None,
        };
        self.connections.push(slot);
        ConnectionId { index, generation: 0 }
    }

    fn settle(&mut self, id: ConnectionId, connection: Connection) {
        self.connections[id.index as usize].connection = Some(Box::new(connection));
        self.touch(id.index);
        self.apply_routes();
    }

    /// The connection may have something to send, and its deadline may have moved.
    fn touch(&mut self, index: u32) {
        self.touch_after(index, false);
    }

    /// The same, where `only_received` says that nothing was done but to take in expected data, or to read some.
    #[inline]
    fn touch_after(&mut self, index: u32, only_received: bool) {
        self.note_change(index);
        let slot = &mut self.connections[index as usize];
        slot.only_received &= only_received;
        let Some(connection) = slot.connection.as_mut() else { return };
        connection.subflows.settle();
        if connection.is_half_open() != slot.half_open.is_some() {
            self.turn_half_open(index);
        }
        if !std::mem::replace(&mut self.connections[index as usize].queued, true) {
            self.ready.push_back(index);
        }
    }

    /// The connection is half-open now, or no longer.
    #[cold]
    fn turn_half_open(&mut self, index: u32) {
        let slot = &mut self.connections[index as usize];
        if slot.half_open.is_some() {
            return self.leave_half_open(index);
        }
        slot.half_open = Some(self.half_open.len());
        self.half_open.push(index);
    }

    fn leave_half_open(&mut self, index: u32) {
        let Some(at) = self.connections[index as usize].half_open.take() else { return };
        self.half_open.swap_remove(at);
        if let Some(moved) = self.half_open.get(at) {
            self.connections[*moved as usize].half_open = Some(at);
        }
    }

    /// Takes the connection's deadline into the heap if it is earlier than what stands there, or buries the connection.
    fn arm(&mut self, index: u32) {
        self.note_change(index);
        let slot = &mut self.connections[index as usize];
        let Some(connection) = &mut slot.connection else { return };
        if connection.is_gone() {
            let id = ConnectionId { index, generation: slot.generation };
            if connection.is_known() && !connection.forgotten {
                self.closed.insert(id, Remains::of(connection));
            }
            self.shared.counters.refused_data += connection.refused();
            slot.connection = None;
            slot.armed = None;
            self.leave_half_open(index);
            self.free.push(index);
            if self.free.len() == self.connections.len() {
                self.timers.clear();
            }
            return;
        }
        let deadline = connection.next_deadline();
        self.arm_no_later(index, deadline);
    }

    /// Takes a deadline of the connection into the heap if it is earlier than what stands there.
    #[inline]
    fn arm_no_later(&mut self, index: u32, deadline: Option<Instant>) {
        let slot = &mut self.connections[index as usize];
        if let Some(deadline) = deadline
            && slot.armed.is_none_or(|armed| deadline < armed)
        {
            slot.armed = Some(deadline);
            self.timers.push(Reverse((deadline, index, slot.generation)));
        }
        let exact = || slot.connection.as_ref().and_then(|connection| connection.deadline());
        let covers = |exact| slot.armed.is_some_and(|armed| armed <= exact);
        debug_assert!(exact().is_none_or(covers), "no timer is missed");
    }

    fn apply_routes(&mut self) {
        for route in self.shared.routes.drain(..) {
            match route {
                Route::Add(flow, id, subflow) => self.shared.demux.add(flow, (id, subflow)),
                Route::Remove(flow) => self.shared.demux.remove(&flow),
                Route::AddToken(token, id) => {
                    self.shared.tokens.entry(token).or_insert(id);
                }
                Route::RemoveToken(token, id) => {
                    if self.shared.tokens.get(&token) == Some(&id) {
                        self.shared.tokens.remove(&token);
                    }
                }
            }
        }
    }
}

fn slot_mut(connections: &mut [Slot], id: ConnectionId) -> Option<&mut Slot> {
    connections.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)
}
