//! The connections and subflows that events are about, and their counts.
//!
//! Some tracepoints tell only DSNs. Those begin at a random place of 64 bits, so that a DSN close to that of a
//! connection is one of its own.

use super::event::{self, Candidate, Ends, Event, Fault, Identity, Kind, Raw};
use crate::sys::monotonic;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Connections that are asked for.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Every one.
    All,
    /// Those whose socket has one of these inodes.
    Sockets(BTreeSet<u32>),
    /// Those whose socket belongs to one of these control groups, by their ids.
    Groups(BTreeSet<u64>),
}

/// State of all connections.
#[derive(Debug)]
pub struct Picture {
    /// Monotonic clock when the watch began \[ns\].
    beginning: u64,
    wanted: Wanted,
    connections: BTreeMap<Key, Connection>,
    /// Events whose connection is not known, such as acknowledgments of one that sends nothing.
    unassigned: u64,
    /// Connections that had to make room for others.
    forgotten: u64,
    /// Mapping that arrived last on each processor: what follows tells on which subflow.
    mappings: BTreeMap<u32, Arrived>,
    /// Connection that data were sent on last.
    latest: Option<Key>,
    /// End of the last interval, and lost events until then.
    interval: (u64, u64, u64),
}

/// DSN and length of a mapping, and if it ends the data of the connection.
type Arrived = (u64, u64, bool);

/// Network namespace and token.
type Key = (u32, u32);

/// A connection.
#[derive(Debug, Default)]
struct Connection {
    /// It was asked for.
    wanted: bool,
    /// First DSN that was not acknowledged when it was seen first.
    base: u64,
    una: u64,
    /// End of the data that were sent.
    sent_end: u64,
    /// End of the other host's window, once a DATA_ACK told it.
    window_end: Option<u64>,
    /// Subflows that the scheduler looks at, and the time: a decision that no data has followed yet.
    candidates: Vec<Candidate>,
    asked: f64,
    subflows: Vec<Subflow>,
    heard: u64,
    count: Tally<ConnectionCount>,
}

/// Counts of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionCount {
    decisions: u64,
    without_data: u64,
    unexpected: u64,
    data_acks: u64,
    data_acked: u64,
    sent_again: u64,
}

/// A subflow; its number is its place, from 1.
#[derive(Debug)]
struct Subflow {
    ends: Ends,
    /// It was told of.
    told: bool,
    latest: Option<Candidate>,
    /// Place in the subflow of the mapping that comes next.
    place: Option<u32>,
    /// DSN, place and length of the latest, which grows with what is put into the same packet.
    mapping: (u64, u32, u64),
    /// The latest mapping that arrived.
    arrived: Option<Arrived>,
    /// TCP's counters of sent and repeated bytes, at first and now.
    tcp: Option<[(u64, u64); 2]>,
    count: Tally<SubflowCount>,
}

/// Counts of a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct SubflowCount {
    considered: u64,
    chosen: u64,
    sent: u64,
    mappings: u64,
    mapped: u64,
    errors: u64,
}

/// Counts from the beginning, and those at the end of the last interval.
#[derive(Clone, Copy, Debug, Default)]
struct Tally<T> {
    now: T,
    before: T,
}

/// Counts of an interval, or of the whole watch.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Time since the watch began \[s\].
    pub time: f64,
    /// Length of the interval \[s\].
    pub seconds: f64,
    /// Events for which the ring buffer had no room.
    pub lost: u64,
    /// Events whose connection is not known.
    pub unassigned: u64,
    /// Connections that were asked for and forgotten to make room for others, those first that were silent for longest.
    pub forgotten: u64,
    /// The connections.
    pub connections: Vec<ConnectionReport>,
}

/// Counts of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ConnectionReport {
    /// Token, in hexadecimal digits.
    pub connection: String,
    /// Number of the network namespace.
    pub namespace: u32,
    /// Times that the scheduler was asked for a subflow.
    pub decisions: u64,
    /// Of these, times that no data left before the next.
    pub without_data: u64,
    /// Of these, times that data went to another subflow than the rule of Linux gives from what the scheduler saw.
    pub unexpected: u64,
    /// DATA_ACKs that acknowledged something or opened the window further.
    pub data_acks: u64,
    /// Data that they acknowledged \[bytes\].
    pub data_acked: u64,
    /// Data that were sent and are not acknowledged \[bytes\].
    pub outstanding: u64,
    /// Data that were sent again on another subflow \[bytes\].
    pub sent_again: u64,
    /// The subflows, in the order in which they were seen.
    pub subflows: Vec<SubflowReport>,
}

/// Counts of a subflow.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SubflowReport {
    /// Number in its connection.
    pub subflow: u32,
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the other host.
    pub remote: SocketAddr,
    /// Times that the scheduler looked at it.
    pub considered: u64,
    /// Times that the scheduler took it: data went to it then.
    pub chosen: u64,
    /// Data given to it, those included that are sent again \[bytes\].
    pub sent: u64,
    /// Rate of these \[Mbit/s\].
    pub sent_mbit_s: f64,
    /// Bytes that TCP sent on it between the first and the latest look of the scheduler, repeated ones included, since
    /// the watch began \[bytes\].
    pub tcp_sent: u64,
    /// Of these, repeated ones \[bytes\].
    pub tcp_repeated: u64,
    /// Mappings that arrived.
    pub mappings: u64,
    /// Data that they mapped \[bytes\].
    pub mapped: u64,
    /// Times that data arrived without a mapping that could be used.
    pub mapping_errors: u64,
    /// State when the scheduler looked at it last; `null` if it never did.
    pub latest: Option<Candidate>,
}

/// Connections that are remembered.
const MOST: usize = 4096;

/// DSNs that are so close are of one connection \[bytes\].
const CLOSE: u64 = 1 << 32;

impl Picture {
    /// A picture without connections; times count from now.
    pub fn new(wanted: Wanted) -> Self {
        let beginning = monotonic().as_nanos();
        Picture {
            beginning,
            wanted,
            connections: BTreeMap::new(),
            unassigned: 0,
            forgotten: 0,
            mappings: BTreeMap::new(),
            latest: None,
            interval: (beginning, 0, 0),
        }
    }

    /// Connections are asked for anew: sockets of a process come and go. Those that were found stay.
    pub fn set_wanted(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// Takes an event in, and tells what it says about connections that are asked for.
    pub fn take(&mut self, raw: &Raw, tell: &mut impl FnMut(Event)) {
        // What arrived on this processor is judged by this event or not at all.
        let mapping = (raw.kind == Kind::Status).then(|| self.mappings.remove(&raw.cpu)).flatten();
        // A connection that is being taken down has no token any more.
        if raw.connection.is_some_and(|identity| identity.token == 0) {
            return;
        }
        let time = raw.time.saturating_sub(self.beginning) as f64 / 1e9;
        let key = match &raw.connection {
            Some(identity) => Some(self.enter(identity, raw.time)),
            None => self.of_dsn(raw),
        };
        // A mapping says nothing of its subflow; the judgment on it, which follows on the same processor, does.
        if raw.kind == Kind::Mapping {
            let [dsn, _, length, fin, ..] = raw.values;
            // The end of the data takes a DSN as a byte does.
            self.mappings.insert(raw.cpu, (dsn, length.saturating_sub(fin), fin != 0));
            return;
        }
        let Some((key, connection)) = key.and_then(|key| Some((key, self.connections.get_mut(&key)?))) else {
            self.unassigned += 1;
            return;
        };
        connection.heard = raw.time;
        let token = || format!("{:x}", key.1);
        let wanted = connection.wanted;
        let mut tell = |event| {
            if wanted {
                tell(event)
            }
        };
        let subflow = raw.subflow.map(|ends| {
            let subflow = connection.subflow(ends);
            // Not before the connection is one of those asked for.
            if wanted && connection.numbered(subflow).is_some_and(|it| !std::mem::replace(&mut it.told, true)) {
                let (local, remote) = ends;
                tell(Event::Subflow { time, connection: token(), namespace: key.0, subflow, local, remote });
            }
            subflow
        });
        match (raw.kind, subflow) {
            (Kind::Candidate, Some(subflow)) => {
                // Each is looked at once, so that this one belongs to the next decision.
                if connection.candidates.iter().any(|other| other.subflow == subflow)
                    && let Some((asked, expected, candidates)) = connection.decide(None)
                {
                    tell(Event::Decision { time: asked, connection: token(), chosen: None, expected, candidates });
                }
                if connection.candidates.is_empty() {
                    connection.asked = time;
                }
                connection.look_at(subflow, raw);
            }
            (Kind::Sent, _) => {
                let [dsn, place, length, ..] = raw.values;
                let subflow = connection.subflow_of(dsn, place as u32, length);
                // Data that are sent again go to a subflow that no tracepoint tells of, unless the scheduler is asked.
                let is_choice = !connection.is_again(dsn, length) || subflow == expected(&connection.candidates);
                let chosen = subflow.filter(|_| is_choice);
                if let Some((asked, expected, candidates)) = connection.decide(chosen) {
                    tell(Event::Decision { time: asked, connection: token(), chosen, expected, candidates });
                }
                let (bytes, again) = connection.send(subflow, dsn, place as u32, length);
                let offset = dsn.wrapping_sub(connection.base) as i64;
                tell(Event::Sent { time, connection: token(), subflow, offset, bytes, again });
            }
            (Kind::DataAck, _) => {
                let [_, _, una, window_end, ..] = raw.values;
                let Some(bytes) = connection.acknowledge(una, window_end) else { return };
                let offset = una.wrapping_sub(connection.base) as i64;
                let window = window_end.wrapping_sub(una);
                tell(Event::DataAck { time, connection: token(), offset, bytes, window });
            }
            (Kind::Status, Some(subflow)) => {
                let Some(known) = connection.numbered(subflow) else { return };
                let count = &mut known.count.now;
                // Every packet of its data repeats it.
                if let Some((_, bytes, data_fin)) = mapping.filter(|_| known.arrived != mapping) {
                    known.arrived = mapping;
                    count.mappings += 1;
                    count.mapped += bytes;
                    tell(Event::Mapping { time, connection: token(), subflow, bytes, data_fin });
                }
                if let Some(fault) = Fault::of(raw.values[0]) {
                    count.errors += 1;
                    tell(Event::MappingError { time, connection: token(), subflow, fault });
                }
            }
            // A socket that is no subflow any more.
            (Kind::Candidate | Kind::Status | Kind::Mapping, _) => {}
        }
    }

    /// Finds the connection of an event, and notes it if it is new.
    fn enter(&mut self, identity: &Identity, time: u64) -> Key {
        let key = (identity.namespace, identity.token);
        if !self.connections.contains_key(&key) {
            if self.connections.len() >= MOST
                && let Some(oldest) =
                    self.connections.iter().min_by_key(|(_, it)| (it.wanted, it.heard)).map(|(key, _)| *key)
            {
                let gone = self.connections.remove(&oldest);
                self.forgotten += u64::from(gone.is_some_and(|it| it.wanted));
            }
            let (una, next) = (identity.una, identity.next);
            let fresh = Connection { base: una, una, sent_end: next, heard: time, ..Connection::default() };
            self.connections.insert(key, fresh);
        }
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.wanted |= match &self.wanted {
                Wanted::All => true,
                Wanted::Sockets(inodes) => u32::try_from(identity.inode).is_ok_and(|inode| inodes.contains(&inode)),
                Wanted::Groups(groups) => groups.contains(&identity.cgroup),
            };
        }
        key
    }

    /// Finds the connection that an event with DSNs alone is about.
    fn of_dsn(&mut self, raw: &Raw) -> Option<Key> {
        let (dsn, place): (u64, fn(&Connection) -> u64) = match raw.kind {
            Kind::Sent => (raw.values[0], |connection| connection.sent_end),
            Kind::DataAck => (raw.values[1], |connection| connection.una),
            _ => return None,
        };
        let is_close = |connection: &Connection| (dsn.wrapping_sub(place(connection)) as i64).unsigned_abs() < CLOSE;
        if let Some(key) = self.latest
            && self.connections.get(&key).is_some_and(is_close)
        {
            return Some(key);
        }
        let found = self.connections.iter().find(|(_, connection)| is_close(connection)).map(|(key, _)| *key);
        self.latest = found.or(self.latest);
        found
    }

    /// Ends an interval, with `lost` events since the watch began.
    pub fn interval(&mut self, lost: u64) -> Report {
        let now = monotonic().as_nanos();
        let (from, lost_before, unassigned_before) = self.interval;
        let report =
            self.report((from, now), (lost.saturating_sub(lost_before), self.unassigned - unassigned_before), false);
        self.interval = (now, lost, self.unassigned);
        for connection in self.connections.values_mut() {
            connection.count.before = connection.count.now;
            connection.subflows.iter_mut().for_each(|subflow| subflow.count.before = subflow.count.now);
        }
        report
    }

    /// Counts since the watch began.
    pub fn whole(&self, lost: u64) -> Report {
        let now = monotonic().as_nanos();
        self.report((self.beginning, now), (lost, self.unassigned), true)
    }

    /// Connections of which something was heard in this time.
    fn report(&self, (from, now): (u64, u64), (lost, unassigned): (u64, u64), whole: bool) -> Report {
        let seconds = now.saturating_sub(from) as f64 / 1e9;
        let shown = |connection: &&Connection| connection.wanted && connection.heard >= from;
        let connections = self.connections.iter().filter(|(_, connection)| shown(connection));
        Report {
            time: now.saturating_sub(self.beginning) as f64 / 1e9,
            seconds,
            lost,
            unassigned,
            forgotten: self.forgotten,
            connections: connections.map(|(key, connection)| connection.report(*key, seconds, whole)).collect(),
        }
    }
}

impl Connection {
    /// The number of a subflow, which may be new.
    fn subflow(&mut self, ends: Ends) -> u32 {
        let known = self.subflows.iter().position(|subflow| subflow.ends == ends);
        if known.is_none() {
            self.subflows.push(Subflow {
                ends,
                told: false,
                latest: None,
                place: None,
                mapping: (0, 0, 0),
                arrived: None,
                tcp: None,
                count: Tally::default(),
            });
        }
        known.unwrap_or(self.subflows.len() - 1) as u32 + 1
    }

    fn numbered(&mut self, number: u32) -> Option<&mut Subflow> {
        self.subflows.get_mut((number as usize).checked_sub(1)?)
    }

    /// The scheduler looks at a subflow.
    fn look_at(&mut self, number: u32, raw: &Raw) {
        let [pacing, mean, queued, sent, repeated, srtt, place, _] = raw.values;
        // The first time, the scheduler takes the rate itself for its mean.
        let mean = if mean == 0 { pacing } else { mean };
        let candidate = Candidate {
            subflow: number,
            active: raw.flags & event::ACTIVE != 0,
            backup: raw.flags & event::BACKUP != 0,
            free: raw.flags & event::FREE != 0,
            stale: raw.flags & event::STALE != 0,
            pacing_mbit_s: (pacing != u64::MAX).then_some(pacing as f64 * 8e-6),
            queued,
            queued_ms: (mean > 0).then(|| queued as f64 / mean as f64 * 1e3),
            cwnd: raw.cwnd,
            srtt_ms: srtt as f64 / 1e3,
        };
        self.candidates.push(candidate.clone());
        let Some(subflow) = self.numbered(number) else { return };
        subflow.count.now.considered += 1;
        subflow.place = Some(place as u32);
        let first = subflow.tcp.map_or((sent, repeated), |[first, _]| first);
        subflow.tcp = Some([first, (sent, repeated)]);
        subflow.latest = Some(candidate);
    }

    /// The subflow that takes a mapping: that whose latest it extends or follows, or else that where it comes next.
    fn subflow_of(&self, dsn: u64, place: u32, length: u64) -> Option<u32> {
        let numbered = || (1..).zip(&self.subflows);
        let goes_on = |subflow: &Subflow| {
            let (last_dsn, last_place, last) = subflow.mapping;
            let extends = (last_dsn, last_place) == (dsn, place) && last < length;
            let end = (last_dsn.wrapping_add(last), last_place.wrapping_add(last as u32));
            extends || (last > 0 && subflow.place == Some(place) && end == (dsn, place))
        };
        if let Some((number, _)) = numbered().find(|(_, subflow)| goes_on(subflow)) {
            return Some(number);
        }
        let next = numbered().filter(|(_, subflow)| subflow.place == Some(place));
        let numbers: Vec<u32> = next.map(|(number, _)| number).collect();
        // All begin at the same place: then the rule says which.
        let expected = expected(&self.candidates).filter(|number| numbers.contains(number));
        expected.or(numbers.first().copied())
    }

    /// Ends a decision, if one is open: data went to this subflow then, or none left before the next decision. Returns
    /// its time, the subflow that the rule gives, and those that the scheduler looked at.
    fn decide(&mut self, chosen: Option<u32>) -> Option<(f64, Option<u32>, Vec<Candidate>)> {
        if self.candidates.is_empty() {
            return None;
        }
        let candidates = std::mem::take(&mut self.candidates);
        let expected = expected(&candidates);
        let count = &mut self.count.now;
        count.decisions += 1;
        match chosen {
            None => count.without_data += 1,
            Some(_) => count.unexpected += u64::from(chosen != expected),
        }
        if let Some(subflow) = chosen.and_then(|number| self.numbered(number)) {
            subflow.count.now.chosen += 1;
        }
        Some((self.asked, expected, candidates))
    }

    /// True if all of these data were sent before.
    fn is_again(&self, dsn: u64, length: u64) -> bool {
        (dsn.wrapping_add(length).wrapping_sub(self.sent_end) as i64) <= 0
    }

    /// Data leave. Returns how many there are in addition to those of the mapping that it extends, and if they are sent
    /// again.
    fn send(&mut self, subflow: Option<u32>, dsn: u64, place: u32, length: u64) -> (u64, bool) {
        let again = self.is_again(dsn, length);
        let mut bytes = length;
        if let Some(subflow) = subflow.and_then(|number| self.numbered(number)) {
            let (last_dsn, last_place, last) = subflow.mapping;
            if (last_dsn, last_place) == (dsn, place) && last < length {
                bytes -= last;
            }
            subflow.mapping = (dsn, place, length);
            subflow.place = Some(place.wrapping_add(length as u32));
            subflow.count.now.sent += bytes;
        }
        if again {
            self.count.now.sent_again += bytes;
        } else {
            self.sent_end = dsn.wrapping_add(length);
        }
        (bytes, again)
    }

    /// Data are acknowledged up to this DSN, and more is admitted up to `window_end`. Returns how many of them for the
    /// first time; `None` for an acknowledgment that only repeats another, or was overtaken by one.
    fn acknowledge(&mut self, una: u64, window_end: u64) -> Option<u64> {
        let bytes = (una.wrapping_sub(self.una) as i64).max(0) as u64;
        let opens = self.window_end.is_some_and(|end| (window_end.wrapping_sub(end) as i64) > 0);
        if opens || self.window_end.is_none() {
            self.window_end = Some(window_end);
        }
        (bytes > 0 || opens).then_some(())?;
        self.una = self.una.wrapping_add(bytes);
        // Its end counts as a byte, which no mapping of data tells.
        if (self.una.wrapping_sub(self.sent_end) as i64) > 0 {
            self.sent_end = self.una;
        }
        self.count.now.data_acks += 1;
        self.count.now.data_acked += bytes;
        Some(bytes)
    }

    fn report(&self, (namespace, token): Key, seconds: f64, whole: bool) -> ConnectionReport {
        let (now, before) = (self.count.now, if whole { ConnectionCount::default() } else { self.count.before });
        let subflows = self.subflows.iter().enumerate();
        ConnectionReport {
            connection: format!("{token:x}"),
            namespace,
            decisions: now.decisions - before.decisions,
            without_data: now.without_data - before.without_data,
            unexpected: now.unexpected - before.unexpected,
            data_acks: now.data_acks - before.data_acks,
            data_acked: now.data_acked - before.data_acked,
            outstanding: self.sent_end.wrapping_sub(self.una),
            sent_again: now.sent_again - before.sent_again,
            subflows: subflows.map(|(at, subflow)| subflow.report(at as u32 + 1, seconds, whole)).collect(),
        }
    }
}

impl Subflow {
    fn report(&self, number: u32, seconds: f64, whole: bool) -> SubflowReport {
        let (now, before) = (self.count.now, if whole { SubflowCount::default() } else { self.count.before });
        let sent = now.sent - before.sent;
        let [first, last] = self.tcp.unwrap_or_default();
        SubflowReport {
            subflow: number,
            local: self.ends.0,
            remote: self.ends.1,
            considered: now.considered - before.considered,
            chosen: now.chosen - before.chosen,
            sent,
            sent_mbit_s: if seconds > 0.0 { sent as f64 * 8e-6 / seconds } else { 0.0 },
            tcp_sent: last.0.saturating_sub(first.0),
            tcp_repeated: last.1.saturating_sub(first.1),
            mappings: now.mappings - before.mappings,
            mapped: now.mapped - before.mapped,
            mapping_errors: now.errors - before.errors,
            latest: self.latest.clone(),
        }
    }
}

/// The rule of `mptcp_subflow_get_send`: the least time in the queue, of the subflows that are not spared if one of
/// them is active; none if that one has no room.
fn expected(candidates: &[Candidate]) -> Option<u32> {
    let active = candidates.iter().filter(|candidate| candidate.active);
    let spares = active.clone().any(|candidate| !candidate.backup);
    let of = active.filter(|candidate| candidate.queued_ms.is_some() && candidate.backup != spares);
    let time = |candidate: &Candidate| candidate.queued_ms.unwrap_or(f64::INFINITY);
    // The first of equals.
    let best = of.reduce(|best, other| if time(other) < time(best) { other } else { best });
    best.filter(|best| best.free).map(|best| best.subflow)
}
